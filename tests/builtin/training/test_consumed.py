"""Stages of an epoch that is resumed again and again: as few as say what was consumed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.builtin.training.orders.consumed import Stage, joined

PREFIX, APART = Stage([3, 2]), Stage([0, 3])
"""Five places dealt to two hosts in turn; three that one of two hosts took alone."""


def after(*stages: Stage) -> list[tuple[int, ...]]:
    """The counts of what is kept of stages that came one after the other."""
    kept: tuple[Stage, ...] = ()
    for stage in stages:
        kept = joined(kept, stage)
    return [stage.counts for stage in kept]


def left(stages: Sequence[Stage], places: int) -> list[int]:
    """The places of the sequence that the stages left."""
    numbers = np.arange(places - sum(stage.consumed for stage in stages))
    for stage in reversed(stages):
        numbers = stage.places(numbers)
    return numbers.tolist()


def test_three_resumes_at_a_prefix_are_one_stage() -> None:
    assert after(PREFIX) == [(5,)]
    assert after(PREFIX, Stage([4])) == [(9,)]
    assert after(PREFIX, Stage([4]), Stage([1, 1, 1])) == [(12,)]


def test_a_stage_with_gaps_stays_and_prefixes_after_it_are_one() -> None:
    assert after(APART) == [(0, 3)]
    assert after(PREFIX, APART, PREFIX, Stage([4])) == [(5,), (0, 3), (9,)]
    assert after(APART, APART) == [(0, 3), (0, 3)]


def test_a_resume_that_consumed_nothing_adds_no_stage() -> None:
    assert after(Stage([0, 0])) == []
    assert after(PREFIX, Stage([0]), APART, Stage([0, 0])) == [(5,), (0, 3)]


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3).map(Stage), max_size=5))
def test_what_is_left_is_the_same(stages: list[Stage]) -> None:
    kept: tuple[Stage, ...] = ()
    for stage in stages:
        kept = joined(kept, stage)
    assert left(kept, 100) == left(stages, 100)
