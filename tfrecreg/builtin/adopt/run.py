"""The operation: plan, examine, judge, place, and put the build where builds are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tfrecreg.builtin.adopt.examine import Examined, ExamineSettings, expect_unique, index_path
from tfrecreg.builtin.adopt.folder import (
    RESERVED,
    PlaceTask,
    adopted_labels,
    bystanders,
    examine,
    expect_replaceable,
    index_entry,
    keep_indexes,
    make_manifest,
    own_files,
    place_shard,
    split_entries,
)
from tfrecreg.builtin.adopt.request import (
    AdoptPlan,
    AdoptRequest,
    KnownSchema,
    known_schema,
    plan_adoption,
    terms_lines,
)
from tfrecreg.core.build.state import expect_no_loss, remove_leftovers
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.example.sequences import PayloadSketch
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.hashing import FileDigest
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.foreign.labels import LabelsBeside
from tfrecreg.core.registry.foreign.tfds import FEATURES_NAME
from tfrecreg.core.registry.manifest import (
    INDEX_FOLDER,
    KEY,
    MANIFEST_NAME,
    Manifest,
    RawTotals,
    render_manifest,
)
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.schemas import keep_schema
from tfrecreg.core.registry.shardset.target import labels_beside, raw_totals
from tfrecreg.core.registry.transaction import Transaction, transaction
from tfrecreg.core.schema.payload_kinds import mostly_examples
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_PATH = 1000
_MOST_DIFFERENCES = 20
"""Maximum number of features that notes name."""


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
    """Whether that schema was drafted from the records, and needs a review."""
    unchanged: bool
    """Whether the build that was there is the same to the byte."""
    notes: tuple[str, ...] = ()
    """What was found beside the files, used and not read; one line each, escaped."""
    terms: Mapping[str, str] = field(default_factory=dict)
    """License, description, citation and so on, as the description beside the files has them."""
    to_keep: tuple[str, ...] = ()
    """The lines of TOML that keep them for the dataset, with a heading; escaped."""

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
    expect_replaceable(registry, plan)
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

    Every file is read once before anything is copied: data that are damaged, incomplete or not what
    the schema says are refused.
    """
    engine = engine or LocalEngine(1)
    with transaction(registry.dataset(request.name), progress) as change:
        expect_policy(registry, request.name)
        plan = plan_adoption(registry, request)
        before = expect_replaceable(registry, plan)
        known = known_schema(registry, request, plan)
        raw = _raw(registry, request, before, progress)
        with change.stage("adopt") as staged:
            return _adopt(change, request, plan, before, known, raw, staged, engine, progress)


def _adopt(
    change: Transaction,
    request: AdoptRequest,
    plan: AdoptPlan,
    before: Manifest | None,
    known: KnownSchema | None,
    raw: RawTotals,
    staged: Storage,
    engine: Engine,
    progress: Progress,
) -> AdoptResult:
    registry = change.dataset.registry
    scratch = staged.below("examined")
    build = staged.below("build")
    key = _key(request, before)
    settings = ExamineSettings(
        scratch, plan.base, key, sketch=known is None, pixels=dict(request.pixels)
    )
    if known is not None and known.is_new and request.schema is None:
        plan.beside.notes.append(f"the schema is the one beside the files, `{safe(known.path)}`")
    beside = LabelsBeside()  # what the user names, or the build has, is what classes are called
    if plan.how != "in-place" and not request.labels:
        beside = labels_beside([file.shard for file in plan.files])
    seen, names, findings = examine(registry, plan, settings, known, beside, engine, progress)
    kinds = _kinds(seen)
    kind = _kind(kinds)
    schema = _schema(registry, plan, seen, kind, known)
    _expect_pixels(request, seen, schema, known)
    compression = _compression(seen)
    if key is not None:
        _expect_keys(plan, seen, scratch, key)
    elif before is not None and plan.how == "in-place":
        keep_indexes(registry, plan, before, seen, scratch)
    splits, content = split_entries(plan, scratch)
    if plan.how != "in-place":
        expect_no_loss(change.dataset, before, content)
    others = list(bystanders(registry, plan, before)) if plan.how == "in-place" else []
    placed = _place(plan, seen, build, engine, progress)
    for file in plan.files:
        examined = index_path(file.shard.split, file.shard.number)
        staged.link(f"examined/{examined}", f"build/{index_entry(file)}")
    labels = _labels(request, plan, before, seen)
    for feature in sorted(names.keys() - labels.keys()):
        labels[feature] = names[feature]
        plan.beside.notes.append(f"the names of `{safe(feature)}` are those in the records")
    others += own_files(build, labels, None if plan.how == "in-place" else schema)
    manifest = make_manifest(
        plan,
        seen,
        placed,
        splits=splits,
        content=content,
        others=others,
        schema=schema,
        kind=kind,
        key=key,
        compression=compression,
        raw=raw,
        labels=labels,
    )
    path = registry.dataset(plan.dataset).schema_path
    is_new = known is None or known.is_new
    written = {path: schema.encode("utf-8")} if is_new else {}
    if plan.how == "in-place":
        change.complete(build, manifest, indexes=INDEX_FOLDER, files=RESERVED, beside=written)
        keep_schema(registry, schema)
    else:
        hashed_write(build, MANIFEST_NAME, render_manifest(manifest))
        # A linked file was hashed where it is; a copy only on its way.
        verified = plan.how == "link"
        folder = layout.build_folder(plan.dataset)
        change.replace(folder, build, manifest, verified=verified, beside=written)
    if manifest.salvaged is not None:
        progress.note("these shards were salvaged: `check` and `release` find SHD009")
    return AdoptResult(
        manifest=manifest,
        folder=layout.build_folder(plan.dataset),
        kinds=kinds,
        findings=findings,
        schema_path=path,
        drafted=known is None and kind in _DESCRIBED,
        unchanged=before is not None and before.digest == manifest.digest,
        notes=tuple(plan.beside.notes),
        terms=(terms := plan.beside.terms()),
        to_keep=tuple(
            terms_lines(terms, change.dataset.config, f"{layout.DATASETS}/{plan.dataset}.toml")
        ),
    )


def _raw(
    registry: Registry, request: AdoptRequest, before: Manifest | None, progress: Progress
) -> RawTotals:
    """How large the raw data are: files that stay in place keep their keys."""
    folder = request.raw
    if folder is None:
        folder = registry.dataset(request.name).raw_folder
    if folder is not None:
        return raw_totals(folder, progress)
    if request.how == "in-place" and before is not None:
        return before.raw
    return RawTotals(files=0, stored=0, decoded=0)


def _key(request: AdoptRequest, before: Manifest | None) -> str | None:
    """The feature that names records: files that stay where they are keep the one they had."""
    if request.key is None and request.how == "in-place" and before is not None:
        return before.source.options.get(KEY)
    return request.key


def _labels(
    request: AdoptRequest,
    plan: AdoptPlan,
    before: Manifest | None,
    seen: Sequence[tuple[Shard, Examined]],
) -> dict[str, list[str]]:
    """What classes are called: files that stay where they are keep the names they had."""
    known = before.labels if before is not None and request.how == "in-place" else {}
    features = {name for _, part in seen for name in part.features}
    return adopted_labels(plan, request.labels, known, features)


_DESCRIBED = (PayloadKind.EXAMPLE, PayloadKind.SEQUENCE_EXAMPLE)
"""The kinds of payloads that a schema describes."""


def _kinds(seen: Sequence[tuple[Shard, Examined]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for _, part in seen:
        total.update(part.payloads.kinds)
    return {kind.value: total[kind.value] for kind in PayloadKind if total[kind.value]}


def _kind(kinds: Mapping[str, int]) -> PayloadKind:
    """Examples if more than half are; else the most frequent other kind."""
    if mostly_examples(kinds):
        return PayloadKind.EXAMPLE
    others = [kind for kind in PayloadKind if kind is not PayloadKind.EXAMPLE]
    return max(others, key=lambda kind: kinds.get(kind.value, 0))


def _schema(
    registry: Registry,
    plan: AdoptPlan,
    seen: Sequence[tuple[Shard, Examined]],
    kind: PayloadKind,
    known: KnownSchema | None,
) -> str:
    """The text of the schema: the known one, a draft, or an empty one."""
    if known is not None:
        if kind is PayloadKind.EXAMPLE and not known.judges:
            path = registry.dataset(plan.dataset).schema_path
            raise UsageError(
                f"`{safe(known.path, limit=_PATH)}` describes no feature of Examples, and the "
                "payloads are Examples",
                hint=f"remove it, and `{path}` is drafted from the records",
            )
        return known.text
    if kind not in _DESCRIBED:
        return f"# There are no Examples to describe, but {kind.plural}.\n"
    sketch = PayloadSketch()
    for _, part in seen:
        if part.sketch is not None:
            sketch.merge(part.sketch)
    declared = plan.beside.features
    for name, reason in islice(sketch.examples.differences(declared), _MOST_DIFFERENCES):
        plan.beside.notes.append(
            f"`{FEATURES_NAME}` and the records disagree about `{safe(name)}`: {reason}"
        )
    return sketch.render(plan.dataset, kind, declared)


def _expect_pixels(
    request: AdoptRequest,
    seen: Sequence[tuple[Shard, Examined]],
    schema: str,
    known: KnownSchema | None,
) -> None:
    """Raise if a feature is not declared as the pixels of an image, as the request has it."""
    if not request.pixels:
        return
    declared = parse_schema(schema, known.path if known is not None else "draft").pixels()
    for name, size in request.pixels:
        if not any(name in part.features for _, part in seen):
            raise UsageError(
                f"no record has a feature `{safe(name)}`",
                hint="--option image=FEATURE:HEIGHTxWIDTHxCHANNELS names one that records have",
            )
        if declared.get(name) != size:
            where = safe(known.path if known is not None else "draft", limit=_PATH)
            tag = "x".join(map(str, size))
            raise UsageError(
                f"`{where}` does not declare `{safe(name)}` as pixels of {tag}",
                hint=f'add `annotation {{ tag: "pixels:{tag}" }}` to the feature there',
            )


def _compression(seen: Sequence[tuple[Shard, Examined]]) -> Compression:
    """The one compression of all files; empty files have none."""
    found: dict[str, str] = {}
    for shard, part in seen:
        if part.end.file_bytes:
            found.setdefault(part.end.compression, shard.name)
    if len(found) > 1:
        plain, packed = (safe(found[each], limit=_PATH) for each in ("none", "gzip"))
        raise UsageError(
            f"`{packed}` is gzip, `{plain}` is not: a build has one compression",
            hint="pack or unpack some of them (`gzip`, `gzip -d`), or make two datasets",
        )
    return "gzip" if "gzip" in found else "none"


def _expect_keys(
    plan: AdoptPlan, seen: Sequence[tuple[Shard, Examined]], scratch: Storage, key: str
) -> None:
    for shard, part in seen:
        if part.keyless is not None:
            raise RefusedError(
                f"record {part.keyless} of `{safe(shard.name, limit=_PATH)}` has no single value "
                f"of bytes or int64 in `{safe(key)}`",
                hint="name a feature that every record has, or leave out `--key`",
            )
    indexes = [
        (file.shard.split, index_path(file.shard.split, file.shard.number)) for file in plan.files
    ]
    expect_unique(scratch, indexes, key)


def _place(
    plan: AdoptPlan,
    seen: Sequence[tuple[Shard, Examined]],
    build: Storage,
    engine: Engine,
    progress: Progress,
) -> list[FileDigest]:
    """Copy or link every file into the build, and verify that it is unchanged since the
    examination.
    """
    doing = {"copy": "copying", "link": "linking", "in-place": "hashing"}[plan.how]
    placed = engine.map(
        place_shard,
        (
            PlaceTask(file, plan.how, build, part.end.blake3 or "", part.end.records)
            for file, (_, part) in zip(plan.files, seen, strict=True)
        ),
        cost=lambda task, hashed: (task.records, hashed.bytes),
        label=f"{doing} {plan.dataset}",
        total=sum(part.end.records for _, part in seen),
        progress=progress,
    )
    if plan.how != "in-place":  # there it is the user's folder
        remove_leftovers(build)
    return placed
