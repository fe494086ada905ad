"""Building from a large COCO file: microseconds per annotation, and memory."""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from benchmarks.pairs import run
from benchmarks.raw import coco_annotations

__all__ = ["main"]

_EACH = 10
"""Annotations an image."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table. There is no baseline: the target is absolute."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        raw, out = Path(work) / "raw", Path(work) / "out"
        coco_annotations(raw, arguments.count, _EACH)
        weight = sum(path.stat().st_size for path in raw.glob("annotations/*"))
        command = [sys.executable, "-m", "benchmarks.build", "coco", str(raw), str(out)]
        done = [run(command) for _ in range(arguments.runs)]
        print(done[-1].output.strip())
        seconds = statistics.median(each.inner for each in done)
        total = arguments.count * _EACH
        found = re.search(r"parent_kib=(\d+) worker_kib=(\d+)", done[-1].output)
        assert found is not None
        parent, worker = (int(kib) * 1024 / 1e6 for kib in found.groups())
        micros = seconds / total * 1e6
        name = f"{arguments.count:,} images, {total:,} annotations, {weight / 1e6:,.0f} MB of JSON"
        return [
            f"| {name} | {seconds:.1f} s | | **{micros:.1f} µs** an annotation | 25 µs |",
            f"| the same: memory of the parent | {parent:,.0f} MB | | | under 1,500 MB |",
            f"| the same: memory of the largest worker | {worker:,.0f} MB | | | under 300 MB |",
        ]
