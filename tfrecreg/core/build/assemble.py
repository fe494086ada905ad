"""The files of a build: all shards of a plan, then labels, ledger, schema and manifest."""

from __future__ import annotations

import pickle
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from blake3 import blake3

from tfrecreg.core.build.base import Base
from tfrecreg.core.build.plan import Plan, PlannedShard
from tfrecreg.core.build.request import Prepared
from tfrecreg.core.build.shard import (
    BUILD,
    BuildTask,
    MadeSegment,
    MadeShard,
    Maker,
    SegmentTask,
    StageSink,
    close_source,
    join_segments,
    keep_shard,
    make_part,
)
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.records.hashing import content_digest
from tfrecreg.core.records.index import load_index
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry.manifest import (
    FORMAT_VERSION,
    LABELS_NAME,
    LEDGER_NAME,
    SCHEMA_NAME,
    FileEntry,
    Ledger,
    Manifest,
    Parent,
    RawTotals,
    SchemaEntry,
    SplitEntry,
    seal,
)
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Entry, Storage
from tfrecreg.core.values.documents import canonical_json
from tfrecreg.core.values.errors import FailureError, PluginError, UsageError
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.values.text import did_you_mean, safe
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine

_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that do not represent a byte of a file name."""


def ledgers(plan: Plan, made: Sequence[MadeShard]) -> dict[str, Ledger]:
    """What became of every item, split by split."""
    written: Counter[str] = Counter()
    skipped: dict[str, Counter[str]] = defaultdict(Counter)
    remarks: dict[str, Counter[str]] = defaultdict(Counter)
    for remark in _remarks(plan, made):
        remarks[remark.split][remark.code] += remark.times
    for each in plan.skipped:
        skipped[each.split][each.code] += 1
    for shard in made:
        written[shard.entry.split] += shard.entry.records
        for each in shard.skipped:
            skipped[each.split][each.code] += 1
    planned = plan.splits()
    found: dict[str, Ledger] = {}
    for split in sorted(planned.keys() | skipped.keys() | remarks.keys()):
        listed = sum(1 for each in plan.skipped if each.split == split)
        items = planned.get(split, 0) + listed
        counts = dict(sorted(skipped[split].items()))
        if items != written[split] + sum(counts.values()):
            raise FailureError(
                f"the ledger of the split `{split}` does not reconcile: {items} items, "
                f"{written[split]} written, {sum(counts.values())} skipped",
                hint="this is an error in the source: each item must be written or skipped once",
            )
        found[split] = Ledger(
            items=items,
            written=written[split],
            skipped=counts,
            remarks=dict(sorted(remarks[split].items())),
        )
    return found


def outline(
    prepared: Prepared,
    plan: Plan,
    made: Sequence[MadeShard],
    *,
    schema: str,
    raw: RawTotals,
    labels: Mapping[str, Sequence[str]],
) -> Manifest:
    """The manifest of a build as far as it is known without the indexes of its shards.

    It has no digest, content, splits or files, which :func:`assemble` adds.
    """
    features: Counter[str] = Counter()
    for shard in made:
        features.update(shard.features)
    declared = (each.name for each in parse_schema(schema, SCHEMA_NAME).features)
    _expect_features(prepared, labels, {*features, *declared})
    encoded = schema.encode("utf-8")
    return Manifest(
        format_version=FORMAT_VERSION,
        dataset=prepared.name,
        content="",
        splits=[],
        shards=[shard.entry for shard in made],
        files=[],
        raw=raw,
        ledger=ledgers(plan, made),
        features=dict(sorted(features.items())),
        labels={name: list(names) for name, names in labels.items()},
        source=prepared.entry,
        schema=SchemaEntry(blake3=blake3(encoded).hexdigest(), bytes=len(encoded)),
        compression=prepared.settings.compression,
        codecs={"zlib": zlib.ZLIB_RUNTIME_VERSION, **prepared.source.codecs()},
        base=_parent(plan.base),
        parents=prepared.source.parents(),
    )


def _expect_features(prepared: Prepared, labels: Iterable[str], known: Collection[str]) -> None:
    """Refuse class names for a feature that neither a record nor the schema has.

    The names may be of what several features are about (`…/keypoint` of `…/keypoint/x`), and the
    original ids of classes (`…/id`) stand beside their labels.
    """
    for feature in labels:
        ids_of = f"{feature.removesuffix('/id')}/label"
        below = f"{feature}/"
        if feature in known or ids_of in known or any(name.startswith(below) for name in known):
            continue
        about = f"the feature `{safe(feature)}`, which no record and no schema has"
        near = did_you_mean(feature, known)
        if prepared.data is not None:
            raise UsageError(f"`labels` names {about}{near}", hint="name a feature of the data")
        raise PluginError(
            f"{prepared.source.plugin_id} names in `labels` {about}{near}"
            f"{prepared.source.place('labels')}",
            hint="`labels` is by feature: the feature with the numbers of the classes",
        )


def assemble(
    outlined: Manifest, plan: Plan, made: Sequence[MadeShard], *, build: Storage, schema: str
) -> Manifest:
    """Write labels, ledger and schema into the build and return the sealed manifest."""
    files = [shard.index for shard in made if shard.index is not None]
    own = (
        (LABELS_NAME, canonical_json(outlined.labels) + b"\n"),
        (LEDGER_NAME, ledger_lines(plan, made)),
        (SCHEMA_NAME, schema.encode("utf-8")),
    )
    files += [FileEntry.of(path, hashed_write(build, path, data)) for path, data in own]
    splits, content = _splits(made, build)
    manifest = replace(
        outlined,
        content=content,
        splits=splits,
        shards=[shard.entry for shard in made],
        files=sorted(files, key=lambda entry: entry.path),
    )
    return _as_released(seal(manifest), plan.base)


def _parent(base: Base | None) -> Parent | None:
    if base is None or base.manifest.release is None:
        return None
    return Parent(version=base.manifest.release.version, digest=base.manifest.digest)


def _as_released(manifest: Manifest, base: Base | None) -> Manifest:
    """What the base was built as, where the build is that again: it did not grow."""
    if base is None or base.manifest.release is None:
        return manifest
    same = seal(replace(manifest, base=base.manifest.base))
    return same if same.digest == base.manifest.release.build else manifest


def ledger_lines(plan: Plan, made: Sequence[MadeShard]) -> bytes:
    """The ledger's file: one line of canonical JSON for each item that was not written and for
    each remark, in order of split and key. A remark's line says how many `times`, that of an item
    does not.
    """
    every: list[Skipped | Remark] = [*plan.skipped, *_remarks(plan, made)]
    for shard in made:
        every.extend(shard.skipped)
    every.sort(key=lambda each: (each.split, each.key, isinstance(each, Remark), tuple(each[2:])))
    lines = (
        canonical_json(
            {
                name: _plain(value) if isinstance(value, str) else value
                for name, value in each._asdict().items()
            }
        )
        for each in every
    )
    return b"".join(line + b"\n" for line in lines)


def _remarks(plan: Plan, made: Sequence[MadeShard]) -> Iterator[Remark]:
    yield from plan.remarks
    for shard in made:
        yield from shard.remarks


def _plain(text: str) -> str:
    """Text that UTF-8 can hold: names that were not UTF-8 keep their bytes as escapes, and so do
    halves of surrogate pairs, which JSON may hold.
    """
    text = _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _splits(made: Sequence[MadeShard], build: Storage) -> tuple[list[SplitEntry], str]:
    """Each split's entry and the content digest over all, from the indexes beside the shards."""
    digests: dict[str, list[bytes]] = defaultdict(list)
    records: Counter[str] = Counter()
    payload: Counter[str] = Counter()
    for shard in made:
        entry = shard.entry
        index = load_index(build, entry.index)
        digests[entry.split].append(index.digests.tobytes())
        records[entry.split] += entry.records
        payload[entry.split] += entry.payload_bytes
    joined = {split: b"".join(parts) for split, parts in digests.items()}
    splits = [
        SplitEntry(
            name=split,
            records=records[split],
            payload_bytes=payload[split],
            content=content_digest([(split, joined[split])]),
        )
        for split in sorted(joined)
    ]
    return splits, content_digest(sorted(joined.items()))


SEGMENTS = "segments"
"""Folder of a stage: pieces of shards."""

ListedItem = TypeVar("ListedItem", bound=Item | Skipped | Remark)

_ITEM_SECONDS, _BYTE_SECONDS = 60e-6, 3e-9
"""About what an item and a byte cost: a digit that becomes a PNG, a JPEG that is stored
unchanged.
"""
_SHARDS_PER_JOB = 2
"""This many shards per worker keep all of them busy to the end. With segments every byte is written
twice, so they are for less.
"""


def engine_for_build(plan: Plan, engine: Engine) -> Engine:
    """`engine`, or this very process for a build so small that local workers do not pay."""
    work = (seconds for shard in plan.shards for seconds in _work(shard))
    return engine.for_work(work, WORTH_SECONDS)


def _work(shard: PlannedShard) -> Iterator[float]:
    """Seconds that the items of a shard cost."""
    if shard.size is None:
        yield from map(_seconds, shard.items)
    else:
        yield len(shard.items) * _ITEM_SECONDS + max(shard.size, 0) * _BYTE_SECONDS


def warming(listed: Iterable[ListedItem], engine: Engine) -> Iterator[ListedItem]:
    """Yield the items, and start the workers once there are enough items to need them.

    The planning goes on, and takes about as long as a worker takes for its imports.
    """
    work = 0.0
    entries = iter(listed)
    for entry in entries:
        yield entry
        if isinstance(entry, Item):
            work += _seconds(entry)
            if work > WORTH_SECONDS:
                engine.warm(make_part)
                break
    yield from entries


def _seconds(item: Item) -> float:
    return _ITEM_SECONDS + max(item.size, 0) * _BYTE_SECONDS


def clear_killed(stage: Storage) -> None:
    """Remove unfinished files of killed writers from a stage that has no other writers."""
    remove_leftovers(stage.below(BUILD))
    stage.remove(SEGMENTS)


def make_all(
    plan: Plan,
    prepared: Prepared,
    sink: StageSink,
    *,
    stage: Storage,
    segments: str = SEGMENTS,
    engine: Engine,
    progress: Progress,
) -> tuple[list[MadeShard], int]:
    """Every shard of the plan, in its order, and how many of them were finished already."""
    maker, scratch = (
        _maker(sink.folder, prepared, plan, indexed=sink.indexed),
        stage.below(segments),
    )
    kept = sink.finished(plan.shards)
    todo = [shard for shard in plan.shards if shard.path not in kept]
    made: list[MadeShard] = []
    try:
        # Closed, so that after an interrupt no worker goes on writing.
        with (
            working(progress, f"building {plan.dataset}", plan.items),
            closing(_fresh(maker, prepared, scratch, todo, engine, progress)) as fresh,
        ):
            for shard in plan.shards:
                done = kept.get(shard.path)
                if done is None:
                    done = next(fresh)
                    sink.finish(shard, done)
                else:
                    progress.advance(done.entry.records, done.entry.bytes)
                made.append(done)
    finally:
        close_source()
    stage.remove(segments)
    return made, len(plan.shards) - len(todo)


def _maker(folder: Storage, prepared: Prepared, plan: Plan, *, indexed: bool = True) -> Maker:
    source = pickle.dumps(prepared.source)
    return Maker(folder, source, plan.digest, prepared.settings.compression, prepared.raw, indexed)


def _fresh(
    maker: Maker,
    prepared: Prepared,
    scratch: Storage,
    todo: Sequence[PlannedShard],
    engine: Engine,
    progress: Progress,
) -> Generator[MadeShard, None, None]:
    whole = engine.jobs == 1 or len(todo) >= _SHARDS_PER_JOB * engine.jobs
    cuts = {shard.path: not whole and shard.base is None for shard in todo}
    tasks = (
        task for shard in todo for task in _tasks(maker, prepared, scratch, shard, cuts[shard.path])
    )
    with closing(engine.run(make_part, tasks)) as parts:
        for shard in todo:
            if cuts[shard.path]:
                mine = islice(_counted(parts, progress), sum(1 for _ in shard.segments()))
                yield join_segments(maker, scratch, shard, mine)
            else:
                made = next(parts)
                assert isinstance(made, MadeShard)
                progress.advance(made.entry.records, made.entry.bytes)
                yield made


def _tasks(
    maker: Maker, prepared: Prepared, scratch: Storage, shard: PlannedShard, cut: bool
) -> Iterator[BuildTask | SegmentTask]:
    if not cut:
        yield _whole(maker, prepared, shard)
        return
    for number, items in enumerate(shard.segments()):
        objects = _objects(prepared, items)
        path = f"{shard.path}.{number}"
        yield SegmentTask(maker, scratch, path, items, objects, is_first=number == 0)


def _whole(maker: Maker, prepared: Prepared, shard: PlannedShard) -> BuildTask:
    return BuildTask(maker, shard, _objects(prepared, shard.items))


def _objects(prepared: Prepared, items: Iterable[Item]) -> tuple[Entry, ...]:
    """The raw objects of these items that can be fetched ahead, in their order."""
    if prepared.raw is None or not prepared.source.locates:
        return ()
    paths = (prepared.source.raw_path(item.split, item.key) for item in items)
    return prepared.raw.objects(path for path in paths if path is not None)


def _counted(parts: Iterator[MadeShard | MadeSegment], progress: Progress) -> Iterator[MadeSegment]:
    for made in parts:
        assert isinstance(made, MadeSegment)
        progress.advance(len(made.segment.lengths), made.segment.bytes)
        yield made


def unchanged(
    plan: Plan, prepared: Prepared, staged: Storage, engine: Engine, progress: Progress
) -> set[str]:
    """The paths of planned shards that equal the base's, found by making their records.

    Writes nothing; raises as :func:`make_all` does.
    """
    maker = _maker(staged, prepared, plan)
    candidates = [shard for shard in plan.shards if shard.base is not None]
    try:
        kept = engine.map(
            keep_shard,
            (_whole(maker, prepared, shard) for shard in candidates),
            cost=lambda task, _: (len(task.shard.items), 0),
            label=f"comparing {plan.dataset}",
            total=sum(len(shard.items) for shard in candidates),
            progress=progress,
        )
    finally:
        close_source()
    return {shard.path for shard, made in zip(candidates, kept, strict=True) if made is not None}
