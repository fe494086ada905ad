"""Pages of the records that a condition selects."""

from __future__ import annotations

from pathlib import Path

import pytest
from diff_support import example, put_build, put_release

import tfrecreg
from tfrecreg.cli.main import main
from tfrecreg.errors import UsageError
from tfrecreg.example.features import int64_feature
from tfrecreg.pages.collect import BUDGET, make_page
from tfrecreg.pages.content import Bars

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

SPLITS = {
    "test": [{f"t{n}": example(n, width=int64_feature(n)) for n in range(100, 110)}],
    "train": [
        {f"a{n}": example(n, width=int64_feature(n)) for n in range(30)},
        {f"b{n}": example(n, width=int64_feature(n)) for n in range(50, 70)},
    ],
}
CHOSEN = {
    (f"d-{split}.tfrecord-{shard:05}-of-{len(shards):05}", record)
    for split, shards in SPLITS.items()
    for shard, records in enumerate(shards)
    for record, key in enumerate(records)
    if int(key[1:]) % 3 == 2 and int(key[1:]) >= 20
}
"""The shard and the number of each record that the condition below selects."""
WHERE = "label = 2 AND width >= 20"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "root"
    put_build(root, SPLITS)
    return root


def test_samples_numbers_and_statistics_are_those_of_the_selection(root: Path) -> None:
    page = make_page("d", registry=root, where=WHERE, statistics=True, budget=BUDGET)
    (target,) = page.targets
    samples = [each for each in target.galleries if each.heading.startswith("Sample")]
    shown = {(each.shard, each.record) for each in samples for each in each.records}
    assert shown == CHOSEN
    assert all(
        (each.shard, each.record) in CHOSEN
        for gallery in target.galleries
        for each in gallery.records
    )
    of_test = sum("-test." in shard for shard, _ in CHOSEN)
    notes = {each.heading: each.note for each in samples}
    assert f"{of_test} of {of_test} records" in notes["Sample of test"]
    assert target.statistics is not None
    found = {each.statistics.split: each.statistics.examples for each in target.statistics.splits}
    assert found == {"test": of_test, "train": len(CHOSEN) - of_test}
    classes = [each for each in target.charts if each.heading.startswith("Classes")]
    for each in classes:
        assert isinstance(each, Bars)
        assert each.labels == ("2",)
    # What a check says is about all of it, and the page says so.
    assert target.report.records == 60
    assert target.report.notes[-1] == (
        f"Images, charts and statistics are of the {len(CHOSEN)} records WHERE {WHERE}. The "
        "verdict, the findings and sizes in bytes are of all records."
    )


def test_the_same_page_from_processes(root: Path) -> None:
    with tfrecreg.engine("local", jobs=2) as engine:
        pages = [
            tfrecreg.report("d", registry=root, where=WHERE, engine=each, progress=False).html
            for each in (None, engine)
        ]
    assert pages[0] == pages[1]
    assert f"{len(CHOSEN)} records WHERE label = 2 AND width &gt;= 20." in pages[0]


def _command(root: Path, where: str) -> int:
    page = str(root / "page.html")
    return main(["-C", str(root), "report", "d", "--where", where, "--output", page])


def test_a_selection_of_nothing_is_a_page(root: Path) -> None:
    assert _command(root, "label = 77") == 0
    assert "of the 0 records WHERE label = 77." in (root / "page.html").read_text()


def test_what_is_no_condition_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _command(root, "label") == 2
    assert "`label` is BIGINT, expected BOOLEAN" in capsys.readouterr().err
    assert not (root / "page.html").exists()


def test_a_difference_is_of_whole_versions(root: Path) -> None:
    put_release(root, "1.0.0")
    handle = tfrecreg.open(root)["d@1.0.0"]
    with pytest.raises(UsageError, match="`--where` does not go with `--against`") as caught:
        handle.report(where=WHERE, against="d@1.0.0", progress=False)
    assert caught.value.hint == "tfrecreg diff A B --where compares selections"
    assert f"{len(CHOSEN)} records WHERE" in handle.report(where=WHERE, progress=False).html
