"""The operation `adopt`: plans, examines and copies files, and publishes the build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.builtin.adopt.examine import Examination, Settings, examine, expect_unique, index_path
from tfrecreg.builtin.adopt.request import (
    AdoptPlan,
    AdoptRequest,
    How,
    KnownSchema,
    PlannedFile,
    known_schema,
    plan_adoption,
)
from tfrecreg.core.build.conclude import split_entries
from tfrecreg.core.build.state import expect_no_foreign_files, expect_no_loss, remove_leftovers
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.example.sequences import PayloadSketch
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.hashing import FileDigest, hash_file
from tfrecreg.core.records.index import INDEX_LIMIT, INDEX_MAGIC
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.files import raw_totals
from tfrecreg.core.registry.find import labels_beside
from tfrecreg.core.registry.foreign.folders import salvaged
from tfrecreg.core.registry.foreign.labels import (
    LabelsBeside,
    in_order,
    names_beside,
    read_label_map,
)
from tfrecreg.core.registry.manifest import (
    ADOPT,
    FORMAT_VERSION,
    INDEX_FOLDER,
    KEY,
    LABELS_NAME,
    LEDGER_NAME,
    MANIFEST_NAME,
    PAYLOADS,
    SCHEMA_NAME,
    FileEntry,
    Ledger,
    Manifest,
    RawTotals,
    SchemaEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    is_adopted,
    render_manifest,
    seal,
)
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.schemas import keep_schema
from tfrecreg.core.registry.transaction import Transaction, transaction
from tfrecreg.core.schema.payload_kinds import mostly_examples
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import listed, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_RESERVED = (LABELS_NAME, LEDGER_NAME)
"""Files that every build has next to its manifest. The ledger of an adopted build is empty."""
_DESCRIBED = (PayloadKind.EXAMPLE, PayloadKind.SEQUENCE_EXAMPLE)
"""The kinds of payloads that a schema describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptResult:
    """The result of an adoption."""

    manifest: Manifest = field(repr=False)
    folder: str
    """Folder of the build, relative to the registry."""
    kinds: Mapping[str, int]
    """Number of payloads by kind."""
    findings: tuple[Finding, ...]
    """Findings that the gate accepted."""
    schema_path: str
    """Path of the schema, relative to the registry."""
    drafted: bool
    """Whether the schema was drafted from the records, so that it needs a review."""
    unchanged: bool
    """Whether the previous build had the same files, byte for byte."""
    notes: tuple[str, ...] = ()
    """One escaped line per file or folder that is used, left out or unreadable."""
    terms: Mapping[str, str] = field(default_factory=dict)
    """License, description, citation and so on, if a description next to the files has them."""

    def to_json(self) -> dict[str, Any]:
        """The document of ``adopt --json``."""
        manifest = self.manifest
        return {
            "dataset": manifest.dataset,
            "folder": self.folder,
            "content": manifest.content,
            "digest": manifest.digest,
            "splits": {split.name: split.records for split in manifest.splits},
            "shards": len(manifest.shards),
            "bytes": sum(shard.bytes for shard in manifest.shards),
            "compression": manifest.compression,
            "labels": {name: len(names) for name, names in manifest.labels.items()},
            "kinds": self.kinds,
            "schema": {"path": self.schema_path, "drafted": self.drafted},
            "salvaged": manifest.salvaged,
            "unchanged": self.unchanged,
            "findings": self.findings,
            "notes": self.notes,
            "terms": self.terms,
        }


def preview_adopt(registry: Registry, request: AdoptRequest) -> AdoptPlan:
    """Plan without reading records or writing files."""
    plan = plan_adoption(registry, request)
    _replaceable(registry, plan)
    known_schema(registry, request, plan)
    return plan


def adopt(
    registry: Registry,
    request: AdoptRequest,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> AdoptResult:
    """Make a build from TFRecords written by another tool. Records are never re-encoded.

    Reads every file once before it copies anything. Refuses damaged or incomplete data, and data
    that contradict the schema.
    """
    with transaction(registry.dataset(request.name), progress) as change:
        expect_policy(registry, request.name)
        plan = plan_adoption(registry, request)
        before = _replaceable(registry, plan)
        known = known_schema(registry, request, plan)
        with change.stage("adopt") as staged:
            adoption = _Adoption(
                change, request, plan, before, known, staged, engine or LocalEngine(1), progress
            )
            return adoption.run()


def _replaceable(registry: Registry, plan: AdoptPlan) -> Manifest | None:
    """The existing build, or None. Raises an error if replacing the build is forbidden."""
    folder, dataset = layout.build_folder(plan.dataset), registry.dataset(plan.dataset)
    before = dataset.build_manifest()
    if plan.how != "in-place":
        expect_no_foreign_files(dataset)
    elif before is not None and not is_adopted(before):
        raise UsageError(f"`{folder}` is a build that tfrecreg made: there is nothing to adopt")
    return before


@dataclass(frozen=True)
class _Adoption:
    change: Transaction
    request: AdoptRequest
    plan: AdoptPlan
    before: Manifest | None
    """The existing build."""
    known: KnownSchema | None
    staged: Storage
    engine: Engine
    progress: Progress

    @property
    def in_place(self) -> bool:
        """Whether the files stay where they are. If so, keys and class names are also kept."""
        return self.plan.how == "in-place"

    @property
    def registry(self) -> Registry:
        return self.change.dataset.registry

    def run(self) -> AdoptResult:
        plan, request, known, before = self.plan, self.request, self.known, self.before
        scratch, build = self.staged.below("examined"), self.staged.below("build")
        notes = plan.beside.notes
        raw = self._raw()
        key = request.key
        if key is None and self.in_place and before is not None:
            key = before.source.options.get(KEY)
        if known is not None and known.is_new and request.schema is None:
            notes.append(f"the schema was taken from `{safe(known.path)}` next to the files")
        beside = LabelsBeside()  # class names from the user or the build take precedence
        if not self.in_place and not request.labels:
            beside = labels_beside([file.shard for file in plan.files])
        settings = Settings(scratch, plan.base, key, known is None, dict(request.pixels))
        done = examine(self.registry, plan, known, beside, settings, self.engine, self.progress)
        kind = _main_kind(done.kinds())
        schema = self._schema(done, kind)
        self._expect_pixels(done, schema)
        compression = _compression(done)
        if key is not None:
            expect_unique(plan, done, scratch, key)
        elif before is not None and self.in_place:
            self._keep_indexes(before, done, scratch)
        shards = _shard_entries(plan, done)
        for file, shard in zip(plan.files, shards, strict=True):
            examined = index_path(file.shard.split, file.shard.number)
            self.staged.link(f"examined/{examined}", f"build/{shard.index}")
        splits, content = split_entries(shards, build)
        if not self.in_place:
            expect_no_loss(self.change.dataset, before, content)
        others = list(self._bystanders()) if self.in_place else []
        placed = self._place(done, build)
        shards = [
            replace(shard, bytes=found.bytes, blake3=found.blake3, sha256=found.sha256)
            for shard, found in zip(shards, placed, strict=True)
        ]
        indexes = zip(shards, done.seen, strict=True)
        others += [FileEntry.of(shard.index, part.index) for shard, (_, part) in indexes]
        labels = self._labels(done)
        encoded = schema.encode("utf-8")
        own = {LABELS_NAME: canonical_json(dict(labels)) + b"\n", LEDGER_NAME: b""}
        if not self.in_place:
            own[SCHEMA_NAME] = encoded
        others += [FileEntry.of(path, hashed_write(build, path, own[path])) for path in own]
        options = {PAYLOADS: kind.value, **({KEY: key} if key is not None else {})}
        manifest = self._manifest(
            done,
            shards=shards,
            files=sorted(others, key=lambda entry: entry.path),
            splits=splits,
            content=content,
            raw=raw,
            labels=labels,
            compression=compression,
            source=SourceEntry(name=ADOPT, distribution=OURS, version=__version__, options=options),
            schema=SchemaEntry(blake3=blake3(encoded).hexdigest(), bytes=len(encoded)),
        )
        self._publish(build, manifest, schema)
        if manifest.salvaged is not None:
            self.progress.note("these shards were salvaged: `check` and `release` report SHD009")
        return AdoptResult(
            manifest=manifest,
            folder=layout.build_folder(plan.dataset),
            kinds=done.kinds(),
            findings=done.findings,
            schema_path=self.change.dataset.schema_path,
            drafted=known is None and kind in _DESCRIBED,
            unchanged=before is not None and before.digest == manifest.digest,
            notes=tuple(notes),
            terms=plan.beside.terms(),
        )

    def _manifest(self, done: Examination, *, splits: list[SplitEntry], **rest: Any) -> Manifest:
        """The sealed manifest of the build."""
        features: Counter[str] = Counter()
        for _, part in done.seen:
            features.update(part.features)
        manifest = Manifest(
            format_version=FORMAT_VERSION,
            dataset=self.plan.dataset,
            splits=splits,
            ledger={each.name: Ledger(items=each.records, written=each.records) for each in splits},
            features=dict(sorted(features.items())),
            codecs={},
            salvaged=_salvage_mark(done),
            **rest,
        )
        return seal(manifest)

    def _raw(self) -> RawTotals:
        """The size of the raw data."""
        folder = self.request.raw or self.change.dataset.raw_folder
        if folder is not None:
            return raw_totals(folder, self.progress)
        if self.in_place and self.before is not None:
            return self.before.raw
        return RawTotals(files=0, stored=0, decoded=0)

    def _schema(self, done: Examination, kind: PayloadKind) -> str:
        """The text of the schema. It is the known schema, a draft or an empty schema."""
        known, beside = self.known, self.plan.beside
        if known is not None:
            if kind is PayloadKind.EXAMPLE and not known.judges:
                raise UsageError(
                    f"the payloads are Examples, but `{known.path}` declares no features"
                )
            return known.text
        if kind not in _DESCRIBED:
            return f"# There are no Examples to describe, but {kind.plural}.\n"
        sketch = PayloadSketch()
        for _, part in done.seen:
            if part.sketch is not None:
                sketch.merge(part.sketch)
        return sketch.render(self.plan.dataset, kind, beside.features)

    def _expect_pixels(self, done: Examination, schema: str) -> None:
        """Raise an error unless the schema declares each requested feature as pixels of the
        requested size."""
        if not self.request.pixels:
            return
        where = self.known.path if self.known is not None else "draft"
        declared = parse_schema(schema, where).pixels()
        for name, size in self.request.pixels:
            if not any(name in part.features for _, part in done.seen):
                raise UsageError(f"no record has a feature `{name}`")
            if declared.get(name) != size:
                tag = "x".join(map(str, size))
                raise UsageError(
                    f"`{where}` does not declare `{name}` as pixels of {tag}",
                    hint=f'add `annotation {{ tag: "pixels:{tag}" }}` to the feature there',
                )

    def _keep_indexes(self, before: Manifest, done: Examination, scratch: Storage) -> None:
        """Keep indexes of unchanged shards: the keys in an index say where records come from."""
        folder = self.registry.storage.below(layout.build_folder(self.plan.dataset))
        shards = {entry.path: entry for entry in before.shards}
        files = {entry.path: entry for entry in before.files}
        for file, (_, part) in zip(self.plan.files, done.seen, strict=True):
            shard = shards.get(file.path)
            index = files.get(shard.index) if shard is not None else None
            if shard is None or index is None or shard.blake3 != part.end.blake3:
                continue
            if folder.stat(index.path) is None:
                continue
            data = folder.read(index.path, limit=INDEX_LIMIT)
            if blake3(data).hexdigest() == index.blake3:
                path = index_path(file.shard.split, file.shard.number)
                part.index = hashed_write(scratch, path, data)

    def _bystanders(self) -> Iterator[FileEntry]:
        """Yield the other files in the build's folder. These files become a part of the build."""
        build = layout.build_folder(self.plan.dataset)
        folder = self.registry.storage.below(build)
        before = self.before.files if self.before is not None else []
        own = {MANIFEST_NAME, *(entry.path for entry in before)}
        shards = {file.path for file in self.plan.files}
        names = (*_RESERVED, MANIFEST_NAME)
        for entry in folder.list():
            path = entry.path
            # A killed adoption may have left half of a file that adoptions write.
            leftover = is_temporary(path) and path.startswith(tuple(f".{each}." for each in names))
            if entry.kind == "dir" or path in shards or leftover:
                continue
            indexed = path.startswith(f"{INDEX_FOLDER}/")
            if path in own and (indexed or path in names):
                continue
            if indexed and folder.read(path, limit=INDEX_LIMIT)[:8] == INDEX_MAGIC:
                continue  # a killed adoption left it
            if indexed or path in _RESERVED:
                raise UsageError(f"`{build}/{path}` has a name that the build needs for itself")
            if folder.stat(path) is None or entry.kind == "other":
                raise UsageError(f"`{build}/{path}` is not a file")
            yield FileEntry.of(path, hash_file(folder, path, sha256=True))

    def _place(self, done: Examination, build: Storage) -> list[FileDigest]:
        """Copy or link every file into the build."""
        how, name = self.plan.how, self.plan.dataset
        doing = {"copy": "copying", "link": "linking", "in-place": "hashing"}[how]
        placed = self.engine.map(
            partial(_place_shard, how, build),
            (
                (file, part.end.blake3 or "", part.end.records)
                for file, (_, part) in zip(self.plan.files, done.seen, strict=True)
            ),
            cost=lambda task, hashed: (task[2], hashed.bytes),
            label=f"{doing} {name}",
            total=sum(part.end.records for _, part in done.seen),
            progress=self.progress,
        )
        if not self.in_place:  # in place it is the user's folder
            remove_leftovers(build)
        return placed

    def _labels(self, done: Examination) -> dict[str, list[str]]:
        """For each feature, its class names, sorted by class number."""
        plan, said = self.plan, self.request.labels
        features = {name for _, part in done.seen for name in part.features}
        known = self.before.labels if self.before is not None and self.in_place else {}
        found = {name: names for name, names in known.items() if name in features}
        found |= names_beside(
            [(file.shard.storage, file.shard.path.rpartition("/")[0]) for file in plan.files],
            lambda: features,
            plan.beside.notes,
            known=[feature for feature, _ in said],
            in_place=self.in_place,
        )
        for feature, path in said:
            if feature not in features:
                raise UsageError(
                    f"`--labels {feature}={path}` names a feature that no record has",
                    hint=f"available: {listed(sorted(features), most=5)}",
                )
            found[feature] = in_order(read_label_map(path), path)
        labels = dict(sorted(found.items()))
        for feature in sorted(done.names.keys() - labels.keys()):
            labels[feature] = done.names[feature]
            plan.beside.notes.append(f"the class names of `{safe(feature)}` come from the records")
        return labels

    def _publish(self, build: Storage, manifest: Manifest, schema: str) -> None:
        """Publish the build, and also its schema if that is new."""
        is_new = self.known is None or self.known.is_new
        path = self.change.dataset.schema_path
        written = {path: schema.encode("utf-8")} if is_new else {}
        if self.in_place:
            self.change.complete(
                build, manifest, indexes=INDEX_FOLDER, files=_RESERVED, beside=written
            )
            keep_schema(self.registry, schema)
            return
        hashed_write(build, MANIFEST_NAME, render_manifest(manifest))
        # A linked file was hashed in place; a copy was hashed only while it was written.
        self.change.replace(
            layout.build_folder(self.plan.dataset),
            build,
            manifest,
            verified=self.plan.how == "link",
            beside=written,
        )


def _main_kind(kinds: Mapping[str, int]) -> PayloadKind:
    """Examples if most payloads are Examples; otherwise the most frequent other kind."""
    if mostly_examples(kinds):
        return PayloadKind.EXAMPLE
    rest = [each for each in PayloadKind if each is not PayloadKind.EXAMPLE]
    return max(rest, key=lambda each: kinds.get(each.value, 0))


def _compression(done: Examination) -> Compression:
    """The compression of all files. Empty files are ignored."""
    found: dict[str, str] = {}
    for shard, part in done.seen:
        if part.end.file_bytes:
            found.setdefault(part.end.compression, shard.name)
    if len(found) > 1:
        raise UsageError(
            f"`{found['gzip']}` is gzip, but `{found['none']}` is not: a build has one compression"
        )
    return "gzip" if "gzip" in found else "none"


def _shard_entries(plan: AdoptPlan, done: Examination) -> list[ShardEntry]:
    """The entries of the shards. They lack the size and the digests of their files."""
    return [
        ShardEntry(
            path=file.path,
            bytes=0,
            blake3="",
            sha256="",
            split=file.shard.split,
            records=part.end.records,
            payload_bytes=part.end.payload_bytes,
            stream_blake3=part.end.stream_blake3 or "",
            index=f"{INDEX_FOLDER}/{file.path}.index",
        )
        for file, (_, part) in zip(plan.files, done.seen, strict=True)
    ]


def _salvage_mark(done: Examination) -> str | None:
    """The mark of shards that `salvage` wrote; None for other shards.

    If one salvage wrote the shards, the mark is the digest of its report. If several did, the mark
    is a digest of the digests of their reports.
    """
    found = {mark.digest for _, mark in salvaged(done.seen)}
    if len(found) > 1:
        return blake3("\n".join(sorted(found)).encode("ascii")).hexdigest()
    return next(iter(found), None)


def _place_shard(how: How, build: Storage, task: tuple[PlannedFile, str, int]) -> FileDigest:
    """Copy or link the shard into the build, and verify that it has not changed since the
    examination. A task has the digest and the number of records from that examination.
    """
    file, digest, _ = task
    shard = file.shard
    if how == "copy":
        with build.create(file.path) as writer:
            found = hash_file(shard.storage, shard.path, sha256=True, copy=writer)
    elif how == "link":
        build.link(shard.path, file.path, origin=shard.storage)
        found = hash_file(build, file.path, sha256=True)
    else:
        found = hash_file(shard.storage, shard.path, sha256=True)
    if found.blake3 != digest:
        raise UsageError(
            f"`{shard.name}` changed while it was adopted: blake3 was {digest[:16]}…, now it is "
            f"{found.blake3[:16]}…"
        )
    return found
