"""One pass over a foreign shard: its index, its features, and the kinds of its payloads."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tfrecreg.builtin.validators.annotations import AnnotationsPart, AnnotationsValidator
from tfrecreg.core.check.infer import LargeRecords
from tfrecreg.core.check.scan.interface import Need, Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.decode import canonical, decode_fast, decode_or_none
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Kind, encode, feature_key
from tfrecreg.core.example.sequences import PayloadSketch
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.hashing import FileDigest, record_digest
from tfrecreg.core.records.index import IndexBuilder, load_index
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry.foreign.folders import (
    CountedShard,
    check_counts,
    check_described,
    check_empty,
    check_payloads,
    check_sets,
)
from tfrecreg.core.registry.foreign.labels import in_order
from tfrecreg.core.registry.foreign.tfds import TfdsInfo
from tfrecreg.core.schema.payload_kinds import PayloadCounter, PayloadCounts
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.codes import ANN004, ANN007
from tfrecreg.core.values.errors import RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.text import safe


def index_path(split: str, number: int) -> str:
    """Path of a shard's index while the files are examined."""
    return f"{split}-{number:05d}.index"


@dataclass(frozen=True, slots=True)
class ExamineSettings:
    """Settings of the visitors of an adoption. Picklable."""

    scratch: Storage
    """Storage for the new indexes."""
    base: str
    """The folder that keys name files from."""
    key: str | None
    """The feature that names records."""
    sketch: bool
    """Whether to draft a schema."""
    pixels: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """Height, width and channels of the features that hold pixels."""


@dataclass(slots=True)
class Examined:
    """Result of examining one shard."""

    end: StreamEnd
    sound: bool
    """Whether the scanner saw no fault."""
    payloads: PayloadCounts
    features: dict[str, int]
    """Feature name to bytes of its values."""
    sketch: PayloadSketch | None
    index: FileDigest
    keyless: int | None = None
    """The first record that the feature gives no key."""
    problem: TfrecregError | None = None
    """Reason that the shard cannot be adopted, apart from findings."""


@dataclass(slots=True)
class Examination(Validator):
    """All shards of an adoption, read as validators do.

    Contradictions of file names, and other payloads among Examples, it finds as the `manifest`
    validator does of bare files.
    """

    settings: ExamineSettings
    judged: bool
    """Whether records are checked against a schema, which then finds other payloads."""
    infos: Sequence[tuple[TfdsInfo, Sequence[Shard]]] = ()
    """Descriptions of TFDS, each with the shards in its folder."""
    name: str = "adopt"
    codes: Sequence[Code] = ()
    needs: Need = Need.DIGESTS | Need.MEMBERS
    seen: list[tuple[Shard, Examined]] = field(default_factory=list)

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], _Examiner]:
        del target, options
        return partial(_Examiner, self.settings)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Examined]]
    ) -> Iterator[Finding | Measure]:
        self.seen = list(parts)
        tally = Tally()
        check_sets(tally, target.shards)
        counts = [(shard, part.end.records) for shard, part in self.seen if part.sound]
        check_counts(tally, counts)
        check_described(
            tally,
            self.infos,
            (
                CountedShard(shard, part.sound, part.end.records, part.end.payload_bytes)
                for shard, part in self.seen
            ),
        )
        check_empty(tally, counts, bare=True, tensorflow=None)
        if not self.judged:
            check_payloads(tally, [(shard, part.payloads) for shard, part in self.seen])
        yield from tally.findings(target.dataset)


class LabelNames(AnnotationsValidator):
    """Holds class numbers and names against the label maps beside the shards, and keeps the names
    that the records alone give. Its findings refuse nothing: the map may be what is wrong.
    """

    found = frozenset((ANN004.code, ANN007.code))

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, list[str]] = {}
        """Names by feature, in order of their numbers: where every number has one name."""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, AnnotationsPart]]
    ) -> Iterator[Finding | Measure]:
        seen, total = list(parts), AnnotationsPart()
        for _, part in seen:
            total.merge(part)
        for feature, names in total.names.items():
            counts, known = total.classes[feature], names.as_map()
            whole = not names.full and not counts.full and known.keys() == counts.counts.keys()
            if whole and all(known.values()) and not any(names.conflicts()):
                with suppress(UsageError):
                    self.names[feature] = in_order(known, feature)
        for each in super().finish(target, seen):
            if isinstance(each, Measure) or each.code not in self.found:
                continue
            if each.locations[0].record is not None:  # else the records contradict each other
                yield each


class _Examiner(Visitor):
    """Looks at the records of one shard, and writes their index."""

    def __init__(self, settings: ExamineSettings, shard: Shard) -> None:
        self._settings = settings
        self._shard = shard
        self._file = os.path.relpath(f"/{shard.path}", settings.base)
        self._index = IndexBuilder()
        self._payloads = PayloadCounter(shard)
        self._features: Counter[str] = Counter()
        self._sketch = PayloadSketch() if settings.sketch else None
        self._large = LargeRecords(shard)
        self._sound = True
        self._keyless: int | None = None
        self._problem: TfrecregError | None = None

    def batch(self, batch: RecordBatch) -> None:
        if self._problem is not None:
            return
        for position, length in enumerate(batch.lengths):
            record = batch.first + position
            if batch.whole:
                payload = batch.payload(position)
            else:
                try:
                    payload = self._large.payload(record, batch.offsets[position], length)
                except TfrecregError as error:
                    self._problem = error
                    return
            example, form = _read(payload)
            kind = kind_of(payload, 0, length, example)
            self._payloads.count(batch, position, kind)
            self._index.add(record_digest(form), length, self._key(example, record))
            if kind is PayloadKind.EXAMPLE and example is not None:
                for name, feature in example.items():
                    self._features[name] += feature.wire_bytes
                if self._settings.pixels and self._problem is None:
                    self._problem = self._wrong_pixels(example, record)
            if self._sketch is not None:
                self._sketch.add(payload, kind, example)

    def fault(self, fault: Fault) -> None:
        del fault  # the validator `crc` reports it
        self._sound = False

    def close(self, end: StreamEnd) -> Examined:
        self._large.close()
        shard = self._shard
        index = hashed_write(
            self._settings.scratch,
            index_path(shard.split, shard.number),
            self._index.render(end.members if self._sound else ()),
        )
        return Examined(
            end=end,
            sound=self._sound,
            payloads=self._payloads.seen(),
            features=dict(self._features),
            sketch=self._sketch,
            index=index,
            keyless=self._keyless,
            problem=self._problem,
        )

    def _wrong_pixels(self, example: Example, record: int) -> UsageError | None:
        """Why a feature does not hold the pixels of an image of the declared size."""
        for name, (height, width, channels) in self._settings.pixels.items():
            feature = example.get(name)
            if feature is None:
                continue
            is_bytes = feature.kind is Kind.BYTES
            sizes = tuple(feature.sizes) if is_bytes else (feature.count,)
            size = height * width * channels
            if sizes != (size,):
                found = " and ".join(map(str, sizes[:3])) or "no"
                return UsageError(
                    f"record {record} of `{safe(self._shard.name, limit=1000)}` has {found} "
                    f"{'bytes' if is_bytes else 'values'} in `{safe(name)}`, expected "
                    f"{height} x {width} x {channels} = {size}",
                    hint="--option image=FEATURE:HEIGHTxWIDTHxCHANNELS has the size of all images",
                )
        return None

    def _key(self, example: Example | None, record: int) -> str:
        name = self._settings.key
        if name is None:
            return file_key(self._file, record)
        key = feature_key(example, name)
        if key is None:
            if self._keyless is None:
                self._keyless = record
            return ""
        return key


def _read(payload: bytes) -> tuple[Example | None, bytes]:
    """The payload as an Example, if it is one, and in canonical form."""
    found = decode_fast(payload)
    if found is None:
        return decode_or_none(payload), canonical(payload)
    features, ordered = found
    return features, payload if ordered else encode(features)


def file_key(file: str, record: int) -> str:
    """``train-00000-of-00002#17``: the file's path below the common folder, and the number."""
    return f"{file}#{record}"


def expect_unique(storage: Storage, indexes: Iterable[tuple[str, str]], feature: str) -> None:
    """Refuse keys that two records of a split have. Holds the keys of one split at a time."""
    current: str | None = None
    seen: set[str] = set()
    for split, path in indexes:
        if split != current:
            current = split
            seen.clear()
        index = load_index(storage, path)
        for key in map(index.key, range(len(index))):
            if key in seen:
                raise RefusedError(
                    f"two records of the split `{safe(split)}` have the key `{safe(key)}` in "
                    f"`{safe(feature)}`",
                    hint="name a feature that differs from record to record, or leave out `--key`",
                )
            seen.add(key)
