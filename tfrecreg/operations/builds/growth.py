"""Which release a build grows from, and what it keeps of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tfrecreg.errors import UsageError
from tfrecreg.operations.builds.base import Base, find_base
from tfrecreg.operations.builds.plan import Plan
from tfrecreg.operations.builds.request import BuildRequest, Prepared
from tfrecreg.registry import Registry

__all__ = ["Growth", "choose_base", "growth_of", "sizes_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a build keeps of its base, and what it writes. Bytes of shards that are not made yet
    are estimates: the source's, by the measure of how large the base's shards are.
    """

    base: str
    """``mnist@1.0.0``."""
    kept: int
    """Shards of the base that stay as they are."""
    kept_bytes: int
    rewritten: int
    """Shards of the base in which records changed, or are gone."""
    rewritten_bytes: int
    new: int
    """Shards of records that the base has not."""
    new_bytes: int

    @property
    def written_bytes(self) -> int:
        """What is written, and what a push sends beside indexes and manifests."""
        return self.rewritten_bytes + self.new_bytes


def sizes_of(plan: Plan, kept: set[str]) -> dict[str, int]:
    """Path to bytes of each shard of a plan, of those that are not made yet about.

    What the source says of its items is held against the shards of the base that hold such items:
    so much smaller or larger will the new ones be.

    Args:
        plan: the plan.
        kept: paths of shards that are kept.
    """
    estimates = {shard.path: sum(item.size for item in shard.items) for shard in plan.shards}
    of_base = {shard.path: shard.base.entry.bytes for shard in plan.shards if shard.base}
    estimated = sum(estimates[path] for path in of_base)
    scale = sum(of_base.values()) / estimated if estimated else 1.0
    return {
        path: of_base[path] if path in kept and path in of_base else round(estimate * scale)
        for path, estimate in estimates.items()
    }


def growth_of(plan: Plan, kept: set[str], sizes: Mapping[str, int]) -> Growth | None:
    """Sums over the shards of a plan.

    Args:
        plan: with its base.
        kept: paths of shards that are kept.
        sizes: path to bytes, of every shard.
    """
    if plan.base is None:
        return None
    counts: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    for shard in plan.shards:
        if shard.path in kept and shard.base is not None:
            what = "kept"
        else:
            what = "rewritten" if shard.base is not None or shard.mended else "new"
        counts[what] += 1
        amounts[what] += sizes[shard.path]
    return Growth(
        base=plan.base.name,
        kept=counts["kept"],
        kept_bytes=amounts["kept"],
        rewritten=counts["rewritten"],
        rewritten_bytes=amounts["rewritten"],
        new=counts["new"],
        new_bytes=amounts["new"],
    )


def choose_base(registry: Registry, request: BuildRequest, prepared: Prepared) -> Base | None:
    """The release to grow from. A layout that is asked for is a reason to begin afresh."""
    named = request.base not in (None, "none")
    if named and request.policy is not None:
        raise UsageError(
            "`--base` and the number of shards exclude each other: shards of the base stay",
            hint="`--base none` makes all shards anew, as many as you ask for",
        )
    if request.policy is not None:
        return None
    base = find_base(registry, request.name, request.base)
    if base is None or base.manifest.compression == prepared.compression:
        return base
    if named:
        raise UsageError(
            f"the base `{base.name}` has compression {base.manifest.compression}, the build has "
            f"{prepared.compression}",
            hint="`--base none` makes all shards anew",
        )
    return None
