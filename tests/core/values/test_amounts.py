from __future__ import annotations

from fractions import Fraction

import pytest

from tfrecreg.core.values.typed_values import SkipLimit, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        (1048576, 1048576),
        ("1048576", 1048576),
        ("256MiB", 256 << 20),
        ("256 mib", 256 << 20),
        (" 1.5 GB ", 1_500_000_000),
        ("0.5KiB", 512),
        ("10 B", 10),
        ("1kB", 1000),
        ("2TiB", 2 << 40),
        ("0.3MB", 300_000),
        ("1M", 1_000_000),
        ("2 gi", 2 << 30),
    ],
)
def test_sizes_are_exact(text: int | str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", 0, -1, "-1", "0.5", "1i", "MiB", "1 XB", True, "1e9"])
def test_what_is_no_size_is_refused(text: int | str) -> None:
    with pytest.raises(ValueError, match="expected a size such as `256MiB`"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        (0, SkipLimit(None, 0), "0"),
        ("100", SkipLimit(None, 100), "100"),
        ("0.5%", SkipLimit(Fraction(1, 200)), "0.5%"),
        ("100 %", SkipLimit(Fraction(1)), "100%"),
        ("0.12345678901%", SkipLimit(Fraction(12345678901, 10**13)), "0.12345678901%"),
    ],
)
def test_a_limit_is_a_count_or_a_share(text: int | str, limit: SkipLimit, shown: str) -> None:
    assert SkipLimit.parse(text) == limit
    assert str(limit) == shown
    assert SkipLimit.parse(shown) == limit


@pytest.mark.parametrize("text", ["", "%", "-1", -1, "1.5", "101%", "a%", True])
def test_what_is_no_limit_is_refused(text: int | str) -> None:
    with pytest.raises(ValueError, match="expected a number of items such as `10`"):
        SkipLimit.parse(text)


@pytest.mark.parametrize(
    ("text", "skipped", "items", "allowed"),
    [
        ("0", 0, 10, True),
        ("0", 1, 10, False),
        ("3", 3, 3, True),
        ("10%", 1, 10, True),
        ("10%", 2, 19, False),
        ("10%", 1, 9, False),
        ("0.1%", 1, 1000, True),
        ("0.1%", 1, 999, False),
        ("10%", 0, 0, True),
    ],
)
def test_limits_are_kept_to_the_item(text: str, skipped: int, items: int, allowed: bool) -> None:
    assert SkipLimit.parse(text).allows(skipped, items) is allowed
