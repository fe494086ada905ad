"""What became of a pipeline, for people."""

from __future__ import annotations

from rich.console import Console

from tfrecreg.operations.pipeline import Changes, PipelineResult
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
    would = "to be " if look else ""
    for title, names in (
        *_titled(would, result.stages),
        *_titled(f"artifacts {would}", result.artifacts),
        ("missing" if look else "made", result.made),
    ):
        if names:
            console.print(line((f"  {title}: ", "cyan"), ", ".join(safe(each) for each in names)))


def _titled(before: str, changes: Changes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        (f"{before}added", changes.added),
        (f"{before}updated", changes.updated),
        (f"{before}removed", changes.removed),
    )
