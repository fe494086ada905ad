"""The artifact of each dataset in `dvc.yaml`: alone, or with the stages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from registry_support import write

pytest.importorskip("ruamel.yaml", reason="the extra `dvc` is not installed")

from ruamel.yaml import YAML

from tfrecreg.builtin.dvc.pipeline import Changes, pipeline
from tfrecreg.cli.main import main
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.errors import UsageError

SOURCE = 'source = "mnist"\nraw = "raw"\n'
DATASETS = {
    "digits": f'{SOURCE}description = "Digits: \\"7\\" costs ${{price}}"\n',
    "pets_": SOURCE,
    "adopted": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init(tmp_path, with_dvc=False)
    for name, text in DATASETS.items():
        write(tmp_path / f"datasets/{name}.toml", text)
    return tmp_path


@pytest.fixture
def registry(root: Path) -> Registry:
    return open_registry(root)


def artifacts(root: Path) -> Any:
    return YAML(typ="safe", pure=True).load((root / "dvc.yaml").read_text("utf-8"))["artifacts"]


def test_each_dataset_that_gto_can_name_has_one(root: Path, registry: Registry) -> None:
    result = pipeline(registry, only_artifacts=True)
    assert (result.stages, result.made) == (Changes(), ())
    assert result.artifacts.added == ("adopted", "digits")  # GTO has no tags for `pets_`
    assert artifacts(root) == {
        "adopted": {
            "path": "data/adopted",
            "type": "dataset",
            "labels": ["tfrecord"],
            "meta": {"tfrecreg": "adopted"},
        },
        "digits": {
            "path": "data/digits",
            "type": "dataset",
            "desc": 'Digits: "7" costs \\${price}',
            "labels": ["tfrecord", "mnist"],
            "meta": {"tfrecreg": "digits"},
        },
    }
    assert pipeline(registry, only_artifacts=True).current


@pytest.mark.medium
def test_dvc_reads_them_as_they_are_meant(root: Path, registry: Registry) -> None:
    repo = pytest.importorskip("dvc.repo", reason="the extra `dvc` is not installed")
    pipeline(registry, only_artifacts=True)
    with repo.Repo.init(str(root), no_scm=True) as opened:
        found = opened.artifacts.read()["dvc.yaml"]["digits"]
    assert (found.path, found.type) == ("data/digits", "dataset")
    assert found.desc == 'Digits: "7" costs ${price}'


def test_they_come_with_the_stages_and_go_with_the_dataset(root: Path, registry: Registry) -> None:
    (root / "schemas").mkdir(exist_ok=True)
    (root / "schemas/adopted.pbtxt").write_text("# nothing yet\n")
    result = pipeline(registry)
    assert "build-digits" in result.stages.added
    assert result.artifacts.added == ("adopted", "digits")
    (root / "datasets/adopted.toml").unlink()
    result = pipeline(open_registry(root))
    assert result.stages.removed == ("check-adopted", "gate-adopted")
    assert result.artifacts == Changes(removed=("adopted",))
    assert artifacts(root).keys() == {"digits"}


def test_a_dataset_that_dvc_tracks_by_a_pointer_has_its_artifact_too(
    root: Path, registry: Registry
) -> None:
    (root / "data").mkdir(exist_ok=True)
    (root / "data/digits.dvc").write_text("outs:\n- path: digits\n")
    with pytest.raises(UsageError) as caught:
        pipeline(registry, ["digits"])
    assert "only the artifact with `tfrecreg pipeline digits --artifacts`" in caught.value.hint
    assert pipeline(registry, ["digits"], only_artifacts=True).artifacts.added == ("digits",)


def test_the_command_looks_writes_and_speaks_json(root: Path, capsys) -> None:
    command = ["-C", str(root), "pipeline", "digits", "--artifacts"]
    assert main([*command, "--check"]) == 1
    told = capsys.readouterr()
    assert "dvc.yaml is out of date, with 1 dataset\n  artifacts to be added: digits\n" in told.out
    assert "tfrecreg pipeline --artifacts" in told.err
    assert not (root / "dvc.yaml").exists()
    assert main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["artifacts"] == {"added": ["digits"], "updated": [], "removed": []}
    assert (document["current"], document["added"], document["made"]) == (False, [], [])
    config = root / "datasets/digits.toml"
    config.write_text(config.read_text("utf-8").replace("costs", "is"), "utf-8")
    assert main([*command]) == 0
    assert "  artifacts updated: digits\n" in capsys.readouterr().out
    assert main([*command, "--check"]) == 0
