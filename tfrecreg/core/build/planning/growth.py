"""The release that a build grows from, the shards it keeps, and an estimate of the push."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tfrecreg.core.build.planning.base import Base, find_base
from tfrecreg.core.build.planning.plan import Plan
from tfrecreg.core.build.request import Prepared
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Shards that a build keeps of its base, and shards that it writes.

    Sizes of shards that do not exist yet are estimates of the source, scaled by the ratio of real
    to estimated size in the base.
    """

    base: str
    """``mnist@1.0.0``."""
    kept: int
    """Number of unchanged shards of the base."""
    kept_bytes: int
    rewritten: int
    """Number of shards of the base in which records changed or were removed."""
    rewritten_bytes: int
    new: int
    """Number of shards with records that the base does not have."""
    new_bytes: int

    @property
    def written_bytes(self) -> int:
        """Size of all shards that are written."""
        return self.rewritten_bytes + self.new_bytes


def sizes_of(plan: Plan, kept: set[str]) -> dict[str, int]:
    """Size in bytes by shard path; estimated for shards that do not exist yet.

    Estimates of the source are scaled by the ratio of real to estimated size in the base.
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
    """Count and sum the shards of a plan; None without a base."""
    if plan.base is None:
        return None
    counts: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    for shard in plan.shards:
        if shard.path in kept and shard.base is not None:
            what = "kept"
        else:
            what = "rewritten" if shard.base is not None or shard.lost_items else "new"
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


def choose_base(registry: Registry, prepared: Prepared) -> Base | None:
    """The release to grow from; None without one, or if the request has another layout."""
    request = prepared.request
    named = request.base not in (None, "none")
    if named and request.policy is not None:
        raise UsageError(
            "`--base` and the number of shards exclude each other: shards of the base stay",
            hint="`--base none` rewrites all shards, as many as you ask for",
        )
    if request.policy is not None:
        return None
    base = find_base(registry, request.name, request.base)
    if base is None or base.manifest.compression == prepared.settings.compression:
        return base
    if named:
        raise UsageError(
            f"the base `{base.name}` has compression {base.manifest.compression}, the build has "
            f"{prepared.settings.compression}",
            hint="`--base none` rewrites all shards",
        )
    return None
