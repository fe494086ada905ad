"""Times as text: what a format of `strptime` looks like, as a regular expression.

The specifiers are those of Python's `time.strptime` that mean the same in every locale; names of
months and days are the English ones.
"""

from __future__ import annotations

import re

__all__ = ["is_packed_time", "time_pattern", "unknown_specifiers"]

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

_SPECIFIERS = {
    "a": "|".join(name[:3] for name in _DAYS),
    "A": "|".join(_DAYS),
    "b": "|".join(name[:3] for name in _MONTHS),
    "B": "|".join(_MONTHS),
    "d": "3[01]|[12][0-9]|0[1-9]|[1-9]",
    "e": " ?[1-9]|3[01]|[12][0-9]|0[1-9]",
    "f": "[0-9]{1,6}",
    "h": "|".join(name[:3] for name in _MONTHS),
    "H": "2[0-3]|[01][0-9]|[0-9]",
    "I": "1[0-2]|0[1-9]|[1-9]",
    "j": "36[0-6]|3[0-5][0-9]|[12][0-9]{2}|0[1-9][0-9]|00[1-9]|[1-9][0-9]|0[1-9]|[1-9]",
    "m": "1[0-2]|0[1-9]|[1-9]",
    "M": "[0-5][0-9]|[0-9]",
    "n": r"\s+",
    "p": "[AaPp][Mm]",
    "s": "-?[0-9]{1,20}",
    "S": "6[01]|[0-5][0-9]|[0-9]",
    "t": r"\s+",
    "U": "5[0-3]|[0-4][0-9]|[0-9]",
    "w": "[0-6]",
    "W": "5[0-3]|[0-4][0-9]|[0-9]",
    "y": "[0-9]{2}",
    "Y": "[0-9]{4}",
    "z": r"[+-][0-9]{2}:?[0-9]{2}(?::?[0-9]{2}(?:\.[0-9]{1,6})?)?|Z",
    "Z": "[A-Za-z]{1,5}",
    "%": "%",
}

_SHORT = {"D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M", "T": "%H:%M:%S"}
"""Specifiers that stand for others."""

_SPECIFIER = re.compile(r"%(.?)", re.DOTALL)


def unknown_specifiers(form: str) -> tuple[str, ...]:
    """The specifiers of a format that are not known here: ``("%Q",)``."""
    known = _SPECIFIERS.keys() | _SHORT.keys()
    return tuple(match[0] for match in _SPECIFIER.finditer(form) if match[1] not in known)


def time_pattern(form: str) -> re.Pattern[bytes] | None:
    """What text in that format matches as a whole; None where it holds what is not known here.

    Days are not held against months: the 31st of April matches.
    """
    if not form or unknown_specifiers(form):
        return None
    form = _SPECIFIER.sub(lambda match: _SHORT.get(match[1], match[0]), form)
    parts: list[str] = []
    last = 0
    for match in _SPECIFIER.finditer(form):
        parts += [re.escape(form[last : match.start()]), f"(?:{_SPECIFIERS[match[1]]})"]
        last = match.end()
    parts.append(re.escape(form[last:]))
    return re.compile("".join(parts).encode())


def is_packed_time(number: int) -> bool:
    """Whether a number is a time of day as `PACKED_64_NANOS` has it.

    From the top of 47 bits: 5 for the hour, 6 for the minute, 6 for the second, 30 for the
    nanoseconds; the layout of ZetaSQL's TIME.
    """
    hours, rest = number >> 42, number & (1 << 42) - 1
    minutes, rest = rest >> 36, rest & (1 << 36) - 1
    seconds, nanos = rest >> 30, rest & (1 << 30) - 1
    return 0 <= hours < 24 and minutes < 60 and seconds < 60 and nanos < 10**9
