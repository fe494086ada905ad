"""Bare files: what is in them, where no manifest and no schema says what should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tfrecreg.codes import SCH001
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.findings import Measure
from tfrecreg.scan.interface import Shard
from tfrecreg.scan.tally import Tally
from tfrecreg.text import safe
from tfrecreg.validators.names import Unnamed, shard_sets
from tfrecreg.validators.payloads import (
    NOT_AN_EXAMPLE,
    TOO_LARGE,
    SeenPayloads,
    described,
    mostly_examples,
)

__all__ = ["KINDS", "UNNAMED", "bare_measures", "check_payloads"]

KINDS = "manifest.kinds"
"""The measure that counts payloads by kind."""
UNNAMED = "manifest.unnamed"
"""The measure that counts shards which lie beside those that were named."""

_SETS = 3
"""So many sets are told of by name."""


def bare_measures(
    payloads: Iterable[tuple[Shard, SeenPayloads]], unnamed: Sequence[Unnamed]
) -> Iterator[Measure]:
    """What the files hold, and what lies beside them."""
    total: Counter[str] = Counter()
    for _, part in payloads:
        total.update(part.kinds)
    names = [*(kind.value for kind in PayloadKind), TOO_LARGE]
    kinds = {name: total[name] for name in names if total[name]}
    if kinds:
        yield Measure(KINDS, kinds, described(kinds))
    if unnamed:
        count = sum(each.unnamed for each in unnamed)
        shown = [
            f"{each.unnamed} of the {each.of} shards of `{safe(each.subject)}`"
            for each in unnamed[:_SETS]
        ]
        more = [f"those of {len(unnamed) - _SETS} more sets"] if len(unnamed) > _SETS else []
        yield Measure(UNNAMED, count, ", ".join([*shown, *more]))


def check_payloads(tally: Tally, payloads: Sequence[tuple[Shard, SeenPayloads]]) -> None:
    """SCH001: records that are no Examples, in a set that is one of Examples.

    Files of one set by their names are judged together, every other file by itself. A set of
    SequenceExamples, events or anything else is what it is, and nothing is wrong with it.
    """
    parts = {shard.path: (shard, part) for shard, part in payloads}
    sets = [
        [parts[shard.path] for shard, _ in members]
        for _, members in shard_sets(shard for shard, _ in payloads)
    ]
    together = {shard.path for members in sets for shard, _ in members}
    sets += [[part] for path, part in parts.items() if path not in together]
    for members in sets:
        kinds: Counter[str] = Counter()
        for _, part in members:
            kinds.update(part.kinds)
        if mostly_examples(kinds):
            for shard, part in members:
                _add(tally, shard, part)


def _add(tally: Tally, shard: Shard, part: SeenPayloads) -> None:
    known = {PayloadKind.EXAMPLE.value, TOO_LARGE}
    strange = sum(number for kind, number in part.kinds.items() if kind not in known)
    for where in part.strangers:
        tally.add(SCH001, NOT_AN_EXAMPLE, where, split=shard.split)
    if strange > len(part.strangers):
        rest = strange - len(part.strangers)
        tally.add(SCH001, NOT_AN_EXAMPLE, None, split=shard.split, count=rest)
