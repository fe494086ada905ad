from __future__ import annotations

import datetime

import pytest

from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.schema.check import Checker
from tfrecreg.core.schema.compiled import compile_schema
from tfrecreg.core.schema.domain_check import is_packed_time, time_pattern
from tfrecreg.core.schema.proto import parse_schema


def matches(form: str, text: str) -> bool:
    pattern = time_pattern(form)
    assert pattern is not None
    return pattern.fullmatch(text.encode()) is not None


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%d",
        "%Y-%m-%dT%H:%M:%S",
        "%d %b %Y",
        "%A, %d. %B %y",
        "%I:%M %p",
        "%j/%Y",
        "100%% at %H",
        "%Y%m%d%H%M%S%f",
        "(%Y) [%m] *",
    ],
)
def test_what_strftime_writes_in_a_format_matches_it(form: str) -> None:
    for hours in range(0, 24 * 365, 97):
        moment = datetime.datetime(2024, 1, 1, 1, 2, 3, 4567) + datetime.timedelta(hours=hours)
        assert matches(form, moment.strftime(form))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%Y-%m-%d", "2024-13-01"),
        ("%Y-%m-%d", "2024-12-32"),
        ("%Y-%m-%d", "24-12-31"),
        ("%Y-%m-%d", "2024-12-31 "),
        ("%Y-%m-%d", ""),
        ("%H:%M", "24:00"),
        ("%H:%M", "12:60"),
        ("%b", "Juno"),
        ("%F", "2024/01/01"),
        ("a.c", "abc"),
    ],
)
def test_what_is_in_another_format_does_not_match(form: str, text: str) -> None:
    assert not matches(form, text)


def test_a_format_with_what_is_not_known_is_not_checked() -> None:
    for form in ("%Y %Q", "%_", "%Y %", "%Q", ""):
        assert time_pattern(form) is None
    body = "type: BYTES time_domain { string_format: '%Q' }"
    assert problems(body, bytes_feature("anything")) == []


def test_packed_times_are_those_of_a_day() -> None:
    def packed(hours: int, minutes: int, seconds: int, nanos: int) -> int:
        return ((hours * 64 + minutes) * 64 + seconds) << 30 | nanos

    assert is_packed_time(0)
    assert is_packed_time(packed(23, 59, 59, 999_999_999))
    for wrong in ((24, 0, 0, 0), (0, 60, 0, 0), (0, 0, 60, 0), (0, 0, 0, 10**9)):
        assert not is_packed_time(packed(*wrong))
    assert not is_packed_time(-1)


def problems(body: str, feature: object) -> list[tuple[str, str, str | None]]:
    checker = Checker(compile_schema(parse_schema(f'feature {{ name: "x" {body} }}')))
    return [(p.code.code, p.message, p.detail) for p in checker({"x": feature})]  # type: ignore[dict-item]


def test_times_are_checked_in_their_format() -> None:
    body = "type: BYTES time_domain { string_format: '%Y-%m-%d' }"
    assert problems(body, bytes_feature(["2024-01-31", "1999-12-01"])) == []
    assert problems(body, bytes_feature(["2024-01-31", "31.1.2024"])) == [
        (
            "SCH006",
            "`x` should be a time in the format `%Y-%m-%d`",
            "found `31.1.2024`, value 1 of 2",
        )
    ]
    body = "type: INT time_of_day_domain { integer_format: PACKED_64_NANOS }"
    assert problems(body, int64_feature(0)) == []
    assert problems(body, int64_feature(2**60)) == [
        ("SCH006", "`x` should be a time in the format `PACKED_64_NANOS`", f"found {2**60}")
    ]
    assert problems("type: INT time_domain { integer_format: UNIX_DAYS }", int64_feature(-5)) == []
