"""Shows the first records of a target, or any one record, for people to read.

Also saves the images of shown records as files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import partial
from html import escape
from itertools import islice
from typing import Any, Literal

from tfrecreg.core.check.infer import PassedOver
from tfrecreg.core.check.scan.conditions import chosen_records
from tfrecreg.core.check.scan.indexes import index_of
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.format_payload import (
    ShownImage,
    ShownPart,
    describe_payload,
    images_in,
    words,
)
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example
from tfrecreg.core.plugins.decoders import Decoders, target_decoders
from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.index import Index
from tfrecreg.core.records.reader import HOLD_LIMIT, scan
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.registry.splits import find_ranges, named_splits
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import DamagedRecordError, NoShardsError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import ShortRepr, did_you_mean, hex_start, listed, safe, si_bytes
from tfrecreg.core.values.text import count as counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFeature:
    """One feature of one record, described. Every string is escaped."""

    name: str
    kind: str
    """``bytes``, ``float``, ``int64`` or ``unset``."""
    count: int
    """Number of values."""
    shown: str
    """The first values, or a description of them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShownRecord(ShortRepr):
    """One record."""

    shard: str
    record: int
    offset: int
    length: int
    key: str | None
    features: tuple[ShownFeature, ...] | None
    """None if the payload is not a `tf.train.Example`, or too large to be held."""
    start: str = ""
    """If `features` is None: the payload's first bytes in hex, or its size."""
    payload: str | None = None
    """Kind of the payload, a value of `PayloadKind`; None if it is too large to be read."""
    parts: tuple[ShownPart, ...] = ()
    """Parts of a payload that is not an Example."""
    images: tuple[ShownImage, ...] = field(default=(), repr=False)
    """The encoded images among the values of an Example."""
    example: Example | None = field(default=None, repr=False, compare=False)
    saved: tuple[str, ...] = ()
    """Paths of the saved images, absolute and not escaped."""

    def __str__(self) -> str:
        return "\n".join(f"{label}{rest}".rstrip() for _, label, rest in self.lines())

    def lines(self) -> Iterator[tuple[Literal["place", "other", "row"], str, str]]:
        """The lines of text that show the record: its place, the kind of payload if it is not an
        Example, and a row per feature or part. Each line is a tuple of its kind, a label and the
        remaining text.
        """
        key = f", key {self.key}" if self.key is not None else ""
        place = f", record {self.record}, offset {self.offset}, {self.length:,} bytes{key}"
        yield "place", self.shard, place
        if self.features is None:
            named = _NAMES.get(self.payload or "")
            if self.payload is None:
                yield "other", f"  {self.start}", ""
            elif named is not None:
                yield "other", f"  {named}", ""
            else:
                yield "other", "  not a tf.train.Example: ", self.start
        rows = self._rows()
        names = max((len(name) for name, _, _ in rows), default=0)
        kinds = max((len(kind) for _, kind, _ in rows), default=0)
        for name, kind, shown in rows:
            yield "row", f"  {name:<{names}}  {kind:<{kinds}}", f"  {shown}"

    def _rows(self) -> list[tuple[str, str, str]]:
        if self.features is None:
            return [_part(each) for each in self.parts]
        return [(each.name, _kind(each.kind, each.count), each.shown) for each in self.features]

    def _repr_html_(self) -> str:
        """HTML for a notebook: the record's place, features and images, with objects drawn over the
        first image.
        """
        from tfrecreg.core.images.drawing import draw_over

        key = "" if self.key is None else f", key {self.key}"
        cells = ("<td>".join(map(escape, row)) for row in self._rows())
        return (
            f"<p><b>{escape(self.shard)}</b>, record {self.record}{escape(key)} "
            f"{escape(self.start)}</p><table>{''.join(f'<tr><td>{each}' for each in cells)}</table>"
            f"{''.join(draw_over(self.example, (each.thumbnail_html() for each in self.images)))}"
        )

    def to_json(self) -> dict[str, Any]:
        """The record as ``head --json`` prints it: everything except the bytes of images."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        del told["example"]
        pictures, saved = told.pop("images"), told.pop("saved")
        shown = [safe(path, limit=1 << 16) for path in saved]
        return {**told, "pictures": pictures, "saved": shown}


_NAMES = {
    PayloadKind.SEQUENCE_EXAMPLE.value: "a tf.train.SequenceExample",
    PayloadKind.EVENT.value: "a TensorBoard event",
}
"""The names of known payloads that are not Examples."""


def _part(part: ShownPart) -> tuple[str, str, str]:
    """The three cells of a row: the part with its name, the kind, and the content."""
    name = f"{part.part} {part.name}" if part.name else part.part
    if part.part == "context":
        return name, _kind(part.kind, part.count), part.shown
    if part.part == "list":
        steps = counted(part.count, "step")
        return name, f"{steps} of {part.kind}" if part.kind else steps, part.shown
    return name, part.kind, part.shown


def _kind(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}[{count}]"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which records of a target to show: the arguments of :meth:`tfrecreg.Build.head`."""

    records: int | None = None
    at: int | None = None
    shard: str | None = None
    split: str | None = None
    where: str | None = None


_Numbers = dict[tuple[str, int], list[int]]
"""Maps the split and the number of a shard to the numbers of its chosen records."""


def head(
    target: Target,
    choice: Choice = Choice(),
    *,
    damage: list[PassedOver] | None = None,
    progress: Progress = SILENT,
) -> Iterator[ShownRecord]:
    """The first records of a target in shard order, or the records that `choice` names.

    Damaged records are skipped and listed in `damage`, but the record named by `at` must be
    undamaged.
    """
    at = choice.at
    left = choice.records if choice.records is not None else 5 if at is None else 1
    if left < 0:
        raise UsageError(f"the number of records should be at least 0, found {left}")
    if not target.shards:
        raise UsageError(f"`{target.name}` has no shards to show")
    if choice.where is not None and at is not None:
        raise UsageError("`--at` and `--where` exclude each other")
    reader = _Reader(damage if damage is not None else [], target_decoders(target))
    holding: _Numbers | None = None
    with ExitStack() as stack:
        if choice.where is not None:
            found = stack.enter_context(chosen_records(target, choice.where, progress=progress))
            shards = zip(target.shards, found, strict=True)
            holding = {(each.split, each.number): chosen.tolist() for each, chosen in shards}
        for shard, numbers in _portions(target, choice, holding):
            if left <= 0:
                return
            if numbers is None and at is None:
                records = reader.scanned(shard, left)
            else:
                records = islice(reader.numbered(shard, numbers or (), at), left)
            for record in records:
                yield record
                left -= 1


def _portions(
    target: Target, choice: Choice, holding: _Numbers | None
) -> Iterator[tuple[Shard, Sequence[int] | None]]:
    """The shards to read. Each comes with the numbers of its records to read, or None for all."""
    shards, split = target.shards, choice.split
    if split is not None:
        by_split = _by_split(target, split)
        if "[" in split:
            if choice.at is not None or choice.shard is not None:
                raise UsageError(
                    f"`{split}` selects a range of the whole split: leave out "
                    f"{'`--at`' if choice.at is not None else '`--shard`'}"
                )
            yield from _of_ranges(by_split, split, holding)
            return
        shards = [each for found in by_split.values() for each in found]
    if choice.shard is not None:
        shards = [_shard_named(target.name, shards, choice.shard)]
    if choice.at is not None and len(shards) > 1:
        raise UsageError(
            f"`{target.name}` has {len(shards)} shards, and `--at` counts within one shard",
            hint=f"name one of them: --shard {shards[0].name}",
        )
    for each in shards:
        yield each, None if holding is None else holding[each.split, each.number]


def _by_split(target: Target, words: str) -> dict[str, list[Shard]]:
    """The shards of each split in an expression, in the order of the expression."""
    by_split: dict[str, list[Shard]] = {}
    for each in target.shards:
        by_split.setdefault(each.split, []).append(each)
    if list(by_split) == [""]:  # file names state no split: any name fits
        parts = words.split("+") if "[" in words else [words]
        return {each.partition("[")[0].strip(): by_split[""] for each in parts}
    names = [name for name in by_split if name]
    return {name: by_split[name] for name in named_splits(words, names, target.name)}


def _of_ranges(
    by_split: Mapping[str, Sequence[Shard]], words: str, holding: _Numbers | None
) -> Iterator[tuple[Shard, Sequence[int]]]:
    """The shards of an expression such as `train[:10]`, with the numbers of their records."""
    counts: dict[str, list[int]] = {name: [] for name in by_split}
    for name, shards in by_split.items():
        for shard in shards:
            if shard.entry is not None:
                counts[name].append(shard.entry.records)
                continue
            with Records(shard.path, storage=shard.storage, name=shard.name) as records:
                counts[name].append(len(records))
    for name, numbers in find_ranges(words, counts):
        start = 0
        for shard, held in zip(by_split[name], counts[name], strict=True):
            inside = range(max(numbers.start - start, 0), min(numbers.stop - start, held))
            start += held
            if holding is None:
                yield shard, inside
            else:
                chosen = holding[shard.split, shard.number]
                yield shard, [each for each in chosen if each in inside]


def _shard_named(target: str, shards: Sequence[Shard], name: str) -> Shard:
    found = [each for each in shards if each.name == name]
    found = found or [each for each in shards if each.name.rpartition("/")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"`{target}` has {len(found)} shards named `{name}`: add the folder to the name, as in "
            f"`{found[0].name}`"
        )
    names = [each.name.rpartition("/")[2] for each in shards]
    raise UsageError(
        f"`{target}` has no shard `{name}`{did_you_mean(name, names)}",
        hint=f"available: {listed(names)}",
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    damage: list[PassedOver]
    decoders: Decoders

    def _pass_over(self, shard: Shard, record: int | None, offset: int, reason: str) -> None:
        name = safe(shard.name)
        self.damage.append(PassedOver(shard=name, record=record, offset=offset, reason=reason))

    def scanned(self, shard: Shard, most: int) -> Iterator[ShownRecord]:
        """The first records, as the scanner delivers them."""
        index = index_of(shard)
        seen = 0
        for event in scan(shard.storage, shard.path, declared=shard.declared):
            if isinstance(event, Fault):
                if event.code == "CRC008":
                    message = f"`{shard.name}` is not a TFRecord: {event.detail}"
                    raise NoShardsError(message)
                reason = f"{event.code}: {event.detail}"
                self._pass_over(shard, event.record, event.offset, reason)
            if not isinstance(event, RecordBatch):
                continue
            for position in range(len(event)):
                if seen == most:
                    return
                seen += 1
                at = event.first + position, event.offsets[position], event.lengths[position]
                payload = event.payload(position) if event.whole else None
                yield shown_record(shard, index, at, payload, self.decoders)

    def numbered(
        self, shard: Shard, numbers: Sequence[int], at: int | None
    ) -> Iterator[ShownRecord]:
        """The records with these numbers. If `at` is given, all records from the number `at` on.
        The record with the number `at` must be undamaged.
        """
        if not numbers and at is None:
            return
        index = index_of(shard)
        with Records(shard.path, storage=shard.storage, name=shard.name) as records:
            if at is not None:
                numbers = range(len(records))[records.number(at) :]
            for number in numbers:
                if number >= len(records):
                    continue
                offset, length = int(records.offsets[number]), int(records.lengths[number])
                try:
                    payload = records[number] if length <= HOLD_LIMIT else None
                except DamagedRecordError as error:
                    if at is not None and number == numbers[0]:
                        raise
                    reason = error.message.rpartition("is damaged: ")[2]
                    self._pass_over(shard, number, offset, reason)
                    continue
                yield shown_record(shard, index, (number, offset, length), payload, self.decoders)


def shown_record(
    shard: Shard,
    index: Index | None,
    place: tuple[int, int, int],
    payload: bytes | None,
    decoders: Decoders,
) -> ShownRecord:
    number, offset, length = place
    found = decode_or_none(payload) if payload is not None else None
    kind = kind_of(payload, 0, length, found) if payload is not None else None
    example = found if kind is PayloadKind.EXAMPLE else None
    values = partial(words, decoders=decoders)
    features = tuple(
        ShownFeature(
            name=safe(name),
            kind=feature.kind.name.lower(),
            count=feature.count,
            shown=words(feature, decoders, name),
        )
        for name, feature in sorted((example or {}).items())
    )
    start = ""
    if payload is None:
        start = f"{si_bytes(length)}, too large to be shown"
    elif example is None:
        start = hex_start(payload)
    return ShownRecord(
        shard=safe(shard.name),
        record=number,
        offset=offset,
        length=length,
        key=safe(index.key(number)) if index is not None and number < len(index) else None,
        features=features if example is not None else None,
        start=start,
        payload=kind.value if kind is not None else None,
        parts=describe_payload(payload, kind, values) if payload is not None else (),
        images=tuple(images_in(example, decoders)) if example is not None else (),
        example=example,
    )


_SUFFIXES = {"bmp": ".bmp", "gif": ".gif", "jpeg": ".jpg", "png": ".png", "webp": ".webp"}
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_PART = 80
"""Maximum number of characters that a file name takes from the name of a shard or feature."""


def save_images(
    records: Iterable[ShownRecord], folder: str | os.PathLike[str]
) -> Iterator[ShownRecord]:
    """Write the images of each record into `folder`, and yield the record.

    The bytes are written unchanged, as ``<shard>-<record>-<feature>.<suffix>``. The suffix follows
    from the format of the bytes. In the names of shard and feature, all characters other than
    letters, digits, `.`, `_` and `-` become `_`.
    """
    storage = LocalStorage(folder)
    used: set[str] = set()
    for record in records:
        saved = []
        for image in record.images:
            suffix = _SUFFIXES.get(image.format, f".{_plain(image.format)}")
            shard = _plain(record.shard.rpartition("/")[2])
            value = f"-{image.value}" if image.value else ""
            stem = f"{shard}-{record.record}-{_plain(image.feature)}{value}"
            name, number = stem + suffix, 1
            # After the replacement names may be equal, and some file systems ignore case.
            while name.lower() in used:
                number += 1
                name = f"{stem}~{number}{suffix}"
            used.add(name.lower())
            path = f"{storage.root}/{name}"
            if not storage.put_if_absent(name, image.data):
                raise UsageError(f"`{path}` was not written, because this file exists already")
            saved.append(path)
        yield replace(record, saved=tuple(saved))


def _plain(name: str) -> str:
    """The name without characters that a shell, a file system or a path could misinterpret."""
    return _STRANGE.sub("_", name)[:_PART].lstrip(".-") or "_"
