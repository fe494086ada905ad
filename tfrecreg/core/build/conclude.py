"""Ends a build: completes its files, checks what was written, and replaces the old build."""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from blake3 import blake3

from tfrecreg.core.build.plan import Plan
from tfrecreg.core.build.request import ChangedSettings, Prepared, max_dropped, max_skipped
from tfrecreg.core.build.shard import MadeShard
from tfrecreg.core.build.sources.interface import Remark, Skipped
from tfrecreg.core.build.state import BuildRecord, expect_raw_unchanged, remember
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.target import check_target
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.records.hashing import content_digest
from tfrecreg.core.records.index import load_index
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.find import build_target
from tfrecreg.core.registry.manifest import (
    FORMAT_VERSION,
    LABELS_NAME,
    LEDGER_NAME,
    MANIFEST_NAME,
    SCHEMA_NAME,
    FileEntry,
    Ledger,
    Manifest,
    Parent,
    SchemaEntry,
    ShardEntry,
    SplitEntry,
    render_manifest,
    seal,
)
from tfrecreg.core.registry.transaction import Transaction
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.codes import SRC047
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.documents import canonical_json, update_toml
from tfrecreg.core.values.errors import FailureError, RefusedError
from tfrecreg.core.values.text import ShortRepr, did_you_mean
from tfrecreg.core.workers.interface import Engine

if TYPE_CHECKING:
    from tfrecreg.core.build.run import BuildStart


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How many shards a build keeps from its base, and how many it writes. The source estimates the
    sizes of shards that do not exist yet.
    """

    base: str
    """``mnist@1.0.0``."""
    kept: int
    """Number of unchanged shards of the base."""
    kept_bytes: int
    rewritten: int
    """Number of shards of the base in which records changed or were removed."""
    rewritten_bytes: int
    new: int
    """Number of shards with records that the base does not have."""
    new_bytes: int

    @property
    def written_bytes(self) -> int:
        """Size of all shards that are written."""
        return self.rewritten_bytes + self.new_bytes


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BuildResult(ShortRepr):
    """A finished build."""

    manifest: Manifest = field(repr=False)
    folder: str
    """Folder of the build, relative to the registry."""
    report: Report
    """Report of the check after writing."""
    resumed: int
    """Number of shards that an earlier, killed run had finished."""
    growth: Growth | None
    """How many shards of the base were kept; None without a base."""
    unchanged: bool
    """Whether the previous build had the same bytes."""
    settings: ChangedSettings
    """Differences between the settings of this build, the dataset's file and earlier builds."""
    details: Mapping[tuple[str, str], str] = field(repr=False)
    """For each split and code, the detail of the first entry in the ledger."""


def conclude(
    start: BuildStart,
    made: Sequence[MadeShard],
    resumed: int,
    *,
    folder: Storage,
    change: Transaction,
    engine: Engine,
) -> BuildResult:
    """Complete the folder of a build, read it back, and replace the old build with it."""
    prepared, storage = start.prepared, start.prepared.registry.storage
    entries = ledger_entries(start.plan, made)
    found = ledgers(start.plan, made, entries)
    _accept_skipped(start, entries, found)
    _accept_dropped(start, made, entries, found)
    manifest = assemble(start, made, entries, found, folder)
    report = _read_back(start, manifest, folder, engine)
    expect_raw_unchanged(prepared.raw, start.files, prepared.progress)
    place = layout.build_folder(prepared.name)
    before = f"{place}/{MANIFEST_NAME}"
    is_there = storage.stat(before) is not None
    unchanged = is_there and storage.read(before) == render_manifest(manifest)
    # What was read back just now matches the manifest, byte for byte.
    change.replace(place, folder, manifest, verified=True, beside=_first_files(start))
    _remember(start, manifest)
    base = start.plan.base
    there = {} if base is None else {each.entry.path: each.entry.blake3 for each in base.shards}
    # Includes shards that were made again and equal their shard of the base, byte for byte.
    kept = {
        each.entry.path
        for each in made
        if each.kept or there.get(each.entry.path) == each.entry.blake3
    }
    return BuildResult(
        manifest=manifest,
        folder=place,
        report=report,
        resumed=resumed,
        growth=growth_of(start.plan, kept, {each.entry.path: each.entry.bytes for each in made}),
        unchanged=unchanged,
        settings=start.settings,
        details={(each.split, each.code): each.detail for each in reversed(entries)},
    )


def growth_of(plan: Plan, kept: Collection[str], sizes: Mapping[str, int]) -> Growth | None:
    """The numbers and sizes of kept and written shards; None if the plan has no base."""
    if plan.base is None:
        return None
    counts: Counter[str] = Counter()
    for shard in plan.shards:
        if shard.path in kept and shard.base is not None:
            what = "kept"
        else:
            what = "rewritten" if shard.base is not None or shard.lost_items else "new"
        counts.update({what: 1, f"{what}_bytes": sizes[shard.path]})
    names = ("kept", "kept_bytes", "rewritten", "rewritten_bytes", "new", "new_bytes")
    return Growth(base=plan.base.name, **{name: counts[name] for name in names})


_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that do not represent a byte of a file name."""


def ledger_entries(plan: Plan, made: Sequence[MadeShard]) -> list[Skipped | Remark]:
    """All items that were not written and all remarks, in order of split and key."""
    every: list[Skipped | Remark] = [*plan.skipped, *plan.remarks]
    for shard in made:
        every += [*shard.notes.skipped, *shard.notes.remarks]
    every.sort(key=lambda each: (each.split, each.key, isinstance(each, Remark), tuple(each[2:])))
    return every


def ledgers(
    plan: Plan, made: Sequence[MadeShard], entries: Sequence[Skipped | Remark]
) -> dict[str, Ledger]:
    """The ledger of each split: what became of every item."""
    items, written = Counter(plan.splits()), Counter[str]()
    skipped: dict[str, Counter[str]] = defaultdict(Counter)
    remarks: dict[str, Counter[str]] = defaultdict(Counter)
    items.update(each.split for each in plan.skipped)
    for shard in made:
        written[shard.entry.split] += shard.entry.records
    for each in entries:
        if isinstance(each, Remark):
            remarks[each.split][each.code] += each.times
        else:
            skipped[each.split][each.code] += 1
    found: dict[str, Ledger] = {}
    for split in sorted(items.keys() | remarks.keys()):
        counts = dict(sorted(skipped[split].items()))
        if items[split] != written[split] + sum(counts.values()):
            raise FailureError(
                f"the ledger of the split `{split}` does not add up: {items[split]} items, "
                f"{written[split]} written, {sum(counts.values())} skipped"
            )
        found[split] = Ledger(
            items=items[split],
            written=written[split],
            skipped=counts,
            remarks=dict(sorted(remarks[split].items())),
        )
    return found


def assemble(
    start: BuildStart,
    made: Sequence[MadeShard],
    entries: Sequence[Skipped | Remark],
    found: dict[str, Ledger],
    folder: Storage,
) -> Manifest:
    """Complete a build whose shards exist: write labels, ledger, schema and manifest."""
    prepared, plan = start.prepared, start.plan
    schema = start.schema.encode("utf-8")
    labels = {name: list(names) for name, names in prepared.source.labels().items()}
    features: Counter[str] = Counter()
    for shard in made:
        features.update(shard.notes.features)
    declared = (each.name for each in parse_schema(start.schema, SCHEMA_NAME).features)
    _expect_features(prepared, labels, {*features, *declared})
    files = [shard.index for shard in made]
    own = (
        (LABELS_NAME, canonical_json(labels) + b"\n"),
        (LEDGER_NAME, ledger_lines(entries)),
        (SCHEMA_NAME, schema),
    )
    files += [FileEntry.of(path, hashed_write(folder, path, data)) for path, data in own]
    splits, content = split_entries([each.entry for each in made], folder)
    release = plan.base.manifest.release if plan.base is not None else None
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        dataset=prepared.name,
        content=content,
        splits=splits,
        shards=[shard.entry for shard in made],
        files=sorted(files, key=lambda entry: entry.path),
        raw=start.raw,
        ledger=found,
        features=dict(sorted(features.items())),
        labels=labels,
        source=prepared.entry,
        schema=SchemaEntry(blake3=blake3(schema).hexdigest(), bytes=len(schema)),
        compression=prepared.settings.compression,
        codecs={"zlib": zlib.ZLIB_RUNTIME_VERSION, **prepared.source.codecs()},
        parents=prepared.source.parents(),
    )
    if plan.base is not None and release is not None:
        # If the build did not grow, it keeps the base that the released build had.
        parent = Parent(version=release.version, digest=plan.base.manifest.digest)
        same = seal(replace(manifest, base=plan.base.manifest.base))
        manifest = same if same.digest == release.build else replace(manifest, base=parent)
    manifest = seal(manifest)
    with folder.create(MANIFEST_NAME) as writer:
        writer.write(render_manifest(manifest))
    return manifest


def _expect_features(prepared: Prepared, labels: Iterable[str], known: Collection[str]) -> None:
    """Refuse class names for a feature that neither a record nor the schema has.

    The feature may be a prefix of known features (`…/keypoint` of `…/keypoint/x`). It may also hold
    the ids of classes (`…/id`), if the feature of their labels (`…/label`) is known.
    """
    for feature in labels:
        ids_of = f"{feature.removesuffix('/id')}/label"
        below = f"{feature}/"
        if feature in known or ids_of in known or any(name.startswith(below) for name in known):
            continue
        about = f"`{feature}`, but neither the records nor the schema have this feature"
        about += did_you_mean(feature, known)
        raise prepared.source.plugin_id.error(f"has names in `labels` for {about}")


def ledger_lines(entries: Iterable[Skipped | Remark]) -> bytes:
    """The ledger file: one line of canonical JSON per entry. Only remarks have `times`. Lone
    surrogates and bytes that are not UTF-8 are escaped.
    """
    lines = bytearray()
    for each in entries:
        row = each._asdict()
        for name, value in row.items():
            if isinstance(value, str):
                text = _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", value)
                plain = text.encode("utf-8", "surrogateescape")
                row[name] = plain.decode("utf-8", "backslashreplace")
        lines += canonical_json(row) + b"\n"
    return bytes(lines)


def split_entries(entries: Iterable[ShardEntry], build: Storage) -> tuple[list[SplitEntry], str]:
    """The entry of each split, and the content digest of all splits. `build` has the indexes."""
    splits: list[SplitEntry] = []
    digests: list[tuple[str, bytes]] = []
    for split, group in groupby(entries, key=attrgetter("split")):
        shards = list(group)
        joined = b"".join(load_index(build, each.index).digests.tobytes() for each in shards)
        digests.append((split, joined))
        entry = SplitEntry(
            name=split,
            records=sum(each.records for each in shards),
            payload_bytes=sum(each.payload_bytes for each in shards),
            content=content_digest([(split, joined)]),
        )
        splits.append(entry)
    return splits, content_digest(digests)


def _read_back(start: BuildStart, manifest: Manifest, folder: Storage, engine: Engine) -> Report:
    """The report of the check that a new build must pass before it replaces the old one."""
    prepared = start.prepared
    dataset = prepared.registry.dataset(prepared.name)
    target = build_target(manifest, folder, start.schema, dataset.schema_path)
    records = (each.record for each in plugins().every(ValidatorRecord))
    only = tuple(each.name for each in records if each.reads_back)
    options = CheckOptions(only=only, fail_on=FailOn.ERROR)
    config, progress = prepared.registry.config, prepared.progress
    report = check_target(target, config, options, engine=engine, progress=progress)
    stays = ", so the old one stays" if dataset.is_built() else ""
    if report.errors:
        raise FailureError(f"the new build could not be read back{stays}: {report.errors[0]}")
    if report.status != "pass":
        first, where = report.findings[0], ""
        for place in first.locations[:1] if prepared.data is not None else ():
            where = f" (split `{place.split or ''}`, key `{place.key or ''}`)"
        raise RefusedError(
            f"the new build does not pass its own check{stays}: {first.message}{where}",
            hint="fix the schema or the data; the findings say where",
            findings=report.findings,
        )
    return replace(report, folder=None)  # the unfinished folder is gone afterwards


def _accept_skipped(
    start: BuildStart, entries: Sequence[Skipped | Remark], found: Mapping[str, Ledger]
) -> None:
    lost = [each for each in entries if isinstance(each, Skipped)]
    items, skipped = sum(ledger.items for ledger in found.values()), len(lost)
    limit = max_skipped(start.prepared.settings)
    if limit.allows(skipped, items):
        return
    counts = Counter(each.code for each in lost)
    reasons = ", ".join(f"{code}: {count}" for code, count in sorted(counts.items()))
    raise RefusedError(
        f"{skipped} of {items} items were skipped ({reasons}), but the limit is {limit}; one is "
        f"`{lost[0].key}`: {lost[0].detail}",
        hint=f"fix the raw data, or accept the skipped items: --max-skipped {skipped}",
    )


def _accept_dropped(
    start: BuildStart,
    made: Sequence[MadeShard],
    entries: Sequence[Skipped | Remark],
    found: Mapping[str, Ledger],
) -> None:
    written: Counter[str] = Counter()
    for shard in made:
        written[shard.entry.split] += shard.notes.objects
    limit = max_dropped(start.prepared.settings)
    dropped = {split: ledger.remarks.get(SRC047.code, 0) for split, ledger in found.items()}
    bad = {
        split: number
        for split, number in dropped.items()
        if not limit.allows(number, number + written[split])
    }
    if not bad:
        return
    split, number = next(iter(bad.items()))
    first = next(each for each in entries if (each.split, each.code) == (split, SRC047.code))
    raise RefusedError(
        f"{number} of {number + written[split]} objects of `{split}` were dropped, but the limit "
        f"is {limit}; one is in `{first.key}`, {first.detail}",
        hint=f"fix the annotations, or accept the loss: --max-dropped {max(bad.values())}",
    )


def _first_files(start: BuildStart) -> dict[str, bytes]:
    """The files published with a first build: the schema and the configuration."""
    prepared, found = start.prepared, dict[str, bytes]()
    if start.schema_is_new:
        path = prepared.registry.dataset(prepared.name).schema_path
        found[path] = start.schema.encode("utf-8")
    path = layout.dataset_path(prepared.name)
    if prepared.remember and prepared.registry.storage.stat(path) is None:
        found[path] = update_toml("", path, prepared.remember).encode("utf-8")
    return found


def _remember(start: BuildStart, manifest: Manifest) -> None:
    """Keep the configuration and the state of the raw data for the next build."""
    prepared, registry = start.prepared, start.prepared.registry
    storage, path = registry.storage, layout.dataset_path(prepared.name)
    if prepared.remember:
        before = b"" if storage.stat(path) is None else storage.read(path)
        text = update_toml(before.decode("utf-8"), path, prepared.remember).encode("utf-8")
        if text != before:
            with storage.create(path) as writer:
                writer.write(text)
    # A killed run may have written these files without making them durable.
    for written in (registry.dataset(prepared.name).schema_path, path):
        if storage.stat(written) is not None:
            storage.sync_dir(written.rpartition("/")[0])
    if prepared.raw is not None:
        record = BuildRecord(manifest=manifest.digest, raw=prepared.raw.root, files=start.files)
        remember(registry, prepared.name, record)
