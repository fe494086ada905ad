"""Salvages one shard: scans it, and writes a clean shard and a quarantine."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from tfrecreg.builtin.salvage.model import (
    CleanShard,
    HashingFile,
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
            intact, trusted, doubts, refusal = _survey(shard, index, reader)
            if refusal:
                return ShardResult(name=name, status="refused", reason=refusal, exact=False)
            original = Original(reader, declared=shard.declared)
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
                rest,
                doubtful,
                matches,
                trusted=trusted,
                doubts=doubts,
            )
            with closing(_scan(shard, digest=True)) as events:
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


def missing_shard(name: str, records: int, shard: Shard) -> ShardResult:
    """The result for a missing shard of a manifest; `shard` describes it as if it existed."""
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


def _scan(shard: Shard, *, digest: bool) -> Generator[Event, None, None]:
    return scan(shard.storage, shard.path, declared=shard.declared, digest=digest)


class _Survey(NamedTuple):
    """Facts about a shard, collected before it is salvaged."""

    intact: bool = False
    """Whether the shard is undamaged gzip. Such a shard is copied unchanged."""
    trusted: bool = False
    """Whether the index is trusted. If so, only records in the index belong to the damaged
    shard."""
    doubts: Sequence[tuple[int, int]] = ()
    """Ranges of the stream, as start and end. Records in them may come from inside a lost
    record."""
    refusal: str = ""
    """Why the file is not a TFRecord; empty if it is a TFRecord."""


def _survey(shard: Shard, index: Index | None, reader: Reader) -> _Survey:
    """Find out whether a shard is damaged, and whether the index belongs to it."""
    matches = IndexMatch(index) if index is not None else None

    def matching(events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if matches is not None and isinstance(event, RecordBatch) and event.whole:
                matches.unknown += int((~matches.match(event.first, event.payloads())).sum())
            yield event

    with closing(_scan(shard, digest=False)) as events:
        found = look(matching(events), reader)
    if found.refusal:
        return _Survey(refusal=found.refusal)
    if not found.damaged:
        compression = sniff_compression(reader.read_at(0, SNIFF_BYTES), shard.declared)
        return _Survey(intact=compression == "gzip")
    trusted = matches is not None and matches.sure
    return _Survey(trusted=trusted, doubts=() if trusted else found.doubts)


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
        reason = f"the index belongs to another shard: it has {matches.known} of {here} records"
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
