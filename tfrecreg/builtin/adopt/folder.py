"""Put shards into the folder of the build, and refuse shards that do not fit there.

The manifest of an adopted build, and its label maps.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.builtin.adopt.examine import (
    Examination,
    Examined,
    ExamineSettings,
    LabelNames,
    index_path,
)
from tfrecreg.builtin.adopt.request import AdoptPlan, How, KnownSchema, PlannedFile
from tfrecreg.core.build.state import expect_no_foreign_files
from tfrecreg.core.check.findings import complete_findings
from tfrecreg.core.check.scan.interface import Shard, Target, Validator
from tfrecreg.core.check.scan.run import ScanResult, run_scan
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.hashing import ContentHasher, FileDigest, hash_both
from tfrecreg.core.records.index import INDEX_LIMIT, INDEX_MAGIC, load_index
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.foreign.labels import (
    LabelsBeside,
    in_order,
    names_beside,
    read_label_map,
)
from tfrecreg.core.registry.foreign.tfds import TfdsInfo
from tfrecreg.core.registry.manifest import (
    ADOPT,
    DISTRIBUTION,
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
    SalvageMark,
    SchemaEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    is_adopted,
    read_mark,
    seal,
)
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.config import FailOn, judge
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import FailureError, RefusedError, UsageError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import listed, safe
from tfrecreg.core.workers.interface import Engine

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


def expect_replaceable(registry: Registry, plan: AdoptPlan) -> Manifest | None:
    """The existing build, or None."""
    folder, dataset = layout.build_folder(plan.dataset), registry.dataset(plan.dataset)
    before = dataset.build_manifest()
    if plan.how == "in-place":
        if before is not None and not is_adopted(before):
            raise UsageError(
                f"`{folder}` is a build that tfrecreg made: there is nothing to adopt",
                hint=f"tfrecreg release {plan.dataset}",
            )
        return before
    expect_no_foreign_files(dataset)
    return before


def bystanders(registry: Registry, plan: AdoptPlan, before: Manifest | None) -> Iterator[FileEntry]:
    """The files that are beside the shards and stay there: they also belong to the build."""
    folder = registry.storage.below(layout.build_folder(plan.dataset))
    own = {MANIFEST_NAME} | (
        {entry.path for entry in before.files} if before is not None else set()
    )
    shards = {file.path for file in plan.files}
    for entry in folder.list():
        path = entry.path
        if entry.kind == "dir" or path in shards or _is_leftover(path):
            continue
        indexed = path.startswith(f"{INDEX_FOLDER}/")
        if path in own and (indexed or path in (*RESERVED, MANIFEST_NAME)):
            continue
        if indexed and folder.read(path, limit=INDEX_LIMIT)[:8] == INDEX_MAGIC:
            continue  # an adoption that was killed left it
        shown = f"{layout.build_folder(plan.dataset)}/{safe(path, limit=1000)}"
        if indexed or path in RESERVED:
            raise UsageError(
                f"`{shown}` has a name that the build needs for itself",
                hint="rename it, or adopt the shards without `--in-place`",
            )
        if folder.stat(path) is None or entry.kind == "other":
            raise UsageError(f"`{shown}` is not a file", hint="remove it")
        yield FileEntry.of(path, hash_both(folder, path))


def keep_indexes(
    registry: Registry,
    plan: AdoptPlan,
    before: Manifest,
    seen: Sequence[tuple[Shard, Examined]],
    scratch: Storage,
) -> None:
    """Keep the indexes of unchanged shards: their keys are the origins of the records."""
    folder = registry.storage.below(layout.build_folder(plan.dataset))
    shards = {entry.path: entry for entry in before.shards}
    files = {entry.path: entry for entry in before.files}
    for file, (_, part) in zip(plan.files, seen, strict=True):
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


def _is_leftover(path: str) -> bool:
    """Whether an adoption that was killed was about to write a file of its own here."""
    names = (*RESERVED, MANIFEST_NAME)
    return is_temporary(path) and path.startswith(tuple(f".{name}." for name in names))


@dataclass(frozen=True, slots=True)
class PlaceTask:
    """All that a worker needs to put one shard into its place. Picklable."""

    file: PlannedFile
    how: How
    folder: Storage
    """Rooted at the folder of the unfinished build."""
    blake3: str
    """Digest of the file when it was examined."""
    records: int
    """Number of its records then."""


def place_shard(task: PlaceTask) -> FileDigest:
    """Copy or link the shard, and verify that it is unchanged since the examination."""
    shard = task.file.shard
    if task.how == "copy":
        with task.folder.create(task.file.path) as writer:
            found = hash_both(shard.storage, shard.path, writer)
    elif task.how == "link":
        task.folder.link(shard.path, task.file.path, origin=shard.storage)
        found = hash_both(task.folder, task.file.path)
    else:
        found = hash_both(shard.storage, shard.path)
    if found.blake3 != task.blake3:
        raise UsageError(
            f"`{safe(shard.name, limit=1000)}` changed while it was adopted: blake3 was "
            f"{task.blake3[:16]}…, now it is {found.blake3[:16]}…",
            hint="adopt it when no other process writes to it",
        )
    return found


_PATH = 1000


def examine(
    registry: Registry,
    plan: AdoptPlan,
    settings: ExamineSettings,
    known: KnownSchema | None,
    beside: LabelsBeside,
    engine: Engine,
    progress: Progress,
) -> tuple[list[tuple[Shard, Examined]], dict[str, list[str]], tuple[Finding, ...]]:
    """Read every file once, and refuse files that fail the checks."""
    judged = known is not None and known.judges
    target = Target(
        name=plan.dataset,
        kind="files",
        dataset=plan.dataset,
        shards=tuple(file.shard for file in plan.files),
        storage=None,
        manifest=None,
        schema=known.text if known is not None and judged else None,
        schema_path=known.path if known is not None else None,
        raw=None,
        beside=beside,
    )
    examination, labels = Examination(settings, judged, _placed(plan)), LabelNames()
    crc, conformance = (plugins().load(ValidatorRecord, name)() for name in ("crc", "schema"))
    validators: list[Validator] = [crc, examination, labels]
    gate = registry.config.gate(plan.dataset)
    if judged:
        validators.append(conformance)
    result = run_scan(
        target,
        validators,
        engine,
        options={each.name: gate.options_of(each.name) for each in validators},
        label=f"reading files for {plan.dataset}",
        progress=progress,
    )
    _expect_complete(result)
    for _, part in examination.seen:
        if part.problem is not None:
            raise part.problem
    found = list(complete_findings(result.findings, target))
    told = [each for each in found if each.code in LabelNames.found]
    verdict = judge(
        [each for each in found if each.code not in LabelNames.found],
        FailOn.ERROR,
        severity=gate.severity,
        waivers=registry.config.waivers,
        today=datetime.datetime.now(datetime.timezone.utc).date(),
    )
    if verdict.status == "fail":
        raise _refused(plan, verdict.findings)
    if not result.records:
        raise UsageError(
            f"there is no record in the {len(plan.files)} files", hint="name files with records"
        )
    return examination.seen, labels.names, (*verdict.findings, *told)


def _placed(plan: AdoptPlan) -> list[tuple[TfdsInfo, list[Shard]]]:
    """The descriptions beside the files, with the shards as they are examined."""
    shards = {file.shard.path: file.shard for file in plan.files}
    return [
        (info, [shards[each.path] for each in members if each.path in shards])
        for info, members in plan.beside.infos
    ]


def _expect_complete(result: ScanResult) -> None:
    for each in result.unreadable:
        raise FailureError(
            f"`{safe(each.shard, limit=_PATH)}` was not read: {each.reason}",
            hint="nothing was adopted: fix that first",
        )
    for crash in result.crashes:
        where = f" on `{safe(crash.shard, limit=_PATH)}`" if crash.shard else ""
        raise FailureError(
            f"`{crash.validator}` failed{where}: {crash.reason}",
            hint="the files are unchanged; leave that validator out, or fix its plugin",
        )


def _refused(plan: AdoptPlan, findings: Sequence[Finding]) -> RefusedError:
    first = findings[0]
    codes = {finding.code for finding in findings}
    hint = "fix the files, or accept the findings with a waiver in `tfrecreg.toml`"
    if "CRC008" in codes:
        hint = "leave out files that are not TFRecords"
        if "git lfs" in first.hint:
            hint = first.hint
    elif any(code.startswith("CRC") for code in codes):
        hint = (
            "`tfrecreg salvage FILE.. --output DIR` saves the undamaged records; DIR can be adopted"
        )
    return RefusedError(
        f"the files of `{plan.dataset}` are not adopted: {first.message}",
        hint=hint,
        findings=tuple(findings),
    )
