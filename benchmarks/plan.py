"""Time and memory of the plan of a build with many items."""

from __future__ import annotations

import sys
from argparse import Namespace
from statistics import median

from benchmarks.pairs import run

__all__ = ["main"]

_PLAN = """
import resource, sys, time
from tfrecreg.core.build.plan import make_plan
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.build.sources.interface import Item
count = int(sys.argv[1])
listed = (
    Item("train", f"class_{number % 1000:04d}/image_{number:09d}.jpg", 100_000 + number % 5000)
    for number in range(count)
)
begun = time.perf_counter()
plan = make_plan("large", listed, ShardPolicy(), {})
seconds = time.perf_counter() - begun
assert plan.items == count
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    seconds, peaks = [], []
    for _ in range(arguments.runs):
        took, peak = run([sys.executable, "-c", _PLAN, str(arguments.count)]).output.split()
        seconds.append(float(took))
        peaks.append(int(peak))
    each = median(seconds) / arguments.count
    return [
        f"| {arguments.count:,} items planned | {median(seconds):.1f} s | | "
        f"**{each * 1e6:.1f} µs** an item | 180 s |",
        f"| the same: memory | {max(peaks) / 1e6:,.0f} MB | | | under 2,000 MB |",
    ]
