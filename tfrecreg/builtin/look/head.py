"""The first records of a target, or any one of them, for people to read.

The images of shown records as files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from itertools import chain, islice
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
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import TargetLike
from tfrecreg.core.registry.shardset.split_target import find_ranges, named_splits
from tfrecreg.core.registry.shardset.target import find_target
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
    """Values."""
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
    """Then its first bytes in hex, or how large it is."""
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
        """Its text by lines, each with its kind, a label and the rest: its place, what its payload
        is if it is no Example, and a row for each feature or part.
        """
        key = f", key {self.key}" if self.key is not None else ""
        place = f", record {self.record}, offset {self.offset}, {self.length:,} bytes{key}"
        yield "place", self.shard, place
        if self.features is not None:
            rows = [(each.name, _kind(each.kind, each.count), each.shown) for each in self.features]
        else:
            named = _NAMES.get(self.payload or "")
            if self.payload is None:
                yield "other", f"  {self.start}", ""
            elif named is not None:
                yield "other", f"  {named}", ""
            else:
                yield "other", "  not a tf.train.Example: ", self.start
            rows = [_part(each) for each in self.parts]
        names = max((len(name) for name, _, _ in rows), default=0)
        kinds = max((len(kind) for _, kind, _ in rows), default=0)
        for name, kind, shown in rows:
            yield "row", f"  {name:<{names}}  {kind:<{kinds}}", f"  {shown}"

    def _repr_html_(self) -> str:
        """Its place, its features and its images with their objects, for a notebook."""
        from tfrecreg.core.images.drawing import draw_over

        key = "" if self.key is None else f", key {self.key}"
        rows: Iterable[tuple[str, str, str]]
        if self.features is None:
            rows = ((part.name, part.kind, part.shown) for part in self.parts)
        else:
            rows = ((each.name, f"{each.kind} {each.count}", each.shown) for each in self.features)
        cells = ("<td>".join(map(escape, row)) for row in rows)
        return (
            f"<p><b>{escape(self.shard)}</b>, record {self.record}{escape(key)} "
            f"{escape(self.start)}</p><table>{''.join(f'<tr><td>{each}' for each in cells)}</table>"
            f"{''.join(draw_over(self.example, (each.thumbnail_html() for each in self.images)))}"
        )

    def to_json(self) -> dict[str, Any]:
        """The record as ``head --json`` has it: all but the bytes of images."""
        return {
            "shard": self.shard,
            "record": self.record,
            "offset": self.offset,
            "length": self.length,
            "key": self.key,
            "features": self.features,
            "start": self.start,
            "payload": self.payload,
            "parts": self.parts,
            "pictures": self.images,
            "saved": [safe(path, limit=1 << 16) for path in self.saved],
        }


_NAMES = {
    PayloadKind.SEQUENCE_EXAMPLE.value: "a tf.train.SequenceExample",
    PayloadKind.EVENT.value: "a TensorBoard event",
}
"""The names of known payloads that are not Examples."""


def _part(part: ShownPart) -> tuple[str, str, str]:
    """A row: part and name, kind, content."""
    name = f"{part.part} {part.name}" if part.name else part.part
    if part.part == "context":
        return name, _kind(part.kind, part.count), part.shown
    if part.part == "list":
        steps = counted(part.count, "step")
        return name, f"{steps} of {part.kind}" if part.kind else steps, part.shown
    return name, part.kind, part.shown


def _kind(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}[{count}]"


def head(
    target: Target | TargetLike,
    count: int = 5,
    *,
    registry: RegistryLike | None = None,
    at: int | None = None,
    shard: str | None = None,
    split: str | None = None,
    where: str | None = None,
    damage: list[PassedOver] | None = None,
    progress: Progress = SILENT,
) -> Iterator[ShownRecord]:
    """The first `count` records of a target, over its shards in order; or from any record on.

    Damaged records are skipped and listed in `damage`. But the record named by `at` has to be
    undamaged.
    """
    if count < 0:
        raise UsageError(
            f"expected a number of records of at least 0, found {count}", hint="`-n 5` shows five"
        )
    if not isinstance(target, Target):
        target = find_target(target, registry=registry)
    if not target.shards:
        raise UsageError(
            f"`{target.name}` has no shards to show", hint=f"tfrecreg check {target.name}"
        )
    if where is not None and at is not None:
        raise UsageError(
            "`--at` names a record by its number, and `--where` chooses records",
            hint="give one of them; `record >= 100` in the condition is about numbers",
        )
    passed = damage if damage is not None else []
    with _chosen(target, where, progress) as chosen:
        decoders = target_decoders(target)
        shards = target.shards
        if split is not None:
            by_split = _by_split(target, split)
            if "[" in split:
                if at is not None or shard is not None:
                    raise UsageError(
                        f"the numbers in `{safe(split)}` count the records of a split, "
                        f"{'`--at`' if at is not None else '`--shard`'} those of one shard",
                        hint=f"give one of them: --split '{safe(split)}'",
                    )
                parts = _of_ranges(by_split, split, chosen, passed, decoders)
                yield from islice(parts, count)
                return
            shards = [each for found in by_split.values() for each in found]
        if shard is not None:
            shards = [_shard_named(target.name, shards, shard)]
        if at is not None:
            if len(shards) > 1:
                raise UsageError(
                    f"`{target.name}` has {len(shards)} shards, and records are numbered in each",
                    hint=f"name one of them: --shard {safe(shards[0].name, limit=1000)}",
                )
            yield from islice(_records_from(shards[0], at, passed, decoders), count)
            return
        if chosen is not None:
            found = (_numbered(each, chosen[_place(each)], passed, decoders) for each in shards)
            yield from islice(chain.from_iterable(found), count)
            return
        left = count
        for each in shards:
            if left <= 0:
                return
            for record in _records(each, left, passed, decoders):
                yield record
                left -= 1


@contextmanager
def _chosen(
    target: Target, where: str | None, progress: Progress
) -> Iterator[dict[tuple[str, int], Sequence[int]] | None]:
    """The records of each shard for which a condition holds; None without one."""
    if where is None:
        yield None
        return
    with chosen_records(target, where, progress=progress) as numbers:
        shards = zip(target.shards, numbers, strict=True)
        yield {_place(shard): each.tolist() for shard, each in shards}


def _place(shard: Shard) -> tuple[str, int]:
    return shard.split, shard.number


def _by_split(target: Target, words: str) -> dict[str, list[Shard]]:
    """The shards of the splits that an expression names, in its order."""
    by_split: dict[str, list[Shard]] = {}
    for each in target.shards:
        by_split.setdefault(each.split, []).append(each)
    if list(by_split) == [""]:  # the names of the files say no split: every one fits
        return {words.partition("[")[0].strip(): by_split[""]}
    names = [name for name in by_split if name]
    return {name: by_split[name] for name in named_splits(words, names, target.name)}


def _of_ranges(
    by_split: Mapping[str, Sequence[Shard]],
    words: str,
    chosen: Mapping[tuple[str, int], Sequence[int]] | None,
    passed: list[PassedOver],
    decoders: Decoders,
) -> Iterator[ShownRecord]:
    """The records of an expression with bounds."""
    counts = {name: list(map(_count, shards)) for name, shards in by_split.items()}
    for name, numbers in find_ranges(words, counts):
        start = 0
        for shard, held in zip(by_split[name], counts[name], strict=True):
            first, stop = max(numbers.start - start, 0), min(numbers.stop - start, held)
            start += held
            inside: Sequence[int] = range(first, stop)
            if chosen is not None:
                inside = [each for each in chosen[_place(shard)] if each in inside]
            if inside:
                yield from _numbered(shard, inside, passed, decoders)


def _count(shard: Shard) -> int:
    if shard.entry is not None:
        return shard.entry.records
    with Records(shard.path, storage=shard.storage, name=shard.name) as records:
        return len(records)


def _shard_named(target: str, shards: Sequence[Shard], name: str) -> Shard:
    found = [each for each in shards if each.name == name]
    found = found or [each for each in shards if each.name.rpartition("/")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"`{target}` has {len(found)} shards `{safe(name)}`",
            hint=f"name one with its folder: --shard {safe(found[0].name, limit=1000)}",
        )
    names = [each.name.rpartition("/")[2] for each in shards]
    raise UsageError(
        f"`{target}` has no shard `{safe(name)}`{did_you_mean(name, names)}",
        hint=f"available: {listed(names)}",
    )


def _records(
    shard: Shard, most: int, passed: list[PassedOver], decoders: Decoders
) -> Iterator[ShownRecord]:
    """The first ones, as the scanner delivers them."""
    index = index_of(shard)
    seen = 0
    for event in scan(shard.storage, shard.path, declared=shard.declared):
        if isinstance(event, Fault) and event.code == "CRC008":
            raise NoShardsError(
                f"`{safe(shard.name)}` is not a TFRecord: {event.detail}",
                hint=f"tfrecreg check {safe(shard.name)}",
                place=shard.name,
            )
        if isinstance(event, Fault):
            reason = f"{event.code}: {event.detail}"
            passed.append(_passed(shard, event.record, event.offset, reason))
        if not isinstance(event, RecordBatch):
            continue
        for position in range(len(event)):
            if seen == most:
                return
            seen += 1
            place = event.first + position, event.offsets[position], event.lengths[position]
            payload = event.payload(position) if event.whole else None
            yield shown_record(shard, index, place, payload, decoders)


def _passed(shard: Shard, record: int | None, offset: int, reason: str) -> PassedOver:
    return PassedOver(shard=safe(shard.name), record=record, offset=offset, reason=reason)


def _records_from(
    shard: Shard, at: int, passed: list[PassedOver], decoders: Decoders
) -> Iterator[ShownRecord]:
    """Records from number `at` on, which has to be sound, found without reading those before."""
    with Records(shard.path, storage=shard.storage, name=shard.name) as records:
        numbers = range(len(records))[records.number(at) :]
        yield from _read(shard, records, numbers, passed, decoders, strict=True)


def _numbered(
    shard: Shard, numbers: Sequence[int], passed: list[PassedOver], decoders: Decoders
) -> Iterator[ShownRecord]:
    """The records with these numbers, of which those that the shard has are read."""
    if not numbers:
        return
    with Records(shard.path, storage=shard.storage, name=shard.name) as records:
        held = [each for each in numbers if each < len(records)]
        yield from _read(shard, records, held, passed, decoders)


def _read(
    shard: Shard,
    records: Records,
    numbers: Sequence[int],
    passed: list[PassedOver],
    decoders: Decoders,
    *,
    strict: bool = False,
) -> Iterator[ShownRecord]:
    """Records by number."""
    index = index_of(shard)
    for number in numbers:
        length = int(records.lengths[number])
        try:
            payload = records[number] if length <= HOLD_LIMIT else None
        except DamagedRecordError as error:
            if strict and number == numbers[0]:
                raise
            reason = error.message.rpartition("is damaged: ")[2]
            passed.append(_passed(shard, number, int(records.offsets[number]), reason))
            continue
        yield shown_record(
            shard, index, (number, int(records.offsets[number]), length), payload, decoders
        )


def shown_record(
    shard: Shard,
    index: Index | None,
    place: tuple[int, int, int],
    payload: bytes | None,
    decoders: Decoders,
) -> ShownRecord:
    """One record."""
    number, offset, length = place
    found = decode_or_none(payload) if payload is not None else None
    kind = kind_of(payload, 0, length, found) if payload is not None else None
    example = found if kind is PayloadKind.EXAMPLE else None
    values = partial(words, decoders=decoders)
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
        features=_features(example, decoders) if example is not None else None,
        start=start,
        payload=kind.value if kind is not None else None,
        parts=describe_payload(payload, kind, values) if payload is not None else (),
        images=tuple(images_in(example, decoders)) if example is not None else (),
        example=example,
    )


def _features(example: Example, decoders: Decoders) -> tuple[ShownFeature, ...]:
    return tuple(
        ShownFeature(
            name=safe(name),
            kind=feature.kind.name.lower(),
            count=feature.count,
            shown=words(feature, decoders, name),
        )
        for name, feature in sorted(example.items())
    )


_SUFFIXES = {"bmp": ".bmp", "gif": ".gif", "jpeg": ".jpg", "png": ".png", "webp": ".webp"}
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_PART = 80
"""Characters of a shard's or a feature's name in a file's."""


def save_images(
    records: Iterable[ShownRecord], folder: str | os.PathLike[str]
) -> Iterator[ShownRecord]:
    """Write the images of each record into `folder`, and hand the record on.

    The bytes are written unchanged, as ``<shard>-<record>-<feature>.<suffix>``. The suffix is that
    of the format that the bytes have; what other characters than letters, digits, `.`, `_` and `-`
    there are in the names of shard and feature becomes `_`.
    """
    storage = LocalStorage(folder)
    used: set[str] = set()
    for record in records:
        saved = []
        for image in record.images:
            suffix = _SUFFIXES.get(image.format, f".{_plain(image.format)}")
            name = _free(_name(record, image), suffix, used)
            path = f"{storage.root}/{name}"
            if not storage.put_if_absent(name, image.data):
                raise UsageError(
                    f"`{safe(path, limit=1000)}` exists already, and nothing is overwritten",
                    hint="name a folder that is new or empty with `--save`",
                )
            saved.append(path)
        yield replace(record, saved=tuple(saved))


def _name(record: ShownRecord, image: ShownImage) -> str:
    shard = _plain(record.shard.rpartition("/")[2])
    value = f"-{image.value}" if image.value else ""
    return f"{shard}-{record.record}-{_plain(image.feature)}{value}"


def _plain(name: str) -> str:
    """Nothing that a shell, a file system or a path could take for something else."""
    return _STRANGE.sub("_", name)[:_PART].lstrip(".-") or "_"


def _free(stem: str, suffix: str, used: set[str]) -> str:
    """A name that this call has not used: replacing characters may make names equal."""
    name, number = stem + suffix, 1
    # Some file systems ignore case.
    while name.lower() in used:
        number += 1
        name = f"{stem}~{number}{suffix}"
    used.add(name.lower())
    return name
