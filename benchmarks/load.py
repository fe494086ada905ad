"""`load` against two tf.data pipelines over the same shards: the tutorials' and a tuned one.

Without a cache, and as it is called, when it keeps what is decoded: then against the tuned pipeline
with a cache and, with `--tfds-python`, against TFDS.
"""

from __future__ import annotations

import re
import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from benchmarks.pairs import Measured, row, run
from benchmarks.raw import digits, images
from tfrecreg import export, init

__all__ = ["main"]

_JPEGS = 1000
_NAMES = {
    "plain": "the tutorials' pipeline",
    "tuned": "a tuned pipeline",
    "plain-ordered": "the tutorials' pipeline",
    "tuned-ordered": "a tuned pipeline",
    "encoded": "a tuned pipeline that does not decode",
    "cached": "a tuned pipeline with a cache",
    "tfds": "TFDS with its cache",
}


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        digits(Path(work) / "digits", arguments.count)
        images(Path(work) / "jpegs", _JPEGS)
        root = Path(work) / "registry"
        registry = init(root, with_dvc=False)
        registry["mnist"].build(source="mnist", raw=Path(work) / "digits")
        registry["jpegs"].build(source="imagefolder", raw=Path(work) / "jpegs")
        kept = {"cached": "at least 1"}
        if arguments.tfds_python:
            kept["tfds"] = "at least 1"
            for name in ("mnist", "jpegs"):
                export(name, Path(work) / "tfds" / name, to="tfds", registry=registry)
        small = f"{arguments.count:,} digits as PNG, decoded, by 256"
        large = f"{_JPEGS:,} JPEGs, decoded and resized to 224 × 224, by 32"
        for what, dataset, settings, own, targets in (
            (
                *(small, "mnist", ["256"], "load"),
                {"plain": "at least 3", "tuned": "at least 1", "encoded": ""},
            ),
            (large, "jpegs", ["32", "224"], "load", {"plain": "", "tuned": "at least 1"}),
            (
                *(f"{large}, in order", "jpegs", ["32", "224"], "ordered"),
                {"plain-ordered": "", "tuned-ordered": "at least 1"},
            ),
            (f"{small}, kept", "mnist", ["256"], "kept", kept),
            (f"{large}, kept", "jpegs", ["32", "224"], "kept", kept),
        ):
            taken: dict[str, list[Measured]] = {way: [] for way in (own, *targets)}
            for _ in range(arguments.runs):
                for way, measured in taken.items():
                    python, place = sys.executable, root
                    if way == "tfds":
                        python, place = arguments.tfds_python, Path(work) / "tfds"
                    command = [python, "-m", "benchmarks.load_read", way, str(place), dataset]
                    measured.append(run([*command, *settings], TF_CPP_MIN_LOG_LEVEL="3"))
            for way, target in targets.items():
                title = f"{what}: {_NAMES[way]} / `load`"
                ours, theirs = taken[own], taken[way]
                rows.append(row(title, ours, theirs, target, faster=True))
                cpu = [_cpu(each) for each in ours], [_cpu(each) for each in theirs]
                rows.append(row(f"{title}, CPU", *cpu, "", faster=True))
    return rows


def _cpu(measured: Measured) -> Measured:
    """The same run, by the CPU seconds that it printed."""
    found = re.search(r"\bcpu=([0-9.]+)", measured.output)
    assert found is not None
    return replace(measured, inner=float(found[1]))
