"""Images through PyTorch's `DataLoader` with two workers: a data source and `ImageFolder`."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import images
from tfrecreg import init

__all__ = ["main"]


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    python = arguments.peers_python or sys.executable
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        images(Path(work) / "raw", arguments.count)
        registry = init(Path(work) / "registry", with_dvc=False)
        registry["jpegs"].build(source="imagefolder", raw=Path(work) / "raw")

        def reading(kind: str) -> Measured:
            return run([python, "-m", "benchmarks.pytorch_read", kind, work])

        rows = []
        for size, what in (("", "of 640 × 480, by 32"), ("-224", "resized to 224 × 224, by 32")):
            ours, theirs = alternate(
                arguments.runs,
                lambda size=size: reading(f"ours{size}"),  # type: ignore[misc]
                lambda size=size: reading(f"imagefolder{size}"),  # type: ignore[misc]
            )
            title = f"{arguments.count:,} JPEGs, {what}, shuffled, 2 workers: `ImageFolder` / ours"
            rows.append(row(title, ours, theirs, "at least 1", faster=True))
            rows.append(row(f"{title}, CPU", ours, theirs, "", faster=True, work=True))
        return rows
