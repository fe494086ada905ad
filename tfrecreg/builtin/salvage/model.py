"""The result of a salvage: of each stretch that was cut out, of each shard, and in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tfrecreg._version import __version__
from tfrecreg.core.registry.manifest.salvaged import SALVAGE_FORMAT, SALVAGE_KIND
from tfrecreg.core.values.text import ShortRepr

ShardStatus = Literal["sound", "salvaged", "refused", "missing", "unreadable"]
"""``sound``: nothing is wrong, the clean file has the same bytes. ``salvaged``: the clean file is
what was left. ``refused``: it is not a TFRecord. Of the last three there is no clean file."""

What = Literal[
    "header",
    "record",
    "stretch",
    "trailing bytes",
    "gzip member",
    "unknown record",
    "doubtful records",
]
"""``header``: the 12 bytes in front of a record that was repaired. ``record``: exactly one.
``stretch``: at least one record. ``gzip member``: damage to the compressed file. ``unknown
record``: after damage, and none of the shard's: a copy that damaged gzip made, or a record out of
the payload of another. ``doubtful records``: they may be of the payload of a lost one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Consecutive bytes of the quarantine, and where they were."""

    offset: int
    """Offset in the quarantine."""
    length: int
    of: Literal["stream", "file"]
    """Whether these are bytes of the decompressed stream, or of the compressed file as stored."""
    at: int
    """Offset in the original."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One stretch of the original that is not in the clean shard as it was."""

    code: str
    """Code of the finding that `check` reports for it."""
    what: What
    offset: int
    """Byte of the decompressed stream where it starts."""
    length: int
    """Bytes of the decompressed stream; 0 where damaged gzip cost none."""
    record: int | None
    """Number of the record in its shard, from 0, where that is known."""
    lost: int
    """Number of records lost with it; 1 if unknown."""
    exact: bool
    """Whether `lost` is known."""
    detail: str
    """Expected against found."""
    quarantined: tuple[Piece, ...]
    """Pieces of the quarantine that hold its bytes, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file with size and digest."""

    path: str
    """Path of the original as the user would write it; for other files, relative to the new
    folder.
    """
    bytes: int
    blake3: str
    """Hex digest."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShardResult(ShortRepr):
    """What became of one shard."""

    name: str
    """Its file name, and that of the clean shard."""
    status: ShardStatus
    reason: str = ""
    """Reason that there is no clean file, or that the index was not usable; else empty."""
    compression: str = ""
    """``none`` or ``gzip``; empty where it was not read."""
    kept: int = 0
    """Records that are in the clean shard byte for byte."""
    repaired: int = 0
    """Records whose length or its checksum was damaged and whose data checksum holds: in the
    clean shard with a right header."""
    lost: int = 0
    """Records that are not in the clean shard; each stretch of unknown content counts as one."""
    exact: bool = True
    """Whether that is the number of records."""
    unproven: int = 0
    """Number of kept records from damaged gzip that no index verifies."""
    doubtful: int = 0
    """Records with valid checksums that are in a file of their own, not in the clean shard: they
    may come from inside the payload of a lost record, or be repeated by damaged gzip."""
    lost_keys: tuple[str, ...] | None = None
    """Keys of the lost records, in order; None without an index."""
    original: StoredFile | None = None
    """None where it could not be read."""
    clean: StoredFile | None = None
    quarantine: StoredFile | None = None
    """None where nothing was cut out."""
    doubts: StoredFile | None = None
    """The file of the doubtful records; None without any."""
    cuts: tuple[Cut, ...] = ()
    """Cuts in order of the stream; the first 10,000."""
    cuts_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SalvageResult(ShortRepr):
    """What `tfrecreg salvage` did."""

    target: str
    """Target as the user named it."""
    output: str
    """The new folder, an absolute path; empty where there was nothing to salvage."""
    passed: int
    """Shards of references that match their manifest, which were not examined further."""
    shards: tuple[ShardResult, ...]

    @property
    def kept(self) -> int:
        """Records kept in all shards."""
        return sum(shard.kept for shard in self.shards)

    @property
    def repaired(self) -> int:
        """Records repaired in all shards."""
        return sum(shard.repaired for shard in self.shards)

    @property
    def lost(self) -> int:
        """Records lost in all shards, or the least number of them."""
        return sum(shard.lost for shard in self.shards)

    @property
    def exact(self) -> bool:
        """Whether `lost` is the number, not the least."""
        return all(shard.exact for shard in self.shards)

    @property
    def damaged(self) -> bool:
        """Whether anything was wrong: then the folder is marked, and the gate refuses it."""
        return any(shard.status != "sound" for shard in self.shards)

    @property
    def exit_code(self) -> int:
        """0: written; 1: a shard is not a TFRecord; 3: a shard could not be read."""
        found = {shard.status for shard in self.shards}
        return 3 if "unreadable" in found else 1 if "refused" in found else 0

    def report(self) -> dict[str, Any]:
        """The document that is written as ``salvage.json``; the same wherever the folder is."""
        return {
            "kind": SALVAGE_KIND,
            "format_version": SALVAGE_FORMAT,
            "tfrecreg": __version__,
            "target": self.target,
            "damaged": self.damaged,
            "summary": {
                "shards": len(self.shards),
                "kept": self.kept,
                "repaired": self.repaired,
                "lost": self.lost,
                "exact": self.exact,
            },
            "shards": [asdict(shard) for shard in self.shards],
        }

    def to_json(self) -> dict[str, Any]:
        """The report, with its path and the skipped shards."""
        return {**self.report(), "output": self.output, "passed": self.passed}


MOST_CUTS = 10_000
"""Maximum number of cuts listed per shard; all of them are counted and quarantined."""


class Cuts:
    """Cuts so far."""

    def __init__(self) -> None:
        self.listed: list[Cut] = []
        """The first :data:`MOST_CUTS`, in order of the stream."""
        self.total = 0
        """Total number of cuts."""
        self.lost = 0
        """Number of lost records, counted from the cuts."""
        self.exact = True
        """Whether that is the number, not the least."""

    def add(
        self,
        code: str,
        what: What,
        where: tuple[int, int],
        record: int | None,
        lost: int,
        exact: bool,
        detail: str,
        pieces: Sequence[Piece],
    ) -> None:
        """Add one. The arguments are the fields of a :class:`Cut`; `where`: offset and length."""
        self.total += 1
        self.lost += lost
        self.exact = self.exact and exact
        if len(self.listed) < MOST_CUTS:
            self.listed.append(
                Cut(
                    code=code,
                    what=what,
                    offset=where[0],
                    length=where[1],
                    record=record,
                    lost=lost,
                    exact=exact,
                    detail=detail,
                    quarantined=tuple(_joined(pieces)),
                )
            )


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Fewer pieces: those that follow each other in the original as in the quarantine are one."""
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1] if found else None
        if before and before.of == piece.of and before.at + before.length == piece.at:
            length = before.length + piece.length
            found[-1] = Piece(offset=before.offset, length=length, of=piece.of, at=before.at)
        else:
            found.append(piece)
    return found
