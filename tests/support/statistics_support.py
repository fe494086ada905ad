"""Examples of every kind, and TFDV's statistics of them."""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from foreign_support import field

from tfrecreg.builtin.statistics.collect import SplitStatistics, StatisticsCollector
from tfrecreg.builtin.statistics.tfdv import load_tfdv, missing_tfdv
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.example.model import Feature, encode, fields
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.registry.find import bare_files, target_of
from tfrecreg.core.schema.proto import parse_schema, schema_message
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
    singles = [encode({name: feature}) for name, feature in example.items()]
    starts = [next(fields(one, 0, len(one), 9))[1] for one in singles]
    return field(1, b"".join(one[start:] for one, start in zip(singles, starts, strict=True)))


def write(folder: Path, *shards: Iterable[bytes]) -> str:
    """Shards of these payloads, and the glob that names them."""
    for number, payloads in enumerate(shards):
        name = f"d-train.tfrecord-{number:05d}-of-{len(shards):05d}"
        (folder / name).write_bytes(b"".join(map(framed, payloads)))
    return str(folder / "d-train.tfrecord-*")


def dealt(examples: Iterable[dict[str, Feature]], shards: int) -> Sequence[list[bytes]]:
    """The serialized examples, dealt to so many shards."""
    payloads = [as_written(example) for example in examples]
    return [payloads[number::shards] for number in range(shards)]


def ours(pattern: str, schema: str | None = None, engine: Engine | None = None) -> SplitStatistics:
    """The statistics of the files of one split, with the text of a schema."""
    collector = StatisticsCollector()
    target = replace(target_of(bare_files([pattern])), schema=schema)
    result = run_scan(target, [collector], engine or LocalEngine(1))
    assert result.complete, (result.crashes, result.unreadable)
    (split,) = collector.statistics()
    return split


def theirs(pattern: str, schema: str | None = None, *, sketches: bool = False) -> Any:
    """What TFDV makes of the files through Beam, with the same schema; with estimates of frequent
    values, which alone take FLOAT for a category.
    """
    tfdv = load_tfdv()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from apache_beam.options.pipeline_options import PipelineOptions

        stats_options = tfdv.StatsOptions(
            schema=schema_message(parse_schema(schema)) if schema is not None else None,
            use_sketch_based_topk_uniques=sketches,
        )
        return tfdv.generate_statistics_from_tfrecord(
            pattern, stats_options=stats_options, pipeline_options=PipelineOptions([_RUNNER])
        )


def counted_differences(expected: Any, found: Any) -> list[str]:
    """Where statistics differ from TFDV's in anything that TFDV counts."""
    estimate = re.compile(r"\.(histograms|num_values_histogram|median)\b")
    return [each for each in differences(expected, found) if not estimate.search(each)]


def differences(one: Any, other: Any) -> list[str]:
    """Where two lists of statistics differ. Sums of floats may differ in the ninth digit: they
    depend on the order of the additions, even from one run of TFDV to the next.
    """
    left, right = (_flat(_sorted(each)) for each in (one, other))
    return [
        f"{path}: {left.get(path)!r} and {right.get(path)!r}"
        for path in sorted({*left, *right})
        if not _is_same(left.get(path), right.get(path))
    ]


def _sorted(proto: Any) -> Any:
    """A list of statistics as plain values; integers of 64 bits and NaN are texts."""
    from google.protobuf.json_format import MessageToDict

    plain = MessageToDict(proto, preserving_proto_field_name=True)
    for dataset in plain.get("datasets", ()):
        dataset.get("features", []).sort(key=lambda feature: feature["path"]["step"])
    return plain


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, dict | list):
        return {path: value}
    found: dict[str, Any] = {path: type(value)}
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        found |= _flat(inner, f"{path}.{name}")
    return found


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)
