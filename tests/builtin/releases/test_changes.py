"""What a build may change since the version before, by the limits of a gate."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from diff_support import example, put_build, put_release

from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.example.values import int64_feature

EXAMPLES = {str(number): example(number) for number in range(20)}
BEFORE = {"train": [EXAMPLES], "test": [{"t": example(100)}]}


def relabelled(count: int) -> dict[str, Any]:
    """So many of the 20 examples with another label."""
    other = int64_feature(7)
    return {
        key: example(int(key), label=other) if int(key) < count else each
        for key, each in EXAMPLES.items()
    }


def but(*keys: str) -> dict[str, Any]:
    return {key: each for key, each in EXAMPLES.items() if key not in keys}


def looked(root: Path, limits: str, target: str = "d", **options: Any) -> Report:
    (root / "tfrecreg.toml").write_text(f"[gates.default]\nlimits.changes = {limits}\n")
    given = CheckOptions(**options)
    (report,) = check([target], registry=str(root), options=given)
    return report


def subjects(report: Report) -> list[str]:
    found = [each for each in report.findings if each.code == "REG014"]
    return [each.fingerprint.removeprefix("REG014:d:::") for each in found]


AFTER = {
    "the same": BEFORE,
    "two labels": {**BEFORE, "train": [relabelled(2)]},
    "all labels": {**BEFORE, "train": [relabelled(20)]},
    "one removed": {**BEFORE, "train": [but("3")]},
    "one added": {**BEFORE, "train": [EXAMPLES | {"n": example(50)}]},
    "two moved": {
        "train": [but("1", "2")],
        "test": [BEFORE["test"][0] | {key: EXAMPLES[key] for key in ("1", "2")}],
    },
    "moved and relabelled": {
        "train": [but("1")],
        "test": [BEFORE["test"][0] | {"1": relabelled(2)["1"]}],
    },
}


@pytest.mark.parametrize(
    ("after", "limits", "broken"),
    [
        ("the same", "{ labels = 0, changed = 0, removed = 0, added = 0, moved = 0 }", []),
        ("two labels", "{ labels = 2 }", []),
        ("two labels", "{ labels = 1 }", ["labels"]),
        ("two labels", '{ labels = "9%" }', ["labels"]),
        ("two labels", '{ labels = "9.6%", removed = 0 }', []),
        ("two labels", "{ labels = 0, changed = 0 }", ["changed", "labels"]),
        ("all labels", '{ labels = "1%" }', ["labels"]),
        ("one removed", "{ labels = 0, removed = 0 }", ["removed"]),
        ("one added", "{ added = 0, removed = 0 }", ["added"]),
        ("two moved", "{ moved = 1, labels = 0, removed = 0, added = 0 }", ["moved"]),
        ("moved and relabelled", "{ labels = 0, moved = 0 }", ["labels", "moved"]),
    ],
)
def test_what_changed_more_than_the_gate_allows_is_found(
    tmp_path: Path, after: str, limits: str, broken: list[str]
) -> None:
    put_build(tmp_path, BEFORE)
    first = put_release(tmp_path, "1.0.0")
    put_build(tmp_path, AFTER[after])
    report = looked(tmp_path, limits)
    assert (subjects(report), report.errors) == (broken, ())
    assert report.status == ("fail" if broken else "pass")
    # Released, it is compared with its parent, by either name.
    put_release(tmp_path, "2.0.0", parent=first)
    for target in ("d", "d@2.0.0"):
        assert subjects(looked(tmp_path, limits, target)) == broken
    assert subjects(looked(tmp_path, limits, "d@1.0.0")) == []


def test_without_the_bytes_the_check_is_incomplete(tmp_path: Path) -> None:
    put_build(tmp_path, BEFORE)
    put_release(tmp_path, "1.0.0", keep_bytes=False)
    put_build(tmp_path, AFTER["two labels"])
    assert looked(tmp_path, "{ labels = 2 }").exit_code == 3
    shutil.rmtree(tmp_path / ".tfrecreg", ignore_errors=True)
    assert looked(tmp_path, "{ removed = 0 }").exit_code == 3
    assert looked(tmp_path, "{ removed = 0 }", skip=("changes",)).exit_code == 0


@pytest.mark.parametrize("after", AFTER)
def test_a_report_for_readers_begins_with_the_change(tmp_path: Path, after: str) -> None:
    put_build(tmp_path, BEFORE)
    put_release(tmp_path, "1.0.0")
    put_build(tmp_path, AFTER[after])
    (report,) = check(["d"], registry=str(tmp_path), beside=lambda _: [])
    (line,) = report.changes
    expected = {
        "the same": "d 1.0.0 (the first): 21 records",
        "two labels": "(major after 1.0.0): 2 labels changed; ",
        "all labels": "(major after 1.0.0): 20 labels changed; ",
        "one removed": "(major after 1.0.0): 1 example of the split `train` is gone",
        "one added": "(minor after 1.0.0): 1 example was added to the split `train`",
        "two moved": "(major after 1.0.0): 2 examples moved from the split `train` to `test`",
        "moved and relabelled": "(major after 1.0.0): 1 label changed; 1 example moved from",
    }[after]
    assert expected in line
    assert check(["d"], registry=str(tmp_path))[0].changes == ()
