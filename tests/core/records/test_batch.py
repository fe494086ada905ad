from __future__ import annotations

from typing import Any

from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.reader import scan

# An Example of no features, and what is none.
PAYLOADS = [b"", b"\x0a\x00", b"\xff\xff"]


def only_batch(memory_reader: Any, memory_storage: Any, data: bytes, **options: Any) -> RecordBatch:
    batch = next(iter(scan(memory_storage(memory_reader(data)), "x", **options)))
    assert isinstance(batch, RecordBatch)
    return batch


def test_payloads_are_found_by_position(
    shard: Any, memory_reader: Any, memory_storage: Any
) -> None:
    batch = only_batch(memory_reader, memory_storage, shard(PAYLOADS).stream)
    assert len(batch) == 3
    assert [batch.payload(position) for position in range(3)] == PAYLOADS
    assert list(batch.payloads()) == PAYLOADS


def test_examples_are_decoded_once_and_none_where_there_is_none(
    shard: Any, memory_reader: Any, memory_storage: Any
) -> None:
    batch = only_batch(memory_reader, memory_storage, shard(PAYLOADS).stream)
    assert batch.examples == [decode_or_none(payload) for payload in PAYLOADS]
    assert batch.examples is batch.examples
    assert batch.examples[2] is None


def test_one_example_is_decoded_alone_and_taken_by_all(
    shard: Any, memory_reader: Any, memory_storage: Any
) -> None:
    batch = only_batch(memory_reader, memory_storage, shard([*PAYLOADS, b"\x0a\x00"]).stream)
    one = batch.example(1)
    assert one is not None
    assert batch.example(1) is one
    assert batch.example(2) is None
    assert batch.examples[1] is one
    assert batch.examples == [decode_or_none(payload) for payload in (*PAYLOADS, b"\x0a\x00")]
    assert batch.example(3) is batch.examples[3]


def test_record_that_is_not_held_has_no_example(
    shard: Any, memory_reader: Any, memory_storage: Any
) -> None:
    data = shard([bytes(100)]).stream
    batch = only_batch(memory_reader, memory_storage, data, hold_limit=10, batch_bytes=20)
    assert not batch.whole
    assert (batch.lengths, batch.memory) == ([100], b"")
    assert batch.examples == [None]
