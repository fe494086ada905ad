"""The smallest legal step from a release to a build.

Differences are counted only as far as they decide it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import NamedTuple

from tfrecreg.builtin.releases.diff.compare import LabelMaps, Tallied, tally
from tfrecreg.builtin.releases.diff.images import follow_images
from tfrecreg.builtin.releases.diff.match import Pairs, match
from tfrecreg.builtin.releases.diff.reading import Readers, Reading
from tfrecreg.builtin.releases.diff.verdict import judge_change, missing_hint, order_of
from tfrecreg.core.registry.history import links_of
from tfrecreg.core.registry.lookup import Resolved, resolve
from tfrecreg.core.registry.manifest.file import change_line
from tfrecreg.core.registry.manifest.model import Change
from tfrecreg.core.registry.shardset.side import side_of
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.text import safe


class Classified(NamedTuple):
    """The smallest legal step, and a hint if it might be smaller."""

    change: Change
    hint: str
    """Remedy for missing bytes or indexes; empty if none are missing."""


def classify(parent: Resolved | None, build: Resolved, progress: Progress = SILENT) -> Classified:
    """The smallest legal step from a parent release to a build, and why.

    The records that changed are read, to name the features and to count the labels.
    """
    if parent is None:
        return Classified(Change(level="initial", reasons=["the first release"]), "")
    before, after = side_of(parent), side_of(build)
    if before.manifest.content == after.manifest.content:
        order = order_of(before, after)
        return Classified(judge_change(before, after, order, None, Tallied()), "")
    labels = LabelMaps.of(before, after)
    with closing(Reading(before, after)) as reading:
        matched = follow_images(before, after, match(before, after, progress), reading, progress)
        groups = matched.changed, matched.renamed_changed, matched.moved_changed
        tallied, every = count_pairs(reading, labels, progress, *groups)
    hint = missing_hint(before, after, None, matched, tallied)
    return Classified(judge_change(before, after, None, matched, tallied, every.relabelled), hint)


def previous_of(found: Resolved) -> Resolved | None:
    """The release before: of a release its parent, of another build the newest release."""
    dataset, links = found.dataset, links_of(found.dataset)
    version = max(links, default=None)
    for each in sorted(links, reverse=True):
        if found.manifest.digest in (links[each].digest, links[each].build):
            version = links[each].parent
            break
    return resolve(found.registry, f"{dataset}@{version}") if version is not None else None


def changes_of(found: Resolved, progress: Progress = SILENT) -> str:
    """The line about a build or a release: a build that is not released is compared with the newest
    release, as far as the indexes and records of both are here.
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


def count_pairs(
    reading: Reading, labels: LabelMaps, progress: Progress, *groups: Pairs
) -> tuple[Tallied, Tallied]:
    """The differences in the pairs of the first group, and of all groups."""
    of_first, into = Tallied(), Tallied()
    function = partial(count_changes, labels=labels)
    with (
        _showing(progress, sum(map(len, groups))),
        closing(reading.run(function, *groups)) as results,
    ):
        for group, piece, found in results:
            for each in (into,) if group else (of_first, into):
                if found.is_full:
                    # What it left out depends on the pairs before it.
                    tally(piece, reading.readers, labels, each)
                else:
                    each.add_all(found)
            progress.advance(len(piece), found.size)
    return of_first, into


def _showing(progress: Progress, pairs: int) -> AbstractContextManager[None]:
    """A piece of work in the progress, if there is any."""
    return working(progress, "comparing features", pairs) if pairs else nullcontext()


def count_changes(readers: Readers, pairs: Pairs, *, labels: LabelMaps) -> Tallied:
    """A pass that counts differences in pairs."""
    found = Tallied()
    tally(pairs, readers, labels, found)
    return found
