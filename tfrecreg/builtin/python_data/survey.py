"""The first pass over a program's data: keys, sizes and digests of all records, and a draft of
their schema.

The only files that it writes are the spooled records of iterables. It keeps the digest and the size
of each record in memory. It also keeps the keys, unless they are the elements' numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import Any, TypeVar

from tfrecreg.builtin.python_data.convert import (
    Converter,
    ElementRecord,
    length_of,
    position_key,
)
from tfrecreg.builtin.python_data.parcel import Parcel, SequenceSplit, Spool
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.schema.infer import SchemaSketch
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine

P = TypeVar("P", bound="SurveyedPart")

_PORTION = 16
"""Number of elements per part. The draft of a schema may depend on it, so it is constant."""
_TASK = 8 * _PORTION
"""Elements per task of a worker."""


@dataclass
class SurveyedPart:
    """Keys, sizes and digests of consecutive elements of a split. Picklable."""

    keys: list[str] | None
    """The keys of the elements; None if each key is the position of its element."""
    sketch: SchemaSketch | None
    """The summary of the examples; None if no schema is to be drafted."""
    digests: bytearray = field(default_factory=bytearray)
    """The digests of the records, concatenated."""
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    """Size in bytes of each payload."""
    features: set[str] = field(default_factory=set)
    """Names of all features."""
    has_images: bool = False
    """Whether Pillow encoded a value."""

    @classmethod
    def of(cls: type[P], converter: Converter, records: Iterable[ElementRecord], draft: bool) -> P:
        """The keys, sizes and digests of these records."""
        part = cls(
            keys=None if converter.keys.is_position else [],
            sketch=SchemaSketch() if draft else None,
        )
        for made in records:
            part.digests += record_digest(made.payload)
            part.sizes.append(len(made.payload))
            if part.keys is not None:
                part.keys.append(made.key)
            part.features.update(made.example)
            part.has_images |= made.has_image
            if part.sketch is not None:
                part.sketch.add(made.example)
        return part


@dataclass
class SurveyedSplit(SurveyedPart):
    """Keys, sizes and digests of all elements of a split. Each takes 24 bytes plus its key."""

    split: str = ""
    is_slow: bool = False
    """Whether elements took so long that worker processes converted them."""
    taken: set[str] = field(default_factory=set)
    """All keys so far, during the survey."""

    def extend(self, part: SurveyedPart) -> None:
        """Add the next elements."""
        first = len(self.sizes)
        self.digests += part.digests
        self.sizes.extend(part.sizes)
        self.features |= part.features
        self.has_images |= part.has_images
        if self.sketch is not None and part.sketch is not None:
            self.sketch.merge(part.sketch)
        if self.keys is None or part.keys is None:
            return
        for position, key in enumerate(part.keys, first):
            if key in self.taken:
                raise RawDataError(
                    f"split `{self.split}`: the elements {self.keys.index(key)} and {position} "
                    f"have the same key `{key}`"
                )
            self.taken.add(key)
            self.keys.append(key)

    def elements(self) -> Iterator[tuple[str, int, bytes]]:
        """Key, size in bytes and digest of each record, in order of the elements."""
        for position, size in enumerate(self.sizes):
            key = position_key(position) if self.keys is None else self.keys[position]
            start = position * DIGEST_BYTES
            yield key, size, bytes(self.digests[start : start + DIGEST_BYTES])


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Everything that a worker needs to survey some elements of a sequence. Picklable."""

    parcel: Parcel
    elements: range
    draft: bool


def survey_elements(task: SurveyTask) -> list[SurveyedPart]:
    """Convert the elements. Returns the keys, sizes and digests of each part."""
    split = task.parcel.open()
    return [
        SurveyedPart.of(
            split.converter,
            map(split.record, task.elements[first : first + _PORTION]),
            task.draft,
        )
        for first in range(0, len(task.elements), _PORTION)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The first pass."""

    sequences: Sequence[tuple[Parcel, SequenceSplit]]
    iterators: Sequence[tuple[Spool, Converter, Iterator[Any]]]
    engine: Engine
    progress: Progress
    draft: bool
    """Whether a schema is to be drafted."""

    def splits(self) -> list[SurveyedSplit]:
        """The survey of each split, in order of their names."""
        found = [self._sequence(*each) for each in self.sequences]
        found += [self._iterable(*each) for each in self.iterators]
        return sorted(found, key=lambda each: each.split)

    def _sequence(self, parcel: Parcel, sequence: SequenceSplit) -> SurveyedSplit:
        """Survey the elements in this process, or in workers if they are slow."""
        converter, engine = sequence.converter, self.engine
        count = length_of(converter.split, sequence.sequence)
        found = self._new(converter)
        began = monotonic()
        with working(self.progress, f"reading {safe(found.split)}", count, "elements"):
            read = 0
            while read < count:
                if engine.jobs > 1 and monotonic() - began > WORTH_SECONDS:
                    found.is_slow = True
                    break
                elements = range(count)[read : read + _PORTION]
                self._take(found, survey_elements(SurveyTask(parcel, elements, self.draft)))
                read += len(elements)
            tasks = (
                SurveyTask(parcel, range(count)[first : first + _TASK], self.draft)
                for first in range(read, count, _TASK)
            )
            with closing(engine.run(survey_elements, tasks)) as several:
                for parts in several:
                    self._take(found, parts)
        return self._whole(found)

    def _iterable(
        self, spool: Spool, converter: Converter, elements: Iterator[Any]
    ) -> SurveyedSplit:
        """Spool the records, and survey them in the same parts as a sequence."""
        found = self._new(converter)
        with (
            closing(spool.fill(converter, elements)) as records,
            working(self.progress, f"spooling {safe(found.split)}", 0, "elements"),
        ):
            while True:
                some = islice(records, _PORTION)
                part = SurveyedPart.of(converter, some, self.draft)
                self._take(found, [part])
                if len(part.sizes) < _PORTION:
                    return self._whole(found)

    def _new(self, converter: Converter) -> SurveyedSplit:
        found = SurveyedSplit.of(converter, (), self.draft)
        found.split = converter.split
        return found

    def _take(self, found: SurveyedSplit, parts: Iterable[SurveyedPart]) -> None:
        for part in parts:
            found.extend(part)
            self.progress.advance(len(part.sizes), sum(part.sizes))

    def _whole(self, found: SurveyedSplit) -> SurveyedSplit:
        found.taken.clear()
        if not found.sizes:
            raise RawDataError(
                f"split `{found.split}` has no elements: its iterator may already be at its end"
            )
        return found
