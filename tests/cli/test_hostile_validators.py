"""Whatever a validator raises or answers costs its own verdict: the check is incomplete.

In this process: nothing here ends one.
"""

from __future__ import annotations

from typing import Any

import pytest
from hostile_plugin_support import (
    RAISED,
    VALIDATOR,
    InProcess,
    plant,
    raised_in,
)
from hostile_plugin_support import here as here  # the fixture

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
EYE = """
class Eye(Visitor):
    def __init__(self, shard): pass
    def close(self, end): return 0
"""
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
    plant(here.site, VALIDATOR, OF_VALIDATORS[where].format(RAISED[what]))
    expect_incomplete(here.check("--json"))


@pytest.mark.parametrize(("where", "what"), raised_in(OF_VISITORS))
@pytest.mark.sweep
def test_whatever_a_visitor_raises_costs_the_verdict_of_its_validator(
    here: InProcess, where: str, what: str
) -> None:
    more = f"{EYE}    def {where}(self, given): {RAISED[what]}\n"
    plant(here.site, VALIDATOR, "def begin(self, target, options): return Eye", more=more)
    expect_incomplete(here.check("--json"), "failed on `")


FINDING = (
    "Finding(**{**dict(code='EVL001', rule='evil', severity=Severity.ERROR, message='m', hint='h', "
    "fingerprint='f', count=1), **dict(%s)})"
)
NONSENSE = {
    "a reason that is none": ("def applies(self, target): return 5", "its `applies` returned 5"),
    "a lambda": (
        "def begin(self, target, options): return lambda shard: 1",
        "TypeError: the result of `begin` cannot be pickled: ",
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
    plant(here.site, VALIDATOR, body)
    expect_incomplete(here.check("--json"), words)


def test_what_a_validator_prints_is_in_no_document(here: InProcess) -> None:
    plant(
        here.site, VALIDATOR, "def finish(self, target, parts):\n    print('loud')\n    return ()"
    )
    done = here.check("--json")
    assert (done.code, done.json["status"]) == (0, "pass")
    assert "loud" in done.err
