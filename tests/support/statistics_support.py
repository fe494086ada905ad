"""Examples of every kind, and TFDV's statistics of them."""

from __future__ import annotations

import gzip
import math
import random
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from scan_support import framed

from tfrecreg.builtin.statistics.collect import SplitStatistics, StatisticsCollector
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.tfdv import load_tfdv, missing_tfdv
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.example.model import Feature, encode, varint
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.registry.shardset.target import files_target
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

IMAGES = """
feature { name: "image" type: BYTES image_domain {} }
feature { name: "never" type: BYTES image_domain {} }
"""

CATEGORIES = """
feature { name: "category" type: INT int_domain { is_categorical: true } }
feature { name: "flag" type: INT bool_domain {} }
"""

_RUNNER = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def needs_tfdv() -> None:
    """Skip a test without TFDV."""
    missing = missing_tfdv()
    if missing is not None:
        pytest.skip(missing.message)


def odd_examples(count: int, seed: int = 0) -> Iterator[dict[str, Feature]]:
    """Examples that lack features, hold empty lists, NaN, binary texts, ragged lists."""
    rng = random.Random(seed)
    for number in range(count):
        example = {
            "ragged": int64_feature([rng.randrange(-5, 50) for _ in range(rng.randrange(4))]),
            "text": bytes_feature(rng.choice(["á", "b", "日本", "x" * 300]).encode()),
            "binary": bytes_feature([rng.randbytes(rng.choice([1, 3, 500])), b"\xff\xfe"]),
            "category": int64_feature(rng.randrange(6)),
            "flag": int64_feature(number & 1),
            "share": float_feature(float(number % 3)),
        }
        if number % 3:
            sizes = [rng.choice([0, 10, 9000]) for _ in range(rng.choice([0, 1, 1, 2]))]
            example["image"] = bytes_feature([rng.randbytes(size) for size in sizes])
        if number % 5 == 0:
            odd = [1.5, math.nan, math.inf, -math.inf, 0.0, -2.25]
            example["float"] = float_feature(rng.choice(odd))
        if number % 7 == 0:
            example["unset"] = unset_feature()
        if number == 4:
            example["rare"] = bytes_feature([])
        names = list(example)
        rng.shuffle(names)
        yield {name: example[name] for name in names}


def alike_examples(count: int, seed: int = 0) -> Iterator[dict[str, Feature]]:
    """Small examples that differ in values only."""
    rng = random.Random(seed)
    for number in range(count):
        yield {
            "image": bytes_feature(rng.randbytes(rng.randrange(100, 900))),
            "box": float_feature([rng.random() for _ in range(4)]),
            "name": bytes_feature(b"%d.jpg" % number),
            "label": int64_feature(rng.randrange(-3, 2000)),
        }


def as_written(example: dict[str, Feature]) -> bytes:
    """An Example in the order of its features, as an encoder that does not sort writes it."""
    entries = b""
    for name, feature in example.items():
        one = encode({name: feature})
        entries += one[1 + len(varint(_length(one))) :]
    return b"\n" + varint(len(entries)) + entries


def _length(payload: bytes) -> int:
    size = shift = 0
    for byte in payload[1:]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return size


def write(folder: Path, *shards: Iterable[bytes], compress: bool = False) -> str:
    """Shards of these payloads, and the glob that names them."""
    suffix = ".gz" if compress else ""
    for number, payloads in enumerate(shards):
        name = f"d-train.tfrecord-{number:05d}-of-{len(shards):05d}{suffix}"
        data = b"".join(map(framed, payloads))
        (folder / name).write_bytes(gzip.compress(data) if compress else data)
    return str(folder / f"d-train.tfrecord-*{suffix}")


def dealt(examples: Iterable[dict[str, Feature]], shards: int) -> Sequence[list[bytes]]:
    """The serialized examples, dealt to so many shards."""
    payloads = [as_written(example) for example in examples]
    return [payloads[number::shards] for number in range(shards)]


def ours(pattern: str, options: StatisticsOptions, engine: Engine | None = None) -> SplitStatistics:
    """The statistics of the files of one split."""
    collector = StatisticsCollector(options)
    target = files_target([pattern], schema=None, raw=None)
    result = run_scan(target, [collector], engine or LocalEngine(1))
    assert result.complete, (result.crashes, result.unreadable)
    (split,) = collector.statistics()
    return split


def theirs(pattern: str, options: StatisticsOptions, *, sketches: bool = False) -> Any:
    """What TFDV makes of the files through Beam, by the same options.

    Args:
        sketches: whether it estimates frequent values: it takes no FLOAT for a category otherwise.
    """
    tfdv = load_tfdv().api
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from apache_beam.options.pipeline_options import PipelineOptions

        stats_options = tfdv.StatsOptions(
            schema=options.schema_proto(),
            num_top_values=options.num_top_values,
            frequency_threshold=options.frequency_threshold,
            num_rank_histogram_buckets=options.num_rank_histogram_buckets,
            num_values_histogram_buckets=options.num_values_histogram_buckets,
            num_histogram_buckets=options.num_histogram_buckets,
            num_quantiles_histogram_buckets=options.num_quantiles_histogram_buckets,
            use_sketch_based_topk_uniques=sketches,
        )
        return tfdv.generate_statistics_from_tfrecord(
            pattern, stats_options=stats_options, pipeline_options=PipelineOptions([_RUNNER])
        )


def counted_differences(expected: Any, found: Any) -> list[str]:
    """Where statistics differ from TFDV's in anything that TFDV counts."""
    estimate = re.compile(r"\.(histograms|num_values_histogram|median)\b")
    return [each for each in differences(expected, found) if not estimate.search(each)]


def estimated_differences(expected: Any, found: Any) -> list[str]:
    """Where histograms differ from TFDV's by more than its quantiles are off at both ends.

    Numbers at the bounds of a bucket are in either, so this is of numbers that are spread.
    """
    told = []
    pairs = zip(expected.datasets[0].features, found.datasets[0].features, strict=True)
    for one, other in pairs:
        values = one.num_stats.common_stats.tot_num_values
        for left, right in zip(one.num_stats.histograms, other.num_stats.histograms, strict=True):
            counts = [[each.sample_count for each in side.buckets] for side in (left, right)]
            kinds = [(side.type, side.num_nan, len(side.buckets)) for side in (left, right)]
            if kinds[0] != kinds[1] or any(
                abs(a - b) > 0.02 * values for a, b in zip(*counts, strict=True)
            ):
                told.append(f"{one.path.step[0]}: {counts[0]} and {counts[1]}")
    return told


def differences(one: Any, other: Any) -> list[str]:
    """Where two lists of statistics differ, features in order of their names.

    Sums of floats depend on the order of the additions, even from one run of TFDV to the next:
    they may differ in the ninth digit. Nothing else may.
    """
    pair = []
    for each in (one, other):
        copy = type(each)()
        copy.CopyFrom(each)
        for dataset in copy.datasets:
            dataset.features.sort(key=lambda feature: tuple(feature.path.step))
        pair.append(copy)
    return list(_walk(pair[0], pair[1], ""))


def _walk(one: Any, other: Any, path: str) -> Iterator[str]:
    for field in one.DESCRIPTOR.fields:
        here = f"{path}.{field.name}"
        mine, more = getattr(one, field.name), getattr(other, field.name)
        if _repeated(field):
            if len(mine) != len(more):
                yield f"{here}: {len(mine)} and {len(more)}"
            else:
                for number, (left, right) in enumerate(zip(mine, more, strict=True)):
                    yield from _compare(field, left, right, f"{here}[{number}]")
        elif field.message_type is None:
            yield from _compare(field, mine, more, here)
        elif one.HasField(field.name) != other.HasField(field.name):
            yield f"{here}: in one of them only"
        elif one.HasField(field.name):
            yield from _walk(mine, more, here)


def _repeated(field: Any) -> bool:
    """Whether it is a list: protobuf 6 has a property for it, and warns of what it was before."""
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == field.LABEL_REPEATED)


def _compare(field: Any, one: Any, other: Any, path: str) -> Iterator[str]:
    if field.message_type is not None:
        yield from _walk(one, other, path)
    elif isinstance(one, float):
        if not (math.isclose(one, other, rel_tol=1e-9) or (one != one and other != other)):
            yield f"{path}: {one} and {other}"
    elif one != other:
        yield f"{path}: {one!r} and {other!r}"
