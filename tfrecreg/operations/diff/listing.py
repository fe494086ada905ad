"""The examples that differ, one by one, with their keys: from places to what people can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tfrecreg.operations.diff.compare import Labels, RecordChange, compare
from tfrecreg.operations.diff.match import Matched, Pairs
from tfrecreg.operations.diff.model import Kind, RecordDiff
from tfrecreg.operations.diff.payloads import Payloads, UnreadError
from tfrecreg.operations.diff.rows import Places, record_of, shard_of
from tfrecreg.operations.diff.side import Side

__all__ = ["ListedExamples"]

_CHUNK = 50_000
"""So many keys are held at once; every index is read once for as many."""


@dataclass(frozen=True, slots=True)
class ListedExamples:
    """Makes the examples of each kind, in order of their places."""

    before: Side
    after: Side
    matched: Matched
    labels: Labels

    def __call__(self, kind: Kind, most: int | None = None) -> Iterator[RecordDiff]:
        """The examples of a kind, all or the first `most`."""
        return islice(self._every(kind, most), most)

    def _every(self, kind: Kind, most: int | None) -> Iterator[RecordDiff]:
        matched = self.matched
        if kind == "removed":
            yield from self._alone(kind, self.before, matched.removed[:most])
        elif kind == "added":
            yield from self._alone(kind, self.after, matched.added[:most])
        elif kind == "changed":
            yield from self._paired(kind, matched.changed, most, read=True)
        elif kind == "moved":
            yield from self._paired(kind, matched.moved, most, read=False)
            yield from self._paired(kind, matched.moved_changed, most, read=True)
        else:
            yield from self._paired(kind, matched.renamed, most, read=False)
            yield from self._paired(kind, matched.renamed_changed, most, read=True)

    def _alone(self, kind: Kind, side: Side, places: Places) -> Iterator[RecordDiff]:
        for at in range(0, len(places), _CHUNK):
            chunk = places[at : at + _CHUNK]
            for place, key in zip(chunk.tolist(), _keys(side, chunk), strict=True):
                shard = side.manifest.shards[shard_of(place)]
                yield RecordDiff(
                    kind=kind,
                    split=shard.split,
                    key=key,
                    shard=shard.path,
                    record=record_of(place),
                )

    def _paired(
        self, kind: Kind, pairs: Pairs, most: int | None, *, read: bool
    ) -> Iterator[RecordDiff]:
        readers = Payloads(self.before), Payloads(self.after)
        try:
            for at in range(0, len(pairs) if most is None else min(most, len(pairs)), _CHUNK):
                end = at + (_CHUNK if most is None else min(_CHUNK, most))
                before, after = pairs.before[at:end], pairs.after[at:end]
                rows = zip(
                    before.tolist(),
                    after.tolist(),
                    _keys(self.before, before),
                    _keys(self.after, after),
                    strict=True,
                )
                for old, new, old_key, new_key in rows:
                    change = self._change(old, new, readers) if read else RecordChange()
                    yield self._pair(kind, (old, old_key), (new, new_key), change)
        finally:
            for reader in readers:
                reader.close()

    def _change(self, old: int, new: int, readers: tuple[Payloads, Payloads]) -> RecordChange:
        try:
            return compare(readers[0].read(old), readers[1].read(new), self.labels)
        except UnreadError:
            return RecordChange()  # that some were not read, the result says

    def _pair(
        self, kind: Kind, old: tuple[int, str], new: tuple[int, str], change: RecordChange
    ) -> RecordDiff:
        before = self.before.manifest.shards[shard_of(old[0])]
        after = self.after.manifest.shards[shard_of(new[0])]
        return RecordDiff(
            kind=kind,
            split=after.split,
            key=new[1],
            shard=after.path,
            record=record_of(new[0]),
            from_split=before.split if before.split != after.split else None,
            from_key=old[1] if old[1] != new[1] else None,
            features_added=change.added,
            features_removed=change.removed,
            features_changed=change.changed,
            labels=change.labels,
        )


def _keys(side: Side, places: Places) -> list[str]:
    """The keys of some records, each index read once; empty where one is gone meanwhile."""
    keys = [""] * len(places)
    shards = places >> np.uint64(32)
    for shard in np.unique(shards).tolist():
        index = side.index(shard)
        if index is not None:
            for position in np.flatnonzero(shards == np.uint64(shard)).tolist():
                keys[position] = index.key(record_of(int(places[position])))
    return keys
