"""What `check --same-as` and `check --expect` say, as the validator `content` takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tfrecreg.core.check.scan.interface import Expected
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import resolve_in
from tfrecreg.core.registry.shardset.side import Side, side_of
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_DIGEST = re.compile("[0-9a-f]{64}")


def expected_of(
    same_as: str | None, counts: Mapping[str, int], registry: RegistryLike | None
) -> Expected:
    """What the targets of a check should hold."""
    for split, count in counts.items():
        if count < 0:
            raise UsageError(
                f"the number of records of a split should be at least 0, found {count}",
                hint=f"`--expect {safe(split)}=60000`",
            )
    if same_as is None:
        return Expected(counts)
    if _DIGEST.fullmatch(same_as):
        return Expected(counts, same_as)
    resolved = resolve_in(registry, same_as)
    side: Side = side_of(resolved)
    numbers = {entry.path: number for number, entry in enumerate(side.manifest.shards)}
    return Expected(
        counts,
        side.manifest.content,
        side.name,
        side.manifest,
        lambda entry: side.index(numbers[entry.path]),
    )
