"""Questions and expectations about the release before a target."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import tfrecreg as tr
from tfrecreg.cli.main import main

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

CHANGED = (
    "SELECT n, p.label AS old, r.label AS new FROM records r JOIN previous p USING (n) "
    "WHERE r.label <> p.label"
)
LABELS = (("cat", "dog", "cat"), ("cat", "cat", "cat", "emu"), ("cat", "cat", "bee", "emu"))


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`pets` has the releases 1.0.0 and 2.0.0, and a build after them."""
    root = tmp_path_factory.mktemp("previous") / "registry"
    dataset = tr.init(root, with_dvc=False)["pets"]
    for number, labels in enumerate(LABELS):
        rows = [{"n": n, "label": label} for n, label in enumerate(labels)]
        dataset.build(data={"train": rows}, progress=False)
        if number < 2:
            assert str(dataset.release(progress=False)) == f"pets@{number + 1}.0.0"
    return root


@pytest.fixture
def registry(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "registry"))


def run(capsys: pytest.CaptureFixture[str], registry: Path, *words: str) -> tuple[int, Any, str]:
    """The exit code, the rows or the report, and stderr of a command."""
    code = main(["-C", str(registry), *words, "--json"])
    out, err = capsys.readouterr()
    found = json.loads(out) if out else {}
    return code, found.get("rows", found), err


@pytest.mark.parametrize(
    ("target", "rows"),
    [
        ("pets", [{"n": 2, "old": "cat", "new": "bee"}]),
        ("pets@latest", [{"n": 1, "old": "dog", "new": "cat"}]),
        ("pets@2.0.0", [{"n": 1, "old": "dog", "new": "cat"}]),
    ],
)
def test_previous_is_the_release_before(
    target: str, rows: list[dict[str, Any]], registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, registry, "query", target, CHANGED)[:2] == (0, rows)
    answer = tr.query(target, CHANGED, registry=registry, progress=False)
    assert (answer.rows(), answer.notes) == (rows, ())
    sql = "SELECT n FROM records WHERE n NOT IN (SELECT n FROM PREVIOUS)"
    added = [{"n": 3}] if target != "pets" else []
    assert run(capsys, registry, "query", target, sql)[:2] == (0, added)


def test_the_first_release_has_none_before_it(
    registry: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, said = run(capsys, registry, "query", "pets@1.0.0", CHANGED)
    assert (code, "`pets@1.0.0` has no earlier release" in said) == (2, True)
    shard = str(next((registry / "data/pets").glob("*.tfrecord*")))
    copy = str(shutil.copy(shard, tmp_path / "x.tfrecord"))
    assert run(capsys, registry, "query", copy, "SELECT count(*) FROM previous")[0] == 2
    # Others may have the name.
    sql = "WITH previous AS (SELECT 7 AS a) SELECT a FROM previous"
    assert run(capsys, registry, "query", "pets@1.0.0", sql)[:2] == (0, [{"a": 7}])


def test_bytes_that_are_not_here_are_pulled_first(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(registry / "versions")
    code, _, said = run(capsys, registry, "query", "pets", CHANGED)
    assert (code, "pets@2.0.0" in said) == (2, True)
    assert run(capsys, registry, "query", "pets", "SELECT count(*) AS c FROM records")[0] == 0


def expect(registry: Path, at_most: int) -> None:
    (registry / "tfrecreg.toml").write_text(
        f"[gates.pets.expect.few-changes]\nquery = 'SELECT count(*) FROM ({CHANGED})'\n"
        f"at_most = {at_most}\n"
        "[gates.pets.expect.some]\nquery = 'SELECT count(*) FROM records'\nat_least = 3\n"
    )


@pytest.mark.parametrize("target", ["pets", "pets@2.0.0"])
def test_an_expectation_compares_with_the_release_before(
    target: str, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect(registry, 1)
    assert run(capsys, registry, "check", target)[0] == 0
    expect(registry, 0)
    code, report, _ = run(capsys, registry, "check", target)
    (finding,) = (each for each in report["findings"] if each["code"] == "QRY001")
    assert (code, finding["message"]) == (1, "`few-changes`: expected at most 0, found 1")
    assert "questions.lacks" not in report["measures"]


def test_an_expectation_without_a_release_before_is_not_judged(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect(registry, 0)
    code, report, _ = run(capsys, registry, "check", "pets@1.0.0")
    assert (code, report["findings"]) == (0, [])
    told = (report["measures"]["questions.held"], report["measures"]["questions.lacks"])
    assert told == (1, 1)
    assert main(["-C", str(registry), "check", "pets@1.0.0"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "few-changes" in line]
    assert len(lines) == 1
    assert "`pets@1.0.0` has no earlier release" in lines[0]


def test_a_check_does_not_believe_the_catalog_of_the_release_before(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect(registry, 1)
    assert run(capsys, registry, "query", "pets@2.0.0", "SELECT n FROM records")[0] == 0
    for path in (registry / ".tfrecreg/cache/catalogs/shards").rglob("*.parquet"):
        path.write_bytes(b"not a catalog")
    assert run(capsys, registry, "check", "pets")[0] == 0
    files = (registry / ".tfrecreg/cache/catalogs/shards").rglob("*.parquet")
    assert {path.read_bytes() for path in files} == {b"not a catalog"}
