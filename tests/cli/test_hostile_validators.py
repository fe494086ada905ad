"""Whatever a validator raises or answers costs its own verdict: the check is incomplete.

In this process: nothing here ends one.
"""

from __future__ import annotations

from typing import Any

import pytest
from hostile_plugin_support import (
    RAISED,
    InProcess,
    plant_validator,
    raised_in,
)
from hostile_plugin_support import here as here  # the fixtures
from hostile_plugin_support import place as place

OF_VALIDATORS = {
    "__init__": "def __init__(self): {}",
    "name": "@property\ndef name(self): {}",
    "applies": "def applies(self, target): {}",
    "needs": "@property\ndef needs(self): {}",
    "begin": "def begin(self, target, options): {}",
    "begin, later": (
        "def begin(self, target, options): return self\ndef __call__(self, shard): {}"
    ),
    "part_key": "part_codec = None\ndef part_key(self, target, options): {}",
    "merge": "def merge(self, part, more): {}",
    "finish": "def finish(self, target, parts): {}",
    "finish, later": "def finish(self, target, parts):\n    yield Measure('e', 1, 'x')\n    {}",
}
OF_VISITORS = ("__init__", "batch", "close")


def expect_incomplete(done: Any, *words: str) -> None:
    assert done.code == 3, (done.out, done.err)
    found = done.json
    assert found["status"] == "error"
    (error,) = found["errors"]
    for word in ("the validator `evil` of `hostile` 6.6", *words):
        assert word in error
    assert error.isprintable()
    assert {"crc", "manifest"} <= set(found["validators"])


@pytest.mark.parametrize(("where", "what"), raised_in(OF_VALIDATORS))
@pytest.mark.sweep
def test_whatever_a_validator_raises_costs_its_own_verdict(
    here: InProcess, where: str, what: str
) -> None:
    plant_validator(here.site, OF_VALIDATORS[where].format(RAISED[what]))
    expect_incomplete(here.check())


@pytest.mark.parametrize(("where", "what"), raised_in(OF_VISITORS))
@pytest.mark.sweep
def test_whatever_a_visitor_raises_costs_the_verdict_of_its_validator(
    here: InProcess, where: str, what: str
) -> None:
    more = f"class Eye(GoodEye):\n    def {where}(self, given): {RAISED[what]}\n"
    plant_validator(here.site, "", more=more)
    expect_incomplete(here.check(), "failed on `")


FINDING = (
    "Finding(**{**dict(code='EVL001', rule='evil', severity=Severity.ERROR, message='m', hint='h', "
    "fingerprint='f', count=1), **dict(%s)})"
)
NONSENSE = {
    "a reason that is none": ("def applies(self, target): return 5", "its `applies` returned 5"),
    "a lambda": (
        "def begin(self, target, options): return lambda shard: 1",
        "TypeError: what `begin` returned cannot be pickled: ",
    ),
    "a code from nowhere": (
        f"def finish(self, target, parts): yield {FINDING % 'code=%r' % 'EVL999'}",
        "it yielded the code 'EVL999', which it does not announce",
    ),
    "a count of none": (
        f"def finish(self, target, parts): yield {FINDING % 'count=0'}",
        "`count` of a finding is 0, expected at least 1",
    ),
    "a measure": ("def finish(self, target, parts): yield Measure('evil.x', [1], 'x')", "is [1]"),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_of_a_validator_costs_its_own_verdict(here: InProcess, what: str) -> None:
    body, words = NONSENSE[what]
    plant_validator(here.site, body)
    expect_incomplete(here.check(), words)
