"""Proves that an epoch handed out every record exactly once, and finds what is left of an epoch.

A certificate is the multiset of the digests of the consumed records. So their order does not
matter, and hosts can merge their certificates. A certificate is compared with the digests in the
indexes: equal records have equal digests.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

DIGEST_FEATURE = "record/digest"
"""The feature that holds the digest in elements: uint8, shape (16,)."""
KEY_FEATURE = "record/key"
"""The feature that holds the keys of records in a batch."""

_MAGIC = b"TFRCERT1"
_IDENTITY_BYTES = 32
_SHOWN = 20

RecordDigests = npt.NDArray[np.void]


class RecordName(NamedTuple):
    """Names a record in reports. Strings are escaped."""

    shard: str
    record: int
    """Number of the record in the shard."""
    key: str | None
    """Key of the record; None if no index has it."""

    def __str__(self) -> str:
        key = "" if self.key is None else f", key `{self.key}`"
        return f"record {self.record} of `{self.shard}`{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochReport:
    """The records that an epoch handed out, compared with the records of the source."""

    name: str
    """The name of the source, escaped."""
    expected: int
    """Number of records of the source."""
    handed_out: int
    missed: int
    """Number of records that were not handed out."""
    doubled: int
    """How many times records were handed out again."""
    foreign: int
    """Number of records handed out that are not in the source."""
    missed_records: tuple[RecordName, ...] = ()
    """The first 20 missed records."""
    doubled_records: tuple[RecordName, ...] = ()
    """The first 20 doubled records. Each is listed once."""

    @property
    def is_complete(self) -> bool:
        """Whether every record was handed out exactly once, without any foreign record."""
        return not (self.missed or self.doubled or self.foreign)

    def __str__(self) -> str:
        if self.is_complete:
            return f"all {self.expected:,} records of {self.name}, each once"
        lines = [
            f"{self.handed_out:,} handed out for {self.expected:,} records of {self.name}: "
            f"{self.missed:,} missed, {self.doubled:,} doubled, {self.foreign:,} foreign"
        ]
        lines += [f"missed: {each}" for each in self.missed_records]
        lines += [f"doubled: {each}" for each in self.doubled_records]
        return "\n".join(lines)


def digest_of(payload: bytes) -> npt.NDArray[np.uint8]:
    """The digest of a payload, in the form that elements hold: uint8 of shape (16,)."""
    found = np.frombuffer(record_digest(canonical(payload)), np.uint8)
    digest: npt.NDArray[np.uint8] = found.copy()
    return digest


class Certificate:
    """The digests of all records that were handed out. `DataSource.certificate` makes an empty one.

    Args:
        identity: the identity of the source.

    Example:
        >>> source = reg["mnist@1.0.0"].data_source("train", with_digest=True)
        >>> hosts = [source.certificate(), source.certificate()]
        >>> for number, batch in enumerate(source.batches(64)):
        ...     hosts[number % 2].add(batch["record/digest"])
        >>> received = tr.Certificate.from_bytes(hosts[1].to_bytes())
        >>> hosts[0].merge(received)
        >>> source.report(hosts[0]).is_complete
        True
    """

    def __init__(self, identity: str) -> None:
        self.identity = identity
        """The identity of the source or the mixture."""
        self._digests = bytearray()

    @property
    def digests(self) -> npt.NDArray[np.uint8]:
        """The digests, shape (n, 16)."""
        return np.frombuffer(bytes(self._digests), np.uint8).reshape(-1, DIGEST_BYTES)

    def __len__(self) -> int:
        """How many records were handed out."""
        return len(self._digests) // DIGEST_BYTES

    def add(self, digests: Any) -> None:
        """Add records that were handed out.

        Args:
            digests: the values of ``record/digest`` of one or more elements, uint8 of shape
                (…, 16): an array, or what NumPy converts to one, such as a tensor of PyTorch.

        Raises:
            UsageError: they are not of that type or shape.
        """
        array = np.asarray(digests)
        if not array.size:  # an empty list has no type
            return
        if array.dtype != np.uint8 or array.ndim < 1 or array.shape[-1] != DIGEST_BYTES:
            raise UsageError(
                f"digests should be uint8 of shape (…, {DIGEST_BYTES}), found {array.dtype} of "
                f"shape {array.shape}"
            )
        self._digests += np.ascontiguousarray(array).tobytes()

    def add_payloads(self, payloads: Iterable[bytes]) -> None:
        """Add payloads that were handed out by a source with ``raw=True``.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train", raw=True)
            >>> certificate = source.certificate()
            >>> certificate.add_payloads(source[:50])
            >>> certificate.add_payloads(source[50:])
            >>> source.report(certificate).is_complete
            True
        """
        for payload in payloads:
            self._digests += record_digest(canonical(payload))

    def merge(self, other: Certificate) -> None:
        """Add the certificate of another host for the same epoch.

        Raises:
            UsageError: the other certificate is about another source, or is this one.
        """
        if other is self:
            raise UsageError("a certificate cannot be merged with itself")
        if other.identity != self.identity:
            raise UsageError("the certificates are about different records")
        self._digests += other._digests

    def to_bytes(self) -> bytes:
        """The certificate as bytes, to store it in a file or send it to another host."""
        return _MAGIC + self.identity.encode("ascii") + bytes(self._digests)

    @classmethod
    def from_bytes(cls, data: bytes) -> Certificate:
        """The inverse of :meth:`to_bytes`.

        Raises:
            UsageError: the bytes are not a certificate.
        """
        start = len(_MAGIC) + _IDENTITY_BYTES
        whole = len(data) >= start and not (len(data) - start) % DIGEST_BYTES
        if not data.startswith(_MAGIC) or not whole:
            raise UsageError(
                f"{len(data)} bytes that begin with {data[:8].hex() or 'nothing'} are not a "
                "certificate"
            )
        found = cls(data[len(_MAGIC) : start].decode("ascii", "replace"))
        found._digests += data[start:]
        return found

    def _report(
        self,
        name: str,
        identity: str,
        digests: npt.NDArray[np.uint8],
        named: Callable[[int], RecordName],
    ) -> EpochReport:
        """Compare the certificate with the records of a source. `digests` contains the digests of
        these records, and has the shape (records, 16).
        """
        if identity != self.identity:
            raise UsageError(
                f"the certificate is not about the records of `{name}`: its identity is "
                f"`{self.identity}`, but these records have `{identity}`"
            )
        expected = digest_rows(digests)
        found = digest_rows(self.digests)
        kinds, inverse = np.unique(np.concatenate((expected, found)), return_inverse=True)
        wanted = np.bincount(inverse[: len(expected)], minlength=len(kinds))
        given = np.bincount(inverse[len(expected) :], minlength=len(kinds))
        known = wanted > 0
        missing = np.where(known, np.maximum(wanted - given, 0), 0)
        surplus = np.where(known, np.maximum(given - wanted, 0), 0)
        places = inverse[: len(expected)]
        return EpochReport(
            name=name,
            expected=len(expected),
            handed_out=len(found),
            missed=int(missing.sum()),
            doubled=int(surplus.sum()),
            foreign=int(given[~known].sum()),
            missed_records=record_names(places, missing, named),
            doubled_records=record_names(places, np.minimum(surplus, 1), named),
        )


def digest_rows(digests: npt.NDArray[np.uint8]) -> RecordDigests:
    """Digests of shape (n, 16) as values that can be sorted."""
    # Two numbers rather than 16 characters: NumPy strips trailing NULs from strings.
    pair = np.dtype([("high", ">u8"), ("low", ">u8")])
    return np.ascontiguousarray(digests).reshape(-1, DIGEST_BYTES).view(pair).reshape(-1)


def record_names(
    places: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], named: Callable[[int], RecordName]
) -> tuple[RecordName, ...]:
    """The names of records whose digest has a count above 0: at most :data:`_SHOWN` names, in the
    order of the records. `counts` limits how many records with the same digest are named."""
    found: list[RecordName] = []
    left: dict[int, int] = {}
    for position in np.flatnonzero(counts[places] > 0).tolist():
        kind = int(places[position])
        rest = left.setdefault(kind, int(counts[kind]))
        if rest:
            left[kind] = rest - 1
            found.append(named(position))
            if len(found) == _SHOWN:
                break
    return tuple(found)


class Stage:
    """The unconsumed places of a sequence, numbered again from 0."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = tuple(counts)
        """How many places each host has consumed."""
        # In row r of the dealt places, host h has place h + hosts * r. Its rows from counts[h] on
        # are left. So all rows between two successive counts lack the same hosts.
        self._rows = sorted(set(self.counts))
        lengths = [
            (end - start) * sum(count <= start for count in self.counts)
            for start, end in pairwise(self._rows)
        ]
        self._starts = np.array([0, *accumulate(lengths)], np.int64)

    @property
    def consumed(self) -> int:
        """How many places are consumed."""
        return sum(self.counts)

    @property
    def is_prefix(self) -> bool:
        """Whether the consumed places are the first ones of the sequence."""
        total, hosts = self.consumed, len(self.counts)
        return all(count == share(total, host, hosts) for host, count in enumerate(self.counts))

    def places(self, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Convert places in the unconsumed part to places in the whole sequence."""
        hosts = len(self.counts)
        parts = np.searchsorted(self._starts, left, side="right") - 1
        found = np.empty_like(left)
        for part in np.unique(parts):
            chosen = parts == part
            first = self._rows[part]
            there = np.array(
                [host for host, count in enumerate(self.counts) if count <= first], np.int64
            )
            row, column = np.divmod(left[chosen] - self._starts[part], len(there))
            found[chosen] = (first + row) * hosts + there[column]
        return found


def share(places: int, host: int, hosts: int, drop_remainder: bool = False) -> int:
    """The number of places that one host gets. If `drop_remainder` is true, all hosts get the same
    number.
    """
    return places // hosts if drop_remainder else -(-(places - host) // hosts)


def integer_of(name: str, value: Any) -> int:
    """Convert an integer of Python or NumPy to an int, for JSON. Refuse anything else."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UsageError(f"`{name}` should be an integer, found `{safe(repr(value), limit=100)}`")


def expect_host(host: int, hosts: int) -> None:
    """Refuse a host number that is not below `hosts`."""
    if hosts < 1 or not 0 <= host < hosts:
        raise UsageError(f"`host` should be from 0 to `hosts` - 1, found host {host} of {hosts}")


def expect_enough(records: int, hosts: int, name: str) -> None:
    """Refuse more hosts than there are records."""
    if integer_of("hosts", hosts) > max(1, records):
        raise UsageError(f"{records} records of `{name}` are too few for {hosts} hosts")


def joined(stages: Sequence[Stage], last: Stage) -> tuple[Stage, ...]:
    """The stages and `last`. Two successive prefixes are joined into one."""
    if not last.consumed:
        return tuple(stages)
    if not last.is_prefix:
        return (*stages, last)
    consumed = last.consumed
    if stages and len(stages[-1].counts) == 1:
        consumed += stages[-1].consumed
        stages = stages[:-1]
    return (*stages, Stage([consumed]))
