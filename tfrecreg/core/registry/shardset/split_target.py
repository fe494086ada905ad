"""The shards of the splits that an expression names: of a build, a release or a folder.

Expressions for splits and parts of them, in the language of TensorFlow Datasets.

``train``, ``train[:80%]``, ``train[1000:2000]``, ``train[-500:]``, ``train[:2shard]``,
``train[3shard]``, ``train+validation``, ``all``. Percentages are rounded as TFDS does, by its
formula ``int(round(percent * records / 100.0))``: to the nearest record, halves to the even number.
See https://www.tensorflow.org/datasets/splits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.scan.conditions import chosen_records, shown_progress, weights_of_records
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.registry.lookup import Resolved, expect_schema
from tfrecreg.core.registry.manifest import Manifest, adopted_kind
from tfrecreg.core.registry.shardset.find import Built, FolderBuild
from tfrecreg.core.registry.shardset.load_records import SplitRecords
from tfrecreg.core.registry.shardset.target import (
    files_target,
    files_targets,
    find_target,
    read_schema_file,
)
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import did_you_mean, listed, safe
from tfrecreg.core.workers.interface import Engine

ALL = "all"
"""Names all splits together."""

_PART = re.compile(
    r"(?P<name>[^\[\]+]+?)\s*"
    r"(?:\[(?:(?P<start>[^\[\]:]*):(?P<stop>[^\[\]:]*)|(?P<one>\s*-?\d+)shard\s*)\])?"
)
_BOUND = re.compile(r"(?P<value>-?\d+(?:_\d+)*(?:\.\d+)?)(?P<unit>%|shard)?")
_FORMS = "`train`, `train[:80%]`, `train[1000:2000]`, `train[:2shard]`, `train+test` and `all` work"


def named_splits(words: str, splits: Sequence[str], name: str) -> list[str]:
    """The splits that an expression names, each once."""
    found = [each for part, _ in _parts(words) for each in _splits(part, splits, name)]
    return list(dict.fromkeys(found))


def find_ranges(words: str, shards: Mapping[str, Sequence[int]]) -> list[tuple[str, range]]:
    """The records that an expression names, in its order."""
    found: list[tuple[str, range]] = []
    for part, bounds in _parts(words):
        for split in _splits(part, list(shards), ""):
            found.append((split, _range(words, bounds, shards[split])))
    return found


def find_numbers(words: str, shards: Mapping[str, Sequence[int]]) -> list[range]:
    """The records that an expression names, numbered through all of `shards`."""
    counts = [sum(each) for each in shards.values()]
    starts = dict(zip(shards, accumulate(counts, initial=0), strict=False))
    return [
        range(starts[split] + part.start, starts[split] + part.stop)
        for split, part in find_ranges(words, shards)
    ]


def even_parts(numbers: range, count: int, *, drop_remainder: bool) -> list[range]:
    """Divide a range as `tfds.even_splits` does: contiguous parts, larger ones first."""
    each, rest = divmod(len(numbers), count)
    if drop_remainder:
        rest = 0
    starts = [each * part + min(part, rest) for part in range(count + 1)]
    return [numbers[start:stop] for start, stop in pairwise(starts)]


def _parts(words: str) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Each name in an expression, and the bounds behind it."""
    for part in words.split("+"):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise _malformed(words)
        bounds = None
        if match["one"] is not None:
            one = int(match["one"])
            # As with TFDS, the last one is -1.
            bounds = f"{one}shard", f"{one + 1}shard" if one != -1 else ""
        elif match["start"] is not None:
            bounds = match["start"].strip(), match["stop"].strip()
            if bounds == ("", ""):
                raise _malformed(words)
        if bounds is not None and match["name"] == ALL:
            raise _malformed(words)
        yield match["name"], bounds


def _malformed(words: str) -> UsageError:
    return UsageError(f"`{safe(words)}` is not an expression for splits", hint=_FORMS)


def _splits(part: str, splits: Sequence[str], name: str) -> list[str]:
    if part in splits:
        return [part]
    if part == ALL:
        return sorted(splits)
    raise UsageError(
        f"`{name}` has no split `{safe(part)}`{did_you_mean(part, splits)}",
        hint=f"available: {listed(splits)}",
    )


def _range(words: str, bounds: tuple[str, str] | None, shards: Sequence[int]) -> range:
    records = sum(shards)
    if bounds is None:
        return range(records)
    units = {_unit(words, each) for each in bounds if each}
    if len(units) > 1:
        raise UsageError(
            f"`{safe(words)}` mixes percentages and record numbers",
            hint="`train[10%:20%]` or `train[10:20]`",
        )
    (unit,) = units
    start = _number(words, bounds[0], unit, shards) if bounds[0] else 0
    stop = _number(words, bounds[1], unit, shards) if bounds[1] else records
    if start > stop:
        raise UsageError(
            f"`{safe(words)}` ends at record {stop}, before it begins at record {start}",
            hint="exchange its bounds",
        )
    return range(start, stop)


def _unit(words: str, bound: str) -> str:
    match = _BOUND.fullmatch(bound)
    if match is None or ("." in match["value"] and match["unit"] != "%"):
        raise _malformed(words)
    return match["unit"] or ""


def _number(words: str, bound: str, unit: str, shards: Sequence[int]) -> int:
    """The record that a bound means."""
    records = sum(shards)
    value = float(bound.removesuffix(unit).replace("_", "")) if unit == "%" else 0.0
    count, what = (len(shards), "shards") if unit == "shard" else (records, "records")
    number = round(value * records / 100.0) if unit == "%" else int(bound.removesuffix(unit))
    if abs(value) > 100 or abs(number) > count:
        raise UsageError(
            f"`{safe(words)}` reaches beyond its split, which has {count} {what}",
            hint="`train[:80%]` and `train[-100:]` fit splits of any size above",
        )
    # A small negative percentage is rounded to 0, which is the beginning: so does TFDS.
    number = number if number >= 0 else count + number
    return sum(shards[:number]) if unit == "shard" else number


class SplitTarget(NamedTuple):
    """A target before its shards are read."""

    name: str
    """For messages, escaped."""
    words: str
    """The expression for splits."""
    splits: list[str]
    """Those that it names."""
    shards: list[Shard]
    """Of these splits, split by split."""
    manifest: Manifest | None = None
    storage: Readable | None = None
    """Rooted at the folder that the manifest describes."""
    origin: Built | Target | None = None
    """What they are the shards of; None for files that no manifest describes together."""
    files: tuple[str, ...] = ()
    """The files that were named; empty for a build or a release."""

    def is_raw(self, schema: str | os.PathLike[str] | None = None) -> bool:
        """Whether its records can only be read as payloads: they are certainly not Examples, and
        not SequenceExamples that a schema describes.
        """
        kind = adopted_kind(self.manifest)
        if kind is not PayloadKind.SEQUENCE_EXAMPLE:
            return kind is not PayloadKind.EXAMPLE
        text = self.find_schema(schema)
        return text is None or not parse_schema(*text).describes_sequences()

    @property
    def home(self) -> Storage | None:
        """The storage of its registry; None if it is in none."""
        if isinstance(self.origin, Target):
            return self.origin.home
        registry = self.origin.registry if self.origin is not None else None
        return registry.storage if registry is not None else None

    def records_where(
        self,
        ranges: Sequence[range],
        counts: Sequence[int],
        where: str,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> list[npt.NDArray[np.int64]]:
        """Of each range of record numbers: those of the records for which a condition holds,
        ascending.

        The condition is about the whole target: its subqueries see all splits, as those of a
        question do.
        """
        target = self._whole()
        shown = shown_progress(progress)
        with chosen_records(target, where, engine=engine, progress=shown) as chosen:
            found = dict(zip(map(self._place, target.shards), chosen, strict=True))
        parts = [np.empty(0, np.int64)]
        start = 0
        for shard, count in zip(self.shards, counts, strict=True):
            numbers = found[self._place(shard)]
            if len(numbers) and numbers[-1] >= count:
                raise RefusedError(
                    f"`{safe(shard.name, limit=1000)}` should have {count} records, it has more",
                    hint=f"tfrecreg check {self.name}",
                )
            parts.append(numbers + start)
            start += count
        every = np.concatenate(parts)
        bounds = (np.searchsorted(every, (each.start, each.stop)) for each in ranges)
        return [every[first:stop] for first, stop in bounds]

    def values(
        self, counts: Sequence[int], progress: Progress | bool, expression: str
    ) -> npt.NDArray[np.float64]:
        """The value of an SQL expression for each record of `shards`; NaN where it is NULL."""
        target = self._whole()
        weights = weights_of_records(target, expression, progress=shown_progress(progress))
        found = dict(zip(map(self._place, target.shards), weights, strict=True))
        parts = [np.empty(0)]
        for shard, count in zip(self.shards, counts, strict=True):
            values = found[self._place(shard)]
            if len(values) != count:
                raise self._other_count(shard, count, len(values))
            parts.append(values)
        return np.concatenate(parts)

    def _other_count(self, shard: Shard, count: int, found: int) -> RefusedError:
        return RefusedError(
            f"`{safe(shard.name, limit=1000)}` should have {count} records, found {found}",
            hint=f"tfrecreg check {self.name}",
        )

    def _whole(self) -> Target:
        """All of the target, as a question has it."""
        if not self.files:
            assert isinstance(self.origin, Built)
            return find_target(self.origin)
        targets = files_targets(self.files)
        return targets[0] if len(targets) == 1 else files_target(self.files)

    def _place(self, shard: Shard) -> tuple[str, str]:
        # The root of a build may be another one for those who only read.
        return shard.storage.root if self.files else "", shard.path

    def find_schema(self, path: str | os.PathLike[str] | None) -> tuple[str, str] | None:
        """The text of its schema with its path for messages; None without a schema."""
        if path is not None:
            return read_schema_file(os.fspath(path)), os.fspath(path)
        if self.origin is None:
            return None
        if isinstance(self.origin, Resolved):
            return expect_schema(self.origin), self.origin.schema_path
        text = self.origin.schema
        return None if text is None else (text, self.origin.schema_path or "schema")


def without_keys(name: str) -> UsageError:
    """Error for a target whose keys are wanted, and whose shards have no index."""
    return UsageError(
        f"`{name}` has shards without an index, so its records have no keys",
        hint="`tfrecreg adopt` makes a build with indexes of the shards of another tool",
    )


def splits_of(found: Built, split: str | None, caller: str) -> SplitTarget:
    """The shards of a build or a release."""
    manifest, storage, name = found.manifest, found.storage(), found.name
    words, splits = chosen_splits(name, [each.name for each in manifest.splits], split, caller)
    shards: list[Shard] = []
    for each in splits:
        of_split = _shards(manifest, storage, each)
        SplitRecords(of_split, name).expect_whole()
        shards += of_split
    return SplitTarget(name, words, splits, shards, manifest, storage, found)


def _shards(manifest: Manifest, storage: Readable, split: str) -> list[Shard]:
    """The shards of a split that a manifest lists."""
    entries = [entry for entry in manifest.shards if entry.split == split]
    return [
        Shard(
            split=split,
            number=number,
            name=f"{storage.root}/{entry.path}",
            storage=storage,
            path=entry.path,
            declared=manifest.compression,
            entry=entry,
            index=entry.index or None,
        )
        for number, entry in enumerate(entries)
    ]


def expect_listed(target: Target, splits: Sequence[str], *, whole: bool) -> None:
    """Refuse files of a build that differ from its manifest in name or size, without
    reading them.
    """
    if target.manifest is None or target.storage is None:
        return
    named = {shard.path for shard in target.shards}
    strange = next((each for each in target.shards if each.entry is None), None)
    if strange is not None:
        raise RefusedError(
            f"`{safe(strange.path, limit=1000)}` is not a shard of the build in "
            f"`{safe(target.storage.root, limit=1000)}`: its manifest does not list it",
            hint="name only shards of the build, or move the file to another folder",
        )
    for split in splits:
        wanted = [
            shard
            for shard in _shards(target.manifest, target.storage, split)
            if shard.path in named or (whole and target.storage.stat(shard.path) is None)
        ]
        if wanted:
            SplitRecords(wanted, target.name).expect_whole()


def of_target(target: Target, found: SplitTarget) -> SplitTarget:
    """The named shards with the manifest and the schema of the build that they belong to."""
    if target.manifest is None or target.storage is None:
        return found
    beside = FolderBuild(target.name, target.manifest, target.storage)
    return found._replace(
        manifest=target.manifest,
        storage=target.storage,
        origin=beside if target.schema is None else target,
    )


def chosen_splits(
    name: str, splits: Sequence[str], words: str | None, caller: str
) -> tuple[str, list[str]]:
    """The expression, and the splits that it names."""
    if words is None:
        if len(splits) != 1:
            raise UsageError(
                f"`{name}` has the splits {listed(splits)}: name one",
                hint=f"tfrecreg.{caller}({name!r}, split={splits[0]!r})",
            )
        (words,) = splits
        return words, [words]
    return words, named_splits(words, splits, name)
