"""Sends a sequence to worker processes: each worker reads it once, from a pickle in the stage.

Data that are large or cannot be pickled stay in this process, which then makes all records.

An iterable can be read only once, but a build reads records in the order of its plan. So the
records of an iterable are spooled to disk.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from secrets import token_hex
from typing import Any

from blake3 import blake3

from tfrecreg.builtin.python_data.convert import Converter, ElementRecord, MapStyle, calling_program
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example
from tfrecreg.core.plugins.guard import calling, reason_of
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import StorageError, TfrecregError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import safe

MOST_PICKLED = 128 << 20
"""Maximum size in bytes of a build's pickled data. It is limited, as each worker holds a copy."""


@dataclass(frozen=True, slots=True)
class SequenceSplit:
    """A split whose elements can be read repeatedly."""

    converter: Converter
    sequence: MapStyle

    def record(self, position: int) -> ElementRecord:
        """The record of an element."""
        return self.converter.convert(position, self.converter.element_of(self.sequence, position))


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
        raise StorageError(f"`{parcel.path}` was changed in the stage of the build")
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
                name = safe(split.converter.split)
                progress.note(f"split `{name}` is read only in this process: {reason}")
                break
            digests.append(digest)
            left -= size
    travel = len(digests) == len(splits)
    if not travel:
        digests = [""] * len(splits)
    made = [
        Parcel(token_hex(16), split.converter.split, storage, digest)
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
    path = f"{split.converter.split}.pickle"
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
            raise _StaysError(f"the pickled data have more than {MOST_PICKLED >> 20} MiB")
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
