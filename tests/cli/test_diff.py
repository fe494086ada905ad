"""`tfrecreg diff`, as people and programs see it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from diff_support import SCHEMA, example, put_build, put_release
from page_support import read_page

from tfrecreg.core.example.values import int64_feature

BEFORE = {
    "test": [{"t0": example(50), "t1": example(51)}],
    "train": [{f"k{n}": example(n) for n in range(6)}],
}
AFTER = {
    "test": [{"t0": example(50), "k5": example(5)}],
    "train": [
        {
            "k0": example(0),
            "k1": example(1, label=int64_feature(2)),
            "k2": example(2, width=int64_feature(28)),
            "k3b": example(3),
            "new": example(70),
        }
    ],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    names = {"label": ["cat", "dog", "cow"]}
    put_build(root, BEFORE, labels=names)
    put_release(root, "1.0.0")
    put_build(root, AFTER, labels=names, schema=SCHEMA + 'feature { name: "width" type: INT }\n')
    return root


@pytest.mark.medium
def test_folders_need_no_registry(cli, root: Path, tmp_path: Path, monkeypatch) -> None:
    """A copy that somebody brought, beside the build of a registry: by their paths."""
    copy = tmp_path / "before"
    put_build(tmp_path / "first", BEFORE)
    shutil.copytree(tmp_path / "first/data/d", copy)
    monkeypatch.chdir(tmp_path)
    for before in ("before", "./before", copy):
        done = cli("diff", before, "root/data/d", "--json")
        assert (done.code, done.err) == (0, "")
        told = json.loads(done.out)
        assert told["totals"]["removed"] == 2
    page = cli("diff", "before", "root/data/d", "--format", "html")
    assert (page.code, page.err) == (0, "")
    assert "k3b" in page.out
    same = cli("diff", "before", "first/data/d", "--exit-code")
    assert (same.code, same.err) == (0, "")


def test_it_is_told_in_words(cli, root: Path) -> None:
    done = cli("-C", root, "diff", "d@1.0.0", "d")
    assert (done.code, done.err) == (0, "")
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[0] == "d@1.0.0 → d"
    assert "  examples  8 → 7 (-1)" in lines
    assert any(
        line.startswith("  shards    0 unchanged (0 B), 2 new or rewritten (") for line in lines
    )
    table = [line.split() for line in lines if line.startswith(("  train ", "  test "))]
    assert table[:2] == [
        ["train", "6", "5", "-1", "+1", "2", "1", "1"],
        ["test", "2", "2", "-1", "1"],
    ]
    text = "\n".join(lines)
    expected = """\
removed: 2 examples
  test t1
  train k4

added: 1 example
  train new

changed: 2 examples
  train k1: label 1 (dog) → 2 (cow)
  train k2: +width

moved: 1 example
  train k5 → test k5

renamed: 1 example
  train k3 → train k3b

features: of 2 examples compared
  label: changed in 1
  width: added to 1

labels: 1 change
  label 1 (dog) → 2 (cow): 1 example
schema: 1 difference
  feature width
    expected nothing, found type: INT

smallest legal number: 2.0.0 (major)
  1 label changed
  1 example moved from the split `train` to `test`
  1 example of the split `test` is gone
  1 example of the split `train` is gone
  2 examples of the split `train` were changed in `label`
  the schema's text was changed"""
    assert expected in text


def test_the_document_has_all_of_it(cli, root: Path) -> None:
    done = cli("-C", root, "diff", "d@1.0.0", "d", "--json")
    found = done.json
    assert (done.code, found["format_version"], found["same"]) == (0, 1, False)
    assert found["totals"] == {"removed": 2, "added": 1, "changed": 2, "moved": 1, "renamed": 1}
    assert found["change"]["version"] == "2.0.0"
    assert found["change"]["counts"]["moved"] == 1
    assert "records" not in found


def test_every_example_can_be_listed(cli, root: Path) -> None:
    many = {"train": [{f"n{n:03d}": example(n + 100) for n in range(45)}]}
    put_build(root, many)
    done = cli("-C", root, "diff", "d@1.0.0", "d")
    assert "  train n019\n  … and 25 more\n" in done.out
    done = cli("-C", root, "diff", "d@1.0.0", "d", "--records")
    assert "  train n044\n" in done.out
    assert "more\n" not in done.out
    found = cli("-C", root, "diff", "d@1.0.0", "d", "--records", "--json").json
    assert len(found["records"]) == 45 + 8
    assert [each["key"] for each in found["records"] if each["kind"] == "added"][-1] == "n044"
    nothing = cli("-C", root, "diff", "d", "d", "--records", "--json").json
    assert nothing["records"] == []


def test_the_exit_code_is_0_unless_it_is_asked_for(cli, root: Path) -> None:
    assert cli("-C", root, "diff", "d@1.0.0", "d").code == 0
    assert cli("-C", root, "diff", "d@1.0.0", "d", "--exit-code").code == 1
    same = cli("-C", root, "diff", "d", "d", "--exit-code")
    assert same.code == 0
    assert same.out.splitlines()[-1] == "no difference"


def test_splits_whose_indexes_are_gone_are_marked(cli, root: Path) -> None:
    for path in (root / "versions/d/1.0.0/index").iterdir():
        path.unlink()
    shutil.rmtree(root / ".tfrecreg")
    done = cli("-C", root, "diff", "d@1.0.0", "d")
    row = next(line.split() for line in done.out.splitlines() if "train " in line)
    assert row == ["train", "6", "5", *"??????"]
    assert "  hint: DVC does not have them" in done.out
    assert (
        "the split `train` may have lost examples: its indexes are not on this machine" in done.out
    )
    found = json.loads(cli("-C", root, "diff", "d@1.0.0", "d", "--json").out)
    assert found["change"]["counts"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("d@1.0.0", "e"), "no dataset `e`"),
        (("d@9.0.0", "d"), "no release `d@9.0.0`"),
        (("d@1.0.0",), "Missing argument 'B'"),
    ],
)
def test_what_is_not_there_is_refused(cli, root: Path, arguments, message) -> None:
    done = cli("-C", root, "diff", *arguments)
    assert done.code == 2
    assert message in done.err
    assert "hint: " in done.err


def test_a_page_shows_the_difference(cli, digits_registry: Path, monkeypatch) -> None:
    monkeypatch.chdir(digits_registry)
    done = cli("diff", "digits@1.0.0", "digits", "--format", "html", "--output", "d.html")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("wrote d.html, ")
    html = (digits_registry / "d.html").read_text("utf-8")
    assert "Nothing differs." in read_page(html).text
    assert cli("diff", "digits@1.0.0", "digits", "--format", "html").out == html
    done = cli("diff", "digits@1.0.0", "digits", "--output", "d.html")
    assert (done.code, done.err) == (
        2,
        "error: `--output` needs `--format html`\n",
    )
