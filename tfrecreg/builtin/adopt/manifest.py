"""The manifest of an adopted build, and its label maps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.builtin.adopt.examine import Examined, index_path
from tfrecreg.builtin.adopt.request import AdoptPlan, PlannedFile
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.records.digests import ContentHasher
from tfrecreg.core.records.gzip.writer import Compression
from tfrecreg.core.records.hashing import FileDigest
from tfrecreg.core.records.index import load_index
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry.foreign.label_files import in_order, names_beside
from tfrecreg.core.registry.foreign.label_maps import read_label_map
from tfrecreg.core.registry.manifest.adopted import ADOPT, DISTRIBUTION, KEY, PAYLOADS
from tfrecreg.core.registry.manifest.file import seal
from tfrecreg.core.registry.manifest.model import (
    FORMAT_VERSION,
    INDEX_FOLDER,
    LABELS_NAME,
    LEDGER_NAME,
    SCHEMA_NAME,
    FileEntry,
    Ledger,
    Manifest,
    RawTotals,
    SchemaEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
)
from tfrecreg.core.registry.manifest.salvaged import SalvageMark, read_mark
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.suggest import listed
from tfrecreg.core.values.text import safe

RESERVED = (LABELS_NAME, LEDGER_NAME)
"""Files that every build has beside its manifest; the ledger of an adopted one is empty."""


def index_entry(file: PlannedFile) -> str:
    """The entry of a shard's index in the build's folder."""
    return f"{INDEX_FOLDER}/{file.path}.index"


def split_entries(plan: AdoptPlan, scratch: Storage) -> tuple[list[SplitEntry], str]:
    """Each split's entry, and the content digest over all of them."""
    everything = ContentHasher()
    entries = []
    for split, files in plan.splits().items():
        alone = ContentHasher()
        alone.add(split, b"")
        records = size = 0
        for file in files:
            path = index_path(split, file.shard.number)
            index = load_index(scratch, path)
            for hasher in (alone, everything):
                hasher.add(split, index.digests.tobytes())
            records += len(index)
            size += int(index.lengths.sum())
        content = alone.hexdigest()
        entries.append(SplitEntry(name=split, records=records, payload_bytes=size, content=content))
    return entries, everything.hexdigest()


def own_files(
    folder: Storage, labels: Mapping[str, list[str]], schema: str | None
) -> list[FileEntry]:
    """Write the labels, the ledger, which is empty, and the schema."""
    own = {LABELS_NAME: canonical_json(dict(labels)) + b"\n", LEDGER_NAME: b""}
    if schema is not None:
        own[SCHEMA_NAME] = schema.encode("utf-8")
    return [FileEntry.of(path, hashed_write(folder, path, data)) for path, data in own.items()]


def salvage_mark(seen: Iterable[tuple[Shard, Examined]]) -> str | None:
    """The mark of shards cut out of damaged ones; None for other shards.

    That of one salvage is the digest of its report; of several, one over theirs.
    """
    marks: dict[tuple[str, str], SalvageMark | None] = {}
    found: set[str] = set()
    for shard, part in seen:
        folder, _, name = shard.path.rpartition("/")
        place = shard.storage.root, folder
        if place not in marks:
            marks[place] = read_mark(shard.storage, folder)
        mark = marks[place]
        if mark is not None and mark.covers(name, part.end.blake3):
            found.add(mark.digest)
    if len(found) > 1:
        return blake3("\n".join(sorted(found)).encode("ascii")).hexdigest()
    return next(iter(found), None)


def make_manifest(
    plan: AdoptPlan,
    seen: Sequence[tuple[Shard, Examined]],
    placed: Sequence[FileDigest],
    *,
    splits: list[SplitEntry],
    content: str,
    others: Iterable[FileEntry],
    schema: str,
    kind: PayloadKind,
    key: str | None,
    compression: Compression,
    raw: RawTotals,
    labels: dict[str, list[str]],
) -> Manifest:
    """The sealed manifest of the build."""
    shards: list[ShardEntry] = []
    files = list(others)
    features: Counter[str] = Counter()
    for file, (_, part), hashed in zip(plan.files, seen, placed, strict=True):
        shards.append(
            ShardEntry(
                path=file.path,
                bytes=hashed.bytes,
                blake3=hashed.blake3,
                sha256=hashed.sha256,
                split=file.shard.split,
                records=part.end.records,
                payload_bytes=part.end.payload_bytes,
                stream_blake3=part.end.stream_blake3 or "",
                index=index_entry(file),
            )
        )
        files.append(FileEntry.of(index_entry(file), part.index))
        features.update(part.features)
    encoded = schema.encode("utf-8")
    options = {PAYLOADS: kind.value, **({KEY: key} if key is not None else {})}
    return seal(
        Manifest(
            format_version=FORMAT_VERSION,
            dataset=plan.dataset,
            content=content,
            splits=splits,
            shards=shards,
            files=sorted(files, key=lambda entry: entry.path),
            raw=raw,
            ledger={
                split.name: Ledger(items=split.records, written=split.records) for split in splits
            },
            features=dict(sorted(features.items())),
            labels=labels,
            source=SourceEntry(
                name=ADOPT, distribution=DISTRIBUTION, version=__version__, options=options
            ),
            schema=SchemaEntry(blake3=blake3(encoded).hexdigest(), bytes=len(encoded)),
            compression=compression,
            codecs={},
            salvaged=salvage_mark(seen),
        )
    )


def adopted_labels(
    plan: AdoptPlan,
    said: Sequence[tuple[str, str]],
    before: Mapping[str, list[str]],
    features: Collection[str],
) -> dict[str, list[str]]:
    """Names of classes by feature, in order of their numbers."""
    found = {name: names for name, names in before.items() if name in features}
    beside = names_beside(
        [(file.shard.storage, file.shard.path.rpartition("/")[0]) for file in plan.files],
        lambda: features,
        plan.beside.notes,
        known=[feature for feature, _ in said],
        in_place=plan.how == "in-place",
    )
    found.update(beside)
    for feature, path in said:
        if feature not in features:
            raise UsageError(
                f"`--labels {safe(feature)}={safe(path)}` names a feature that no record has",
                hint=f"available: {listed(sorted(features), most=5)}",
            )
        found[feature] = in_order(read_label_map(path), path)
    return dict(sorted(found.items()))
