"""Applies the rule of version numbers: finds the smallest legal step from a release to a build.

PATCH: the same examples in the same splits (equal content digests), with the same meaning. MINOR:
every example of the first side is still in its split, and its features have the same values and
meaning, but examples, splits, features or names of classes were added. MAJOR: anything else, and
every change that cannot be determined on this machine.

Only differences that decide the level are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from blake3 import blake3

from tfrecreg.builtin.releases.diff.compare import (
    LabelMaps,
    Reading,
    Tallied,
    follow_images,
    read_changes,
)
from tfrecreg.builtin.releases.diff.match import Matched, Places, match, shard_of
from tfrecreg.core.registry.data import Resolved, resolve
from tfrecreg.core.registry.history import links_of
from tfrecreg.core.registry.manifest import Change, ChangeCounts, Manifest, change_line
from tfrecreg.core.registry.side import Side, side_of
from tfrecreg.core.schema.compat import compare_schemas
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.shards import named_classes
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine

ShardOrder = Literal["same", "other", "unknown"]
"""Whether equal examples are in the same order; ``unknown`` if an index is not on this machine."""


def order_of(before: Side, after: Side) -> ShardOrder:
    """Whether two sides with equal examples have them in the same order."""
    if _streams(before) == _streams(after):
        return "same"
    sequences = _sequences(before), _sequences(after)
    if None in sequences:
        return "unknown"
    return "same" if sequences[0] == sequences[1] else "other"


def _streams(side: Side) -> list[tuple[str, str]]:
    return [(shard.split, shard.stream_blake3) for shard in side.manifest.shards if shard.records]


def _sequences(side: Side) -> dict[str, str] | None:
    """For each split, a digest of its record digests, in the order of its shards."""
    hashers: dict[str, blake3] = {}
    for number, shard in enumerate(side.manifest.shards):
        if not shard.records:
            continue
        index = side.index(number)
        if index is None:
            return None
        hashers.setdefault(shard.split, blake3()).update(index.digests.tobytes())
    return {split: hasher.hexdigest() for split, hasher in hashers.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCounts:
    """How the shards of both sides differ. Bytes are compared, not names."""

    kept: int
    """Number of shards whose file both sides have, perhaps under different names."""
    kept_bytes: int
    recoded: int
    """Number of shards that have the same records in the same order, but another compression."""
    new: int
    """Number of shards of the second side that were rewritten or added."""
    new_bytes: int
    """Total size in bytes of the shards that `new` and `recoded` count."""
    gone: int
    """Number of shards that only the first side has. Compression is ignored."""


def shard_counts(before: Manifest, after: Manifest) -> ShardCounts:
    """Compare the shards of two manifests. Shards that occur twice count twice."""
    files = {(shard.split, shard.blake3): shard for shard in after.shards}
    kept = _counted(before, "blake3") & _counted(after, "blake3")
    streams = Counter[tuple[str, str]]()
    for file, times in kept.items():
        streams[files[file].split, files[file].stream_blake3] += times
    old, new = (_counted(each, "stream_blake3") - streams for each in (before, after))
    recoded = (old & new).total()
    kept_bytes = sum(files[file].bytes * times for file, times in kept.items())
    return ShardCounts(
        kept=kept.total(),
        kept_bytes=kept_bytes,
        recoded=recoded,
        new=new.total() - recoded,
        new_bytes=sum(shard.bytes for shard in after.shards) - kept_bytes,
        gone=old.total() - recoded,
    )


def _counted(manifest: Manifest, digest: str) -> Counter[tuple[str, str]]:
    return Counter((shard.split, getattr(shard, digest)) for shard in manifest.shards)


_UNITS = ("time_domain.", "time_of_day_domain.")
"""Prefixes of field names. Such a field of a feature says what the feature's numbers mean."""
_COMPOSITES = ("sparse_feature", "weighted_feature")
_TENSORS = "tensor_representation_group["


def compare_meaning(before: Side, after: Side) -> tuple[list[str], list[str]]:
    """Two lists of reasons: which meanings of values were lost, and which are new. Differences
    between the records do not matter.
    """
    losses, gains = list[str](), list[str]()
    old_maps, new_maps = before.manifest.labels, after.manifest.labels
    for feature in sorted({*old_maps, *new_maps}):
        old, new = _class_names(old_maps.get(feature, ())), _class_names(new_maps.get(feature, ()))
        other = sorted(number for number, name in old.items() if new.get(number) != name)
        more = len(new.keys() - old.keys())
        if other:
            losses.append(_lost(feature, old, new, other))
        elif more and old:
            gains.append(f"`{feature}` has {more} more {'class' if more == 1 else 'classes'}")
        elif more:
            gains.append(f"the classes of `{feature}` have names now")
    return [*losses, *_read_otherwise(before, after)], gains


def _class_names(names: Sequence[str]) -> Mapping[int, str]:
    """The name of each number, except for names that only repeat the number."""
    return {number: name for number, name in named_classes(names).items() if name != str(number)}


def _lost(
    feature: str, old: Mapping[int, str], new: Mapping[int, str], other: Sequence[int]
) -> str:
    if not new:
        return f"the classes of `{feature}` have no names now"
    first = other[0]
    now = f"is `{new[first]}` now" if first in new else "has no name now"
    rest = f", and {len(other) - 1} more changed" if len(other) > 1 else ""
    return f"class {first} of `{feature}` was `{old[first]}` and {now}{rest}"


def _read_otherwise(before: Side, after: Side) -> Iterator[str]:
    """Yield each difference between the schemas that changes how values are read.

    A looser schema does not change the meaning of the old examples.
    """
    if before.schema is None or after.schema is None:
        return
    for change in compare_schemas(before.schema, after.schema):
        old, new = change.expected, change.found
        if old is None or new is None:
            continue
        shape = change.part == "feature" and change.field == "shape"
        fixed = "?" not in old and "?" not in new
        if (
            (shape and fixed)
            or change.part in _COMPOSITES
            or (change.field.startswith(_UNITS if change.part == "feature" else _TENSORS))
        ):
            what = f"`{change.name}`" if change.name else "the tensors"
            yield f"{what} should be read differently: `{change.field}` was {old} and is now {new}"


_NAMED = 5
"""Maximum number of features named in a reason."""


def judge_change(
    before: Side,
    after: Side,
    order: ShardOrder | None,
    matched: Matched,
    tallied: Tallied,
    relabelled: int = 0,
) -> Change:
    """The smallest legal step from one side to the other, and why."""
    old, new = before.manifest, after.manifest
    losses, gains = compare_meaning(before, after)
    counts: ChangeCounts | None
    if order is not None:
        also = [_patch_reason(old, new, order)]
        counts = counts_of(old, new, Matched())
    else:
        also = []
        losses = [*_losses(before, after, matched, tallied), *losses]
        gains = [*_gains(before, after, matched, tallied), *gains]
        counts = None if matched.unknown else counts_of(old, new, matched)
    if old.schema.blake3 != new.schema.blake3:
        also.append("the schema's text was changed")
    if losses:
        labels = [f"{_examples(relabelled, 'label')} changed"] if relabelled else []
        return Change(level="major", reasons=[*labels, *losses, *also], counts=counts)
    level: Literal["patch", "minor"] = "patch" if order is not None and not gains else "minor"
    return Change(level=level, reasons=[*gains, *also], counts=counts)


def counts_of(before: Manifest, after: Manifest, matched: Matched) -> ChangeCounts:
    """The numbers of the change, in the form that a release stores."""
    shards = shard_counts(before, after)
    return ChangeCounts(
        added=len(matched.added),
        removed=len(matched.removed),
        changed=len(matched.changed) + len(matched.renamed_changed),
        moved=len(matched.moved) + len(matched.moved_changed),
        renamed=len(matched.renamed),
        shards_kept=shards.kept,
        shards_new=shards.new + shards.recoded,
    )


def per_split(places: Places, manifest: Manifest) -> dict[str, int]:
    """The number of these places per split."""
    counts: Counter[str] = Counter()
    numbers, times = np.unique(places >> np.uint64(32), return_counts=True)
    for shard, count in zip(numbers.tolist(), times.tolist(), strict=True):
        counts[manifest.shards[shard].split] += count
    return dict(sorted(counts.items()))


def _patch_reason(before: Manifest, after: Manifest, order: ShardOrder) -> str:
    """The reason for a PATCH."""
    shards = [(shard.split, shard.stream_blake3) for shard in before.shards]
    layout = shards != [(shard.split, shard.stream_blake3) for shard in after.shards]
    if order == "other":
        text = "only the order changed: the same examples in another order"
        if len(before.shards) != len(after.shards):
            text += f", in {len(after.shards)} shards"
    elif order == "unknown":
        text = "the same examples in another layout, perhaps in another order: the indexes that "
        text += "would show it are not on this machine"
    elif layout:
        text = f"the same examples in another layout ({len(after.shards)} shards)"
    else:
        text = "the same examples in the same order"
    if before.compression != after.compression:
        text += f", compression {after.compression}"
    return text


def _losses(before: Side, after: Side, matched: Matched, tallied: Tallied) -> Iterator[str]:
    """Reasons that say which examples were, or may have been, moved, changed or removed."""
    there = {split.name for split in after.manifest.splits}
    for each in before.manifest.splits:
        if each.name not in there:
            yield f"the split `{each.name}` is gone"
    for split in matched.unknown:
        if split in there and any(each.name == split for each in before.manifest.splits):
            yield f"the split `{split}` may have lost examples: its indexes are not on this machine"
    moved = Counter[tuple[str, str]]()
    for pairs in (matched.moved, matched.moved_changed):
        for old, new in zip(pairs.before.tolist(), pairs.after.tolist(), strict=True):
            splits = (
                before.manifest.shards[shard_of(old)].split,
                after.manifest.shards[shard_of(new)].split,
            )
            moved[splits] += 1
    for (old_split, new_split), count in sorted(moved.items()):
        yield f"{_examples(count)} moved from the split `{old_split}` to `{new_split}`"
    for split, count in per_split(matched.removed, before.manifest).items():
        if split in there:
            yield f"{_examples(count)} of the split `{split}` {'is' if count == 1 else 'are'} gone"
    yield from _changed(after, matched, tallied)


def _changed(after: Side, matched: Matched, tallied: Tallied) -> Iterator[str]:
    for split, count in per_split(matched.renamed_changed.after, after.manifest).items():
        yield f"{_examples(count)} of the split `{split}` {_was(count)} changed in key and record"
    pairs = len(matched.changed)
    if tallied.kept == pairs:
        return
    where = ""
    names = sorted(name for name, each in tallied.features.items() if each.changed or each.removed)
    if tallied.compared + tallied.unread < pairs:
        pass  # one decisive pair was enough, and says nothing about the others
    elif "" in names:
        where = ", and not all records are `tf.train.Example`s"
    elif names:
        where = f" in {_names(names)}"
    for split, count in per_split(matched.changed.after, after.manifest).items():
        yield f"{_examples(count)} of the split `{split}` {_was(count)} changed{where}"
    if tallied.unread and tallied.missing:
        yield f"it is unknown whether they only gained features: {tallied.reason}"
    elif tallied.unread:
        yield f"{_examples(tallied.unread)} could not be compared: {tallied.reason}"


def _gains(before: Side, after: Side, matched: Matched, tallied: Tallied) -> Iterator[str]:
    old = {split.name for split in before.manifest.splits}
    added = per_split(matched.added, after.manifest)
    for split in after.manifest.splits:
        if split.name not in old:
            yield f"the split `{split.name}` is new: {_examples(split.records)}"
        elif split.name in added:
            count = added[split.name]
            yield f"{_examples(count)} {_was(count)} added to the split `{split.name}`"
    names = sorted(name for name, each in tallied.features.items() if each.added)
    if names:
        noun = "feature" if len(names) == 1 else "features"
        whom = _examples(tallied.compared)
        yield f"the {noun} {_names(names)} {_was(len(names))} added to {whom}"


def _names(names: Sequence[str]) -> str:
    """Join names without escaping them, because the complete reason is escaped when shown."""
    shown = [f"`{name}`" for name in names[:_NAMED]]
    if len(names) > _NAMED:
        shown.append(f"{len(names) - _NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _examples(count: int, what: str = "example") -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of comparing two sides example by example."""

    matched: Matched
    order: ShardOrder | None
    """Order of the examples, if both sides have the same examples; else None."""
    tallied: Tallied
    """The differences in all pairs whose records differ."""
    change: Change
    """The smallest legal step, and why."""
    hint: str
    """What to do about missing bytes or indexes; empty if none are missing."""


def compare_sides(
    before: Side,
    after: Side,
    labels: LabelMaps,
    progress: Progress = SILENT,
    engine: Engine | None = None,
) -> Compared:
    """Match the examples of two sides, read those that changed, and judge the change."""
    of_changed, every = Tallied(), Tallied()
    with closing(Reading(before, after, engine)) as reading:
        matched = follow_images(before, after, match(before, after, progress), reading, progress)
        groups = matched.changed, matched.renamed_changed, matched.moved_changed
        todo = sum(map(len, groups))
        with (
            working(progress, "comparing features", todo) if todo else nullcontext(),
            closing(reading.run(partial(read_changes, labels=labels), *groups)) as results,
        ):
            for group, piece, changes in results:
                for change in changes:
                    every.add(change)
                    if group == 0:
                        of_changed.add(change)
                progress.advance(len(piece), sum(change.size for change in changes))
    same = before.manifest.content == after.manifest.content
    order = order_of(before, after) if same else None
    found = judge_change(before, after, order, matched, of_changed, every.relabelled)
    hint = ""
    if order == "unknown" or (order is None and matched.unknown):
        hint = before.bring_hint
    elif every.missing:
        hint = (before if before.name in every.reason else after).bring_hint
    return Compared(matched, order, every, found, hint)


def classify(
    parent: Resolved | None, build: Resolved, progress: Progress = SILENT
) -> tuple[Change, str]:
    """The smallest legal step from a parent release to a build, and why. The second result is a
    hint if a smaller step may be legal but bytes are missing; otherwise it is empty.

    Records that changed are read, so that the reasons can name features and count labels.
    """
    if parent is None:
        return Change(level="initial", reasons=["the first release"]), ""
    before, after = side_of(parent), side_of(build)
    if before.manifest.content == after.manifest.content:
        order = order_of(before, after)
        return judge_change(before, after, order, Matched(), Tallied()), ""
    found = compare_sides(before, after, LabelMaps.of(before, after), progress)
    return found.change, found.hint


def previous_of(found: Resolved) -> Resolved | None:
    """The parent of the release, if `found` is a release or a build that was released. Otherwise
    the newest release.
    """
    dataset, links = found.dataset, links_of(found.dataset)
    version = max(links, default=None)
    for each in sorted(links, reverse=True):
        if found.manifest.digest in (links[each].digest, links[each].build):
            version = links[each].parent
            break
    return resolve(found.registry, f"{dataset}@{version}") if version is not None else None


def changes_of(found: Resolved, progress: Progress = SILENT) -> str:
    """The line about the changes of a build or a release. An unreleased build is compared with the
    newest release, if the indexes and records of both are on this machine.
    """
    dataset, manifest = found.dataset, found.manifest
    if manifest.release is None:
        links = links_of(dataset)
        same = [each.version for each in links.values() if each.build == manifest.digest]
        if same:
            manifest = dataset.release_manifest(max(same))
    records = sum(split.records for split in manifest.splits)
    release = manifest.release
    if release is not None:
        parent = release.parent.version if release.parent is not None else None
        return change_line(f"{dataset} {safe(release.version)}", records, release.change, parent)
    before = previous_of(found)
    try:
        change, _ = classify(before, found, progress)
    except TfrecregError as error:
        change = Change(level="major", reasons=[f"the change is unknown: {error.message}"])
    after = before.name.partition("@")[2] if before is not None else None
    return change_line(f"{dataset}, a build that is not released", records, change, after)
