"""What is in the statistics, what is left out, and where there are none."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from statistics_support import (
    IMAGES,
    ours,
    write,
)

from tfrecreg.builtin.statistics.collect import StatisticsCollector, StatisticsVisitor
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.registry.find import bare_files, target_of
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import RefusedError
from tfrecreg.core.workers.local import LocalEngine

SEQUENCE = encode({"a": int64_feature(1)}) + b"\x12\x05\n\x03\n\x01x"
EVENT = b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2"
UNKNOWN = b"\x0a\x02\x10\x01"
END = StreamEnd("none", 0, 0, 0, 0, None, None)


def statistics(folder: Path, *payloads: bytes, schema: str | None = None):
    return ours(write(folder, payloads), schema)


@pytest.mark.parametrize("size", [10, 20_000], ids=["small", "large"])
@pytest.mark.parametrize("schema", [IMAGES, None], ids=["images", "no schema"])
def test_what_is_no_example_is_left_out_and_counted(
    tmp_path: Path, size: int, schema: str | None
) -> None:
    rng = random.Random(1)
    examples = [
        encode({"image": bytes_feature(rng.randbytes(size)), "n": int64_feature(each)})
        for each in range(8)
    ]
    strange = [SEQUENCE, EVENT, EVENT, b"{}", UNKNOWN, b"\x0a\x03\x0a\x05a"]
    payloads = [*examples, *strange, encode({})]
    rng.shuffle(payloads)
    found = statistics(tmp_path, *payloads, schema=schema)
    assert found.examples == 9
    assert found.left_out.kinds == {
        PayloadKind.SEQUENCE_EXAMPLE: 1,
        PayloadKind.EVENT: 2,
        PayloadKind.OTHER: 3,
    }
    assert str(found.left_out) == "2 events, 3 of other kinds, 1 SequenceExample"
    (dataset,) = found.proto.datasets
    assert dataset.num_examples == 9
    image = dataset.features[0]
    assert image.path.step[0] == "image"
    mean = image.bytes_stats.avg_num_bytes if schema else image.string_stats.avg_length
    assert mean == size


def test_an_example_that_no_encoder_writes_is_in_the_statistics(tmp_path: Path) -> None:
    one = encode({"image": bytes_feature(b"x" * 9000)})
    other = encode({"n": int64_feature(3)})
    found = statistics(tmp_path, one, one + other, one, schema=IMAGES)
    assert found.examples == 3
    image, number = found.proto.datasets[0].features
    assert (image.bytes_stats.min_num_bytes, image.bytes_stats.max_num_bytes) == (9000, 9000)
    assert number.num_stats.common_stats.num_non_missing == 1


def test_records_too_large_to_be_held_are_left_out_and_counted() -> None:
    visitor = StatisticsVisitor(parse_schema(""))
    visitor.batch(RecordBatch(0, [0], [1 << 27], [0], b"", whole=False))
    visitor.fault(Fault("CRC002", 0, 0, 1, ""))
    part = visitor.close(END)
    assert str(part.left_out) == "1 damaged, 1 too large for memory"
    assert part.proto().datasets[0].num_examples == 0


NUMBER = encode({"a": int64_feature(1), "b": int64_feature(1)})
TEXT = encode({"a": int64_feature(1), "b": bytes_feature(b"1")})
FLOAT = encode({"a": float_feature(1.0)})


class TestTwoTypes:
    @pytest.mark.parametrize(
        "shards",
        [[[NUMBER, TEXT]], [[NUMBER] * 3000, [TEXT] * 3000], [[NUMBER] * 30_000 + [TEXT] * 9000]],
        ids=["in a batch", "in two shards", "far apart"],
    )
    def test_of_a_feature_are_refused(self, tmp_path: Path, shards: list[list[bytes]]) -> None:
        pattern = write(tmp_path, *shards)
        collector = StatisticsCollector()
        run_scan(target_of(bare_files([pattern])), [collector], LocalEngine(1))
        (part,) = collector.parts.values()
        assert part.conflict is not None
        assert (part.conflict.feature, part.conflict.types) == ("b", ("bytes", "int64"))
        assert part.examples == sum(map(len, shards))
        assert part.sketched == ()
        with pytest.raises(RefusedError) as caught:
            collector.statistics()
        assert "bytes values in some examples and int64 values in others" in caught.value.message
        assert "SCH003" in caught.value.message

    def test_of_numbers_are_two_types_as_well(self, tmp_path: Path) -> None:
        with pytest.raises(RefusedError, match="`a` has float values in some examples and int64"):
            statistics(tmp_path, NUMBER, FLOAT)
