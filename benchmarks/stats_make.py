"""The program that the benchmark `stats` times: statistics and anomalies of one file.

usage: python -m benchmarks.stats_make ours|tfdv|tfdv-schema FILE      prints seconds

`ours` also compares every record with the schema and checks both its checksums. `tfdv` infers the
schema from the statistics, as in its tutorial; `tfdv-schema` gets a schema that declares images.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable

from benchmarks.stats import SCHEMA

__all__ = ["ours", "tfdv"]

_RUNNER = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def ours(path: str) -> Callable[[], int]:
    """A function that computes our statistics and returns their number of examples."""
    from dataclasses import replace

    from tfrecreg.builtin.schemas.validator import SchemaValidator
    from tfrecreg.builtin.statistics.collect import StatisticsCollector
    from tfrecreg.builtin.statistics.tfdv import load_tfdv
    from tfrecreg.builtin.validators.crc import CrcValidator
    from tfrecreg.core.check.scan.run import run_scan
    from tfrecreg.core.registry.find import bare_files, target_of
    from tfrecreg.core.schema.proto import parse_schema, schema_message
    from tfrecreg.core.workers.local import LocalEngine

    schema = schema_message(parse_schema(SCHEMA))
    validate = load_tfdv().api.validate_statistics

    def make() -> int:
        collector = StatisticsCollector()
        target = replace(target_of(bare_files([path])), schema=SCHEMA)
        run_scan(target, [CrcValidator(), SchemaValidator(), collector], LocalEngine(1))
        (split,) = collector.statistics()
        assert not validate(split.proto, schema).anomaly_info
        return split.examples

    return make


def tfdv(path: str, *, informed: bool) -> Callable[[], int]:
    """A function that computes TFDV's statistics and returns their number of examples."""
    import tensorflow_data_validation as tfdv
    from apache_beam.options.pipeline_options import PipelineOptions

    from tfrecreg.core.schema.proto import parse_schema, schema_message

    known = schema_message(parse_schema(SCHEMA)) if informed else None

    def make() -> int:
        statistics = tfdv.generate_statistics_from_tfrecord(
            path,
            stats_options=tfdv.StatsOptions(schema=known),
            pipeline_options=PipelineOptions([_RUNNER]),
        )
        tfdv.validate_statistics(statistics, known or tfdv.infer_schema(statistics))
        return int(statistics.datasets[0].num_examples)

    return make


def main() -> None:
    kind, path = sys.argv[1:]
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    warnings.simplefilter("ignore")
    make = ours(path) if kind == "ours" else tfdv(path, informed=kind == "tfdv-schema")
    start = time.perf_counter()
    examples = make()
    print(f"examples={examples} seconds={time.perf_counter() - start:.3f}")


if __name__ == "__main__":
    main()
