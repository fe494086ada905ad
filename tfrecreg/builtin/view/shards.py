"""Numbers the shards of a target, and detects whether their files have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Literal

from blake3 import blake3

from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.records.reading.offsets import RecordOffsets, has_own_index, own_index
from tfrecreg.core.records.reading.shards import ShardPlace, ShardRecords, look_up
from tfrecreg.core.values.errors import (
    DamagedRecordError,
    ManifestError,
    NoSuchRecordError,
    StorageError,
    TfrecregError,
)
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe


@dataclass(frozen=True, slots=True)
class ViewedShard:
    """A shard as it was when the target was opened."""

    number: int
    """Number of the shard among all shards of the target."""
    shard: Shard | None
    """The shard; None if the manifest lists it but its file is missing."""
    name: str
    """The name as findings use it, not escaped."""
    split: str
    place: ShardPlace
    records: int = 0
    stamp: tuple[int, int, int] = (0, 0, 0)
    """Size, modification time and inode."""
    state: Literal["ok", "damaged", "gone"] = "ok"
    offsets: RecordOffsets | None = None
    """The offsets of its records, if they had to be looked up."""

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.stamp[0]

    @property
    def identity(self) -> str:
        """A text that changes if the file is replaced or changed under the same name."""
        place = f"{self.shard.storage.root}/{self.shard.path}" if self.shard is not None else ""
        text = f"{place} {self.stamp}"
        return blake3(text.encode("utf-8", "surrogateescape")).hexdigest(8)


class ViewedShards:
    """The shards of a target, and its records, numbered across all shards.

    Shards are ordered by split: train, validation, test, others. Safe for threads.
    """

    def __init__(self, target: Target) -> None:
        files = target.manifest.files if target.manifest is not None else ()
        digests = {each.path: each.blake3 for each in files}
        named: list[tuple[str, str, Shard | None]]
        if target.manifest is None or target.partial:
            named = [(each.name, each.split, each) for each in target.shards]
        else:  # the missing shards at their places
            here = {each.path: each for each in target.shards}
            listed = target.manifest.shards
            named = [(each.path, each.split, here.get(each.path)) for each in listed]
        named.sort(key=lambda each: in_reading_order(each[1]))
        self.shards = [
            _seen(number, name, split, shard, digests)
            for number, (name, split, shard) in enumerate(named)
        ]
        self.named = {each.name: each for each in self.shards}
        self.records = ShardRecords([each.place for each in self.shards])
        for each in self.shards:
            if each.offsets is not None:
                self.records.remember(each.number, each.offsets)
        self.starts = [0, *accumulate(each.records for each in self.shards)]

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def splits(self) -> dict[str, list[ViewedShard]]:
        """The shards of each split, in order."""
        found: dict[str, list[ViewedShard]] = {}
        for each in self.shards:
            found.setdefault(each.split, []).append(each)
        return found

    def where(self, number: int) -> tuple[int | None, int | None]:
        """A record's offset in its shard's stream, and its payload size; each None if unknown."""
        shard, record = self.records.locate(number)
        try:
            offsets = self.records.located(shard)
        except TfrecregError:
            return None, None
        length = int(offsets.lengths[record])
        return int(offsets.offsets[record]), length if length >= 0 else None

    def number(self, shard: int, record: int) -> int:
        if not 0 <= shard < len(self.shards):
            raise NoSuchRecordError(f"there is no shard {shard}")
        seen = self.shards[shard]
        if not 0 <= record < seen.records:
            raise NoSuchRecordError(
                f"there is no record {record} in `{seen.name}`: the shard has "
                f"{count(seen.records, 'record')}"
            )
        return self.starts[shard] + record

    def place(self, number: int) -> tuple[ViewedShard, int]:
        shard, record = self.records.locate(number)
        return self.shards[shard], record

    def expect_same(self, seen: ViewedShard) -> None:
        """Refuse a shard that changed or vanished since it was opened."""
        name = safe(seen.name, limit=1000)
        stamp = _stamp(seen.shard) if seen.shard is not None else None
        if stamp is None:
            raise StorageError(f"`{name}` is not there any more")
        if stamp != seen.stamp:
            raise StorageError(f"`{name}` was changed since it was opened: view it again")

    def payloads(self, numbers: Sequence[int]) -> list[bytes | TfrecregError]:
        """The payload of each record, in the given order. An unreadable record has an error
        instead.
        """
        found: dict[int, bytes | TfrecregError] = {}
        for shard, group in groupby(sorted(numbers), lambda each: self.records.locate(each)[0]):
            inside = [*group]
            try:
                self.expect_same(self.shards[shard])
                found.update(zip(inside, self.records.payloads(inside), strict=True))
            except TfrecregError as error:
                found.update(dict.fromkeys(inside, error))
        return [found[each] for each in numbers]

    def payload(self, number: int) -> bytes:
        (found,) = self.payloads([number])
        if isinstance(found, TfrecregError):
            raise found
        return found

    def key(self, number: int) -> str | None:
        """The key of a record; None if no index contains it."""
        try:
            return self.records.key(number)
        except (ManifestError, StorageError, DamagedRecordError):
            return None


def _stamp(shard: Shard) -> tuple[int, int, int] | None:
    try:
        entry = shard.storage.stat(shard.path, follow="all")
    except StorageError:
        return None
    if entry is None or entry.kind != "file":
        return None
    return entry.size, entry.mtime_ns, entry.inode


def _seen(
    number: int, name: str, split: str, shard: Shard | None, digests: Mapping[str, str]
) -> ViewedShard:
    stamp = _stamp(shard) if shard is not None else None
    place = ShardPlace("", "", name, split, "", 0, 0, 0)
    seen = ViewedShard(number, shard, name, split, place)
    if shard is None or stamp is None:
        return replace(seen, state="gone")
    entry, index = shard.entry, shard.index
    if entry is None and has_own_index(shard.storage, shard.path):
        index = own_index(shard.path)
    place = place._replace(
        root=shard.storage.root,
        path=shard.path,
        size=stamp[0],
        mtime_ns=stamp[1],
        index_path=index or "",
        index_blake3=digests.get(shard.index or "", ""),
    )
    seen = replace(seen, stamp=stamp, place=place)
    if entry is not None and index is not None and entry.bytes == stamp[0]:
        # The index is read when a record is requested.
        place = place._replace(records=entry.records)
        return replace(seen, records=entry.records, place=place)
    try:
        found = look_up(place)
    except TfrecregError:
        return replace(seen, state="damaged", place=place._replace(index_path=""))
    records = len(found.offsets)
    other = entry is not None and entry.records != records
    damaged = found.faults or (found.lengths < 0).any() or other
    seen = replace(seen, records=records, place=place._replace(records=records), offsets=found)
    return replace(seen, state="damaged" if damaged else "ok")
