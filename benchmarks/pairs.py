"""Running commands alternately, A B A B …, so that a slowdown of the machine affects both."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Measured", "alternate", "row", "run", "served"]


@dataclass(frozen=True)
class Measured:
    """One run of one command."""

    wall: float
    """Wall time of the whole process in seconds."""
    inner: float
    """The seconds that it printed as ``seconds=…``, without imports; else the same as `wall`."""
    peak: int
    """Largest resident set among its processes, in bytes."""
    output: str
    work: float = 0.0
    """The CPU seconds that it printed as ``processor=…``; else those of all its processes, in user
    and system mode."""


def run(command: Sequence[str], **environment: str) -> Measured:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed; the message has the end of its output.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{output[-2000:]}")
    found = re.search(r"\bseconds=([0-9.]+)", output)
    worked = re.search(r"\bprocessor=([0-9.]+)", output)
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(
        wall,
        float(found[1]) if found else wall,
        usage.ru_maxrss * unit,
        output,
        float(worked[1]) if worked else usage.ru_utime + usage.ru_stime,
    )


def alternate(
    runs: int, first: Callable[[], Measured], second: Callable[[], Measured]
) -> tuple[list[Measured], list[Measured]]:
    """Run both alternately, `runs` times, after one uncounted run of each."""
    first()
    second()
    pairs = [(first(), second()) for _ in range(runs)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def row(
    what: str,
    ours: Sequence[Measured],
    theirs: Sequence[Measured],
    target: str,
    *,
    inner: bool = True,
    faster: bool = False,
    work: bool = False,
) -> str:
    """A line of a table: median seconds of both, and the median ratio of the pairs.

    Args:
        what: name of the comparison.
        ours: our runs.
        theirs: runs of the baseline, in the same order.
        target: the target for the ratio.
        inner: compare the times that the commands printed, without imports.
        faster: show theirs / ours (how many times as fast) instead of ours / theirs.
        work: compare the CPU seconds of all processes, which other programs on the machine affect
            less.
    """

    def seconds(each: Measured) -> float:
        if work:
            return each.work
        return each.inner if inner else each.wall

    a, b = [*map(seconds, ours)], [*map(seconds, theirs)]
    ratios = [y / x if faster else x / y for x, y in zip(a, b, strict=True)]
    middle = statistics.median
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return (
        f"| {what} | {middle(a):.2f} s | {middle(b):.2f} s | "
        f"**{middle(ratios):.2f}** ({spread}) | {target} |"
    )


@contextmanager
def served(command: Sequence[str]) -> Iterator[str]:
    """The address of a web server of this machine, which prints its port."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.kill()
        server.wait()
