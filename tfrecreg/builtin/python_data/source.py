"""The source whose items are the elements of a program's data.

Each worker process reads a sequence once, from a pickle in the stage. Data that are large or cannot
be pickled stay in this process, which then makes all records. An iterable can be read only once,
but a build reads records in the order of its plan. So the records of an iterable are spooled to
disk.

The first pass finds keys, sizes and digests of all records, and drafts their schema. The only files
that it writes are the spooled records of iterables. It keeps the digest and the size of each record
in memory. It also keeps the keys, unless they are the elements' numbers.
"""

from __future__ import annotations

import pickle
import struct
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from importlib import import_module
from itertools import count, islice
from secrets import token_hex
from time import monotonic
from typing import Any

from blake3 import blake3

from tfrecreg.builtin.python_data.convert import (
    Converter,
    ElementRecord,
    KeyRule,
    MapStyle,
    SplitData,
    calling_program,
    length_of,
    position_key,
    sequence_or_iterator,
)
from tfrecreg.core.build.sources.interface import Item, RawFile, Source
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example
from tfrecreg.core.plugins.guard import calling, reason_of
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.schema.infer import SchemaSketch
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import RawDataError, StorageError, TfrecregError, UsageError
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.values.shards import shard_name
from tfrecreg.core.values.text import did_you_mean, safe
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine
from tfrecreg.core.workers.local import LocalEngine

MOST_PICKLED = 128 << 20
"""Maximum size in bytes of a build's pickled data. It is limited, as each worker holds a copy."""


@dataclass(frozen=True, slots=True)
class SequenceSplit(Converter):
    """A split whose elements can be read repeatedly."""

    sequence: MapStyle

    def record(self, position: int) -> ElementRecord:
        """The record of an element."""
        with calling_program(f"{self._place(position)} cannot be read"):
            element = self.sequence[position]
        return self.convert(position, element)


_HERE: dict[str, SequenceSplit] = {}
"""Splits of the builds that run in this process."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A split that any process of the build can open. Picklable."""

    token: str
    """Identifies the split in the process that made the parcel."""
    split: str
    storage: Storage
    digest: str
    """blake3 of the pickle; empty if there is none."""

    @property
    def path(self) -> str:
        """Path of the pickle in the storage."""
        return f"{self.split}.pickle"

    def open(self) -> SequenceSplit:
        """The split: the caller's own object in the caller's process, a copy in other processes."""
        found = _HERE.get(self.token)
        return found if found is not None else _unpacked(self)


@lru_cache(maxsize=1)
def _unpacked(parcel: Parcel) -> SequenceSplit:
    data = parcel.storage.read(parcel.path, limit=MOST_PICKLED)
    if blake3(data).hexdigest() != parcel.digest:  # a pickle can run code
        raise StorageError(f"`{parcel.path}` was changed in the staging folder of the build")
    what = (
        f"split `{parcel.split}` cannot be unpickled in a worker process (`jobs=1` uses no worker)"
    )
    with calling_program(what):
        split: SequenceSplit = pickle.loads(data)
        return split


@contextmanager
def parcels(
    splits: Sequence[SequenceSplit], storage: Storage, jobs: int, progress: Progress
) -> Iterator[tuple[list[Parcel], bool]]:
    """Make splits available to the processes of a build, for the duration of the block."""
    digests: list[str] = []
    left = MOST_PICKLED
    if jobs > 1:
        for split in splits:
            try:
                digest, size = _pack(split, storage, left)
            except _StaysError as reason:
                name = safe(split.split)
                progress.note(f"split `{name}` is read without worker processes: {reason}")
                break
            digests.append(digest)
            left -= size
    travel = len(digests) == len(splits)
    if not travel:
        digests = [""] * len(splits)
    made = [
        Parcel(token_hex(16), split.split, storage, digest)
        for split, digest in zip(splits, digests, strict=True)
    ]
    _HERE.update({each.token: split for each, split in zip(made, splits, strict=True)})
    try:
        yield made, travel
    finally:
        for each in made:
            _HERE.pop(each.token, None)


class _StaysError(Exception):
    """A split stays in this process. The message has the reason."""


def _pack(split: SequenceSplit, storage: Storage, most: int) -> tuple[str, int]:
    """Write the pickle of a split; returns its digest and its size in bytes."""
    path = f"{split.split}.pickle"
    with storage.create(path, durable=False) as file:
        bounded = _Bounded(file.write, most)
        try:
            with calling():
                pickle.Pickler(bounded, protocol=5).dump(split)
        except (_StaysError, TfrecregError):
            raise
        except Exception as error:
            raise _StaysError(f"it cannot be pickled: {reason_of(error)}") from error
    return bounded.hasher.hexdigest(), bounded.size


class _Bounded:
    """A file for a pickle, with a maximum size."""

    def __init__(self, write: object, most: int) -> None:
        self._write = write
        self._most = most
        self.hasher = blake3()
        self.size = 0

    def write(self, data: bytes | memoryview) -> int:
        flat = pickle.PickleBuffer(data).raw()  # also of arrays
        self.size += len(flat)
        if self.size > self._most:
            raise _StaysError(f"the pickled data are larger than {MOST_PICKLED >> 20} MiB")
        self.hasher.update(flat)
        self._write(flat)  # type: ignore[operator]
        return len(flat)


_END = object()
"""Stands for the end of an iterable."""


@dataclass(frozen=True, slots=True)
class Spool:
    """The records of a split, in the order of the iterable. Picklable."""

    storage: Storage
    """Storage in a folder that lasts as long as the build."""
    split: str

    @property
    def path(self) -> str:
        """Path of the file: a TFRecord file without compression, with an index."""
        return f"{self.split}.spool"

    def fill(
        self, converter: Converter, elements: Iterator[Any]
    ) -> Generator[ElementRecord, None, None]:
        """Write and yield the record of each element. The file appears when the iterator ends."""
        with ShardWriter(self.storage, self.path, index_path=self._index) as writer:
            for position in count():
                with calling_program(
                    f"split `{self.split}`: the iterable failed at element {position}"
                ):
                    element = next(elements, _END)
                if element is _END:
                    return
                made = converter.convert(position, element)
                writer.write(made.payload, digest=record_digest(made.payload), key=made.key)
                yield made

    def example(self, position: int) -> Example:
        """The example of an element."""
        return decode(_records(self)[position])

    @property
    def _index(self) -> str:
        return f"{self.split}.index"


@lru_cache(maxsize=1)
def _records(spool: Spool) -> Records:
    """The open file. Shards are made split by split, so one open file is enough."""
    shown = f"the spooled split {spool.split}"
    return Records(spool.path, index=spool._index, storage=spool.storage, name=shown)


def close_spools() -> None:
    """Close the spool that this process has open, if any."""
    _records.cache_clear()


_STATE = struct.Struct(f">Q{DIGEST_BYTES}s")
"""The state of an item: the number of its element, and the digest of its record."""


_PORTION = 16
"""Number of elements per part. The draft of a schema may depend on it, so it is constant."""
_TASK = 8 * _PORTION
"""Elements per task of a worker."""


@dataclass
class Surveyed:
    """Keys, sizes and digests of consecutive elements of a split. Picklable. Each element takes 24
    bytes, plus its key as a Python string, unless keys are positions.
    """

    split: str
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
    is_slow: bool = False
    """Whether elements took so long that worker processes converted them."""

    @classmethod
    def of(cls, converter: Converter, records: Iterable[ElementRecord], draft: bool) -> Surveyed:
        """The keys, sizes and digests of these records."""
        part = cls(
            converter.split,
            keys=None if converter.keys is None else [],
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

    def extend(self, part: Surveyed) -> None:
        """Add the next elements."""
        self.digests += part.digests
        self.sizes.extend(part.sizes)
        self.features |= part.features
        self.has_images |= part.has_images
        if self.sketch is not None and part.sketch is not None:
            self.sketch.merge(part.sketch)
        if self.keys is not None and part.keys is not None:
            self.keys += part.keys

    def expect_sense(self) -> None:
        """Refuse a split without elements, and keys that occur twice."""
        if not self.sizes:
            raise RawDataError(
                f"split `{self.split}` has no elements: its iterator may already be at its end"
            )
        firsts: dict[str, int] = {}
        for position, key in enumerate(self.keys or ()):
            first = firsts.setdefault(key, position)
            if first != position:
                raise RawDataError(
                    f"split `{self.split}`: the elements {first} and {position} have the same key "
                    f"`{key}`"
                )

    def elements(self) -> Iterator[tuple[str, int, bytes]]:
        """Key, size in bytes and digest of each record, in order of the elements."""
        for position, size in enumerate(self.sizes):
            key = position_key(position) if self.keys is None else self.keys[position]
            start = position * DIGEST_BYTES
            yield key, size, bytes(self.digests[start : start + DIGEST_BYTES])


def survey_elements(draft: bool, task: tuple[Parcel, range]) -> list[Surveyed]:
    """Convert elements of a sequence. Returns the keys, sizes and digests of each part."""
    parcel, elements = task
    split = parcel.open()
    return [
        Surveyed.of(split, map(split.record, elements[first : first + _PORTION]), draft)
        for first in range(0, len(elements), _PORTION)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The first pass. Called once."""

    sequences: Sequence[tuple[Parcel, SequenceSplit]]
    iterators: Sequence[tuple[Spool, Converter, Iterator[Any]]]
    engine: Engine
    progress: Progress
    draft: bool
    """Whether a schema is to be drafted."""

    def splits(self) -> list[Surveyed]:
        """The survey of each split, in order of their names."""
        found = [self._sequence(*each) for each in self.sequences]
        found += [self._iterable(*each) for each in self.iterators]
        for each in found:
            each.expect_sense()
        return sorted(found, key=lambda each: each.split)

    def _sequence(self, parcel: Parcel, sequence: SequenceSplit) -> Surveyed:
        """Survey the elements in this process. If this takes long, workers survey the rest."""
        engine = self.engine
        count = length_of(sequence.split, sequence.sequence)
        found = Surveyed.of(sequence, (), self.draft)
        survey = partial(survey_elements, self.draft)
        began = monotonic()
        with working(self.progress, f"reading {safe(found.split)}", count, "elements"):
            read = 0
            while read < count:
                if engine.jobs > 1 and monotonic() - began > WORTH_SECONDS:
                    found.is_slow = True
                    break
                elements = range(count)[read : read + _PORTION]
                self._take(found, survey((parcel, elements)))
                read += len(elements)
            tasks = (
                (parcel, range(count)[first : first + _TASK]) for first in range(read, count, _TASK)
            )
            with closing(engine.run(survey, tasks)) as several:
                for parts in several:
                    self._take(found, parts)
        return found

    def _iterable(self, spool: Spool, converter: Converter, elements: Iterator[Any]) -> Surveyed:
        """Spool the records, and survey them in parts of :data:`_PORTION` records."""
        found = Surveyed.of(converter, (), self.draft)
        with (
            closing(spool.fill(converter, elements)) as records,
            working(self.progress, f"spooling {safe(found.split)}", 0, "elements"),
        ):
            while True:
                part = Surveyed.of(converter, islice(records, _PORTION), self.draft)
                self._take(found, [part])
                if len(part.sizes) < _PORTION:
                    return found

    def _take(self, found: Surveyed, parts: Iterable[Surveyed]) -> None:
        for part in parts:
            found.extend(part)
            self.progress.advance(len(part.sizes), sum(part.sizes))


class PythonSource(Source):
    """The elements of all splits. Pickling omits data that only the caller's process has."""

    def __init__(
        self, dataset: str, survey: Survey, labels: Mapping[str, Sequence[str]], *, travels: bool
    ) -> None:
        self.dataset = dataset
        self.travels = travels
        self._places: dict[str, Parcel | Spool] = {
            **{each.split: each for each, _ in survey.sequences},
            **{each.split: each for each, *_ in survey.iterators},
        }
        self._survey: Survey | None = survey
        self._labels = labels

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_survey": None}
        state.pop("_splits", None)
        return state

    @cached_property
    def _splits(self) -> list[Surveyed]:
        """The survey of each split, computed once in the process that received the data."""
        assert self._survey is not None
        return self._survey.splits()

    def raw_files(self) -> Iterator[RawFile]:
        return iter(())

    def items(self) -> Iterator[Item]:
        for split in self._splits:
            for position, (key, size, digest) in enumerate(split.elements()):
                yield Item(split.split, key, size, _STATE.pack(position, digest))

    def example(self, item: Item) -> Example:
        position, digest = _STATE.unpack(item.state)
        place = self._places[item.split]
        if isinstance(place, Spool):
            return place.example(position)
        split = place.open()
        made = split.record(position)
        if record_digest(made.payload) != digest:
            raise split.changed(position, item.key)
        return made.example

    def schema(self) -> str:
        sketch = SchemaSketch()
        for split in self._splits:
            if split.sketch is not None:
                sketch.merge(split.sketch)
        return sketch.render(self.dataset)

    def labels(self) -> Mapping[str, Sequence[str]]:
        return self._labels

    def codecs(self) -> Mapping[str, str]:
        """The version of Pillow, if it encoded images."""
        if not any(split.has_images for split in self._splits):
            return {}
        return {"pillow": import_module("PIL").__version__}

    def survey(self) -> None:
        """Read the data for the first time, unless this was already done."""
        features = {name for split in self._splits for name in split.features}
        for name in self._labels:
            if name not in features:
                raise UsageError(
                    f"`labels` names the feature `{name}`, which no element has"
                    + did_you_mean(name, features)
                )

    def engine_for(self, small: Engine, large: Engine) -> Engine:
        """The engine that makes the records. The first pass measures the time per element, because
        this time does not follow from an element's size.
        """
        if not self.travels:
            return LocalEngine(1)
        return large if any(split.is_slow for split in self._splits) else small


@contextmanager
def open_python_data(
    dataset: str,
    data: Mapping[str, SplitData],
    keys: KeyRule,
    labels: Mapping[str, Sequence[str]],
    *,
    scratch: Storage,
    engine: Engine,
    progress: Progress,
    draft: bool,
) -> Iterator[PythonSource]:
    """Open a program's data as a source, for the duration of the block."""
    _expect_splits(data)
    sequences: list[SequenceSplit] = []
    iterators: list[tuple[Spool, Converter, Iterator[Any]]] = []
    for name in sorted(map(str, data)):
        given = sequence_or_iterator(name, data[name])
        if isinstance(given, Iterator):
            iterators.append((Spool(scratch, name), Converter(name, keys), given))
        else:
            sequences.append(SequenceSplit(name, keys, given))
    try:
        with parcels(sequences, scratch, engine.jobs, progress) as (made, travels):
            survey = Survey(
                sequences=list(zip(made, sequences, strict=True)),
                iterators=iterators,
                engine=engine if travels else LocalEngine(1),
                progress=progress,
                draft=draft,
            )
            yield PythonSource(dataset, survey, labels, travels=travels)
    finally:
        close_spools()


def _expect_splits(data: object) -> None:
    """Refuse data that have no splits. Refuse split names that cannot be part of a file name."""
    if not isinstance(data, Mapping) or not data or not all(isinstance(each, str) for each in data):
        raise UsageError("`data` should be a dictionary from the names of splits to their elements")
    for name in data:
        shard_name("data", name, 0, 1)  # its error says what a name may hold
