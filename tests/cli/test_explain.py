"""`tfrecreg explain`: one code, and what TensorFlow does with it."""

from __future__ import annotations


def test_a_page_says_what_tensorflow_does(cli) -> None:
    done = cli("explain", "crc004")
    assert done.code == 0
    assert done.out.startswith("CRC004 trailing-bytes (error)\n")
    assert "TensorFlow: reads without an error or stops here\n" in done.out
    shown = cli("explain", "CRC005", "--json").json
    assert shown["tensorflow"] == ["crashes", "stops here", "reads without an error"]


def test_a_page_of_what_can_be_read_says_nothing_of_it(cli) -> None:
    assert "TensorFlow:" not in cli("explain", "INF001").out
    assert cli("explain", "INF001", "--json").json["tensorflow"] == []


def test_an_unknown_code_is_refused_with_a_close_one(cli) -> None:
    done = cli("explain", "CRC0O4")
    assert done.code == 2
    assert "no code `CRC0O4`; did you mean `CRC0" in done.err


def test_a_family_is_listed(cli) -> None:
    done = cli("explain", "crc")
    assert (done.code, done.err) == (0, "")
    heading, *rows = done.out.splitlines()
    assert heading.split() == ["code", "severity", "summary"]
    assert [row.split()[0] for row in rows] == [f"CRC00{number}" for number in range(1, 10)]
    codes = cli("explain", "DRF", "--json").json["codes"]
    assert {each["code"][:3] for each in codes} == {"DRF"}
    assert cli("explain", "CR").code == 2


def test_a_former_code_names_its_successors(cli) -> None:
    done = cli("explain", "src011")
    first, _, *rest = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert first == "SRC011 became SRC111 or SRC015: a symbolic link is not followed."
    assert [line[:6] for line in rest if line[:3] == "SRC"] == ["SRC111", "SRC015"]
    found = cli("explain", "SRC018", "--json").json
    assert (found["code"], found["became"]) == ("SRC018", ["SRC091"])
