"""The `manifest` validator: checks that all files exist, are unchanged, and are the only files.

With a manifest, the files are compared with its digests (blake3). Bare files must agree with their
names (`-of-00005` needs five files) and with the `dataset_info.json` in their folder.

SHD008 checks that training hosts get enough shards, according to TensorFlow's recommendation.

For each host, TensorFlow recommends at least ten shards, and for each shard at least 10 MB
(https://www.tensorflow.org/tutorials/load_data/tfrecord). A split that is too small for this should
have as many shards as ``build --hosts`` makes. So a build for the right number of hosts has no
finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from tfrecreg.core.check.scan.interface import Need, Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, key_from
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.foreign.folders import (
    DESCRIBED,
    UNNAMED,
    SeenShards,
    bare_measures,
    check_bare,
    check_empty,
    check_payloads,
    descriptions,
    salvaged,
    shard_sets,
)
from tfrecreg.core.registry.manifest import (
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    ShardEntry,
    parse_manifest,
)
from tfrecreg.core.schema.payload_kinds import PayloadCounts
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.codes import (
    SHD001,
    SHD002,
    SHD003,
    SHD004,
    SHD005,
    SHD008,
    SHD009,
    CodeList,
)
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.findings import Code, Finding, Location, Measure, TensorflowOutcome
from tfrecreg.core.values.shards import (
    FRAMING,
    MIN_HOST_SHARD,
    ShardPolicy,
    parse_shard_name,
    shard_count,
)
from tfrecreg.core.values.text import safe, si_bytes


@dataclass(frozen=True, slots=True)
class HostsOptions:
    """The options of the validator `manifest`."""

    hosts: Annotated[int, Meta(ge=1)] | None = None
    """The number of training hosts that share the shards."""


class HostLoad(NamedTuple):
    """The shards that are divided among the hosts: those of a split or of a set of bare files."""

    split: str
    subject: str
    """Name of a set of bare files; empty for a split of a build."""
    shards: int
    records: int
    payload_bytes: int


def check_hosts(tally: Tally, loads: Iterable[HostLoad], hosts: int) -> None:
    """Compare the number of shards in each split or set with the number that hosts need."""
    for load in loads:
        best = shard_count(ShardPolicy(hosts=hosts), load.records, load.payload_bytes)
        size = (load.payload_bytes + FRAMING * load.records) // max(1, load.shards)
        if load.shards < best:
            message = f"expected at least {best} shards for {hosts} hosts, found {load.shards}"
        elif load.shards > best and size < MIN_HOST_SHARD:
            message = (
                f"expected at most {best} shards for {hosts} hosts, found {load.shards} with "
                f"{si_bytes(size)} on average, which is less than {si_bytes(MIN_HOST_SHARD)}"
            )
        else:
            continue
        where = Location(split=load.split) if load.split else None
        tally.add(SHD008, message, where, split=load.split, subject=load.subject)


class _SeenShard(NamedTuple):
    """The result for one shard."""

    end: StreamEnd
    tensorflow: TensorflowOutcome | None
    """What TensorFlow does at the first fault; None without a fault."""
    payloads: PayloadCounts
    """The kinds of the shard's payloads. They are not counted if there is a manifest."""

    @property
    def sound(self) -> bool:
        """Whether the scanner found no fault. After a fault, missing records are expected."""
        return self.tensorflow is None


class ManifestValidator(Validator):
    """Compares files with the manifest. For bare files, compares the number of files with the
    number in their names.

    The only option is `hosts`: the number of training hosts among which the shards are divided. For
    bare files, the validator also counts the kinds of payloads. If most records of a set of bare
    files are Examples and the files have no schema, the validator finds the records that are not
    Examples (SCH001, which the `schema` validator announces).
    """

    name = "manifest"
    Options = HostsOptions
    codes: Sequence[Code] = CodeList("SHD00*", "SHD01[23]")
    needs = Need.DIGESTS
    part_codec = JsonCodec(_SeenShard)

    def __init__(self) -> None:
        self._hosts: int | None = None

    def applies(self, target: Target) -> str | None:
        if target.manifest is None and not target.shards:
            return "there are no files"
        return None

    def begin(
        self, target: Target, options: Mapping[str, Any]
    ) -> Callable[[Shard], ManifestVisitor]:
        self._hosts = read_limits(HostsOptions, options, self.name).hosts
        return partial(ManifestVisitor, look=target.manifest is None)

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:  # noqa: ARG002 - for the end
        return key_from("with payloads" if target.manifest is None else None)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, _SeenShard]]
    ) -> Iterator[Finding | Measure]:
        tally = Tally()
        seen = list(parts)
        check_empty(tally, seen, bare=target.manifest is None)
        if target.manifest is None:
            infos, notes = descriptions(target.shards)
            unnamed = check_bare(tally, target.shards, infos, seen)
            _check_marks(tally, seen)
            if notes:
                yield Measure(DESCRIBED, len(infos), "; ".join(notes))
            yield from bare_measures(seen, unnamed)
            if target.schema is None:
                check_payloads(tally, seen)
        else:
            if target.manifest.salvaged is not None:
                tally.add(SHD009, "it was adopted from salvaged files", None)
            _check_shards(tally, target.manifest, seen)
            if target.storage is not None and target.partial:
                yield from _check_named(tally, target, target.manifest, target.storage)
            elif target.storage is not None:
                _check_files(tally, target, target.manifest, target.storage)
        if self._hosts is not None:
            check_hosts(tally, _loads(target, seen), self._hosts)
        yield from tally.findings(target.dataset)


class ManifestVisitor(Visitor):
    """Keeps the scanner's results for one shard, and counts kinds of payloads."""

    def __init__(self, shard: Shard, *, look: bool = False) -> None:
        self._shard = shard
        self._payloads = PayloadCounts()
        self._look = look
        self._tensorflow: TensorflowOutcome | None = None

    def batch(self, batch: RecordBatch) -> None:
        if self._look:
            self._payloads.add(self._shard, batch)

    def fault(self, fault: Fault) -> None:
        self._tensorflow = self._tensorflow or fault.tensorflow

    def close(self, end: StreamEnd) -> _SeenShard:
        return _SeenShard(end, self._tensorflow, self._payloads)


def _loads(target: Target, seen: Sequence[tuple[Shard, _SeenShard]]) -> Iterator[HostLoad]:
    """The shards that training hosts would share, for each split or set of bare files."""
    if target.manifest is not None:
        splits: dict[str, list[ShardEntry]] = defaultdict(list)
        for entry in target.manifest.shards:
            splits[entry.split].append(entry)
        for split, entries in sorted(splits.items()):
            size = sum(each.payload_bytes for each in entries)
            yield HostLoad(split, "", len(entries), sum(each.records for each in entries), size)
        return
    ends = {shard.name: part.end for shard, part in seen}
    for subject, members in shard_sets(target.shards):
        read = [ends[shard.name] for shard, _ in members if shard.name in ends]
        if len(read) == len(members):
            records, size = sum(e.records for e in read), sum(e.payload_bytes for e in read)
            yield HostLoad(members[0][0].split, subject, len(members), records, size)


def _check_shards(
    tally: Tally, manifest: Manifest, seen: Iterable[tuple[Shard, _SeenShard]]
) -> None:
    by_path = {shard.path: part for shard, part in seen}
    by_digest = {entry.blake3: entry for entry in manifest.shards}
    for entry in manifest.shards:
        part = by_path.get(entry.path)
        if part is None:
            continue  # missing or unreadable: reported elsewhere
        if part.end.blake3 == entry.blake3:
            continue
        end, twin = part.end, by_digest.get(part.end.blake3 or "")
        if twin is not None:
            detail = f"expected blake3 {entry.blake3[:16]}…, found {twin.blake3[:16]}…"
            message = f"it has the same bytes as `{safe(twin.path)}`"
            _differs(tally, SHD004, message, entry, detail, part)
            continue
        # A damaged shard has fewer readable records: the `CRC` findings report the loss.
        if end.records != entry.records and part.sound:
            detail = f"expected {entry.bytes} bytes, found {end.file_bytes}"
            message = f"expected {entry.records} records, found {end.records}"
            _differs(tally, SHD003, message, entry, detail, part)
        size = f"{entry.bytes} bytes, blake3 {entry.blake3[:16]}…"
        found = f"{end.file_bytes} bytes, blake3 {(end.blake3 or '')[:16]}…"
        _differs(tally, SHD002, f"expected {size}, found {found}", entry, None, part)


def _differs(
    tally: Tally, code: Code, message: str, entry: ShardEntry, detail: str | None, part: _SeenShard
) -> None:
    outcome = part.tensorflow or TensorflowOutcome.READS
    place = Location(split=entry.split, shard=entry.path, detail=detail, tensorflow=outcome)
    tally.add(code, message, place, split=entry.split, subject=entry.path)


def _check_files(tally: Tally, target: Target, manifest: Manifest, storage: Readable) -> None:
    """Check listed files, unlisted files, and the manifest itself."""
    present = {e.path: e for e in storage.list() if e.kind != "dir"}
    shards = {entry.path for entry in manifest.shards}
    listed = shards | {entry.path for entry in manifest.files} | {MANIFEST_NAME}
    for path in sorted(listed - set(present)):
        _tell(tally, SHD001, path, shard=path in shards)
    for path in sorted(set(present) - listed):
        named = "/" not in path and parse_shard_name(path) is not None
        _tell(tally, SHD005, path, shard=named)
    for file in manifest.files:
        if file.path in present:
            _check_file(tally, storage, file)
    if target.kind == "release" and MANIFEST_NAME in present:
        _check_own_manifest(tally, storage, manifest)


def _check_named(
    tally: Tally, target: Target, manifest: Manifest, storage: Readable
) -> Iterator[Measure]:
    """Compare the given shards, and all files that are not shards, with the manifest. Also find the
    build's missing shards.
    """
    named = {shard.path for shard in target.shards}
    others = [entry for entry in manifest.shards if entry.path not in named]
    absent = [entry.path for entry in others if storage.stat(entry.path) is None]
    for path in absent:
        _tell(tally, SHD001, path, shard=True)
    indexes = {entry.index for entry in others}
    for file in manifest.files:
        if file.path in indexes:
            continue
        if storage.stat(file.path) is not None:
            _check_file(tally, storage, file)
        else:
            _tell(tally, SHD001, file.path, shard=False)
    for shard in target.shards:
        if shard.entry is None:
            _tell(tally, SHD005, shard.path, shard=True)
    unnamed = len(others) - len(absent)
    if unnamed:
        text = f"{unnamed} of the {len(manifest.shards)} shards of `{safe(target.reference)}`"
        yield Measure(UNNAMED, unnamed, f"{text} are not checked")


def _tell(tally: Tally, code: Code, path: str, *, shard: bool) -> None:
    """Find SHD001 or SHD005: a file that is missing, or that the manifest does not list.

    TensorFlow reads sets with missing or extra shards without an error, because a glob matches
    whatever files exist. TensorFlow reads no files other than shards.
    """
    message = "the manifest lists it, but it does not exist"
    if code is SHD005:
        message = "the manifest does not list it"
    where = Location(shard=path, tensorflow=TensorflowOutcome.READS if shard else None)
    tally.add(code, message, where, subject=path)


def _check_file(tally: Tally, storage: Readable, entry: FileEntry) -> None:
    size, digest, _ = hash_file(storage, entry.path, expected=entry.blake3)
    if digest != entry.blake3:
        expected = f"{entry.bytes} bytes, blake3 {entry.blake3[:16]}…"
        found = f"{size} bytes, blake3 {digest[:16]}…"
        where = Location(shard=entry.path)
        tally.add(SHD002, f"expected {expected}, found {found}", where, subject=entry.path)


def _check_own_manifest(tally: Tally, storage: Readable, manifest: Manifest) -> None:
    """Check that the manifest in the folder of a release's shards is the released manifest."""
    expected = manifest.release.build if manifest.release is not None else manifest.digest
    try:
        found = parse_manifest(storage.read(MANIFEST_NAME), MANIFEST_NAME).digest
    except TfrecregError as error:
        found = error.message
    if found != expected:
        message = "the manifest in the folder of the shards differs from the released manifest"
        detail = f"expected digest {expected[:16]}…, found {found}"
        where = Location(shard=MANIFEST_NAME, detail=detail)
        tally.add(SHD002, message, where, subject=MANIFEST_NAME)


def _check_marks(tally: Tally, seen: SeenShards) -> None:
    """Find SHD009: bare files that were salvaged from damaged files."""
    for shard, mark in salvaged(seen):
        if mark.broken:
            why = safe(mark.broken)
            message = f"its folder has a salvage report, which cannot be read: {why}"
        else:
            name = shard.path.rpartition("/")[2]
            message = f"it was cut out of a damaged shard: {mark.lost.get(name, 'renamed since')}"
        where = Location(
            split=shard.split or None, shard=shard.name, tensorflow=TensorflowOutcome.READS
        )
        tally.add(SHD009, message, where, split=shard.split, subject=shard.name)
