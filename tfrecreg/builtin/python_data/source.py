"""The source whose items are the elements of a program's data."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tfrecreg.builtin.python_data.convert import Converter, KeyRule, SplitData, sequence_or_iterator
from tfrecreg.builtin.python_data.parcel import Parcel, SequenceSplit, Spool, close_spools, parcels
from tfrecreg.builtin.python_data.survey import Survey, Surveyed
from tfrecreg.core.build.sources.interface import Item, RawFile, Source
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.schema.infer import SchemaSketch
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.shards import shard_name
from tfrecreg.core.values.text import did_you_mean
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_STATE = struct.Struct(f">Q{DIGEST_BYTES}s")
"""The state of an item: the number of its element, and the digest of its record."""


class PythonSource(Source):
    """The elements of all splits. A pickle lacks data that only the caller's process has."""

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
            raise split.converter.changed(position, item.key)
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
        try:
            return {"pillow": version("pillow")}
        except PackageNotFoundError:
            return {"pillow": "unknown"}  # a fork of Pillow has another name

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
    for name in sorted(data):
        converter = Converter(name, keys)
        given = sequence_or_iterator(name, data[name])
        if isinstance(given, Iterator):
            iterators.append((Spool(scratch, name), converter, given))
        else:
            sequences.append(SequenceSplit(converter, given))
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
    """Refuse data without splits, and names that cannot be part of a file name."""
    if not isinstance(data, Mapping) or not data:
        found = "empty" if isinstance(data, Mapping) else f"a `{type(data).__name__}`"
        raise UsageError(
            f"`data` is {found}, expected a dictionary from the names of splits to their elements"
        )
    for name in data:
        if not isinstance(name, str):
            raise UsageError(f"`data` names a split {name!r}, which is not a text")
        shard_name("data", name, 0, 1)  # its error says what a name may hold
