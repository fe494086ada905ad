"""`load` against two tf.data pipelines over the same shards: the tutorials' and a tuned one."""

from __future__ import annotations

import re
import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import digits, images
from tfrecreg import BuildRequest, Registry, build, init, open_registry

__all__ = ["main"]

_JPEGS = 1000


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        digits(Path(work) / "digits", arguments.count)
        images(Path(work) / "jpegs", _JPEGS)
        root = Path(work) / "registry"
        init(root, with_dvc=False)
        registry = open_registry(root)
        _build(registry, "mnist", "mnist", Path(work) / "digits")
        _build(registry, "jpegs", "imagefolder", Path(work) / "jpegs")
        small = f"{arguments.count:,} digits as PNG, decoded, by 256"
        large = f"{_JPEGS:,} JPEGs, decoded and resized to 224 × 224, by 32"
        for what, dataset, settings, targets in (
            (small, "mnist", ["256"], ("at least 3", "at least 1")),
            (large, "jpegs", ["32", "224"], ("", "at least 1")),
        ):

            def reading(
                way: str, dataset: str = dataset, settings: list[str] = settings
            ) -> Measured:
                return run(
                    [
                        *(sys.executable, "-m", "benchmarks.load_read"),
                        *(way, str(root), dataset, *settings),
                    ],
                    TF_CPP_MIN_LOG_LEVEL="3",
                )

            for way, target in zip(("plain", "tuned"), targets, strict=True):
                name = "the tutorials' pipeline" if way == "plain" else "a tuned pipeline"
                ours, theirs = alternate(
                    arguments.runs, partial(reading, "load"), partial(reading, way)
                )
                rows.append(row(f"{what}: {name} / `load`", ours, theirs, target, faster=True))
                cpu = [_cpu(each) for each in ours], [_cpu(each) for each in theirs]
                rows.append(row("the same: CPU seconds", *cpu, "", faster=True))
            if dataset == "mnist":
                ours, theirs = alternate(
                    arguments.runs, partial(reading, "load"), partial(reading, "encoded")
                )
                rows.append(
                    row(f"{what}: without decoding / `load`", ours, theirs, "", faster=True)
                )
    return rows


def _build(registry: Registry, name: str, source: str, raw: Path) -> None:
    build(registry, BuildRequest(name=name, source=source, raw=str(raw)))


def _cpu(measured: Measured) -> Measured:
    """The same run, by the CPU seconds that it printed."""
    found = re.search(r"\bcpu=([0-9.]+)", measured.output)
    assert found is not None
    return replace(measured, inner=float(found[1]))
