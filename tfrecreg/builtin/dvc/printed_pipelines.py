"""The stages of a pipeline, and their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import line
from tfrecreg.core.values.text import count, safe

if TYPE_CHECKING:
    from tfrecreg.builtin.dvc.pipeline.run import Changes, PipelineResult


def print_pipeline(console: Console, result: PipelineResult, *, look: bool) -> None:
    """The changes of `dvc.yaml`."""
    datasets = count(len(result.datasets), "dataset")
    if result.current:
        console.print(line(("dvc.yaml", "bold"), f" is up to date, with {datasets}"))
        _print_tracked(console, result)
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
    _print_tracked(console, result)


def _print_tracked(console: Console, result: PipelineResult) -> None:
    if result.tracked:
        title = "  no stages, tracked by data/NAME.dvc: "
        console.print(line((title, "cyan"), ", ".join(safe(each) for each in result.tracked)))


def _titled(before: str, changes: Changes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        (f"{before}added", changes.added),
        (f"{before}updated", changes.updated),
        (f"{before}removed", changes.removed),
    )
