"""What `head` shows, whole."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import pytest
from image_support import gif, jpeg, png

from tfrecreg.cli.render.records import (
    ImageProtocol,
    find_image_protocol,
    inline_image,
    print_records,
)
from tfrecreg.images import read_header, sniff
from tfrecreg.operations.format_payload import ShownImage, ShownPart
from tfrecreg.operations.head import ShownFeature, ShownRecord

RECORDS = [
    ShownRecord(
        shard="m-train.tfrecord-00000-of-00001",
        record=0,
        offset=0,
        length=1427,
        key="00042",
        features=(
            ShownFeature(name="image/class/label", kind="int64", count=1, shown="7"),
            ShownFeature(name="pixels", kind="float", count=784, shown="0, 0.5, … 776 more"),
            ShownFeature(name="none", kind="unset", count=0, shown=""),
        ),
    ),
    ShownRecord(
        shard="m-train.tfrecord-00000-of-00001",
        record=1,
        offset=1443,
        length=2,
        key=None,
        features=None,
        payload="other",
        start="ff 00",
    ),
]


def test_records_in_a_pipe(pipe) -> None:
    shown = pipe(lambda console: print_records(console, RECORDS))
    assert [line.rstrip() for line in shown.splitlines()] == [
        "m-train.tfrecord-00000-of-00001, record 0, offset 0, 1,427 bytes, key 00042",
        "  image/class/label  int64       7",
        "  pixels             float[784]  0, 0.5, … 776 more",
        "  none               unset[0]",
        "m-train.tfrecord-00000-of-00001, record 1, offset 1443, 2 bytes",
        "  not a tf.train.Example: ff 00",
    ]


def test_a_record_that_is_too_large_is_said_to_be_just_that(pipe) -> None:
    large = replace(RECORDS[1], payload=None, start="67.1 MB, too large to be shown")
    shown = pipe(lambda console: print_records(console, [large]))
    assert [line.rstrip() for line in shown.splitlines()] == [
        "m-train.tfrecord-00000-of-00001, record 1, offset 1443, 2 bytes",
        "  67.1 MB, too large to be shown",
    ]


def test_where_images_were_saved_is_told_below_their_record(pipe) -> None:
    saved = replace(RECORDS[0], saved=("/out/a\x1b.png", "/out/b.jpg"))
    shown = pipe(lambda console: print_records(console, [saved]))
    assert [line.rstrip() for line in shown.splitlines()][-2:] == [
        r"  saved: /out/a\x1b.png",
        "  saved: /out/b.jpg",
    ]


def test_values_wrap_in_their_column(terminal) -> None:
    shown = terminal(lambda console: print_records(console, RECORDS[:1]), 44)
    assert (
        """\
  pixels             float[784]  0, 0.5, …
                                 776 more
"""
        in shown
    )


def test_payloads_that_are_no_examples_are_shown_by_their_parts(pipe) -> None:
    place = {"shard": "x", "record": 0, "offset": 0, "length": 9, "key": None, "features": None}
    records = [
        ShownRecord(
            **place,
            payload="sequence_example",
            parts=(
                ShownPart(part="context", name="n", kind="int64", count=2, shown="1, 2"),
                ShownPart(part="list", name="steps", kind="bytes", count=3, shown='["a"] [] []'),
                ShownPart(part="list", name="none", kind="", count=0, shown=""),
            ),
        ),
        ShownRecord(
            **place,
            payload="event",
            parts=(ShownPart(part="field", name="7", kind="varint", count=1, shown="1"),),
        ),
        ShownRecord(
            **place,
            payload="other",
            start="31",
            parts=(ShownPart(part="text", name="", kind="text", count=1, shown='"1"'),),
        ),
    ]
    shown = pipe(lambda console: print_records(console, records))
    assert [line.rstrip() for line in shown.splitlines()] == [
        "x, record 0, offset 0, 9 bytes",
        "  a tf.train.SequenceExample",
        "  context n   int64[2]          1, 2",
        '  list steps  3 steps of bytes  ["a"] [] []',
        "  list none   0 steps",
        "x, record 0, offset 0, 9 bytes",
        "  a TensorBoard event",
        "  field 7  varint  1",
        "x, record 0, offset 0, 9 bytes",
        "  not a tf.train.Example: 31",
        '  text  text  "1"',
    ]


def image(data: bytes) -> ShownImage:
    found = sniff(data)
    assert found is not None
    header = read_header(data)
    return ShownImage(feature="x", value=0, format=found, header=header, data=data)


@pytest.mark.parametrize(
    ("environment", "protocol"),
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
    environment: dict[str, str], protocol: ImageProtocol | None
) -> None:
    assert find_image_protocol(environment, terminal=True) == protocol
    assert find_image_protocol(environment, terminal=False) is None


def test_images_can_be_asked_for_in_a_pipe() -> None:
    assert find_image_protocol({}, terminal=False, always=True) == "iterm"
    assert find_image_protocol({"TERM": "xterm-kitty"}, terminal=False, always=True) == "kitty"


@pytest.mark.parametrize("data", [png(28, 28), jpeg(640, 480), gif(9, 9)])
def test_iterm_gets_the_bytes_as_they_are(data: bytes) -> None:
    found = re.fullmatch(
        r"    \x1b\]1337;File=inline=1;size=(\d+);width=(\d+);height=(\d+):([A-Za-z0-9+/=]+)\x07\n",
        inline_image(image(data), "iterm"),
    )
    assert found is not None
    assert int(found[1]) == len(data)
    assert base64.b64decode(found[4]) == data
    assert 1 <= int(found[2]) <= 48
    assert 1 <= int(found[3]) <= 14


def test_kitty_gets_a_png_in_chunks() -> None:
    noise = b"".join(bytes([(n * n * 31 + n) % 251]) for n in range(12_000))
    data = png(28, 28) + noise  # kitty is not asked to mind what follows
    found = inline_image(image(data), "kitty")
    chunks = re.findall(r"\x1b_G([^;]*);([A-Za-z0-9+/=]*)\x1b\\", found)
    assert "".join(f"\x1b_G{keys};{part}\x1b\\" for keys, part in chunks) == found.strip()
    assert chunks[0][0] == "a=T,f=100,q=2,c=28,r=14,m=1"
    assert [keys for keys, _ in chunks[1:]] == ["m=1"] * (len(chunks) - 2) + ["m=0"]
    assert all(len(part) <= 4096 for _, part in chunks)
    assert base64.b64decode("".join(part for _, part in chunks)) == data
    assert "m=0" in inline_image(image(png(3, 3)), "kitty")


@pytest.mark.parametrize(
    ("width", "height", "columns", "rows"),
    [(28, 28, 28, 14), (3, 2, 42, 14), (640, 480, 37, 14), (10_000, 10, 48, 1), (1, 9999, 1, 14)],
)
def test_proportions_are_kept_within_limits(
    width: int, height: int, columns: int, rows: int
) -> None:
    shown = inline_image(image(jpeg(width, height)), "iterm")
    assert f"width={columns};height={rows}:" in shown


@pytest.mark.parametrize("protocol", ["iterm", "kitty"])
def test_bombs_are_not_shown(protocol: ImageProtocol) -> None:
    assert inline_image(image(png(3, 3)), protocol)
    huge = replace(image(png(3, 3)), header=read_header(jpeg(5000, 5000)))
    assert inline_image(huge, protocol) == ""
    assert inline_image(replace(image(png(3, 3)), header=None), protocol) == ""
    heavy = replace(image(png(3, 3)), data=png(3, 3) + bytes(5 << 20))
    assert inline_image(heavy, protocol) == ""


def test_kitty_is_sent_no_other_format() -> None:
    assert inline_image(image(jpeg(64, 64)), "kitty") == ""


RECORD = ShownRecord(
    shard="a",
    record=0,
    offset=0,
    length=9,
    key=None,
    features=(),
    payload="example",
    images=tuple(image(png(3, 3, seed=seed)) for seed in range(6)),
)


def test_the_first_images_of_a_record_come_below_it(terminal) -> None:
    shown = terminal(lambda console: print_records(console, [RECORD] * 2, protocol="iterm"), 80)
    parts = shown.split("a, record 0, offset 0, 9 bytes\n")
    assert [part.count("\x1b]1337") for part in parts] == [0, 4, 4]


def test_without_a_protocol_nothing_but_words_is_written(pipe) -> None:
    assert "\x1b" not in pipe(lambda console: print_records(console, [RECORD]))
