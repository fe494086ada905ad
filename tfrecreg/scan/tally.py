"""Counting what was found, shard by shard, so that counts are exact and locations bounded."""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec
from blake3 import blake3

from tfrecreg.findings import MAX_LOCATIONS, Code, Finding, Location, fingerprint
from tfrecreg.records.batch import RecordBatch
from tfrecreg.scan.interface import Part, Shard


class _Group(NamedTuple):
    code: str
    split: str
    feature: str
    subject: str
    message: str


class TallyRow(NamedTuple):
    """One group of a tally as plain data."""

    code: str
    split: str
    feature: str
    subject: str
    message: str
    times: int
    locations: list[Location]


class _Seen:
    """How often, and the first places in order of split, shard and record."""

    __slots__ = ("code", "count", "locations")

    def __init__(self, code: Code) -> None:
        self.code = code
        self.count = 0
        self.locations: list[Location] = []

    def place(self, location: Location) -> None:
        places = self.locations
        if not places or places[-1].order() <= location.order():
            if len(places) < MAX_LOCATIONS:  # as good as always: occurrences come in order
                places.append(location)
            return
        insort(places, location, key=Location.order)
        del places[MAX_LOCATIONS:]


class Tally:
    """Occurrences, grouped into the findings that they will become. Picklable and mergeable.

    A group is one finding: everything with the same code, split, feature, subject and message.
    Memory is bounded by the number of groups, never by the number of occurrences, so a message
    says what all of its occurrences have in common and the rest goes to `Location.detail`.

    Occurrences may be added, and tallies merged, in any order: counts and locations come out the
    same.
    """

    def __init__(self) -> None:
        self._groups: dict[_Group, _Seen] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(
        self,
        code: Code,
        message: str,
        location: Location | None,
        *,
        split: str = "",
        feature: str = "",
        subject: str = "",
        count: int = 1,
    ) -> None:
        """Count one occurrence.

        Args:
            code: what it is.
            message: one line, the same for every occurrence of the group.
            location: where; None where there is no more to say than the group does.
            split: the split that the finding is about, empty for none.
            feature: the feature, empty for none.
            subject: the key or the shard that the finding is about, empty for none.
            count: how many occurrences this stands for.
        """
        group = _Group(code.code, split, feature, subject, message)
        seen = self._groups.get(group)
        if seen is None:
            seen = self._groups[group] = _Seen(code)
        seen.count += count
        if location is not None:
            seen.place(location)

    def add_record(
        self,
        shard: Shard,
        batch: RecordBatch,
        position: int,
        code: Code,
        feature: str,
        message: str,
        detail: str | None,
    ) -> None:
        """Count one occurrence in a record; the finding is about the split of its shard.

        Args:
            shard: where the batch comes from.
            batch: has the record.
            position: of the record in the batch, from 0.
            code: what it is.
            feature: the feature, empty for none.
            message: one line, the same for every occurrence of the group.
            detail: expected against found; escaped.
        """
        place = shard.locate(batch, position, feature=feature or None, detail=detail)
        self.add(code, message, place, split=shard.split, feature=feature)

    def merge(self, other: Tally) -> None:
        """Take in what was counted elsewhere."""
        for group, theirs in other._groups.items():
            ours = self._groups.get(group)
            if ours is None:
                ours = self._groups[group] = _Seen(theirs.code)
            ours.count += theirs.count
            for location in theirs.locations:
                ours.place(location)

    def rows(self) -> list[TallyRow]:
        """All of it as plain data."""
        return [
            TallyRow(*group, seen.count, seen.locations) for group, seen in self._groups.items()
        ]

    @classmethod
    def of_rows(cls, rows: Iterable[TallyRow], codes: Iterable[Code]) -> Tally:
        """The tally that :meth:`rows` gave.

        Args:
            rows: each of its groups.
            codes: those that may be in it.

        Raises:
            ValueError: one has a code that is not among them, or could not have come from a tally.
        """
        known = {code.code: code for code in codes}
        tally = cls()
        for row in rows:
            group = _Group(*row[:5])
            if row.code not in known or row.times < 1 or not row.message.isprintable():
                raise ValueError(f"no tally has the row {group!r}")
            seen = tally._groups[group] = _Seen(known[row.code])
            seen.count = row.times
            for location in row.locations:
                seen.place(location)
        return tally

    def findings(self, dataset: str) -> Iterator[Finding]:
        """The findings, in order of code, split, feature, subject and message."""
        for group in sorted(self._groups):
            seen = self._groups[group]
            yield Finding(
                code=group.code,
                rule=seen.code.rule,
                severity=seen.code.severity,
                message=group.message,
                hint=seen.code.hint,
                fingerprint=fingerprint(
                    group.code,
                    dataset=dataset,
                    split=group.split,
                    feature=group.feature,
                    subject=group.subject,
                ),
                count=seen.count,
                locations=tuple(seen.locations),
            )


class Plain(Protocol):
    """A class of one's own that may be in a part: it knows itself as plain data."""

    plain_type: ClassVar[Any]
    """The type of that data, as an annotation would have it."""

    def plain(self) -> Any:
        """All of it."""

    @classmethod
    def of_plain(cls, plain: Any) -> Any:
        """Made again. Raises ValueError for data that it would not have given."""


class JsonCodec:
    """Parts of one type: a dataclass or a named tuple of plain data, tallies and :class:`Plain`.

    A part is read strictly by its type, so bytes of another version that has other fields are no
    part. Texts that are not UTF-8 (names of files with surrogate escapes) cannot be packed: that
    is a UnicodeEncodeError.

    Args:
        part: the type, its fields annotated.
        codes: of the findings in its tallies.
    """

    def __init__(self, part: Any, codes: Sequence[Code] = ()) -> None:
        self._part = part
        self._codes = tuple(codes)

    def pack(self, part: Part) -> bytes:
        return msgspec.json.encode(part, enc_hook=_plain)

    def unpack(self, data: bytes) -> Part:
        return msgspec.json.decode(data, type=self._part, dec_hook=self._made)

    def _made(self, kind: Any, plain: Any) -> Any:
        if kind is Tally:
            return Tally.of_rows(msgspec.convert(plain, list[TallyRow]), self._codes)
        return kind.of_plain(msgspec.convert(plain, kind.plain_type))


def _plain(value: Any) -> Any:
    return value.rows() if isinstance(value, Tally) else value.plain()


def key_from(*texts: str | None, options: Mapping[str, Any] | None = None) -> str:
    """A `part_key`: the digest of some texts and of a validator's options."""
    plain = json.dumps([*texts, dict(options or {})], sort_keys=True, default=repr)
    return blake3(plain.encode("ascii")).hexdigest()
