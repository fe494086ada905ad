"""What a change of `tfrecreg.toml` accepts that was not accepted before."""

from __future__ import annotations

import pytest

from tfrecreg.builtin.releases.audit import loosened
from tfrecreg.core.values.config import parse_config
from tfrecreg.core.values.findings import Severity

WAIVER = '[[waivers]]\ncode = "{}"\nowner = "ada"\nreason = "known"\nexpires = {}\n'
CRC = WAIVER.format("CRC*", "2027-01-31")
IMG = WAIVER.format("IMG003", "2027-01-31") + 'fingerprint = "I*"\n'


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("", CRC, ["a new waiver of `CRC*` until 2027-01-31 (ada: known)"]),
        (
            CRC,
            WAIVER.format("CRC*", "2099-12-31"),
            ["the waiver of `CRC*`, until 2027-01-31, is extended until 2099-12-31 (ada: known)"],
        ),
        (CRC, CRC + IMG, ["a new waiver of `IMG003` `I*` until 2027-01-31 (ada: known)"]),
        (
            "gates.default.fail_on = 'warning'",
            "",
            ["`gates.default.fail_on`: was warning, is error"],
        ),
        (
            "gates.a.fail_on = 'error'",
            "gates.default.fail_on = 'never'\ngates.a.fail_on = 'never'\ngates.b = {}",
            ["`gates.default.fail_on`: was error, is never"],
        ),
        ("", "gates.m.fail_on = 'never'", ["`gates.m.fail_on`: was error, is never"]),
        (
            "",
            "gates.m.severity = { CRC002 = 'info', 'SHD00*' = 'error', DUP001 = 'info' }",
            [
                "`gates.m.severity`: was error, is info for `CRC002`",
                "`gates.m.severity`: was warning, is info for `DUP001`",
            ],
        ),
        (
            "",
            "gates.default.severity = { 'CRC*' = 'info' }",
            ["`gates.default.severity`: was error, is info for `CRC*`"],
        ),
        (
            "",
            "gates.default.severity = { 'SRC09? *exist' = 'info' }",
            ["`gates.default.severity`: was error, is info for `SRC09? *exist`"],
        ),
        (
            "gates.m.severity = { 'SRC091' = 'info', 'SRC091 *exist' = 'error' }",
            "gates.m.severity = { 'SRC091' = 'info' }",
            ["`gates.m.severity`: was error, is info for `SRC091 *exist`"],
        ),
        (
            "gates.m.severity = { 'IMG*' = 'error' }",
            "",
            ["`gates.m.severity`: was error, is info for `IMG*`"],
        ),
        (
            "gates.m.severity = { '*' = 'error' }",
            "gates.m.severity = { '*' = 'error', 'IMG003' = 'info' }",
            ["`gates.m.severity`: was error, is info for `IMG003`"],
        ),
        (
            "gates.m.severity = { '*' = 'error' }",
            "",
            ["`gates.m.severity`: was error, is info for `*`"],
        ),
        (
            "gates.m.severity = { 'IMG*' = 'error' }",
            "gates.m.severity = { 'IMG00[12]' = 'error' }",
            ["`gates.m.severity`: was error, is info for `IMG*`"],
        ),
        (
            "",
            "gates.default.validators = ['crc']",
            ["`gates.default.validators`: was all that apply, is now only `crc`"],
        ),
        (
            "gates.default.validators = ['crc', 'schema', 'images']",
            "gates.default.validators = ['crc', 'manifest']",
            ["`gates.default.validators`: no longer has `images` and `schema`"],
        ),
        (
            "gates.m.limits.manifest = { hosts = 4 }",
            "gates.m.limits.inflation = { ratio = 9.5 }",
            [
                "`gates.m.limits.inflation.ratio`: was not set, is 9.5",
                "`gates.m.limits.manifest.hosts`: was 4, is not set",
            ],
        ),
        (
            "policy.max_waiver_days = 90",
            "policy.max_waiver_days = 91",
            ["`policy.max_waiver_days` was 90, is 91"],
        ),
        ("", "plugins.disable = ['images']", ["`plugins.disable` now also has `images`"]),
        ("policy.max_waiver_days = 90", "", ["`policy.max_waiver_days` was 90, is not set"]),
    ],
)
def test_each_thing_that_is_loosened_is_told(before: str, after: str, told: list[str]) -> None:
    found = loosened(parse_config(before), parse_config(after))
    assert [each.message for each in found] == told
    assert {(each.code, each.severity) for each in found} == {("REG013", Severity.WARNING)}
    assert {each.locations[0].shard for each in found} == {"tfrecreg.toml"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CRC, CRC),
        (WAIVER.format("CRC*", "2099-12-31"), CRC),
        (CRC, ""),
        ("", "gates.default.fail_on = 'warning'"),
        ("gates.m.fail_on = 'error'", "gates.m.fail_on = 'warning'"),
        ("gates.default.severity = { 'CRC*' = 'info' }", ""),
        (
            "gates.default.severity = { SRC091 = 'info' }",
            "gates.default.severity = { 'SRC091 *exist' = 'info' }",
        ),
        ("gates.default.validators = ['crc']", ""),
        ("gates.default.validators = ['crc']", "gates.default.validators = ['schema', 'crc']"),
        ("", "policy.max_waiver_days = 9"),
        ("plugins.disable = ['images', 'even']", "plugins.disable = ['even']"),
        ("policy.max_waiver_days = 90", "policy.max_waiver_days = 9"),
    ],
)
def test_what_is_the_same_or_stricter_is_not_told(before: str, after: str) -> None:
    assert loosened(parse_config(before), parse_config(after)) == []
