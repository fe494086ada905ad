"""Makes the files of a build: first all shards, then labels, ledger, schema and manifest."""

from __future__ import annotations

import pickle
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby, islice
from operator import attrgetter

from blake3 import blake3

from tfrecreg.core.build.begin import BuildStart
from tfrecreg.core.build.plan import Plan, PlannedShard
from tfrecreg.core.build.request import Prepared
from tfrecreg.core.build.shard import (
    BuildTask,
    MadeSegment,
    MadeShard,
    Stage,
    close_source,
    join_segments,
    keep_shard,
    make_part,
)
from tfrecreg.core.build.sources.interface import Remark, Skipped
from tfrecreg.core.records.hashing import content_digest
from tfrecreg.core.records.index import load_index
from tfrecreg.core.records.writer import hashed_write
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
    SplitEntry,
    render_manifest,
    seal,
)
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Entry, Storage
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.values.progress import working
from tfrecreg.core.values.text import did_you_mean
from tfrecreg.core.workers.interface import Engine

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
    for split in sorted(items.keys() | skipped.keys() | remarks.keys()):
        counts = dict(sorted(skipped[split].items()))
        if items[split] != written[split] + sum(counts.values()):
            raise FailureError(
                f"the ledger of the split `{split}` does not reconcile: {items[split]} items, "
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
    splits, content = _splits(made, folder)
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

    The feature may be a prefix of known features (`…/keypoint` of `…/keypoint/x`). It may also be
    the ids of classes (`…/id`), if the labels (`…/label`) are known.
    """
    for feature in labels:
        ids_of = f"{feature.removesuffix('/id')}/label"
        below = f"{feature}/"
        if feature in known or ids_of in known or any(name.startswith(below) for name in known):
            continue
        about = f"`{feature}`, but neither the records nor the schema have this feature"
        about += did_you_mean(feature, known)
        raise prepared.source.plugin_id.error(f"has names in `labels` for {about}")


def ledger_lines(entries: Sequence[Skipped | Remark]) -> bytes:
    """The ledger file: one line of canonical JSON per entry. Only remarks have `times`.

    In names, bytes that are not UTF-8 are escaped, and so are lone surrogates.
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


def _splits(made: Sequence[MadeShard], build: Storage) -> tuple[list[SplitEntry], str]:
    """The manifest's entry of each split, and the content digest of all splits."""
    splits: list[SplitEntry] = []
    digests: list[tuple[str, bytes]] = []
    for split, group in groupby((each.entry for each in made), key=attrgetter("split")):
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


_SHARDS_PER_JOB = 2
"""With this many shards per worker, all workers stay busy to the end. A build with fewer shards
makes each shard without a base in segments, although every byte is then written twice.
"""


def make_all(start: BuildStart, stage: Stage, engine: Engine) -> tuple[list[MadeShard], int]:
    """Make every shard of the plan, in order. Also returns how many shards were finished before."""
    plan, progress = start.plan, start.prepared.progress
    stage.clear()
    finished = {each.path: stage.finished(each) for each in plan.shards}
    todo = [shard for shard in plan.shards if finished[shard.path] is None]
    whole = engine.jobs == 1 or len(todo) >= _SHARDS_PER_JOB * engine.jobs
    cuts = {each.path: len(each.cuts()) for each in todo if not whole and each.base is None}
    task = _tasks(start, stage)

    def tasks() -> Iterator[BuildTask]:
        for shard in todo:
            if shard.path not in cuts:
                yield task(shard)
                continue
            for number, items in enumerate(shard.segments()):
                yield replace(task(replace(shard, items=items)), segment=number)

    def segments(parts: Iterator[MadeShard | MadeSegment], count: int) -> Iterator[MadeSegment]:
        for part in islice(parts, count):
            assert isinstance(part, MadeSegment)
            progress.advance(len(part.segment.lengths), part.segment.bytes)
            yield part

    made: list[MadeShard] = []
    try:
        # Close the results, so that no worker goes on writing after an interrupt.
        with (
            working(progress, f"building {plan.dataset}", plan.items),
            closing(engine.run(make_part, tasks())) as parts,
        ):
            for shard in plan.shards:
                done = finished[shard.path]
                if shard.path in cuts:
                    done = join_segments(task(shard), segments(parts, cuts[shard.path]))
                else:
                    part = done or next(parts)
                    assert isinstance(part, MadeShard)
                    progress.advance(part.entry.records, part.entry.bytes)
                    done = part
                if finished[shard.path] is None:
                    stage.finish(done)
                made.append(done)
    finally:
        close_source()
    stage.clear()
    return made, len(plan.shards) - len(todo)


def _tasks(start: BuildStart, stage: Stage) -> Callable[[PlannedShard], BuildTask]:
    """A function that makes the task of a shard."""
    prepared, packed = start.prepared, pickle.dumps(start.prepared.source)

    def task(shard: PlannedShard) -> BuildTask:
        raw, source = prepared.raw, prepared.source
        objects: tuple[Entry, ...] = ()
        if raw is not None and source.locates:
            paths = (source.raw_path(item.split, item.key) for item in shard.items)
            objects = raw.objects(path for path in paths if path is not None)
        return BuildTask(
            stage=stage,
            source=packed,
            plan=start.plan.digest,
            compression=prepared.settings.compression,
            raw=raw,
            shard=shard,
            objects=objects,
        )

    return task


def unchanged(start: BuildStart, engine: Engine) -> set[str]:
    """Make the base's records again, and return the paths of shards that did not change.

    Writes nothing. Raises the same errors as :func:`make_all`.
    """
    plan, stage = start.plan, Stage(start.prepared.registry.storage)
    candidates = [shard for shard in plan.shards if shard.base is not None]
    try:
        kept = engine.map(
            keep_shard,
            map(_tasks(start, stage), candidates),
            cost=lambda task, _: (len(task.shard.items), 0),
            label=f"comparing {plan.dataset}",
            total=sum(len(shard.items) for shard in candidates),
            progress=start.prepared.progress,
        )
    finally:
        close_source()
    return {shard.path for shard, made in zip(candidates, kept, strict=True) if made is not None}
