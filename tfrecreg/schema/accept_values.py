"""Widening the domain of a feature in a schema's text."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.schema.draft import quoted
from tfrecreg.schema.locate import Path
from tfrecreg.schema.model import (
    BoolDomain,
    Feature,
    FloatDomain,
    ImageDomain,
    IntDomain,
    StringDomain,
)
from tfrecreg.schema.needed import MAX_STRINGS, Need
from tfrecreg.schema.text_edit import TextEdit
from tfrecreg.schema.wording import counted
from tfrecreg.suggest import listed
from tfrecreg.text import safe

__all__ = ["ValueEdits"]

_DOMAINS = (
    "domain",
    "int_domain",
    "float_domain",
    "string_domain",
    "bool_domain",
    "natural_language_domain",
    "image_domain",
    "mid_domain",
    "url_domain",
    "time_domain",
    "time_of_day_domain",
)
_SHOWN = 5

_TOO_MANY = f"over {MAX_STRINGS} strings are outside its domain, or long ones: widen it by hand"


class ValueEdits:
    """Edits of domains.

    Args:
        text: the schema's text.
    """

    def __init__(self, text: TextEdit) -> None:
        self._text = text

    def remove_domain(self, feature: Path) -> Iterator[str]:
        """Take out the domain of the feature at a path; names what was taken out."""
        for name in _DOMAINS:
            path: Path = (*feature, name, 0)
            if self._text.has(path):
                self._text.remove(path)
                yield name

    def allow(self, feature: Path, shared: Path | None, fields: list[str]) -> None:
        """Let the float domain of a feature allow what `fields` (``disallow_nan``) are about."""
        place = shared or (*feature, "float_domain", 0)
        if not self._text.has(place):
            said = " ".join(f"{field}: false" for field in fields)
            self._text.insert(feature, f"float_domain {{ {said} }}")
            return
        for field in fields:
            self._text.set(place, field, "false")

    def widen(
        self, feature: Feature, need: Need, path: Path, shared: Path | None
    ) -> list[str] | str:
        """Widen a feature's domain to what was found.

        Args:
            feature: the feature.
            need: what was found outside its domain.
            path: where the feature is.
            shared: where the domain is that it refers to, None where it has its own.

        Returns:
            what was changed, as phrases; or why nothing was.
        """
        domain = feature.domain
        if isinstance(domain, StringDomain):
            return self._strings(need, shared or (*path, "string_domain", 0))
        if isinstance(domain, BoolDomain):
            return self._bool(feature, domain, need, (*path, "bool_domain", 0))
        if isinstance(domain, ImageDomain):
            self._text.set((*path, "image_domain", 0), "max_image_byte_size", str(need.largest))
            return [f"pictures of at most {counted(need.largest, 'byte')}"]
        if isinstance(domain, IntDomain | FloatDomain):
            name = "int_domain" if isinstance(domain, IntDomain) else "float_domain"
            return self._range(domain, need, shared or (*path, name, 0))
        return "its values are not in the format that the schema names: correct one of the two"

    def _strings(self, need: Need, place: Path) -> list[str] | str:
        if need.strings is None:
            return _TOO_MANY
        try:
            words = sorted(value.decode("utf-8") for value in need.strings)
        except UnicodeDecodeError:
            return "a value outside its domain is not UTF-8, and cannot be written in a schema"
        self._text.extend(place, "value", [quoted(word) for word in words])
        shown = listed(words[:_SHOWN]) if len(words) <= _SHOWN else f"{len(words)} strings"
        return [f"{shown} added to its domain"]

    def _range(self, domain: IntDomain | FloatDomain, need: Need, place: Path) -> list[str] | str:
        low, high = need.low, need.high
        if need.strings:
            numbers = [_number(value, isinstance(domain, IntDomain)) for value in need.strings]
            known = [number for number in numbers if number is not None]
            if len(known) != len(numbers):
                return "a value of it is no number: correct the data, or remove the domain"
            low, high = min(known), max(known)
        if need.strings is None:
            return _TOO_MANY
        changes = []
        if low is not None and domain.min is not None and low < domain.min:
            self._text.set(place, "min", _shown(low))
            changes.append(f"numbers from {_shown(low)}")
        if high is not None and domain.max is not None and high > domain.max:
            self._text.set(place, "max", _shown(high))
            changes.append(f"numbers up to {_shown(high)}")
        return changes or "a number that is not finite is outside its bounds: remove them by hand"

    def _bool(
        self, feature: Feature, domain: BoolDomain, need: Need, place: Path
    ) -> list[str] | str:
        if feature.type != "BYTES":
            low, high = min(0, need.low or 0), max(1, need.high or 1)
            name = "int_domain" if feature.type == "INT" else "float_domain"
            self._text.replace(place, f"{name} {{ min: {_shown(low)} max: {_shown(high)} }}")
            return [f"numbers from {_shown(low)} to {_shown(high)} in place of a bool"]
        if need.strings is None:
            return _TOO_MANY
        given = [name for name in (domain.true_value, domain.false_value) if name is not None]
        try:
            words = given + sorted(value.decode("utf-8") for value in need.strings)
        except UnicodeDecodeError:
            return "a value outside its domain is not UTF-8, and cannot be written in a schema"
        values = " ".join(f"value: {quoted(word)}" for word in words)
        self._text.replace(place, f"string_domain {{ {values} }}")
        shown = ", ".join(f"`{safe(word)}`" for word in words[:_SHOWN])
        return [f"one of {shown}{' …' if len(words) > _SHOWN else ''} in place of a bool"]


def _number(value: bytes, whole: bool) -> float | int | None:
    try:
        return int(value) if whole else float(value)
    except ValueError:
        return None


def _shown(number: float | int) -> str:
    return str(number) if isinstance(number, int) else f"{number:.9g}"
