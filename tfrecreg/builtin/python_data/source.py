"""The source whose items are the elements of a program's data."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tfrecreg.builtin.python_data.convert import (
    Converter,
    KeyRule,
    SplitData,
    length_of,
    sequence_or_iterator,
)
from tfrecreg.builtin.python_data.parcel import Parcel, SequenceSplit, Spool, close_spools, parcels
from tfrecreg.builtin.python_data.survey import (
    SurveyedSplit,
    merged_sketch,
    survey_records,
    survey_sequence,
)
from tfrecreg.core.build.sources.interface import Item, RawFile, Source
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.shards import shard_name
from tfrecreg.core.values.text import listed, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_STATE = struct.Struct(f">Q{DIGEST_BYTES}s")
"""The state of an item: the number of its element, and the digest of its record."""


class PythonSource(Source):
    """The elements of all splits. Picklable, except for data that only the caller's process has."""

    def __init__(
        self,
        dataset: str,
        *,
        parcels: Sequence[Parcel],
        spools: Sequence[Spool],
        travels: bool,
        survey: _Survey,
        labels: Mapping[str, Sequence[str]],
    ) -> None:
        self.dataset = dataset
        self.travels = travels
        self._parcels = {each.split: each for each in parcels}
        self._spools = {each.split: each for each in spools}
        self._survey: _Survey | None = survey
        self._labels = labels

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_survey": None}

    def raw_files(self) -> Iterator[RawFile]:
        return iter(())

    def items(self) -> Iterator[Item]:
        for split in self._surveyed():
            for position, (key, size, digest) in enumerate(split.elements()):
                yield Item(split.split, key, size, _STATE.pack(position, digest))

    def example(self, item: Item) -> Example:
        position, digest = _STATE.unpack(item.state)
        parcel = self._parcels.get(item.split)
        if parcel is None:
            return self._spools[item.split].example(position)
        split = parcel.open()
        made = split.record(position)
        if record_digest(made.payload) != digest:
            raise split.converter.changed(position, item.key)
        return made.example

    def schema(self) -> str:
        return merged_sketch(self._surveyed()).render(self.dataset)

    def labels(self) -> Mapping[str, Sequence[str]]:
        return self._labels

    def codecs(self) -> Mapping[str, str]:
        """Pillow, where it encoded images."""
        if not any(split.has_images for split in self._surveyed()):
            return {}
        try:
            return {"pillow": version("pillow")}
        except PackageNotFoundError:
            return {"pillow": "unknown"}  # a fork of it, with another name

    def survey(self) -> None:
        """Read the data for the first time, unless that was done."""
        features = {name for split in self._surveyed() for name in split.features}
        for name in self._labels:
            if name not in features:
                raise UsageError(
                    f"`labels` names the feature `{safe(name)}`, which no element has",
                    hint=f"features: {listed(sorted(features), most=5)}",
                )

    def engine_for(self, small: Engine, large: Engine) -> Engine:
        """The engine that makes the records: the time that an element takes is not known from its
        size, but from the first pass.
        """
        if not self.travels:
            return LocalEngine(1)
        return large if any(split.is_slow for split in self._surveyed()) else small

    def _surveyed(self) -> list[SurveyedSplit]:
        if self._survey is None:
            raise RuntimeError("the data are listed in the process that was given them")
        return self._survey.splits()


class _Survey:
    """The first pass, made once."""

    def __init__(
        self,
        sequences: Sequence[tuple[Parcel, SequenceSplit]],
        iterators: Sequence[tuple[Spool, Converter, Iterator[Any]]],
        engine: Engine,
        progress: Progress,
        *,
        draft: bool,
    ) -> None:
        self._sequences = sequences
        self._iterators = iterators
        self._engine = engine
        self._progress = progress
        self._draft = draft
        self._splits: list[SurveyedSplit] | None = None

    def splits(self) -> list[SurveyedSplit]:
        """The survey of each split, in order of their names."""
        if self._splits is None:
            found = [*self._read(), *self._spooled()]
            self._splits = sorted(found, key=lambda each: each.split)
        return self._splits

    def _read(self) -> Iterator[SurveyedSplit]:
        for parcel, split in self._sequences:
            converter = split.converter
            count = length_of(converter.split, split.sequence)
            yield survey_sequence(
                parcel, converter, count, self._engine, self._progress, draft=self._draft
            )

    def _spooled(self) -> Iterator[SurveyedSplit]:
        for spool, converter, elements in self._iterators:
            with closing(spool.fill(converter, elements)) as records:
                yield survey_records(records, converter, self._progress, draft=self._draft)


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
            survey = _Survey(
                list(zip(made, sequences, strict=True)),
                iterators,
                engine if travels else LocalEngine(1),
                progress,
                draft=draft,
            )
            yield PythonSource(
                dataset,
                parcels=made,
                spools=[spool for spool, _, _ in iterators],
                travels=travels,
                survey=survey,
                labels=labels,
            )
    finally:
        close_spools()


def _expect_splits(data: object) -> None:
    """Refuse data without splits, and names that cannot be part of the name of a file."""
    if not isinstance(data, Mapping) or not data:
        found = "empty" if isinstance(data, Mapping) else f"a `{safe(type(data).__name__)}`"
        raise UsageError(
            f"`data` is {found}, expected a dictionary from the names of splits to their elements",
            hint=_SPLITS,
        )
    for name in data:
        if not isinstance(name, str):
            raise UsageError(
                f"`data` names a split {safe(repr(name))}, which is not a text", hint=_SPLITS
            )
        shard_name("data", name, 0, 1)  # its error says what a name may hold


_SPLITS = '`data={"train": train, "test": test}`'
