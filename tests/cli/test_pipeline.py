"""`tfrecreg pipeline`: what it writes, says and refuses. What DVC makes of it is acceptance's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests_support import tree

pytest.importorskip("ruamel.yaml", reason="the extra `dvc` is not installed")

FILE = 'source = "mnist"\nraw = "../raw"\n'


@pytest.fixture
def configured(registry, raw) -> Path:
    Path("datasets").mkdir()
    Path("datasets/digits.toml").write_text(FILE)
    return registry


def test_stages_are_written_and_then_up_to_date(cli, configured) -> None:
    done = cli("pipeline", "--check")
    assert done.code == 1
    assert "to be added: build-digits, check-digits, gate-digits" in done.out
    assert (
        "missing: registry/digits/.gitkeep, reports/digits/.gitkeep, schemas/digits.pbtxt"
        in done.out
    )
    assert not Path("dvc.yaml").exists()
    done = cli("pipeline")
    assert done.code == 0
    assert "this is not a DVC repository yet: tfrecreg init --dvc makes it one" in done.err
    assert Path("schemas/digits.pbtxt").read_text("utf-8")
    assert (
        Path("dvc.yaml")
        .read_text("utf-8")
        .startswith(
            "stages:\n"
            "  build-digits:\n"
            "    cmd: 'tfrecreg build digits  # depends on source, raw'\n"
            "    deps:\n"
            "    - ../raw\n"
            "    - schemas/digits.pbtxt\n"
            "    - registry/digits\n"
            "    params:\n"
            "    - datasets/digits.toml:\n"
            "      - source\n"
            "      - raw\n"
            "    outs:\n"
            "    - data/digits:\n"
            "        persist: true\n"
        )
    )
    before = tree(configured)
    for arguments in ((), ("--check",), ("digits",)):
        done = cli("pipeline", *arguments)
        assert (done.code, done.out) == (0, "dvc.yaml is up to date, with 1 dataset\n")
    assert tree(configured) == before


@pytest.mark.medium
def test_a_dataset_that_dvc_tracks_has_no_stages_and_hinders_no_other(cli, configured) -> None:
    assert cli("pipeline").code == 0
    Path("datasets/tracked.toml").write_text(FILE)
    Path("data").mkdir(exist_ok=True)
    Path("data/tracked.dvc").write_text("outs: []\n")
    before = tree(configured)
    for arguments in (("--check",), ()):
        done = cli("pipeline", *arguments)
        assert done.code == 0
        assert done.out == (
            "dvc.yaml is up to date, with 1 dataset\n"
            "  no stages, tracked by data/NAME.dvc: tracked\n"
        )
        assert cli("pipeline", *arguments, "--json").json["tracked"] == ["tracked"]
    assert tree(configured) == before
    Path("datasets/digits.toml").write_text(f"{FILE}shards = 2\n")
    assert cli("pipeline", "--check").code == 1
    done = cli("pipeline", "tracked")
    assert done.code == 2
    assert "DVC already tracks `data/tracked` with `data/tracked.dvc`" in done.err
    # An artifact of it is kept, and no artifact is asked for.
    assert cli("pipeline", "--artifacts").code == 0
    done = cli("pipeline", "--json")
    assert (done.code, done.json["updated"]) == (0, ["build-digits"])
    assert done.json["artifacts"] == {"added": [], "updated": [], "removed": []}
    assert "  tracked:\n    path: data/tracked\n" in Path("dvc.yaml").read_text("utf-8")


def test_stages_of_a_dataset_that_dvc_tracks_too_are_an_error(cli, configured) -> None:
    assert cli("pipeline").code == 0
    Path("data").mkdir(exist_ok=True)
    Path("data/digits.dvc").write_text("outs: []\n")
    for arguments in (("--check",), ()):
        done = cli("pipeline", *arguments)
        assert done.code == 2
        assert "DVC already tracks `data/digits` with `data/digits.dvc`" in done.err
    assert "build-digits" in Path("dvc.yaml").read_text("utf-8")


def test_a_stage_of_ours_that_is_no_longer_written_is_removed(cli, configured) -> None:
    Path("dvc.yaml").write_text(
        "stages:\n  weigh-digits:\n    cmd: tfrecreg weigh digits\n"
        "    meta:\n      tfrecreg: digits\n"
    )
    assert "removed: weigh-digits" in cli("pipeline").out


def test_a_dataset_without_a_source_has_no_stage_that_builds_it(cli, configured) -> None:
    Path("datasets/digits.toml").write_text("owner = 'ada'\n")
    done = cli("pipeline")
    assert done.code == 2
    assert "`digits` has no schema `schemas/digits.pbtxt`, and no source" in done.err
    Path("schemas").mkdir()
    Path("schemas/digits.pbtxt").write_text("")
    done = cli("pipeline", "--json")
    assert done.json["added"] == ["check-digits", "gate-digits"]
    assert done.json["current"] is False
    assert done.json["made"] == ["registry/digits/.gitkeep", "reports/digits/.gitkeep"]


@pytest.mark.parametrize(
    ("files", "arguments", "complaint"),
    [
        ({}, ("digit",), "no dataset `digit`; did you mean `digits`?"),
        (
            {"dvc.yaml": "stages:\n  build-digits:\n    cmd: make\n"},
            (),
            "the entry `build-digits` in `stages` of `dvc.yaml` was not written by tfrecreg",
        ),
        (
            {"dvc.yaml": "stages: [a]\n"},
            (),
            "`dvc.yaml` should be a mapping, and so should its `stages`",
        ),
    ],
)
def test_misuse_is_exit_2_and_changes_nothing(files, arguments, complaint, cli, configured) -> None:
    for name, text in files.items():
        Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
    before = tree(configured)
    done = cli("pipeline", *arguments)
    assert done.code == 2
    assert complaint in done.err
    assert tree(configured) == before


def test_raw_data_outside_and_odd_paths_are_written_as_yaml(cli, configured) -> None:
    Path("datasets/digits.toml").write_text(FILE.replace("../raw", "a: ${b} #c"))
    done = cli("pipeline")
    assert done.code == 0, done.err
    from ruamel.yaml import YAML

    stages = YAML(typ="safe", pure=True).load(Path("dvc.yaml").read_text())["stages"]
    assert stages["build-digits"]["deps"][0] == "a: \\${b} #c"
    assert cli("pipeline", "--check").code == 0
