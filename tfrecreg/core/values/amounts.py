"""Sizes and limits as text, for the command line and `tfrecreg.toml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1}
_UNITS |= {unit: 1000 ** (power + 1) for power, unit in enumerate(("kb", "mb", "gb", "tb"))}
_UNITS |= {unit: 1024 ** (power + 1) for power, unit in enumerate(("kib", "mib", "gib", "tib"))}
_COUNT = re.compile(r"\d+")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def parse_size(value: int | str) -> int:
    """A size in bytes: ``1048576``, ``"256MiB"``, ``"1.5 GB"`` (MB is 10^6, MiB is 2^20)."""
    from fractions import Fraction  # here and below: few commands need it

    match = _SIZE.fullmatch(str(value).strip()) if _is_amount(value) else None
    size = Fraction(match[1]) * _UNITS[(match[2] or "").lower()] if match else Fraction(0)
    if size < 1:
        raise ValueError("expected a size such as `256MiB`, `1.5GB` or a number of bytes")
    return int(size)


@dataclass(frozen=True, slots=True)
class SkipLimit:
    """The limit on skipped items of a build: a count, or a share of all items."""

    share: Fraction | None
    """Share of all items, 0 to 1; None if `count` applies."""
    count: int = 0

    @classmethod
    def parse(cls, value: int | str) -> SkipLimit:
        """``100`` or ``"100"`` items, or ``"0.5%"`` of them."""
        from fractions import Fraction

        text = str(value).strip() if _is_amount(value) else ""
        if _COUNT.fullmatch(text):
            return cls(None, int(text))
        percent = _PERCENT.fullmatch(text)
        if percent is None or Fraction(percent[1]) > 100:
            raise ValueError("expected a number of items such as `10`, or a share such as `0.5%`")
        return cls(Fraction(percent[1]) / 100)

    def allows(self, skipped: int, items: int) -> bool:
        """Whether `skipped` of `items` are within the limit. Exact: no rounding."""
        return skipped <= (self.count if self.share is None else self.share * items)

    def __str__(self) -> str:
        if self.share is None:
            return str(self.count)
        percent = self.share * 100
        # Percentages are written as decimals, so this division is exact.
        exact = Decimal(percent.numerator) / Decimal(percent.denominator)
        return f"{exact.normalize():f}%"


def _is_amount(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)
