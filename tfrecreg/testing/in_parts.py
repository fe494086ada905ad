"""A build that is planned, made and published in parts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tfrecreg.operations.builds.parts.collect import CollectRequest, collect_parts
from tfrecreg.operations.builds.parts.one_part import PlanPart, run_part
from tfrecreg.operations.builds.parts.prepare_plan import plan_to
from tfrecreg.operations.builds.settings import BuildRequest
from tfrecreg.registry.registry import Registry


def build_in_parts(
    registry: Registry, request: BuildRequest, plan: Path, numbers: Iterable[int], of: int
) -> None:
    """Build a dataset in parts, in the order of their numbers.

    Args:
        plan: a new folder.
    """
    plan_to(registry, request, plan)
    for number in numbers:
        run_part(str(plan), PlanPart(number, of), registry=lambda: registry)
    collect_parts(registry, CollectRequest(plan=str(plan), parts_only=True))
