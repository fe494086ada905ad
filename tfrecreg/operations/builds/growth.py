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

__all__ = ["Growth", "choose_base", "growth_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a build keeps of its base, and what it writes. Bytes of shards that are not made yet
    are estimates of the source.
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


def growth_of(plan: Plan, kept: set[str], written: Mapping[str, int]) -> Growth | None:
    """Sums over the shards of a plan.

    Args:
        plan: with its base.
        kept: paths of shards that are kept.
        written: path to bytes, of shards that are there.
    """
    if plan.base is None:
        return None
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for shard in plan.shards:
        if shard.path in kept and shard.base is not None:
            what, size = "kept", shard.base.entry.bytes
        else:
            what = "rewritten" if shard.base is not None or shard.mended else "new"
            size = written.get(shard.path, sum(item.size for item in shard.items))
        counts[what] += 1
        sizes[what] += size
    return Growth(
        base=plan.base.name,
        kept=counts["kept"],
        kept_bytes=sizes["kept"],
        rewritten=counts["rewritten"],
        rewritten_bytes=sizes["rewritten"],
        new=counts["new"],
        new_bytes=sizes["new"],
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
