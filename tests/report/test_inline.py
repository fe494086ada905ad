"""Which terminals show pictures, what they are sent, and what they are spared."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import pytest
from picture_support import gif, jpeg, png

from tfrecreg.operations.format_payload import ShownPicture
from tfrecreg.operations.head import ShownRecord
from tfrecreg.pictures import read_header, sniff
from tfrecreg.report.inline import Way, find_way, inline
from tfrecreg.report.records import print_records


def picture(data: bytes) -> ShownPicture:
    found = sniff(data)
    assert found is not None
    header = read_header(data)
    return ShownPicture(feature="x", value=0, format=found, header=header, data=data)


@pytest.mark.parametrize(
    ("environment", "way"),
    [
        ({"TERM_PROGRAM": "iTerm.app", "TERM": "xterm-256color"}, "iterm"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM_PROGRAM": "mintty"}, "iterm"),
        ({"LC_TERMINAL": "iTerm2", "TERM": "xterm-256color"}, "iterm"),
        ({"KONSOLE_VERSION": "230801"}, "iterm"),
        ({"KONSOLE_VERSION": "211200"}, None),
        ({"KONSOLE_VERSION": "new"}, None),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM_PROGRAM": "Apple_Terminal"}, None),
        ({"TERM_PROGRAM": "iTerm.app", "TMUX": "/tmp/tmux,1,0"}, None),
        ({"LC_TERMINAL": "iTerm2", "TERM": "screen.xterm-256color"}, None),
        ({"TERM": "dumb", "TERM_PROGRAM": "WezTerm"}, None),
        ({}, None),
    ],
)
def test_a_terminal_is_known_by_its_environment(
    environment: dict[str, str], way: Way | None
) -> None:
    assert find_way(environment, terminal=True) == way
    assert find_way(environment, terminal=False) is None


def test_pictures_can_be_asked_for_in_a_pipe() -> None:
    assert find_way({}, terminal=False, always=True) == "iterm"
    assert find_way({"TERM": "xterm-kitty"}, terminal=False, always=True) == "kitty"


@pytest.mark.parametrize("data", [png(28, 28), jpeg(640, 480), gif(9, 9)])
def test_iterm_gets_the_bytes_as_they_are(data: bytes) -> None:
    found = re.fullmatch(
        r"    \x1b\]1337;File=inline=1;size=(\d+);width=(\d+);height=(\d+):([A-Za-z0-9+/=]+)\x07\n",
        inline(picture(data), "iterm"),
    )
    assert found is not None
    assert int(found[1]) == len(data)
    assert base64.b64decode(found[4]) == data
    assert 1 <= int(found[2]) <= 48
    assert 1 <= int(found[3]) <= 14


def test_kitty_gets_a_png_in_chunks() -> None:
    noise = b"".join(bytes([(n * n * 31 + n) % 251]) for n in range(12_000))
    data = png(28, 28) + noise  # kitty is not asked to mind what follows
    found = inline(picture(data), "kitty")
    chunks = re.findall(r"\x1b_G([^;]*);([A-Za-z0-9+/=]*)\x1b\\", found)
    assert "".join(f"\x1b_G{keys};{part}\x1b\\" for keys, part in chunks) == found.strip()
    assert chunks[0][0] == "a=T,f=100,q=2,c=28,r=14,m=1"
    assert [keys for keys, _ in chunks[1:]] == ["m=1"] * (len(chunks) - 2) + ["m=0"]
    assert all(len(part) <= 4096 for _, part in chunks)
    assert base64.b64decode("".join(part for _, part in chunks)) == data
    assert "m=0" in inline(picture(png(3, 3)), "kitty")


@pytest.mark.parametrize(
    ("width", "height", "columns", "rows"),
    [(28, 28, 28, 14), (3, 2, 42, 14), (640, 480, 37, 14), (10_000, 10, 48, 1), (1, 9999, 1, 14)],
)
def test_proportions_are_kept_within_limits(
    width: int, height: int, columns: int, rows: int
) -> None:
    shown = inline(picture(jpeg(width, height)), "iterm")
    assert f"width={columns};height={rows}:" in shown


@pytest.mark.parametrize("way", ["iterm", "kitty"])
def test_bombs_are_not_shown(way: Way) -> None:
    assert inline(picture(png(3, 3)), way)
    huge = replace(picture(png(3, 3)), header=read_header(jpeg(5000, 5000)))
    assert inline(huge, way) == ""
    assert inline(replace(picture(png(3, 3)), header=None), way) == ""
    heavy = replace(picture(png(3, 3)), data=png(3, 3) + bytes(5 << 20))
    assert inline(heavy, way) == ""


def test_kitty_is_sent_no_other_format() -> None:
    assert inline(picture(jpeg(64, 64)), "kitty") == ""


RECORD = ShownRecord(
    shard="a",
    record=0,
    offset=0,
    length=9,
    key=None,
    features=(),
    payload="example",
    pictures=tuple(picture(png(3, 3, seed=seed)) for seed in range(6)),
)


def test_the_first_pictures_of_a_record_come_below_it(terminal) -> None:
    shown = terminal(lambda console: print_records(console, [RECORD] * 2, way="iterm"), 80)
    parts = shown.split("a, record 0, offset 0, 9 bytes\n")
    assert [part.count("\x1b]1337") for part in parts] == [0, 4, 4]


def test_without_a_way_nothing_but_words_is_written(pipe) -> None:
    assert "\x1b" not in pipe(lambda console: print_records(console, [RECORD]))
