"""One shard: read once by the scanner, and written as a clean shard and a quarantine."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from tfrecreg.builtin.salvage.model import (
    CleanShard,
    HashingFile,
    Quarantine,
    ShardResult,
    ShardStatus,
    StoredFile,
    look,
)
from tfrecreg.builtin.salvage.original import IndexMatch, Original
from tfrecreg.builtin.salvage.work import ShardSalvage
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reader import Event, scan
from tfrecreg.core.records.stream import SNIFF_BYTES, sniff_compression
from tfrecreg.core.storage.interface import Reader, Storage
from tfrecreg.core.values.errors import StorageError, TfrecregError

QUARANTINE = ".quarantine"
"""Suffix of a shard's quarantine."""

DOUBTFUL = ".doubtful"
"""Suffix of the file with the doubtful records of a shard."""


def salvage_shard(shard: Shard, name: str, out: Storage) -> ShardResult:
    """Write the undamaged records of one shard, and the bytes that were cut out, into `out`."""
    index, reason = _read_index(shard)
    matches = IndexMatch(index) if index is not None else None
    clean, rest = HashingFile(out, name), HashingFile(out, name + QUARANTINE)
    apart = HashingFile(out, name + DOUBTFUL)
    try:
        with shard.storage.open(shard.path) as reader:
            intact, hints, trusted, doubts, refusal = _survey(shard, index, reader)
            if refusal:
                return ShardResult(name=name, status="refused", reason=refusal, exact=False)
            members = hints.members if hints is not None else ()
            original = Original(reader, declared=shard.declared, members=members)
            encoder: CleanShard | None = None
            doubtful: CleanShard | None = None
            if intact:
                for piece in original.file(0, reader.size):
                    clean.write(piece)
            else:
                # The clean shard's compression follows its name, even if the original's did not.
                gzip = original.compression == "gzip" or name.endswith(".gz")
                kind: Compression = shard.declared or ("gzip" if gzip else "none")
                encoder, doubtful = CleanShard(clean, kind), CleanShard(apart, kind)
            work = ShardSalvage(
                shard.name,
                original,
                encoder,
                Quarantine(rest),
                doubtful,
                matches,
                trusted=trusted,
                doubts=doubts,
            )
            with closing(_scan(shard, hints, digest=True)) as events:
                end = work.run(events)
        quarantine = rest.close() if rest.bytes else None
        doubted = apart.close() if work.doubtful else None
        return _shard_result(shard, work, end, matches, reason, clean.close(), quarantine, doubted)
    except StorageError as error:
        if clean.failed or rest.failed or apart.failed:
            raise
        return ShardResult(name=name, status="unreadable", reason=error.message, exact=False)
    finally:
        for file in (clean, rest, apart):
            # Drops unclosed files; the original error matters more than one about cleaning.
            with suppress(StorageError):
                file.abort()


def missing_shard(name: str, records: int, shard: Shard) -> ShardResult:
    """A shard that its manifest lists and that is not there; `shard` as if it were."""
    index, reason = _read_index(shard)
    keys = tuple(index.keys()) if index is not None else None
    return ShardResult(name=name, status="missing", reason=reason, lost=records, lost_keys=keys)


def _read_index(shard: Shard) -> tuple[Index | None, str]:
    if shard.index is None:
        return None, ""
    try:
        return load_index(shard.storage, shard.index), ""
    except TfrecregError as error:
        return None, f"the index is not usable: {error.message}"


def _scan(shard: Shard, hints: Index | None, *, digest: bool) -> Generator[Event, None, None]:
    return scan(
        shard.storage,
        shard.path,
        declared=shard.declared,
        digest=digest,
        known_offsets=hints.offsets() if hints is not None else None,
        members=hints.members if hints is not None else (),
    )


class _Survey(NamedTuple):
    """Facts about a shard before it is salvaged."""

    intact: bool
    """It is gzip without any damage: it is copied unchanged."""
    hints: Index | None
    """The index, if the places that it names help."""
    trusted: bool
    """The shard is damaged, and records outside of the index do not belong to it."""
    doubts: Sequence[tuple[int, int]] = ()
    """Stretches of the stream whose records may be inside the payload of a lost one."""
    refusal: str = ""
    """Reason that the file is not a TFRecord; empty if it is one."""


def _survey(shard: Shard, index: Index | None, reader: Reader) -> _Survey:
    """Look at a shard first, where there is anything to find out.

    An index says where records begin and knows nothing of bytes that were taken out or put in
    since. So both ways are tried, and the one that finds more of its records is the better one.
    """
    gzip = sniff_compression(reader.read_at(0, SNIFF_BYTES), shard.declared) == "gzip"
    with closing(_scan(shard, index, digest=False)) as events:
        found = look(events, reader)
    if found.refusal:
        return _Survey(False, None, False, (), found.refusal)
    if not found.damaged:
        return _Survey(gzip, index, False)
    if index is None:
        return _Survey(False, None, False, found.doubts)
    with_places = _match_all(shard, index, index, reader)[0]
    without, doubts = _match_all(shard, None, index, reader)
    if with_places.sure and with_places.known > without.known:
        return _Survey(False, index, True)
    return _Survey(False, None, without.sure, () if without.sure else doubts)


def _match_all(
    shard: Shard, hints: Index | None, index: Index, reader: Reader
) -> tuple[IndexMatch, list[tuple[int, int]]]:
    """Number of scanned records in the index and of others, and the doubtful stretches."""
    matches = IndexMatch(index)

    def meeting(events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, RecordBatch) and event.whole:
                matches.unknown += int((~matches.match(event.first, event.payloads())).sum())
            yield event

    with closing(_scan(shard, hints, digest=False)) as events:
        return matches, look(meeting(events), reader).doubts


def _shard_result(
    shard: Shard,
    work: ShardSalvage,
    end: StreamEnd,
    matches: IndexMatch | None,
    reason: str,
    clean: StoredFile,
    quarantine: StoredFile | None,
    doubts: StoredFile | None,
) -> ShardResult:
    original = StoredFile(path=shard.name, bytes=end.file_bytes, blake3=end.blake3 or "")
    lost, exact = work.cuts.lost, work.cuts.exact
    keys: tuple[str, ...] | None = None
    here = work.kept + work.repaired
    if matches is not None and matches.fits:
        keys = matches.lost()
        lost, exact = len(keys), matches.unknown == 0
    elif shard.entry is not None and here <= shard.entry.records:
        lost, exact = shard.entry.records - here, True
    if matches is not None and not matches.fits:
        reason = f"the index is that of another shard: it knows {matches.known} of {here} records"
    sound = not work.cuts.total and not lost and exact and clean.blake3 == original.blake3
    status: ShardStatus = "sound" if sound else "salvaged"
    return ShardResult(
        name=clean.path,
        status=status,
        reason=reason,
        compression=end.compression,
        kept=work.kept,
        repaired=work.repaired,
        lost=lost,
        exact=exact,
        unproven=work.unproven,
        doubtful=work.doubtful,
        lost_keys=keys,
        original=original,
        clean=clean,
        quarantine=quarantine,
        doubts=doubts,
        cuts=tuple(work.cuts.listed),
        cuts_total=work.cuts.total,
    )
