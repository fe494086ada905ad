"""The smallest legal step from a release to a build.

Differences are counted only as far as they decide it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tfrecreg.manifest.model import Change
from tfrecreg.operations.diff.compare import LabelMaps, Tallied, tally
from tfrecreg.operations.diff.images import follow_images
from tfrecreg.operations.diff.match import Pairs, match
from tfrecreg.operations.diff.reading import Readers, Reading
from tfrecreg.operations.diff.side import side_of
from tfrecreg.operations.diff.verdict import judge_change, missing_hint, order_of
from tfrecreg.progress import SILENT, Progress, working
from tfrecreg.registry.lookup import Resolved

_FEW = 10_000
"""Number of changed examples that are read for a release regardless of its version."""


class Classified(NamedTuple):
    """The smallest legal step, and a hint if it might be smaller."""

    change: Change
    hint: str
    """Remedy for missing bytes or indexes; empty if none are missing."""


def classify(parent: Resolved | None, build: Resolved, progress: Progress = SILENT) -> Classified:
    """The smallest legal step from a parent release to a build, and why.

    The records that changed are read where they are few, to name the features, and where they
    decide: if nothing is gone or moved, they may have gained features and lost nothing. The first
    of many that lost something is then enough.

    Args:
        parent: the release before; None for a first one.

    Raises:
        ManifestError: a schema or an index is not the one that was released.
    """
    if parent is None:
        return Classified(Change(level="initial", reasons=["the first release"]), "")
    before, after = side_of(parent), side_of(build)
    if before.manifest.content == after.manifest.content:
        order = order_of(before, after)
        return Classified(judge_change(before, after, order, None, Tallied()), "")
    labels, tallied = LabelMaps.of(before, after), Tallied()
    with closing(Reading(before, after)) as reading:
        matched = follow_images(before, after, match(before, after, progress), reading, progress)
        pairs = matched.changed
        may_be_minor = judge_change(
            before, after, None, replace(matched, changed=Pairs.none()), tallied
        )
        if len(pairs) <= _FEW:
            tallied, _ = count_pairs(reading, labels, progress, pairs)
        elif may_be_minor.level == "minor":
            with _showing(progress, len(pairs)):
                tally(pairs, reading.readers, labels, tallied, progress, until_loss=True)
    hint = missing_hint(before, after, None, matched, tallied)
    return Classified(judge_change(before, after, None, matched, tallied), hint)


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
