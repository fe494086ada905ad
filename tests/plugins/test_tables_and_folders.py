"""Builds of `table` and `folder`: the same bytes by several processes, and grown from a release."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from image_support import jpeg
from media_support import wav

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.main import main
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.workers.local import LocalEngine

ROOT = Path(__file__).parents[2]
OPTIONS: dict[str, dict[str, Any]] = {
    "kaggle": {"columns": ["id:file(images/{}.jpg)", "breed:label", "*"]},
    "lines": {},
    "parquet": {},
    "sounds": {"pair": ["wav", "txt"], "labels": "folder"},
}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Small raw data of each kind."""
    folder = tmp_path / "raw"
    for name in ("kaggle/images", "lines", "parquet", "sounds/yes", "sounds/no"):
        (folder / name).mkdir(parents=True)
    rows = [f"c{n},{'tabby' if n % 3 else 'Zoë'},{n},{n / 4}" for n in range(20)]
    (folder / "kaggle/train.csv").write_text("\n".join(["id,breed,age,weight", *rows]))
    for n in range(20):
        (folder / f"kaggle/images/c{n}.jpg").write_bytes(jpeg(width=3 + n))
    lines = [json.dumps({"n": n, "tags": ["a"] * (n % 3), "box": {"x": n / 8}}) for n in range(20)]
    (folder / "lines/train.jsonl").write_text("\n".join(lines))
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra `parquet`")
    from pyarrow import Table

    table = Table.from_pylist([json.loads(line) for line in lines])
    parquet.write_table(table, folder / "parquet/data.parquet", row_group_size=6)
    for n in range(12):
        place = folder / f"sounds/{('yes', 'no')[n % 2]}/{n}"
        place.with_suffix(".wav").write_bytes(wav(0.01 * (n + 1)))
        place.with_suffix(".txt").write_text(f"word {n}")
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    init(tmp_path / "registry", with_dvc=False)
    return open_registry(tmp_path / "registry")


def made(registry: Registry, kind: str, raw: object, jobs: int = 1) -> BuildResult:
    request = BuildRequest(
        name=kind,
        source="folder" if kind == "sounds" else "table",
        raw=f"{raw}/{kind}",
        options=OPTIONS[kind],
        policy=ShardPolicy(records_per_shard=4),
    )
    return build(registry, request, engine=LocalEngine(jobs))


def content(result: BuildResult) -> list[tuple[str, str]]:
    return [(shard.path, shard.blake3) for shard in result.manifest.shards]


@pytest.mark.parametrize("kind", ["kaggle", "parquet"])
def test_several_processes_give_the_bytes_of_one(kind, registry, raw) -> None:
    assert content(made(registry, kind, raw, jobs=2)) == content(made(registry, kind, raw))


def test_a_table_that_grew_keeps_its_shards(registry, raw) -> None:
    first = made(registry, "lines", raw)
    release(registry, ReleaseRequest(name="lines"))
    table = raw / "lines/train.jsonl"
    more = json.dumps({"n": 20, "tags": [], "box": {"x": 0}})
    table.write_text(f"{table.read_text()}\n{more}\n")
    grown = build(open_registry(registry.storage.root), BuildRequest(name="lines"))
    assert grown.manifest.splits[0].records == 21
    kept = {digest for _, digest in content(first)} & {digest for _, digest in content(grown)}
    assert len(kept) >= 3
    assert release(open_registry(registry.storage.root), ReleaseRequest(name="lines")).created


@pytest.mark.parametrize("kind", OPTIONS)
def test_builds_pass_their_checks(kind, registry, raw) -> None:
    made(registry, kind, raw)
    options = CheckOptions(raw=f"{raw}/{kind}", skip=("annotations",))
    (report,) = check([kind], options=options, registry=open_registry(registry.storage.root))
    assert not [finding.code for finding in report.findings]


def test_parquet_without_pyarrow_names_the_extra(raw, tmp_path, monkeypatch, capsys) -> None:
    init(tmp_path / "here", with_dvc=False)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    arguments = ["build", "x", "--source", "table", "--raw", str(raw / "parquet")]
    assert main(arguments) == 3
    error = capsys.readouterr().err
    assert "reading Parquet needs the extra `parquet`, which is not installed" in error
