"""The rule of numbers: how much a version has to say of what changed.

PATCH: the same examples in the same splits (equal content digests), which mean the same. MINOR:
every example of the first side is still there, in its split, unchanged in the features that it had
and in what they mean; examples, splits, features or names of classes were added. MAJOR: anything
else, and whatever cannot be told on this machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from tfrecreg.manifest import Change, ChangeCounts, Manifest
from tfrecreg.operations.diff.match import Matched
from tfrecreg.operations.diff.meaning import compare_meaning
from tfrecreg.operations.diff.order import Order
from tfrecreg.operations.diff.rows import Places, shard_of
from tfrecreg.operations.diff.shards import shard_counts
from tfrecreg.operations.diff.side import Side
from tfrecreg.operations.diff.tally import Tallied

__all__ = ["counts_of", "judge", "missing_hint", "per_split"]

_NAMED = 5
"""So many features are named in a reason."""


def judge(
    before: Side,
    after: Side,
    order: Order | None,
    matched: Matched | None,
    tallied: Tallied,
) -> Change:
    """The smallest legal step from one side to the other, and why.

    Args:
        before: the first side.
        after: the second side.
        order: where the content is the same; else None.
        matched: what became of the examples; None where the content is the same.
        tallied: what differs in those of `matched.changed`, as far as that was looked at.
    """
    old, new = before.manifest, after.manifest
    meaning = compare_meaning(before, after)
    losses, gains = list(meaning.losses), list(meaning.gains)
    counts: ChangeCounts | None
    if order is not None:
        also = [_same(old, new, order)]
        counts = counts_of(old, new, Matched())
    else:
        assert matched is not None
        also = []
        losses = [*_gone(old, new), *_losses(before, after, matched, tallied), *losses]
        gains = [*_gains(before, after, matched, tallied), *gains]
        counts = None if matched.unknown else counts_of(old, new, matched)
    if old.schema.blake3 != new.schema.blake3:
        also.append("the schema's text was changed")
    if losses:
        return Change(level="major", reasons=[*losses, *also], counts=counts)
    level: Literal["patch", "minor"] = "patch" if order is not None and not gains else "minor"
    return Change(level=level, reasons=[*gains, *also], counts=counts)


def missing_hint(
    before: Side, after: Side, order: Order | None, matched: Matched, tallied: Tallied
) -> str:
    """What to do where bytes or indexes that would tell more are not on this machine.

    Args:
        before: the first side.
        after: the second side.
        order: where the content is the same; else None.
        matched: what became of the examples.
        tallied: what differs in those that changed.
    """
    if order == "unknown" or (order is None and matched.unknown):
        return before.bring_hint
    if tallied.missing:
        side = before if before.name in tallied.reason else after
        return side.bring_hint
    return ""


def counts_of(before: Manifest, after: Manifest, matched: Matched) -> ChangeCounts:
    """The change in numbers, as a release keeps them."""
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
    """How many of these places are in each split."""
    counts: Counter[str] = Counter()
    numbers, times = np.unique(places >> np.uint64(32), return_counts=True)
    for shard, count in zip(numbers.tolist(), times.tolist(), strict=True):
        counts[manifest.shards[shard].split] += count
    return dict(sorted(counts.items()))


def _same(before: Manifest, after: Manifest, order: Order) -> str:
    """What a PATCH is about."""
    shards = [(shard.split, shard.stream_blake3) for shard in before.shards]
    layout = shards != [(shard.split, shard.stream_blake3) for shard in after.shards]
    if order == "other":
        text = "only the order changed: the same examples in another order"
        if len(before.shards) != len(after.shards):
            text += f", in {len(after.shards)} shards"
    elif order == "unknown":
        text = "the same examples in another layout, perhaps in another order: the indexes that "
        text += "would tell are not on this machine"
    elif layout:
        text = f"the same examples in another layout ({len(after.shards)} shards)"
    else:
        text = "the same examples in the same order"
    if before.compression != after.compression:
        text += f", compression {after.compression}"
    return text


def _gone(before: Manifest, after: Manifest) -> Iterator[str]:
    there = {split.name for split in after.splits}
    for split in before.splits:
        if split.name not in there:
            yield f"the split `{split.name}` is gone"


def _losses(before: Side, after: Side, matched: Matched, tallied: Tallied) -> Iterator[str]:
    """Why not every example is still there as it was."""
    there = {split.name for split in after.manifest.splits}
    for split in matched.unknown:
        if split in there and any(each.name == split for each in before.manifest.splits):
            yield (f"the indexes of the split `{split}` are not here to show that nothing was lost")
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
            yield f"{_examples(count)} of the split `{split}` {_are(count)} gone"
    yield from _changed(after, matched, tallied)


def _changed(after: Side, matched: Matched, tallied: Tallied) -> Iterator[str]:
    for split, count in per_split(matched.renamed_changed.after, after.manifest).items():
        yield f"{_examples(count)} of the split `{split}` {_were(count)} changed, key and record"
    pairs = len(matched.changed)
    if tallied.kept == pairs:
        return
    where = ""
    names = sorted(name for name, each in tallied.features.items() if each.changed or each.removed)
    if tallied.compared + tallied.unread < pairs:
        pass  # it was enough to see one of them, which says nothing of the others
    elif "" in names:
        where = ", some of which are no `tf.train.Example`"
    elif names:
        where = f" in {_names(names)}"
    for split, count in per_split(matched.changed.after, after.manifest).items():
        yield f"{_examples(count)} of the split `{split}` {_were(count)} changed{where}"
    if tallied.unread and tallied.missing:
        yield f"whether they only gained features cannot be told: {tallied.reason}"
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
            yield f"{_examples(count)} {_were(count)} added to the split `{split.name}`"
    names = sorted(name for name, each in tallied.features.items() if each.added)
    if names:
        noun = "feature" if len(names) == 1 else "features"
        whom = _examples(tallied.compared)
        yield f"the {noun} {_names(names)} {_were(len(names))} added to {whom}"


def _names(names: Sequence[str]) -> str:
    """Names as they are: who shows a reason escapes it as a whole."""
    shown = [f"`{name}`" for name in names[:_NAMED]]
    if len(names) > _NAMED:
        shown.append(f"{len(names) - _NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _examples(count: int) -> str:
    return _count(count, "example", "examples")


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
