"""Salvages one shard: scans it, and writes a clean shard and a quarantine."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress

from tfrecreg.builtin.salvage.model import (
    HashingFile,
    ShardDamage,
    ShardResult,
    ShardStatus,
    StoredFile,
    look,
)
from tfrecreg.builtin.salvage.original import IndexMatch, Original
from tfrecreg.builtin.salvage.work import ShardSalvage
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.records.gzip_writer import Compression, GzipEncoder
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reader import Event, scan
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
            hints, trusted, damage = _survey(shard, index, reader)
            if damage.refusal:
                return ShardResult(name=name, status="refused", reason=damage.refusal, exact=False)
            members = hints.members if hints is not None else ()
            original = Original(reader, declared=shard.declared, members=members)
            # The clean shard's compression follows its name, even if the original's did not.
            gzip = original.compression == "gzip" or name.endswith(".gz")
            kind: Compression = shard.declared or ("gzip" if gzip else "none")
            unchanged = not damage.damaged and original.compression == "gzip"
            if unchanged:
                for piece in original.file(0, reader.size):
                    clean.write(piece)
            elif kind == "gzip":
                clean.gzip, apart.gzip = GzipEncoder(), GzipEncoder()
            work = ShardSalvage(
                shard.name,
                original,
                None if unchanged else clean,
                rest,
                apart,
                matches,
                trusted=trusted,
                doubts=() if trusted else damage.doubts,
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
            # Deletes unfinished files; the original error matters more than a cleanup error.
            with suppress(StorageError):
                file.abort()


def missing_shard(shard: Shard) -> ShardResult:
    """The result for a missing shard of a manifest; `shard` describes it as if it existed."""
    assert shard.entry is not None
    index, reason = _read_index(shard)
    return ShardResult(
        name=shard.path,
        status="missing",
        reason=reason,
        lost=shard.entry.records,
        lost_keys=tuple(index.keys()) if index is not None else None,
    )


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


def _survey(
    shard: Shard, index: Index | None, reader: Reader
) -> tuple[Index | None, bool, ShardDamage]:
    """The index if its offsets help, whether only records in the index belong to the shard, and
    the damage.

    An index knows where records begin, but not which bytes were since removed or inserted. So a
    damaged shard is scanned with and without it. The scan that finds more of its records counts.
    """
    if index is None:
        with closing(_scan(shard, None, digest=False)) as events:
            return None, False, look(events, reader)
    hints = None
    seen, damage = _look(shard, None, index, reader)
    if damage.damaged or damage.refusal:
        seen_with_it, damage_with_it = _look(shard, index, index, reader)
        more = seen_with_it.sure and seen_with_it.known > seen.known
        if more or damage.refusal:
            hints, seen, damage = index, seen_with_it, damage_with_it
    return hints, damage.damaged and seen.sure, damage


def _look(
    shard: Shard, hints: Index | None, index: Index, reader: Reader
) -> tuple[IndexMatch, ShardDamage]:
    seen = IndexMatch(index)
    with closing(_scan(shard, hints, digest=False)) as events:
        return seen, look(_matching(events, seen), reader)


def _matching(events: Iterable[Event], matches: IndexMatch) -> Iterator[Event]:
    """Yield each event after comparing its records with the index."""
    for event in events:
        if isinstance(event, RecordBatch) and event.whole:
            matches.unknown += int((~matches.match(event.first, event.payloads())).sum())
        yield event


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
    lost, exact = work.lost, work.exact
    keys: tuple[str, ...] | None = None
    here = work.kept + work.repaired
    if matches is not None and matches.fits:
        keys = matches.lost()
        lost, exact = len(keys), matches.unknown == 0
    elif shard.entry is not None and here <= shard.entry.records:
        lost, exact = shard.entry.records - here, True
    if matches is not None and not matches.fits:
        reason = f"the index belongs to another shard: it has {matches.known} of {here} records"
    sound = not work.cuts_total and not lost and exact and clean.blake3 == original.blake3
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
        cuts=tuple(work.cuts),
        cuts_total=work.cuts_total,
    )
