"""Suggestions: close matches for names that do not exist.

A base class of plugins inherits from :class:`ExtensionPoint`, so that a misspelled method is an
error and not a method without calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from tfrecreg.core.values.text import safe

_CLOSE = 0.8
"""Similarity from which on a method of a plugin counts as a misspelled one of its base class."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean `mnist`?`` if one of `known` is close to `name`, else an empty text.

    It is the end of a message: ``no source named `mnits`; did you mean `mnist`?``
    """
    matches = get_close_matches(name, sorted(set(known)), n=1, cutoff=0.6)
    return f"; did you mean `{safe(matches[0])}`?" if matches else ""


def listed(names: Iterable[str], *, word: str = "and", most: int | None = None) -> str:
    """Names for a sentence, in the order given: ``none``, `` `a` ``, `` `a`, `b` and `c` ``.

    Of more than `most` names, the first ones and a number: `` `a`, `b` and 6 more ``.
    """
    shown = [f"`{safe(name)}`" for name in names]
    if most is not None and len(shown) > most:
        return f"{', '.join(shown[:most])} {word} {len(shown) - most:,} more"
    if len(shown) < 2:
        return shown[0] if shown else "none"
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


class ExtensionPoint:
    """Base of the classes that plugins inherit from.

    A subclass may have any public methods of its own, but none whose name is close to one that the
    base class defines: that is a TypeError when the class is created.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
        points = [base for base in cls.__mro__[1:] if base.__module__.startswith("tfrecreg.")]
        known = sorted(
            {
                name
                for base in points
                for name in (*vars(base), *vars(base).get("__annotations__", {}))
                if not name.startswith("_")
            }
        )
        for name, value in vars(cls).items():
            is_method = callable(value) or isinstance(value, property | classmethod | staticmethod)
            if name.startswith("_") or name in known or name in inherited or not is_method:
                continue
            for meant in get_close_matches(name, known, n=1, cutoff=_CLOSE):
                raise TypeError(
                    f"`{cls.__name__}.{name}` is not a method of {points[0].__name__}; did you "
                    f"mean `{meant}`? If not, begin its name with an underscore"
                )


def overrides(thing: object, base: type, name: str) -> bool:
    """Whether an object defines the optional method `name` itself, rather than the default of
    `base`.

    It need not inherit from `base`.
    """
    return hasattr(thing, name) and getattr(type(thing), name, None) is not getattr(base, name)
