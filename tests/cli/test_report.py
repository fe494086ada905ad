"""`tfrecreg report`, and the pages of `check` and `gate`."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_support import read_page


@pytest.fixture
def damaged(here: Path) -> Path:
    shard = next((here / "data" / "digits").glob("digits-train*00000*"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    (here / "train.tfrecord").write_bytes(data)
    return here / "train.tfrecord"


def test_it_says_where_the_page_is(cli, here: Path) -> None:
    done = cli("report", "digits", "--output", "page.html")
    assert (done.code, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert first == "digits: pass, 0 findings"
    assert second.startswith("wrote page.html, ")
    assert read_page((here / "page.html").read_text("utf-8")).images > 100


@pytest.mark.medium
@pytest.mark.parametrize(
    ("targets", "name"),
    [
        (["digits"], "digits.html"),
        (["digits@1.0.0"], "digits@1.0.0.html"),
        (["data/digits/"], "digits.html"),
        (["data/digits/digits-test*"], "digits-test.html"),
        ([], "report.html"),
        (["digits", "digits@1.0.0"], "report.html"),
    ],
)
def test_without_a_name_the_page_is_named_after_its_target(
    cli, here: Path, targets: list[str], name: str
) -> None:
    done = cli("report", *targets)
    assert done.code == 0, done.err
    assert f"wrote {name}, " in done.out
    first = (here / name).read_text("utf-8")
    assert cli("report", *targets, "--json").json["page"] == name  # an earlier page is replaced
    assert (here / name).read_text("utf-8") == first


def test_only_a_page_is_replaced_by_one_without_a_name(cli, here: Path) -> None:
    (here / "digits.html").write_text("<html>my own</html>")
    done = cli("report", "digits")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: `digits.html` exists, but tfrecreg did not make it: choose another `--output`\n"
    )
    assert (here / "digits.html").read_text() == "<html>my own</html>"


def test_findings_are_shown_and_not_judged(cli, damaged: Path) -> None:
    done = cli("report", "train.tfrecord", "--output", "page.html")
    assert done.code == 0
    assert done.out.startswith("train.tfrecord: fail, 1 finding\n")


@pytest.mark.medium
def test_an_incomplete_check_is_3(cli, here: Path) -> None:
    (here / "datasets" / "other.toml").write_text('source = "mnist"\nraw = "raw"\n')
    done = cli("report", "--output", "page.html")
    assert done.code == 3
    assert "digits: pass, 0 findings\nother: error, 0 findings\n" in done.out
    assert "tfrecreg build other" in read_page((here / "page.html").read_text("utf-8")).text


def test_json_names_the_page(cli, damaged: Path) -> None:
    done = cli("report", "train.tfrecord", "--output", "page.html", "--json")
    size = (damaged.parent / "page.html").stat().st_size
    assert done.json == {
        "format_version": 1,
        "page": "page.html",
        "bytes": size,
        "left_out": [],
        "targets": [{"target": "train.tfrecord", "status": "fail", "findings": 1}],
    }


def test_check_judges_and_writes_the_page(cli, damaged: Path) -> None:
    done = cli("check", "train.tfrecord", "--format", "html", "--output", "page.html")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("train.tfrecord: fail, 1 finding\nwrote page.html, ")
    page = read_page((damaged.parent / "page.html").read_text("utf-8"))
    assert page.images > 50
    printed = cli("check", "train.tfrecord", "--format", "html")
    assert printed.code == 1
    assert printed.out == (damaged.parent / "page.html").read_text("utf-8")


def test_a_check_that_fails_leaves_a_page_that_says_so(cli, here: Path) -> None:
    done = cli("check", "nothing", "--format", "html", "--output", "page.html")
    assert done.code == 2
    page = read_page((here / "page.html").read_text("utf-8"))
    assert "Incomplete" in page.text
    assert "no dataset nothing" in page.text


def test_a_gate_writes_a_page_without_records(cli, here: Path) -> None:
    assert cli("check", "digits", "--fail-on", "never", "--json", "--output", "r.json").code == 0
    done = cli("gate", "digits", "--report", "r.json", "--format", "html", "--output", "g.html")
    assert done.code == 0
    page = read_page((here / "g.html").read_text("utf-8"))
    assert page.images == 0
    assert "Pass" in page.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits", "--output", "no/page.html"), "`no/page.html` cannot be written: No such file"),
        (("--output", "p.html", "--against", "digits@1.0.0"), "`--against` compares one build or"),
    ],
)
def test_what_cannot_be_done_is_said(
    cli, here: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = cli("report", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(f"error: {message}")
    assert not (here / "p.html").exists()
