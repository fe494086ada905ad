"""The `duplicates` validator: finds equal images or records, within a split or between splits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tfrecreg.builtin.validators.duplicate_matches import (
    Contradictions,
    Match,
    MatchCount,
    Matches,
    Run,
    RunFolder,
    merged_rows,
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
from tfrecreg.core.values.shards import LabelMap, class_name, named_classes
from tfrecreg.core.values.text import safe


class DuplicatesValidator(Validator):
    """Finds equal records and images. :class:`DuplicatesOptions` has its options.

    Fingerprints are sorted on disk, in the folder for temporary files (`TMPDIR`). They take 32
    bytes per record, plus 32 each for its label and group. Neither records nor digests are held in
    memory.
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
        matches, groups = Matches(splits), Matches(splits)
        self._read([part.runs for _, part in parts], matches)
        self._read([part.groups for _, part in parts], groups)
        for number, (_, part) in enumerate(parts):
            matches.again(number, part.pairs)
        found = Contradictions()
        self._read([part.labelled for _, part in parts], found)
        mapped = (target.labels[each] for each in _labels(target) if each in target.labels)
        names = named_classes(next(mapped, ()))
        tally, what = Tally(), self._compared([part for _, part in parts])

        def tell(code: Code, message: str, seen: MatchCount, split: str, other: str = "") -> None:
            places = list(self._places(code, seen, shards, names))
            tally.add_places(code, message, places, seen.count, split=split, subject=other)

        for split, seen in matches.within():
            message = f"a record{_split(split)} has the same {what} as an earlier one"
            tell(DUP001, message, seen, split)
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
            tell(code, message, seen, split, other)
        for split, other, seen in groups.across():
            by = self._options.group or self._options.group_key or ""
            message = (
                f"a record{_split(split)} is in a group{_split(other)}, according to `{safe(by)}`"
            )
            tell(DUP004, message, seen, split, other)
        labelled = "an image" if self._options.feature is None else f"the same {what}"
        tell(DUP005, f"{labelled} has different labels in different records", found, "")
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

    def _read(self, runs: Sequence[Sequence[Run]], into: Matches | Contradictions) -> None:
        """Pass the rows of all runs, from all shards, to a collector."""
        if self._folder is not None:
            for rows in merged_rows(self._folder.storage, runs):
                into.take(rows)

    def _compared(self, parts: Sequence[DuplicatesPart]) -> str:
        """What was compared, for messages."""
        options = self._options
        if options.feature is not None:
            return f"`{safe(options.feature)}`"
        if not all(part.with_image == part.compared for part in parts):
            return "content"
        return "pixels" if options.pixels else "image"

    def _places(
        self, code: Code, seen: MatchCount, shards: Sequence[Shard], names: LabelMap
    ) -> Iterator[Location]:
        """The places of the first matches, with their keys."""
        matches = seen.matches
        records = {(shards[each.shard].name, each.record) for each in matches}
        records |= {(shards[each.other_shard].name, each.other_record) for each in matches}
        keys = keys_of(shards, records)
        for each in matches:
            shard, other = shards[each.shard], shards[each.other_shard].name
            key = keys.get((shard.name, each.record))
            other_key = keys.get((other, each.other_record))
            detail = f"record {each.other_record} of {safe(other)}"
            if other_key is not None:
                detail += f", key {safe(other_key)}"
            yield Location(
                split=shard.split or None,
                shard=shard.name,
                record=each.record,
                offset=each.offset,
                key=key,
                detail=f"{self._relation(code, each, key, names)} {detail}",
            )

    def _relation(self, code: Code, match: Match, key: str | None, names: LabelMap) -> str:
        """How a record is related to the other record of a match."""
        if code is DUP005:
            own, other = (class_name(names, each) for each in (match.label, match.other_label))
            feature = self._options.feature
            what = "image" if feature is None else f"`{safe(feature)}`"
            return f"labeled {own}, but the same {what} is labeled {other} in"
        if code is not DUP004:
            return "the same as"
        pattern, group = self._options.group_key, ""
        if key is not None and pattern is not None:
            group = f"`{safe(group_of(re.compile(pattern), key) or '')}`: "
        return f"{group}in the same group as"


def _labels(target: Target) -> tuple[str, ...]:
    """The features that may hold an image's label. Features with a label map come first."""
    named = (name for name in sorted(target.labels) if name not in OF_OBJECTS)
    return tuple(dict.fromkeys((*named, IMAGE_LABEL, "label")))


def _split(split: str) -> str:
    return f" of `{safe(split)}`" if split else ""
