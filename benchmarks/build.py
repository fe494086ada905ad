"""The program that the benchmarks time: one build by the library, without imports.

usage: python -m benchmarks.build SOURCE RAW OUT [OPTION=VALUE ...]      prints seconds and bytes

The environment variable BENCH_JOBS is the number of worker processes; without it all cores are
used. `processor` is the CPU seconds of the build and its workers.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import time
from importlib import import_module
from pathlib import Path

LATER = (
    "google.protobuf.text_format",
    "tensorflow_metadata.proto.v0.schema_pb2",
    "tfrecreg.core.schema.compiled",
    "tfrecreg.core.schema.vectorized",
    "tomlkit",
    "tfrecreg.builtin.validators.crc",
    "tfrecreg.builtin.validators.manifest",
    "tfrecreg.builtin.schemas.validator",
)
"""Modules that a build imports lazily; they are imported before, because imports are not
counted.
"""


def main() -> None:
    from tfrecreg.builtin.python_data.build import build
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.plugins.manager import plugins
    from tfrecreg.core.plugins.records import SourceRecord
    from tfrecreg.core.registry.init import init
    from tfrecreg.core.registry.registry import open_registry
    from tfrecreg.core.workers.local import LocalEngine, usable_cores

    source, raw, out, *options = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    init(out, with_dvc=False)
    plugins().load(SourceRecord, source)
    for name in LATER:
        import_module(name)
    request = BuildRequest(
        name="bench",
        source=source,
        raw=str(Path(raw).absolute()),
        options=dict(option.split("=", 1) for option in options),
    )
    registry = open_registry(out)
    engine = LocalEngine(int(os.environ.get("BENCH_JOBS") or usable_cores()))
    start, worked = time.perf_counter(), _processor_seconds()
    result = build(registry, request, engine=engine)
    took, worked = time.perf_counter() - start, _processor_seconds() - worked
    size = sum(shard.bytes for shard in result.manifest.shards)
    records = sum(split.records for split in result.manifest.splits)
    parent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    ratio = size / result.manifest.raw.decoded
    print(
        f"tfrecreg {source} seconds={took:.3f} processor={worked:.3f} bytes={size} "
        f"examples={records} of_raw={ratio:.4f} parent_kib={parent} worker_kib={worker}"
    )


def _processor_seconds() -> float:
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
