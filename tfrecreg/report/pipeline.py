"""What became of a pipeline, for people."""

from __future__ import annotations

from rich.console import Console

from tfrecreg.operations.pipeline import PipelineResult
from tfrecreg.report.layout import count, line
from tfrecreg.text import safe

__all__ = ["print_pipeline"]


def print_pipeline(console: Console, result: PipelineResult, *, look: bool) -> None:
    """What was done to `dvc.yaml`, or is to be done.

    Args:
        console: for results.
        result: of the operation.
        look: whether nothing was written.
    """
    datasets = count(len(result.datasets), "dataset")
    if result.current:
        console.print(line(("dvc.yaml", "bold"), f" is up to date, with {datasets}"))
        return
    state = "is out of date" if look else "was written"
    console.print(line(("dvc.yaml", "bold"), f" {state}, with {datasets}"))
    for title, stages in (
        ("to be added" if look else "added", result.added),
        ("to be updated" if look else "updated", result.updated),
        ("to be removed" if look else "removed", result.removed),
        ("missing" if look else "made", result.made),
    ):
        if stages:
            console.print(line((f"  {title}: ", "cyan"), ", ".join(safe(each) for each in stages)))
