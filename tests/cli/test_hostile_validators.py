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
    plant_source,
    plant_validator,
    raised_in,
)
from hostile_plugin_support import here as here  # the fixtures
from hostile_plugin_support import place as place

from tfrecreg.core.values.install_hint import install_command

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
    "an empty reason": ("def applies(self, target): return ''", "its `applies` returned ''"),
    "needs": ("needs = 'frames'", "its `needs` should be a Need"),
    "a lambda": (
        "def begin(self, target, options): return lambda shard: 1",
        "TypeError: what `begin` returned cannot be pickled: ",
    ),
    "no visitor": ("def begin(self, target, options): return int", "failed on"),
    "no findings": ("def finish(self, target, parts): return None", "NoneType"),
    "a text": ("def finish(self, target, parts): yield 'fine'", "it yielded 'fine'"),
    "a code from nowhere": (
        f"def finish(self, target, parts): yield {FINDING % 'code=%r' % 'EVL999'}",
        "it yielded the code 'EVL999', which it does not announce",
    ),
    "a code of ours": (
        f"def finish(self, target, parts): yield {FINDING % 'code=%r' % 'CRC001'}",
        "it yielded the code 'CRC001', which it does not announce",
    ),
    "a count of none": (
        f"def finish(self, target, parts): yield {FINDING % 'count=0'}",
        "`count` of a finding is 0, expected at least 1",
    ),
    "a severity": (
        f"def finish(self, target, parts): yield {FINDING % 'severity=%r' % 'error'}",
        "`severity` of a finding is 'error'",
    ),
    "a location": (
        "def finish(self, target, parts):\n"
        f"    yield {FINDING % 'locations=[Location(record=%r)]' % 'x'}",
        "`record` of a location is 'x', expected int",
    ),
    "a measure": ("def finish(self, target, parts): yield Measure('evil.x', [1], 'x')", "is [1]"),
    "a measure that is no JSON": (
        "def finish(self, target, parts): yield Measure('evil.x', {'x': b''}, 'x')",
        "not JSON serializable",
    ),
    "a measure without words": (
        "def finish(self, target, parts): yield Measure('evil.x', 1, None)",
        "a measure says None, expected a text",
    ),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_of_a_validator_costs_its_own_verdict(here: InProcess, what: str) -> None:
    body, words = NONSENSE[what]
    plant_validator(here.site, body)
    expect_incomplete(here.check(), words)


def test_what_a_validator_says_of_its_options_is_passed_on(here: InProcess) -> None:
    plant_validator(
        here.site, "def begin(self, target, options): raise UsageError('no such option')"
    )
    done = here.check()
    assert done.code == 2
    assert done.json["error"]["message"] == "no such option"


def test_codes_of_tfrecreg_are_no_strangers_to_announce(here: InProcess) -> None:
    text = VALIDATOR.replace("EVL001", "CRC002")
    plant(here.site, f"{text}    pass\n")
    done = here.run("plugins", "list")
    assert "`evil` has the code `CRC002`, which is tfrecreg's own" in " ".join(done.out.split())


def test_a_source_that_is_gone_is_told_of_with_its_distribution(here: InProcess) -> None:
    plant_source(here.site, "")
    assert here.build()[0] == 0
    plant(here.site, "")
    code, _, err = here.build()
    assert code == 2
    assert err.splitlines()[-2:] == [
        "error: no source named `evil`; `hostile` 6.6 provided it for the build of `d` before",
        f"hint: install that distribution, such as by `{install_command('hostile')}`",
    ]
