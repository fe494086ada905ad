"""What `head` shows, whole."""

from __future__ import annotations

from rich.console import Console

from tfrecreg.builtin.look.head import ShownFeature, ShownRecord
from tfrecreg.cli.head import print_record
from tfrecreg.core.example.format_payload import ShownPart

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


def print_all(console: Console, records: list[ShownRecord]) -> None:
    for each in records:
        print_record(console, each)


def test_records_in_a_pipe(pipe) -> None:
    shown = pipe(lambda console: print_all(console, RECORDS))
    assert [line.rstrip() for line in shown.splitlines()] == [
        "m-train.tfrecord-00000-of-00001, record 0, offset 0, 1,427 bytes, key 00042",
        "  image/class/label  int64       7",
        "  pixels             float[784]  0, 0.5, … 776 more",
        "  none               unset[0]",
        "m-train.tfrecord-00000-of-00001, record 1, offset 1443, 2 bytes",
        "  not a tf.train.Example: ff 00",
    ]


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
            parts=(ShownPart(part="text", name="", kind="text", count=1, shown="1"),),
        ),
        ShownRecord(
            **place,
            payload="other",
            start="31",
            parts=(ShownPart(part="text", name="", kind="text", count=1, shown='"1"'),),
        ),
    ]
    shown = pipe(lambda console: print_all(console, records))
    assert [line.rstrip() for line in shown.splitlines()] == [
        "x, record 0, offset 0, 9 bytes",
        "  a tf.train.SequenceExample",
        "  context n   int64[2]          1, 2",
        '  list steps  3 steps of bytes  ["a"] [] []',
        "  list none   0 steps",
        "x, record 0, offset 0, 9 bytes",
        "  a TensorBoard event",
        "  text  text  1",
        "x, record 0, offset 0, 9 bytes",
        "  not a tf.train.Example: 31",
        '  text  text  "1"',
    ]
