"""Compares two targets: counts, changed records, and the version that the change requires."""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.releases.diff.match import Matched, Pairs, record_of, shard_of
from tfrecreg.builtin.releases.diff.result import CHANGE_KINDS, DiffResult, diff
from tfrecreg.builtin.view.background import Counted
from tfrecreg.builtin.view.browsed import PAGE, Browsed
from tfrecreg.builtin.view.record import example_of
from tfrecreg.core.example.model import Example
from tfrecreg.core.registry.find import expect_built
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_KEPT = 4


class Comparisons:
    """The most recent comparisons, computed one at a time. Safe for threads."""

    def __init__(self, registry: Registry | None) -> None:
        self._registry = registry
        self._kept: OrderedDict[tuple[str, ...], DiffResult] = OrderedDict()
        self._lock = threading.Lock()

    def summary(self, a: Browsed, b: Browsed) -> dict[str, Any]:
        found = self._between(a.word, b.word)
        change = found.change
        every = sum(each.records_after or 0 for each in found.splits)
        came = sum(total for kind, total in found.totals.items() if kind != "removed")
        return {
            **{kind: total if found.known else None for kind, total in found.totals.items()},
            "unchanged": every - came if found.known else None,
            "verdict": "SAME" if found.same else change.level.upper(),
            "version": found.version,
            "why": safe("; ".join(change.reasons), limit=2000),
            "hint": safe(found.hint, limit=1000),
            "features": [
                {
                    "name": safe(name) or "the whole payload",
                    "change": ", ".join(
                        f"{how} in {number:,}"
                        for how, number in (
                            ("added", counts.added),
                            ("removed", counts.removed),
                            ("changed", counts.changed),
                        )
                        if number
                    ),
                }
                for name, counts in sorted(found.features.items())
            ],
        }

    def records(self, a: Browsed, b: Browsed, kind: str, start: int, count: int) -> dict[str, Any]:
        """Records of one kind, with their states on both sides."""
        if kind not in CHANGE_KINDS:
            raise UsageError(f"there is no kind `{kind}`")
        pairs = _pairs(self._between(a.word, b.word).listing.matched, kind)
        shown = pairs[start : start + min(count, PAGE)]
        places = zip_longest(shown.before.tolist(), shown.after.tolist())
        return {"of": len(pairs), "records": [_pair(a, b, *each) for each in places]}

    def changed_since(self, reference: str, b: Browsed) -> npt.NDArray[np.int64]:
        """Numbers of the records of `b` that are new or changed since a version."""
        found = self._between(reference, b.word).listing.matched
        changed = (found.changed, found.moved_changed, found.renamed_changed)
        places = np.concatenate([found.added, *(each.after for each in changed)])
        numbers = [_number(b, place) for place in places.tolist()]
        return np.array(sorted(each for each in numbers if each is not None), np.int64)

    def _between(self, *words: str) -> DiffResult:
        a, b = (expect_built(each, self._registry) for each in words)
        # The words may name another version later: `t@latest`, or a build that was made again.
        key = (a.name, a.manifest.digest, b.name, b.manifest.digest)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = diff(a, b, registry=self._registry, progress=Counted())
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return found


def _pairs(matched: Matched, kind: str) -> Pairs:
    """The places of records in the old version and in the new version. A record that was added or
    removed has only one place. Moved or renamed records that also changed come last.
    """
    none = Pairs.none()
    same, differing = {
        "removed": (none, Pairs(matched.removed, none.after)),
        "added": (none, Pairs(none.before, matched.added)),
        "changed": (none, matched.changed),
        "moved": (matched.moved, matched.moved_changed),
        "renamed": (matched.renamed, matched.renamed_changed),
    }[kind]
    return Pairs(
        np.concatenate((same.before, differing.before)),
        np.concatenate((same.after, differing.after)),
    )


def _number(browsed: Browsed, place: int) -> int | None:
    """The number of a record; None if its shard is missing."""
    manifest = browsed.target.manifest
    assert manifest is not None
    name = manifest.shards[shard_of(place)].path
    seen = browsed.shards.named.get(name)
    if seen is None or record_of(place) >= seen.records:
        return None
    return browsed.shards.number(seen.number, record_of(place))


def _pair(a: Browsed, b: Browsed, before: int | None, after: int | None) -> dict[str, Any]:
    states: list[dict[str, Any] | None] = []
    examples: list[Example] = []
    for browsed, place in ((a, before), (b, after)):
        number = _number(browsed, place) if place is not None else None
        if number is None:
            states.append(None)
            continue
        (payload,) = browsed.shards.payloads([number])
        states.append(browsed.drawn(number, payload))
        if isinstance(payload, bytes) and (example := example_of(payload)) is not None:
            examples.append(example)
    differs: list[str] = []
    if len(examples) == 2:
        old, new = examples
        differs = [safe(each) for each in sorted({*old, *new}) if old.get(each) != new.get(each)]
    key = next((each["key"] for each in reversed(states) if each is not None), None)
    return {"key": key, "a": states[0], "b": states[1], "differs": differs}
