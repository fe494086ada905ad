"""The `duplicates` validator: finds equal images or records, within a split or between splits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tfrecreg.builtin.validators.duplicate_matches import (
    Contradiction,
    Contradictions,
    Match,
    MatchCount,
    Matches,
    Run,
    RunFolder,
    read_in_order,
)
from tfrecreg.builtin.validators.fingerprints import (
    DuplicatesCodec,
    DuplicatesOptions,
    DuplicatesPart,
    DuplicatesVisitor,
    group_of,
)
from tfrecreg.core.check.scan.indexes import keys_of
from tfrecreg.core.check.scan.interface import Shard, Target, Validator
from tfrecreg.core.check.scan.tally import Tally, key_from
from tfrecreg.core.images.decoder import require_pillow
from tfrecreg.core.schema.image_features import schema_images
from tfrecreg.core.schema.labels import IMAGE_LABEL, OF_OBJECTS
from tfrecreg.core.values.codes import DUP001, DUP002, DUP004, DUP005
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.findings import Code, Finding, Location, Measure, Severity
from tfrecreg.core.values.shards import class_name, named_classes
from tfrecreg.core.values.text import safe


class DuplicatesValidator(Validator):
    """Finds equal records and images. :class:`DuplicatesOptions` has its options.

    Fingerprints are sorted on disk, in the folder for temporary files (`TMPDIR`). They take 32
    bytes per record. Neither records nor digests are held in memory.
    """

    name = "duplicates"
    Options = DuplicatesOptions
    codes: Sequence[Code] = (DUP001, DUP002, DUP004, DUP005)

    def __init__(self) -> None:
        self.part_codec: DuplicatesCodec = DuplicatesCodec()
        self._options = DuplicatesOptions()
        self._folder: RunFolder | None = None

    def applies(self, target: Target) -> str | None:
        return None if target.shards else "there are no shards"

    def begin(
        self, target: Target, options: Mapping[str, Any]
    ) -> Callable[[Shard], DuplicatesVisitor]:
        self._options = read_limits(DuplicatesOptions, options, self.name)
        if self._options.pixels:
            require_pillow("`pixels` of the validator `duplicates`")
        self._folder = RunFolder(self.name)
        storage = self.part_codec.storage = self._folder.storage
        images, labels = schema_images(target), _labels(target)
        return partial(DuplicatesVisitor, self._options, images, storage, labels=labels)

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        return key_from(*schema_images(target), "", *_labels(target), options=options)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, DuplicatesPart]]
    ) -> Iterator[Finding | Measure]:
        try:
            yield from self._finish(target, list(parts))
        finally:
            if self._folder is not None:
                self._folder.clear()

    def _finish(
        self, target: Target, parts: Sequence[tuple[Shard, DuplicatesPart]]
    ) -> Iterator[Finding | Measure]:
        shards = [shard for shard, _ in parts]
        splits = [shard.split for shard in shards]
        matches = self._matches(splits, [part.runs for _, part in parts])
        for number, (_, part) in enumerate(parts):
            matches.again(number, part.pairs)
        groups = self._matches(splits, [part.groups for _, part in parts])
        tally, what = Tally(), self._compared([part for _, part in parts])
        for split, seen in matches.within():
            message = f"a record{_split(split)} has the same {what} as an earlier one"
            self._add(tally, DUP001, message, split, "", seen, shards, "the same as")
        different = Counter[str]()  # records or images, by split
        for shard, part in parts:
            different[shard.split] += part.compared
        different.subtract({split: seen.count for split, seen in matches.within()})
        for split, other, seen in matches.across():
            message = f"a record{_split(split)} has the same {what} as one{_split(other)}"
            code, smaller = DUP002, min(split, other, key=lambda each: different[each])
            share, limit = seen.count / different[smaller], self._options.most_shared
            if share > limit:
                code = replace(DUP002, severity=Severity.ERROR)
                message += (
                    f": {seen.count:,} of {different[smaller]:,} different ones"
                    f"{_split(smaller)} are shared ({100 * share:.3g} %), which is above the "
                    f"limit of {100 * limit:.3g} %"
                )
            self._add(tally, code, message, split, other, seen, shards, "the same as")
        for split, other, seen in groups.across():
            by = self._options.group or self._options.group_key or ""
            message = (
                f"a record{_split(split)} is in a group{_split(other)}, according to `{safe(by)}`"
            )
            self._add(tally, DUP004, message, split, other, seen, shards, "in the same group as")
        self._tell_contradictions(tally, target, shards, [part.labelled for _, part in parts])
        yield from tally.findings(target.dataset)
        compared = sum(part.compared for _, part in parts)
        extra = sum(seen.count for _, seen in matches.within())
        common = sum(seen.count for _, _, seen in matches.across())
        yield Measure("duplicates.compared", compared, f"{compared} records compared")
        yield Measure("duplicates.extra", extra, f"{extra} records that repeat an earlier one")
        yield Measure("duplicates.common", common, f"{common} in two splits")
        if unheld := sum(part.unheld for _, part in parts):
            yield Measure("duplicates.unheld", unheld, f"{unheld} records too large to compare")
        if self._options.group or self._options.group_key:
            left = sum(part.ungrouped for _, part in parts)
            yield Measure("duplicates.ungrouped", left, f"{left} records without a group")

    def _matches(self, splits: Sequence[str], runs: Sequence[Sequence[Run]]) -> Matches:
        matches = Matches(splits)
        self._read(runs, matches)
        return matches

    def _read(self, runs: Sequence[Sequence[Run]], into: Matches | Contradictions) -> None:
        """Pass the rows of all runs, from all shards, to a collector."""
        flat = [(number, run) for number, each in enumerate(runs) for run in each]
        if flat and self._folder is not None:
            for rows in read_in_order(self._folder.storage, [run for _, run in flat]):
                into.add(flat, rows)

    def _tell_contradictions(
        self, tally: Tally, target: Target, shards: Sequence[Shard], runs: Sequence[Sequence[Run]]
    ) -> None:
        """Find DUP005: one image with several labels."""
        found = Contradictions()
        self._read(runs, found)
        mapped = (target.labels[each] for each in _labels(target) if each in target.labels)
        names = named_classes(next(mapped, ()))
        keys = _keys(shards, found.first)
        places = []
        for each in found.first:
            own, other = (class_name(names, label) for label in (each.label, each.other_label))
            partner = _record(shards, each.other_shard, each.other_record, keys)
            detail = f"labeled {own}, but the same image is labeled {other} in {partner}"
            places.append(_place(shards, each, keys, detail))
        message = "an image has different labels in different records"
        tally.add_places(DUP005, message, places, found.count)

    def _compared(self, parts: Sequence[DuplicatesPart]) -> str:
        """What was compared, for messages."""
        options = self._options
        if options.feature is not None:
            return f"`{safe(options.feature)}`"
        if not all(part.with_image == part.compared for part in parts):
            return "content"
        return "pixels" if options.pixels else "image"

    def _add(
        self,
        tally: Tally,
        code: Code,
        message: str,
        split: str,
        other: str,
        seen: MatchCount,
        shards: Sequence[Shard],
        relation: str,
    ) -> None:
        """Add one finding, with the keys of its first pairs."""
        matches = seen.matches
        keys, pattern = _keys(shards, matches), self._options.group_key
        places = []
        for each in matches:
            key = keys.get((shards[each.shard].name, each.record))
            detail = f"{relation} {_record(shards, each.other_shard, each.other_record, keys)}"
            if code is DUP004 and key is not None and pattern is not None:
                detail = f"`{safe(group_of(re.compile(pattern), key) or '')}`: {detail}"
            places.append(_place(shards, each, keys, detail))
        tally.add_places(code, message, places, seen.count, split=split, subject=other)


_Keys = Mapping[tuple[str | None, int | None], str]


def _record(shards: Sequence[Shard], shard: int, record: int, keys: _Keys) -> str:
    """A record in words, with its key if known."""
    name = shards[shard].name
    key = keys.get((name, record))
    return f"record {record} of {safe(name)}" + (f", key {safe(key)}" if key is not None else "")


def _place(
    shards: Sequence[Shard], found: Match | Contradiction, keys: _Keys, detail: str
) -> Location:
    shard = shards[found.shard]
    return Location(
        split=shard.split or None,
        shard=shard.name,
        record=found.record,
        offset=found.offset,
        key=keys.get((shard.name, found.record)),
        detail=detail,
    )


def _labels(target: Target) -> tuple[str, ...]:
    """The features that may hold an image's label. Features with a label map come first."""
    named = (name for name in sorted(target.labels) if name not in OF_OBJECTS)
    return tuple(dict.fromkeys((*named, IMAGE_LABEL, "label")))


def _keys(shards: Sequence[Shard], pairs: Iterable[Match | Contradiction]) -> _Keys:
    """The keys of both records in each pair, by shard name and record number."""
    wanted: dict[str, set[int]] = {}
    for each in pairs:
        wanted.setdefault(shards[each.shard].name, set()).add(each.record)
        wanted.setdefault(shards[each.other_shard].name, set()).add(each.other_record)
    return keys_of(shards, wanted)


def _split(split: str) -> str:
    return f" of `{safe(split)}`" if split else ""
