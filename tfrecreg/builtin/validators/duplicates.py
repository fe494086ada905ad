"""The `duplicates` validator: finds equal images or records, within a split or between splits.

Each visitor writes the fingerprints of one shard's records to disk as sorted runs. A fingerprint is
16 bytes of the digest of a feature, a record's images or a whole record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import msgspec
from blake3 import blake3
from msgspec import Meta

from tfrecreg.builtin.validators.duplicate_matches import (
    Contradictions,
    Match,
    MatchCount,
    Matches,
    Pair,
    Run,
    RunBuilder,
    RunFolder,
    add_labels,
    merged_rows,
)
from tfrecreg.core.check.scan.indexes import index_of, keys_of
from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import Tally, key_from
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import Example, Kind, encode
from tfrecreg.core.images.decoder import Undecodable, digest_pixels, require_pillow
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import read_header
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.records.index import Index
from tfrecreg.core.schema.image_features import ImageFeatures, schema_images
from tfrecreg.core.schema.labels import IMAGE_LABEL, OF_OBJECTS
from tfrecreg.core.schema.payload_kinds import Table, Tables, tables_of, value_digest
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.codes import DUP001, DUP002, DUP004, DUP005
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.findings import Code, Finding, Location, Measure, Severity
from tfrecreg.core.values.shards import LabelMap, class_name, named_classes
from tfrecreg.core.values.text import safe

_Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatesOptions:
    """Options in `limits.duplicates` of a gate.

    By default, the bytes of images are compared. If a record has no image, the whole record is
    compared.
    """

    feature: _Text | None = None
    """The feature to compare, of any kind."""
    pixels: bool = False
    """Whether to decode images and compare their pixels. Needs the extra `images`."""
    group: _Text | None = None
    """A feature, such as the patient or video. Each of its values may be in only one split."""
    group_key: _Text | None = None
    """Like `group`, but a regular expression finds the value in the record key. The value is the
    expression's first group, or the whole match without a group. Requires the indexes of a build.
    """
    most_shared: Annotated[float, Meta(ge=0, le=1)] = 0.01
    """DUP002 is an error if two splits have more than this share of the smaller split's distinct
    records in common.
    """

    def __post_init__(self) -> None:
        if self.group is not None and self.group_key is not None:
            raise ValueError("cannot have both `group` and `group_key`")
        if self.group_key is not None:
            try:
                re.compile(self.group_key)
            except re.error as error:
                raise ValueError(f"`group_key` is not a regular expression: {error}") from None


_MOST_KEPT = 1 << 19
"""`check --cached` keeps at most this many rows per shard, and as many rows of labels. Shards with
more rows are read again.
"""


@dataclass(slots=True)
class DuplicatesPart:
    """The result for one shard."""

    compared: int = 0
    """Number of records with a fingerprint."""
    with_image: int = 0
    """Number of records whose fingerprint is that of an image."""
    unheld: int = 0
    """Number of records too large for memory."""
    ungrouped: int = 0
    """Number of records without a group."""
    runs: list[Run] = field(default_factory=list)
    """Rows of fingerprints."""
    pairs: list[Pair] = field(default_factory=list)
    """Records that equal an earlier record of the same run. Only the first ones are kept."""
    groups: list[Run] = field(default_factory=list)
    """Rows of groups."""
    labelled: list[Run] = field(default_factory=list)
    """Rows of images with their labels: see :func:`add_labels`."""

    def with_runs(self, change: Callable[[Run], Run]) -> DuplicatesPart:
        """A copy of the part. Each run of the copy is the result of `change`."""
        runs, groups, labelled = (
            [change(run) for run in each] for each in (self.runs, self.groups, self.labelled)
        )
        return replace(self, runs=runs, groups=groups, labelled=labelled)


class DuplicatesCodec:
    """Encodes a part together with all rows of its runs. This is a
    :class:`tfrecreg.core.check.scan.interface.PartCodec`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def pack(self, part: Any) -> bytes | None:
        """The part as bytes; None if it is too large for the cache."""
        for runs in ((*part.runs, *part.groups), part.labelled):
            if sum(run.rows for run in runs) > _MOST_KEPT:
                return None
        whole = part.with_runs(lambda run: run.at_hand(self._storage))
        return msgspec.msgpack.encode(whole)

    def unpack(self, data: bytes) -> DuplicatesPart:
        part = msgspec.msgpack.decode(data, type=DuplicatesPart)
        return part.with_runs(lambda run: run.stored(self._storage))


Fingerprint = Callable[[RecordBatch, int, Example | None], bytes | None]
"""Returns the fingerprint of the record at a position of a batch, given its example or None.
Returns None if the record lacks the compared values.
"""


def feature_digest(
    name: str, batch: RecordBatch, position: int, example: Example | None
) -> bytes | None:
    """A :data:`Fingerprint` of one feature of any kind."""
    feature = example.get(name) if example is not None else None
    if feature is None or not feature.count:
        return None
    if feature.kind is Kind.BYTES:
        return value_digest(batch, position, name, feature)
    return blake3(encode({name: feature})).digest(DIGEST_BYTES)


class ImageFingerprint:
    """A :data:`Fingerprint` of a record's images, or of the whole record if it has no images."""

    def __init__(self, images: ImageFeatures, *, pixels: bool) -> None:
        self._images = images
        self._pixels = pixels
        self.with_image = 0
        """Number of records with an image, so far."""

    def of_table(self, tables: Tables, table: Table) -> list[bytes] | None:
        """The fingerprints of all records of a table; None if records must be read one by one."""
        names = self._images.of(table.sample)
        if self._pixels or len(names) != 1:
            return None
        self.with_image += len(table.positions)
        return tables.digests(table, names[0])

    def __call__(self, batch: RecordBatch, position: int, example: Example | None) -> bytes:
        if example is None:
            return record_digest(batch.payload(position))  # the payload is its only form
        names = self._images.of(example)
        if not names:
            return record_digest(canonical(batch.payload(position)))
        self.with_image += 1
        if self._pixels:
            values = [value for name in names for value in example[name].values]
            digests = [_pixels(value) for value in values]
        else:
            digests = [value_digest(batch, position, name, example[name]) for name in names]
        return digests[0] if len(digests) == 1 else blake3(b"".join(digests)).digest(DIGEST_BYTES)


def _pixels(value: bytes) -> bytes:
    """The digest of an image's pixels, or of its bytes if it cannot be decoded."""
    try:
        return digest_pixels(value, read_header(value))
    except (ImageError, Undecodable):
        return blake3(value).digest(DIGEST_BYTES)


def group_of(pattern: re.Pattern[str], key: str) -> str | None:
    """The group that `pattern` finds in a key. None if the pattern does not match."""
    found = pattern.search(key)
    if found is None:
        return None
    return found[1] if pattern.groups else found[0]


class DuplicatesVisitor(Visitor):
    """Computes the fingerprints of the records of one shard."""

    def __init__(
        self,
        options: DuplicatesOptions,
        images: Sequence[str],
        storage: Storage | None,
        shard: Shard,
        labels: Sequence[str] = (),
    ) -> None:
        self._part = DuplicatesPart()
        found = ImageFeatures(tuple(images))
        self._images = ImageFingerprint(found, pixels=options.pixels)
        self._fingerprint: Fingerprint = self._images
        if options.feature is not None:
            self._fingerprint = partial(feature_digest, options.feature)
        self._runs = RunBuilder(storage)
        self._group = options.group
        self._pattern = re.compile(options.group_key) if options.group_key is not None else None
        self._index: Index | None = index_of(shard) if self._pattern is not None else None
        self._groups = RunBuilder(storage)
        self._labels = labels
        self._labelled = RunBuilder(storage)

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            self._part.unheld += len(batch)
            return
        with_image = self._images.with_image
        digests = self._digests(batch)
        found = [position for position, digest in enumerate(digests) if digest is not None]
        self._runs.extend(
            b"".join(digest for digest in digests if digest is not None),
            [batch.first + position for position in found],
            [batch.offsets[position] for position in found],
        )
        self._part.compared += len(found)
        if self._images.with_image > with_image or self._fingerprint is not self._images:
            add_labels(self._labelled, batch, digests, self._labels)
        if self._group is not None or self._pattern is not None:
            self._take_groups(batch)

    def _digests(self, batch: RecordBatch) -> list[bytes | None]:
        """The fingerprints of a batch, in the order of its records."""
        tables = tables_of(batch)
        digests: list[bytes | None] = [None] * len(batch)
        unread: list[int] = []
        for table in tables.tables:
            found = None
            if self._fingerprint is self._images:
                found = self._images.of_table(tables, table)
            if found is None:
                unread += table.positions.tolist()
                continue
            for position, digest in zip(table.positions.tolist(), found, strict=True):
                digests[position] = digest
        for position, example in tables.examples():
            digests[position] = self._fingerprint(batch, position, example)
        for position in unread:
            digests[position] = self._fingerprint(batch, position, batch.example(position))
        return digests

    def close(self, end: StreamEnd) -> DuplicatesPart:
        del end
        part = self._part
        part.runs, part.pairs = self._runs.close()
        part.groups, _ = self._groups.close()
        part.labelled, _ = self._labelled.close()
        part.with_image = self._images.with_image
        return part

    def _take_groups(self, batch: RecordBatch) -> None:
        for position in range(len(batch)):
            digest = self._group_of(batch, position)
            if digest is None:
                self._part.ungrouped += 1
            else:
                self._groups.add(digest, batch.first + position, batch.offsets[position])

    def _group_of(self, batch: RecordBatch, position: int) -> bytes | None:
        if self._group is not None:
            example = batch.example(position)
            return feature_digest(self._group, batch, position, example)
        number = batch.first + position
        if self._pattern is None or self._index is None or number >= len(self._index):
            return None
        group = group_of(self._pattern, self._index.key(number))
        if group is None:
            return None
        return blake3(group.encode("utf-8", "surrogateescape")).digest(DIGEST_BYTES)


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
        storage = self._folder.storage
        self.part_codec = DuplicatesCodec(storage)
        images, labels = schema_images(target), _labels(target)
        return partial(DuplicatesVisitor, self._options, images, storage, labels=labels)

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        return key_from(*schema_images(target), "", *_labels(target), options=options)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, DuplicatesPart]]
    ) -> Iterator[Finding | Measure]:
        assert self._folder is not None
        try:
            yield from self._finish(target, list(parts), self._folder.storage)
        finally:
            self._folder.clear()

    def _finish(
        self, target: Target, parts: Sequence[tuple[Shard, DuplicatesPart]], storage: Storage
    ) -> Iterator[Finding | Measure]:
        shards = [shard for shard, _ in parts]
        splits = [shard.split for shard in shards]
        matches, groups = Matches(splits), Matches(splits)
        _read(storage, [part.runs for _, part in parts], matches)
        _read(storage, [part.groups for _, part in parts], groups)
        for number, (_, part) in enumerate(parts):
            matches.again(number, part.pairs)
        found = Contradictions()
        _read(storage, [part.labelled for _, part in parts], found)
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


def _read(storage: Storage, runs: Sequence[Sequence[Run]], into: Matches | Contradictions) -> None:
    """Pass the rows of all runs, from all shards, to a collector."""
    for rows in merged_rows(storage, runs):
        into.take(rows)


def _labels(target: Target) -> tuple[str, ...]:
    """The features that may hold an image's label. Features with a label map come first."""
    named = (name for name in sorted(target.labels) if name not in OF_OBJECTS)
    return tuple(dict.fromkeys((*named, IMAGE_LABEL, "label")))


def _split(split: str) -> str:
    return f" of `{safe(split)}`" if split else ""
