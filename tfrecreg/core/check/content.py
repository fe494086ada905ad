"""The `content` validator: compares the records of a check's targets with expected content.

The record digests of each split are compared as multisets, so the order of records, their shards
and their compression do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.core.build.sources.guarded import GuardedSource, Record
from tfrecreg.core.build.sources.interface import Item, Remark
from tfrecreg.core.check.infer import DigestPart, DigestVisitor
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.scan.interface import (
    Expected,
    RawItem,
    RawItems,
    Shard,
    Target,
    Validator,
    Visitor,
)
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.records.hashing import DIGEST_BYTES, content_digest
from tfrecreg.core.records.index import Index
from tfrecreg.core.registry.data import resolve_in
from tfrecreg.core.registry.manifest import SplitEntry
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.side import Side, side_of
from tfrecreg.core.storage.raw import expect_raw_folder
from tfrecreg.core.values.codes import SHD010, SHD011, CodeList
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.findings import MAX_LOCATIONS, Code, Finding, Location, Measure
from tfrecreg.core.values.text import safe

_ROW = f"S{DIGEST_BYTES}"
# NumPy strips trailing NULs when it returns an element, but compares elements with them.

SplitRows = npt.NDArray[np.bytes_]
"""Record digests, one per element."""


class ContentValidator(Validator):
    """Compares the records with what the user expects: counts, a version, or a digest."""

    name = "content"
    codes: Sequence[Code] = CodeList("SHD01[01]")

    def applies(self, target: Target) -> str | None:
        if target.expected is None:
            return "no expected content was given: use --same-as or --expect"
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        del target, options
        return DigestVisitor

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, DigestPart]]
    ) -> Iterator[Finding | Measure]:
        expected = target.expected
        assert expected is not None  # else it does not apply
        splits: dict[str, list[tuple[Shard, DigestPart]]] = {}
        if target.manifest is not None:
            # A split may have no records and no shard, and still counts in the content.
            splits = {each.name: [] for each in target.manifest.splits}
        for shard, part in parts:
            splits.setdefault(shard.split, []).append((shard, part))
        known = set(expected.counts)
        if expected.side is not None:
            known |= {each.name for each in expected.side.manifest.splits}
        if list(splits) == [""] and len(known) == 1:  # files without a split in their names
            splits[known.pop()] = splits.pop("")
        tally = Tally()
        _check_counts(tally, splits, expected.counts)
        if expected.side is not None:
            _check_version(tally, splits, expected.side)
        elif expected.content is not None:
            _check_digest(tally, splits, expected.content)
        yield from tally.findings(target.dataset)


_Splits = dict[str, list[tuple[Shard, DigestPart]]]


def _records(parts: Iterable[tuple[Shard, DigestPart]]) -> int:
    return sum(len(part.numbers) for _, part in parts)


def _check_counts(tally: Tally, splits: _Splits, counts: Mapping[str, int]) -> None:
    for split, count in counts.items():
        records = _records(splits.get(split, ()))
        if split in splits and records == count:
            continue
        found = f"found {records:,}" if split in splits else "there is no such split"
        message = f"expected {count:,} records in `{safe(split)}`, {found}"
        tally.add(SHD010, message, Location(split=split), split=split)


def _check_digest(tally: Tally, splits: _Splits, content: str) -> None:
    found = content_digest(
        (split, b"".join(part.digests for _, part in parts)) for split, parts in splits.items()
    )
    if found != content:
        message = f"expected the content digest {content[:16]}…, found {found[:16]}…"
        names = ", ".join(
            f"`{safe(split)}` {_records(parts):,}" for split, parts in sorted(splits.items())
        )
        tally.add(SHD011, message, Location(detail=f"records: {names}"))


def _check_version(tally: Tally, splits: _Splits, side: Side) -> None:
    name, wanted = side.name, side.manifest.splits
    for split in sorted(splits.keys() - {each.name for each in wanted}):
        records = _records(splits[split])
        message = f"the split `{safe(split)}` ({records:,} records) is not in `{name}`"
        tally.add(SHD011, message, Location(split=split), split=split)
    for entry in wanted:
        parts = splits.get(entry.name)
        if parts is None and not entry.records:
            continue  # files have no shard of an empty split
        if parts is None:
            message = f"the split `{safe(entry.name)}` of `{name}` is missing"
            where = Location(split=entry.name, detail=f"expected {entry.records:,} records")
            tally.add(SHD011, message, where, split=entry.name)
            continue
        digests = b"".join(part.digests for _, part in parts)
        if content_digest([(entry.name, digests)]) != entry.content:
            _check_split(tally, parts, side, entry)


def _check_split(
    tally: Tally, parts: list[tuple[Shard, DigestPart]], side: Side, entry: SplitEntry
) -> None:
    """Report which records of a split differ or, without an index, that the split differs."""
    name, split = side.name, entry.name
    shards = [at for at, each in enumerate(side.manifest.shards) if each.split == split]
    rows = [np.empty(0, _ROW)]
    try:
        rows += (_rows(_index(side, shard).digests.tobytes()) for shard in shards)
    except TfrecregError as error:
        message = f"the records of `{safe(split)}` differ from `{name}`"
        found = f"expected {entry.records:,}, found {_records(parts):,}; {error.message}"
        tally.add(SHD011, message, Location(split=split, detail=found), split=split)
        return
    here = _rows(b"".join(part.digests for _, part in parts))
    there = np.concatenate(rows)
    extra, missing = _difference(here, there), _difference(there, here)
    if len(extra):
        message = f"`{safe(split)}` has records that `{name}` does not have"
        places = [_place(parts, position) for position in extra[:MAX_LOCATIONS]]
        tally.add_places(SHD011, message, places, len(extra), split=split)
    if len(missing):
        message = f"`{safe(split)}` does not have all records of `{name}`"
        places = [_place_there(side, shards, position) for position in missing[:MAX_LOCATIONS]]
        tally.add_places(SHD011, message, places, len(missing), split=split)


def _index(side: Side, shard: int) -> Index:
    index = side.index(shard)
    if index is None:
        raise UsageError(
            "it is unknown which records differ, because the index of "
            f"`{safe(side.manifest.shards[shard].path)}` in `{side.name}` is not on this machine"
        )
    return index


def _located(lengths: Iterable[int], position: int) -> tuple[int, int]:
    """Find a position of concatenated lists: the list's number, and the position in that list."""
    ends = np.cumsum([*lengths])
    number = int(np.searchsorted(ends, position, side="right"))
    return number, position - (int(ends[number - 1]) if number else 0)


def _place_there(side: Side, shards: Sequence[int], position: int) -> Location:
    """The location of a record of the expected version: its key, and its place in that version."""
    entries = [side.manifest.shards[shard] for shard in shards]
    number, record = _located((entry.records for entry in entries), position)
    entry = entries[number]
    where = f"record {record} of `{safe(entry.path)}` of `{side.name}`"
    key = _index(side, shards[number]).key(record)
    return Location(split=entry.split, key=key, detail=where)


def _place(parts: list[tuple[Shard, DigestPart]], position: int) -> Location:
    number, record = _located((len(part.numbers) for _, part in parts), position)
    shard, part = parts[number]
    return Location(split=shard.split or None, shard=shard.name, record=int(part.numbers[record]))


def _rows(digests: bytes) -> SplitRows:
    return np.frombuffer(digests, _ROW)


def _difference(some: SplitRows, others: SplitRows) -> list[int]:
    """Positions in `some` of the records that are missing from `others`. If `others` has fewer
    copies of a record, the positions of the last copies."""
    names, inverse, counts = np.unique(some, return_inverse=True, return_counts=True)
    known, known_counts = np.unique(others, return_counts=True)
    left = counts
    _, own, there = np.intersect1d(names, known, assume_unique=True, return_indices=True)
    left[own] = np.maximum(counts[own] - known_counts[there], 0)
    of_record = inverse.reshape(-1)
    found: list[int] = []
    for position in np.flatnonzero(left[of_record])[::-1].tolist():
        if left[of_record[position]]:
            left[of_record[position]] -= 1
            found.append(position)
    return found[::-1]


_DIGEST = re.compile("[0-9a-f]{64}")


def expected_of(
    same_as: str | None, counts: Mapping[str, int], registry: RegistryLike | None
) -> Expected:
    """The expected content of a check's targets."""
    for split, count in counts.items():
        if count < 0:
            raise UsageError(f"expected at least 0 records in `{split}`, found {count}")
    if same_as is None:
        return Expected(counts)
    if _DIGEST.fullmatch(same_as):
        return Expected(counts, same_as)
    side = side_of(resolve_in(registry, same_as))
    return Expected(counts, side.manifest.content, side)


def raw_items(options: CheckOptions) -> RawItems:
    """The raw items to which the options `source` and `raw` refer."""
    if options.source is None:
        raise UsageError("`--option` needs a source, such as `--source coco --raw DIR`")
    if options.raw is None:
        raise UsageError(f"`--source {options.source}` needs the raw data: `--raw DIR`")
    parsed, _ = plugins().source_options(options.source, options.source_options)
    raw = expect_raw_folder(options.raw)
    source = plugins().open_source(options.source, raw, parsed)
    source.labels()  # reads the annotations, to report their problems before the scan
    return RawItems(options.source, lambda: _items(source))


def _items(source: GuardedSource) -> Iterator[RawItem]:
    for entry in source.items():
        if isinstance(entry, Remark):
            continue
        made = source.record(entry, {}) if isinstance(entry, Item) else entry
        if isinstance(made, Record):
            yield RawItem(entry.split, entry.key, made.payload)
        else:
            yield RawItem(entry.split, entry.key, None, made.code)
