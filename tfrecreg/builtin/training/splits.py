"""The splits that a caller reads: their shards, their records, and reasons for lost records."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.scan.conditions import chosen_records, shown_progress, weights_of_records
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reader import scan
from tfrecreg.core.registry.data import Built, Data, Files, Resolved, expect_schema
from tfrecreg.core.registry.find import listed_shards, read_schema_file, target_of
from tfrecreg.core.registry.manifest import Manifest, ShardEntry, adopted_kind
from tfrecreg.core.registry.splits import named_splits
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.raw import asked
from tfrecreg.core.values.errors import MissingFileError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import listed, safe
from tfrecreg.core.workers.interface import Engine


class SplitTarget(NamedTuple):
    """The chosen splits of a target. Their shards are not read yet."""

    name: str
    words: str
    splits: list[str]
    shards: list[Shard]
    data: Data
    storage: Readable | None = None
    """The folder that a manifest describes; None for files without a manifest."""

    @property
    def manifest(self) -> Manifest | None:
        return self.data.manifest if isinstance(self.data, Built | Files) else None

    @property
    def files(self) -> tuple[str, ...]:
        return self.data.words if isinstance(self.data, Files) else ()

    @property
    def home(self) -> Storage | None:
        return self.data.registry.storage if self.data.registry is not None else None

    def is_raw(self, schema: str | os.PathLike[str] | None = None) -> bool:
        """False for Examples, and for SequenceExamples that a schema describes; otherwise True."""
        kind = adopted_kind(self.manifest)
        if kind is not PayloadKind.SEQUENCE_EXAMPLE:
            return kind is not PayloadKind.EXAMPLE
        text = self.find_schema(schema)
        return text is None or not parse_schema(*text).describes_sequences()

    def records_where(
        self,
        ranges: Sequence[range],
        counts: Sequence[int],
        where: str,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> list[npt.NDArray[np.int64]]:
        """For each range, the ascending numbers of the records for which the condition `where`
        holds. Subqueries in the condition see all splits of the target, as in a query.
        """
        target = target_of(self.data)
        shown = shown_progress(progress)
        with chosen_records(target, where, engine=engine, progress=shown) as chosen:
            found = dict(zip(map(self._place, target.shards), chosen, strict=True))
        parts = [np.empty(0, np.int64)]
        start = 0
        for shard, count in zip(self.shards, counts, strict=True):
            numbers = found[self._place(shard)]
            if len(numbers) and numbers[-1] >= count:
                raise self._other_count(shard, count, "but it has more")
            parts.append(numbers + start)
            start += count
        every = np.concatenate(parts)
        bounds = (np.searchsorted(every, (each.start, each.stop)) for each in ranges)
        return [every[first:stop] for first, stop in bounds]

    def values(
        self, counts: Sequence[int], progress: Progress | bool, expression: str
    ) -> npt.NDArray[np.float64]:
        target = target_of(self.data)
        weights = weights_of_records(target, expression, shown_progress(progress))
        found = dict(zip(map(self._place, target.shards), weights, strict=True))
        parts = [np.empty(0)]
        for shard, count in zip(self.shards, counts, strict=True):
            values = found[self._place(shard)]
            if len(values) != count:
                raise self._other_count(shard, count, f"found {len(values)}")
            parts.append(values)
        return np.concatenate(parts)

    def _other_count(self, shard: Shard, count: int, found: str) -> RefusedError:
        return RefusedError(f"`{shard.name}` should have {count} records, {found}")

    def _place(self, shard: Shard) -> tuple[str, str]:
        # The root of a build may differ between two readers.
        return shard.storage.root if self.files else "", shard.path

    def find_schema(self, path: str | os.PathLike[str] | None) -> tuple[str, str] | None:
        if path is not None:
            return read_schema_file(os.fspath(path)), os.fspath(path)
        built = self.data.build if isinstance(self.data, Files) else self.data
        if isinstance(built, Resolved):
            return expect_schema(built), built.schema_path
        text = self.data.schema
        return None if text is None else (text, self.data.schema_path or "schema")


def without_keys(name: str) -> UsageError:
    """Error for a target whose keys are needed but whose shards have no index."""
    return UsageError(f"`{name}` has shards without an index, so its records have no keys")


def splits_of(found: Built, split: str | None) -> SplitTarget:
    """The splits that are selected from a build or release by the expression `split`."""
    manifest, storage, name = found.manifest, found.storage(), found.name
    words, splits = chosen_splits(name, [each.name for each in manifest.splits], split)
    shards: list[Shard] = []
    for each in splits:
        of_split = _shards(manifest, storage, each)
        SplitRecords(of_split, name).expect_whole()
        shards += of_split
    return SplitTarget(name, words, splits, shards, found, storage)


def _shards(manifest: Manifest, storage: Readable, split: str) -> list[Shard]:
    of_split = listed_shards(manifest, storage, lambda entry: entry.split == split)
    return [replace(each, name=f"{storage.root}/{each.path}") for each in of_split]


def expect_listed(target: Target, splits: Sequence[str], *, whole: bool) -> None:
    """Refuse a build if a file's name or size differs from the manifest. No file is read."""
    if target.manifest is None or target.storage is None:
        return
    named = {shard.path for shard in target.shards}
    strange = next((each for each in target.shards if each.entry is None), None)
    if strange is not None:
        raise RefusedError(
            f"`{strange.path}` is not a shard of the build in "
            f"`{target.storage.root}`: the build's manifest does not list this file",
        )
    for split in splits:
        wanted = [
            shard
            for shard in _shards(target.manifest, target.storage, split)
            if shard.path in named or (whole and target.storage.stat(shard.path) is None)
        ]
        if wanted:
            SplitRecords(wanted, target.name).expect_whole()


def chosen_splits(name: str, splits: Sequence[str], words: str | None) -> tuple[str, list[str]]:
    """The expression `words` and its splits. By default, `words` is the name of the only split."""
    if words is None:
        if len(splits) != 1:
            raise UsageError(
                f"`{name}` has the splits {listed(splits)}: name one, for "
                f"instance `split={splits[0]!r}`"
            )
        (words,) = splits
        return words, [words]
    return words, named_splits(words, splits, name)


DamageSearch: TypeAlias = Callable[[bytes], tuple[str, str] | None]
"""Returns a sentence about a damaged payload, in two parts: before the record's name, and after
it."""


class SplitRecords:
    """The records of splits, numbered across all of their shards."""

    def __init__(self, shards: Sequence[Shard], name: str) -> None:
        self._all = [(each, cast("ShardEntry", each.entry)) for each in shards]
        self._shards = [(each, entry) for each, entry in self._all if entry.records]
        self._name = name
        self._starts = [0, *accumulate(self.sizes)]
        self._indexes: dict[int, Index] = {}

    @property
    def starts(self) -> Sequence[int]:
        """The number of the first record in each shard with records, followed by the total."""
        return self._starts

    @property
    def sizes(self) -> list[int]:
        return [entry.records for _, entry in self._shards]

    @property
    def paths(self) -> list[bytes]:
        """The paths of shards with records, as bytes for the file system."""
        return [os.fsencode(f"{each.storage.root}/{each.path}") for each, _ in self._shards]

    def expect_whole(self) -> None:
        """Refuse shards that cannot be opened or have the wrong size. Reads no shard."""
        shards = [each for each, _ in self._all]
        sizes = asked(_size, shards, (each.storage.root for each in shards))
        found = [(entry, size) for (_, entry), size in zip(self._all, sizes, strict=True)]
        missing = [entry for entry, size in found if size is None]
        altered = [each for each in found if each[1] not in (None, each[0].bytes)]
        hint = f"`tfrecreg check {self._name}` names them all"
        if missing:
            raise UsageError(
                f"{self._some(missing)} are missing; one is `{missing[0].path}`", hint=hint
            )
        if altered:
            entry, size = altered[0]
            raise RefusedError(
                f"{self._some(altered)} differ in size from the manifest; one is "
                f"`{entry.path}`, which should have {entry.bytes} bytes but has {size}",
                hint=hint,
            )

    def _some(self, shards: Sequence[object]) -> str:
        split = safe(self._all[0][0].split)
        return f"{len(shards)} of {len(self._all)} shards of the split `{split}` of `{self._name}`"

    def first_payload(self) -> bytes | None:
        for shard, _ in self._shards:
            first = next(scan(shard.storage, shard.path), None)
            return first.payload(0) if isinstance(first, RecordBatch) and first.whole else None
        return None

    def named(self, number: int) -> str:
        """A name for record `number`: its number in its shard, and the shard's name."""
        _, entry, record = self._place(number)
        return f"record {record} of `{safe(entry.path, limit=1000)}` of {self._name}"

    def key(self, number: int) -> str:
        """A clause with the record's key, to end a sentence; empty if no index has the key."""
        shard, entry, record = self._place(number)
        if not entry.index:
            return ""
        try:
            index = load_index(shard.storage, entry.index)
            return f"; its key is `{safe(index.key(record), limit=200)}`"
        except (TfrecregError, IndexError):
            return ""

    def why_more(self, number: int) -> str:
        _, entry, _ = self._place(number)
        return self._fault_text(entry, f"should have {entry.records} records, but it has more")

    def why_lost(self, numbers: Iterable[int], look: DamageSearch) -> str:
        """Why records are missing, in one sentence about the first faulty record."""
        by_shard: dict[int, set[int]] = {}
        for number in numbers:
            _, _, record = self._place(number)
            by_shard.setdefault(number - record, set()).add(record)
        for start, wanted in sorted(by_shard.items()):
            first = start + min(wanted)
            try:
                fault = self._fault(start, wanted, look)
            except TfrecregError as error:
                return f"{self.named(first)} cannot be read: {error.message}{self.key(first)}"
            if fault:
                return fault
        return f"{self.named(first)} was not read, although it is intact now{self.key(first)}"

    def _fault(self, start: int, wanted: Container[int], look: DamageSearch) -> str:
        """The first fault of a shard, or an empty text. Slow, because it scans the shard."""
        shard, entry, _ = self._place(start)
        count = 0
        for event in scan(shard.storage, shard.path):
            if isinstance(event, Fault):
                number = start + min(event.record or 0, entry.records - 1)
                why = f"{event.code}: {event.detail}"
                return f"{self.named(number)} is damaged: {why}{self.key(number)}"
            if isinstance(event, RecordBatch):
                count = event.first + len(event)
                for position in range(len(event)):
                    if not event.whole or event.first + position not in wanted:
                        continue
                    fault = look(event.payload(position))
                    if fault is not None:
                        number = start + event.first + position
                        before, after = fault
                        return f"{before}{self.named(number)}{after}{self.key(number)}"
        if count != entry.records:
            return self._fault_text(
                entry, f"should have {entry.records} records, but it has {count}"
            )
        return ""

    def find_key(self, number: int) -> str:
        shard, entry, record = self._place(number)
        index = self._indexes.get(number - record)
        if index is None:
            index = self._indexes[number - record] = load_index(shard.storage, entry.index)
        return index.key(record)

    @property
    def have_keys(self) -> bool:
        return all(entry.index for _, entry in self._shards)

    @property
    def mean_bytes(self) -> int:
        """Mean size of a payload in bytes, rounded up."""
        return -(-sum(entry.payload_bytes for _, entry in self._shards) // max(1, self._starts[-1]))

    def _fault_text(self, entry: ShardEntry, fault: str) -> str:
        return f"`{safe(entry.path)}` of {self._name} {fault}: `tfrecreg check {self._name}`"

    def _place(self, number: int) -> tuple[Shard, ShardEntry, int]:
        at = bisect_right(self._starts, number, hi=len(self._shards)) - 1
        return *self._shards[at], number - self._starts[at]


def _size(shard: Shard) -> int | None:
    with suppress(MissingFileError), shard.storage.open(shard.path) as reader:
        return reader.size
    return None
