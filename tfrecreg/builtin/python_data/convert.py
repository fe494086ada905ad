"""One element of a program's data: its key, its example, its payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrecreg.builtin.python_data.elements import CALLER, MapStyle
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.keys import feature_key
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.values import is_image, to_example
from tfrecreg.core.plugins.guard import calling, reason_of
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.text import safe

_RESULT = "key"
"""Name of the feature under which the result of a function is converted."""


def position_key(position: int) -> str:
    """The default key of an element: its number in its split, with at least five digits.

    It does not depend on the number of elements, so that a split that grows keeps its keys.
    """
    return f"{position:05d}"


@dataclass(frozen=True, slots=True)
class KeyRule:
    """The origin of keys: a feature, a function, or by default the element's number."""

    feature: str | None = None
    function: Callable[[Any], object] | None = None

    @classmethod
    def of(cls, given: str | Callable[[Any], object] | None) -> KeyRule:
        """The rule that `build(…, key=…)` names."""
        if given is None:
            return cls()
        if isinstance(given, str):
            return cls(feature=given)
        if callable(given):
            return cls(function=given)
        raise UsageError(
            f"`key` should be the name of a feature or a function, found an object of type "
            f"`{safe(type(given).__name__)}`",
            hint='`key="id"`, or `key=lambda element: element["id"]`',
        )

    @property
    def is_position(self) -> bool:
        """Whether keys are numbers of elements."""
        return self.feature is None and self.function is None

    def __str__(self) -> str:
        """The form in the manifest."""
        if self.feature is not None:
            return f"feature {self.feature}"
        return "position" if self.function is None else "function"


class ElementRecord(NamedTuple):
    """An element as it is written."""

    key: str
    example: Example
    payload: bytes
    has_image: bool
    """Whether Pillow encoded a value of it."""


@dataclass(frozen=True, slots=True)
class Converter:
    """Makes records of the elements of one split. Picklable where the function of the rule is."""

    split: str
    keys: KeyRule

    def convert(self, position: int, element: object) -> ElementRecord:
        """The record of an element."""
        if not isinstance(element, Mapping):
            kind = safe(type(element).__name__)
            raise RawDataError(
                f"{self._place(position)} is an object of type `{kind}`, expected a dictionary "
                "from feature name to value",
                hint='name its features: `{"image": image, "label": label}`; for arrays, give '
                "columns: a dictionary of arrays",
            )
        key = self._key(position, element)
        try:
            with calling(CALLER, "convert"):  # values may be of the caller's classes
                example = to_example(element)
                has_image = any(map(is_image, element.values()))
                return ElementRecord(key, example, encode(example), has_image)
        except UsageError as error:
            raise RawDataError(
                f"{self._place(position, key)}: {error.message}", hint=error.hint
            ) from error
        except Exception as error:
            raise RawDataError(
                f"{self._place(position, key)} cannot be converted: {reason_of(error)}",
                hint="give values as NumPy arrays, numbers, text or bytes",
            ) from error

    def element_of(self, sequence: MapStyle, position: int) -> Any:
        """An element of a sequence."""
        try:
            with calling(CALLER, "read"):
                return sequence[position]
        except Exception as error:
            hint = f'`data["{self.split}"][{position}]` raises it, and shows where'
            if isinstance(error, NotImplementedError) and hasattr(sequence, "__iter__"):
                hint = "elements that can only be read in turn are spooled: pass `iter(data)`"
            raise RawDataError(
                f"{self._place(position)} cannot be read: {reason_of(error)}", hint=hint
            ) from error

    def changed(self, position: int, key: str) -> RawDataError:
        """The error for an element that changed since the first pass."""
        return RawDataError(
            f"{self._place(position, key)} changed between two reads",
            hint="a sequence gives the same elements each time: leave out random augmentation; or "
            "pass `iter(data)`, which is read once",
        )

    def _key(self, position: int, element: Mapping[Any, Any]) -> str:
        rule = self.keys
        if rule.is_position:
            return position_key(position)
        what = f"the feature `{safe(rule.feature or '')}`"
        try:
            if rule.function is not None:
                what = "the result of the function `key`"
                with calling(CALLER, "key"):
                    value = rule.function(element)
            elif rule.feature not in element:
                raise RawDataError(
                    f"{self._place(position)} has no feature `{safe(rule.feature or '')}`, which "
                    "`key` names",
                    hint=f"its features: {', '.join(safe(str(each)) for each in element)}",
                )
            else:
                value = element[rule.feature]
            with calling(CALLER, "key"):
                key = feature_key(to_example({_RESULT: value}), _RESULT)
        except RawDataError:
            raise
        except Exception as error:
            raise RawDataError(
                f"{self._place(position)}: {what} cannot be a key: {reason_of(error)}", hint=_KEYS
            ) from error
        if key is None:
            raise RawDataError(f"{self._place(position)}: {what} cannot be a key", hint=_KEYS)
        return key

    def _place(self, position: int, key: str | None = None) -> str:
        named = "" if key is None else f", key `{safe(key)}`"
        return f"split `{safe(self.split)}`, element {position}{named}"


_KEYS = "a key is a text or a whole number"
