from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.errors import RawDataError, TfrecregError
from tfrecreg.storage import LocalStorage
from tfrecreg_imagefolder.labels import read_label_file


def read(raw, text: str | bytes) -> tuple[bool, list[tuple[int, str, str, str]]]:
    raw.put("labels", text)
    named, rows = read_label_file(LocalStorage(raw.path), "labels")
    return named, [tuple(row) for row in rows]


def error(raw, text: str | bytes) -> RawDataError:
    with pytest.raises(RawDataError) as caught:
        read(raw, text)
    return caught.value


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_a_table_needs_no_header(raw, delimiter) -> None:
    text = "a.png,cat\nb.png,dog\n".replace(",", delimiter)
    assert read(raw, text) == (True, [(1, "a.png", "cat", ""), (2, "b.png", "dog", "")])


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("file,label", "a.png,cat"),
        ("FileName,Class", "a.png,cat"),
        ("label,image", "cat,a.png"),
        ("id,breed", "a.png,cat"),
        ("split,image_uri,label", "TEST,a.png,cat"),
        ("image,width,label,set", "a.png,320,cat,TEST"),
    ],
)
def test_a_header_says_which_column_is_what(raw, header, line) -> None:
    split = "TEST" if "TEST" in line else ""
    assert read(raw, f"{header}\n{line}\n") == (True, [(2, "a.png", "cat", split)])


def test_quotes_hold_what_would_end_a_cell(raw) -> None:
    text = '"a,b.png","cat, ""big"""\n'
    assert read(raw, text)[1] == [(1, "a,b.png", 'cat, "big"', "")]


def test_lines_of_file_and_label(raw) -> None:
    text = "ILSVRC2012_val_00000001.JPEG n01751748\nmy file.png  65\n"
    assert read(raw, text) == (
        True,
        [(1, "ILSVRC2012_val_00000001.JPEG", "n01751748", ""), (2, "my file.png", "65", "")],
    )


def test_lines_of_one_word_label_files_in_their_order(raw) -> None:
    assert read(raw, "n01751748\nn09193705\n") == (
        False,
        [(1, "", "n01751748", ""), (2, "", "n09193705", "")],
    )


def test_marks_line_ends_and_empty_lines_do_no_harm(raw) -> None:
    text = b"\xef\xbb\xbfa.png,cat\r\n\r\n  \r\nb.png,dog"
    assert read(raw, text)[1] == [(1, "a.png", "cat", ""), (4, "b.png", "dog", "")]


def test_lines_that_lack_something_come_out_with_nothing_there(raw) -> None:
    assert read(raw, "a.png,cat\nb.png\n,dog\n")[1][1:] == [
        (2, "b.png", "", ""),
        (3, "", "dog", ""),
    ]
    assert read(raw, "a.png cat\nb.png\n")[1][1] == (2, "b.png", "", "")


@pytest.mark.parametrize("text", ["", "\n\n", "  \n", b"\xef\xbb\xbf"])
def test_a_file_without_lines_is_refused(raw, text) -> None:
    assert error(raw, text).message == "the label file `labels` is empty"


def test_what_does_not_parse_is_refused(raw) -> None:
    assert error(raw, b"caf\xe9.png,cat").message == (
        "the label file `labels` is not UTF-8: invalid continuation byte at byte 3"
    )
    assert error(raw, "cat\nbig dog\n").message == (
        "line 2 of the label file `labels` has 2 words, the first line has one"
    )
    assert error(raw, "a.png," + "x" * 200_000).message == (
        "line 1 of the label file `labels` does not parse: field larger than field limit (131072)"
    )


@pytest.mark.parametrize("make", ["nothing", "folder", "link"])
def test_a_label_file_that_is_none_is_refused(raw, tmp_path, make) -> None:
    (tmp_path / "outside").write_text("a.png,cat")
    if make == "folder":
        (raw.path / "labels").mkdir()
    elif make == "link":
        raw.link("labels", "../outside")
    with pytest.raises(RawDataError) as caught:
        read_label_file(LocalStorage(raw.path), "labels", "inside")
    found = "nothing" if make == "nothing" else "no regular file"
    assert caught.value.message == (
        f"the label file `labels` is not there: found {found} at that place of `{raw.path}`"
    )


def test_a_label_file_may_be_a_link_out_of_the_folder(raw, tmp_path) -> None:
    (tmp_path / "outside").write_text("a.png,cat")
    raw.link("labels", "../outside")
    raw.puts("a.png")
    assert raw.made("label_file=labels").labels() == {"a.png": (0, "cat")}
    error = raw.error("label_file=labels", "symlinks=none")
    assert "the label file `labels` is not there: found no regular file" in error.message


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_is_read_or_refused_in_words(tmp_path, text: str) -> None:
    (tmp_path / "labels").write_bytes(text.encode("utf-8", "replace"))
    try:
        _, rows = read_label_file(LocalStorage(tmp_path), "labels")
        found = list(rows)
    except TfrecregError as refusal:
        found = []
        assert_words(refusal)
    assert all(row.line >= 1 for row in found)


def assert_words(refusal: TfrecregError) -> None:
    assert refusal.exit_code == 2
    assert "\n" not in refusal.message
    assert refusal.hint
