"""The first pass over a program's data: keys, sizes and digests of all records, and a draft of
their schema.

Only the spools of iterables are written. A record's digest, size, and key (unless it is a number)
stay in memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic

from tfrecreg.builtin.python_data.convert import Converter, ElementRecord, position_key
from tfrecreg.builtin.python_data.parcel import Parcel
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.schema.infer import SchemaSketch
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine

_PORTION = 16
"""Elements of a part. A constant, since the draft of a schema may depend on it."""
_MOST_PARTS, _TASK_SECONDS = 64, 0.2
"""Maximum number of parts of a task, and about the time that it takes."""


@dataclass(slots=True)
class SurveyedPart:
    """Keys, sizes and digests of consecutive elements of a split. Picklable."""

    digests: bytearray = field(default_factory=bytearray)
    """Record digests, one after the other."""
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    """Size in bytes of each payload."""
    keys: list[str] | None = None
    """None if keys are numbers."""
    features: set[str] = field(default_factory=set)
    """Names of all features."""
    has_images: bool = False
    """Whether Pillow encoded a value."""
    sketch: SchemaSketch | None = None
    """None if no schema is to be drafted."""

    def add(self, made: ElementRecord) -> None:
        """Add the next element."""
        self.digests += record_digest(made.payload)
        self.sizes.append(len(made.payload))
        if self.keys is not None:
            self.keys.append(made.key)
        self.features.update(made.example)
        self.has_images |= made.has_image
        if self.sketch is not None:
            self.sketch.add(made.example)


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """All that a worker needs to survey some elements of a sequence. Picklable."""

    parcel: Parcel
    first: int
    stop: int
    draft: bool


def survey_elements(task: SurveyTask) -> list[SurveyedPart]:
    """Convert the elements and yield their keys, sizes and digests, part by part."""
    split = task.parcel.open()
    parts = []
    for first in range(task.first, task.stop, _PORTION):
        part = _empty(split.converter, draft=task.draft)
        for position in range(first, min(first + _PORTION, task.stop)):
            part.add(split.record(position))
        parts.append(part)
    return parts


class SurveyedSplit:
    """Keys, sizes and digests of all elements of a split: about 24 bytes each, and their keys."""

    def __init__(self, converter: Converter, *, draft: bool) -> None:
        self.split = converter.split
        self.is_slow = False
        """Whether worker processes were needed."""
        self._all = _empty(converter, draft=draft)
        self._taken: set[str] = set()

    def __len__(self) -> int:
        return len(self._all.sizes)

    @property
    def features(self) -> set[str]:
        """Names of all features."""
        return self._all.features

    @property
    def has_images(self) -> bool:
        """Whether Pillow encoded a value."""
        return self._all.has_images

    @property
    def sketch(self) -> SchemaSketch | None:
        """The summary of the examples; None if no schema is to be drafted."""
        return self._all.sketch

    def extend(self, part: SurveyedPart) -> None:
        """Add the elements that follow."""
        every = self._all
        first = len(every.sizes)
        every.digests += part.digests
        every.sizes.extend(part.sizes)
        every.features |= part.features
        every.has_images |= part.has_images
        if every.sketch is not None and part.sketch is not None:
            every.sketch.merge(part.sketch)
        if every.keys is None or part.keys is None:
            return
        for position, key in enumerate(part.keys, first):
            if key in self._taken:
                raise RawDataError(
                    f"split `{safe(self.split)}`: the elements {every.keys.index(key)} and "
                    f"{position} have the same key `{safe(key)}`",
                    hint="keys are unique in a split; without `key`, they are the numbers of the "
                    "elements",
                )
            self._taken.add(key)
            every.keys.append(key)

    def end(self) -> None:
        """Note that all elements were added."""
        self._taken.clear()
        if not self._all.sizes:
            raise RawDataError(
                f"split `{safe(self.split)}` has no elements",
                hint="leave it out; an iterator that was read before is at its end",
            )

    def elements(self) -> Iterator[tuple[str, int, bytes]]:
        """Key, size in bytes and digest of each record, in the order of the elements."""
        every = self._all
        for position, size in enumerate(every.sizes):
            key = position_key(position) if every.keys is None else every.keys[position]
            start = position * DIGEST_BYTES
            yield key, size, bytes(every.digests[start : start + DIGEST_BYTES])


def survey_sequence(
    parcel: Parcel,
    converter: Converter,
    count: int,
    engine: Engine,
    progress: Progress,
    *,
    draft: bool,
) -> SurveyedSplit:
    """Survey the elements of a sequence."""
    found = SurveyedSplit(converter, draft=draft)
    began = monotonic()
    with working(progress, f"reading {safe(converter.split)}", count, "elements"):
        while len(found) < count:
            if engine.jobs > 1 and monotonic() - began > WORTH_SECONDS:
                found.is_slow = True
                break
            task = _task(parcel, len(found), _PORTION, count, draft=draft)
            _take(found, survey_elements(task), progress)
        read = len(found)
        step = _PORTION * _parts_of_a_task(read, monotonic() - began)
        starts = range(read, count, step)
        tasks = (_task(parcel, first, step, count, draft=draft) for first in starts)
        with closing(engine.run(survey_elements, tasks)) as several:
            for parts in several:
                _take(found, parts, progress)
    found.end()
    return found


def survey_records(
    records: Iterable[ElementRecord], converter: Converter, progress: Progress, *, draft: bool
) -> SurveyedSplit:
    """Survey the records of an iterable, in the same parts as those of a sequence."""
    found = SurveyedSplit(converter, draft=draft)
    remaining = iter(records)
    with working(progress, f"spooling {safe(converter.split)}", 0, "elements"):
        while True:
            part = _empty(converter, draft=draft)
            for made in islice(remaining, _PORTION):
                part.add(made)
            _take(found, [part], progress)
            if len(part.sizes) < _PORTION:
                break
    found.end()
    return found


def _task(parcel: Parcel, first: int, step: int, count: int, *, draft: bool) -> SurveyTask:
    return SurveyTask(parcel, first, min(first + step, count), draft)


def _parts_of_a_task(read: int, seconds: float) -> int:
    """How many parts make a task of about the right length; this does not affect the result."""
    if not read:
        return 1
    part = max(seconds * _PORTION / read, 1e-6)
    return max(1, min(_MOST_PARTS, int(_TASK_SECONDS / part)))


def _take(found: SurveyedSplit, parts: Iterable[SurveyedPart], progress: Progress) -> None:
    for part in parts:
        found.extend(part)
        progress.advance(len(part.sizes), sum(part.sizes))


def merged_sketch(splits: Sequence[SurveyedSplit]) -> SchemaSketch:
    """The summary of the examples of all splits."""
    sketch = SchemaSketch()
    for split in splits:
        if split.sketch is not None:
            sketch.merge(split.sketch)
    return sketch


def _empty(converter: Converter, *, draft: bool) -> SurveyedPart:
    return SurveyedPart(
        keys=None if converter.keys.is_position else [], sketch=SchemaSketch() if draft else None
    )
