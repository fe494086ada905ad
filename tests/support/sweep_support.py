"""Long sweeps, of which a run may try a part.

A sweep tries every call of a command, or thousands of damaged files. `TFRECREG_SWEEP=2/3` runs
every third trial of each sweep, from trial 2 on. The trials are the positions of the sweep, or the
parameters of a test with the mark `sweep`. Without the variable, as in CI, a run tries all.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

import pytest

VARIABLE = "TFRECREG_SWEEP"
T = TypeVar("T")


def part(every: Sequence[T]) -> Sequence[T]:
    """The part of a sweep that this run tries: at least one trial."""
    text = os.environ.get(VARIABLE) or "1/1"
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if found is None or int(found[1]) > int(found[2]):
        raise ValueError(f"{VARIABLE} should be such as `2/3`, found `{text}`")
    number, parts = int(found[1]), int(found[2])
    return every[(number - 1) % max(1, len(every)) :: parts]


def without_others(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests, without the parameters of marked tests that belong to another part."""
    sweeps: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep") is not None:
            sweeps[item.nodeid.partition("[")[0]].append(item)
    tried = {id(item) for sweep in sweeps.values() for item in part(sweep)}
    marked = {id(item) for sweep in sweeps.values() for item in sweep}
    return [item for item in items if id(item) in tried or id(item) not in marked]
