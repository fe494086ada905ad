"""Converts one element of a program's data to its key, its example and its payload.

A program may pass a split as a sequence, as columns, or as an iterable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from typing import Any, NamedTuple, Protocol, TypeAlias

from tfrecreg.core.example.model import Example, encode, feature_key
from tfrecreg.core.example.values import is_image, to_example
from tfrecreg.core.plugins.guard import calling, reason_of
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.text import did_you_mean


class MapStyle(Protocol):
    """A sequence that returns elements by number, as in PyTorch, Grain and Hugging Face."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> Any: ...


SplitData = MapStyle | Mapping[str, MapStyle] | Iterable[Any]
"""A sequence of elements, a dictionary of columns of equal length, or an iterable of elements.
An element is a dictionary from feature name to value."""


@contextmanager
def calling_program(what: str) -> Iterator[None]:
    """A block that calls the program's code. If the code fails, the error begins with `what`."""
    try:
        with calling():
            yield
    except Exception as error:
        hint = error.hint if isinstance(error, UsageError) else ""
        raise RawDataError(f"{what}: {reason_of(error)}", hint=hint) from error


class FeatureColumns:
    """Makes a sequence of elements from columns of equal length."""

    def __init__(self, split: str, columns: Mapping[str, Any]) -> None:
        self._columns: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for name, column in columns.items():
            if not _is_map_style(column):
                raise RawDataError(
                    f"split `{split}`: the column `{name}` is an object of type "
                    f"`{type(column).__name__}`, expected an array or a list"
                )
            # pandas finds values of a Series by label.
            self._columns[name] = column.to_numpy() if hasattr(column, "iloc") else column
            lengths[str(name)] = length_of(split, column)
        if not lengths:
            raise RawDataError(f"split `{split}` is an empty dictionary, expected columns")
        self._length = next(iter(lengths.values()))
        for name, length in lengths.items():
            if length != self._length:
                first = next(iter(lengths))
                raise RawDataError(
                    f"split `{split}`: the column `{first}` has {self._length:,} "
                    f"values, `{name}` has {length:,}"
                )

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, position: int) -> dict[str, Any]:
        return {name: column[position] for name, column in self._columns.items()}


def sequence_or_iterator(split: str, given: object) -> MapStyle | Iterator[Any]:
    """The elements of a split."""
    if isinstance(given, Mapping):
        return FeatureColumns(split, given)
    if hasattr(given, "iloc"):
        raise RawDataError(f"split `{split}` is a pandas object: its elements have labels")
    if _is_map_style(given):
        return given  # type: ignore[return-value]  # it has both methods
    with calling_program(f"split `{split}` cannot be read"):
        elements: Iterator[Any] = iter(given)  # type: ignore[call-overload]
        # Python iterates over a sequence without `__iter__` until it raises an IndexError, which
        # sequences of PyTorch need not do.
        count = length_hint(elements, -1) if isinstance(elements, _OF_SEQUENCE) else -1
        return elements if count < 0 else islice(elements, count)


class _ByNumber:
    def __getitem__(self, position: int) -> None: ...


_OF_SEQUENCE = type(iter(_ByNumber()))
"""The type of iterators over sequences without ``__iter__``."""


def length_of(split: str, sequence: MapStyle) -> int:
    """The number of elements."""
    with calling_program(f"split `{split}` has no known length, so pass `iter(data)`"):
        return len(sequence)


def _is_map_style(value: object) -> bool:
    return hasattr(value, "__getitem__") and hasattr(value, "__len__")


_RESULT = "key"
"""The result of the function `key` is converted like the value of a feature with this name."""


def position_key(position: int) -> str:
    """The default key of an element: its number in its split, with at least five digits.

    It does not depend on the number of elements, so a growing split keeps its keys.
    """
    return f"{position:05d}"


KeyRule: TypeAlias = str | Callable[[Any], object] | None
"""Where keys come from: a feature, a function, or by default the element's number."""


def key_rule_text(rule: KeyRule) -> str:
    """The text that describes the rule in the manifest."""
    if rule is None:
        return "position"
    return f"feature {rule}" if isinstance(rule, str) else "function"


class ElementRecord(NamedTuple):
    """An element in the form in which it is written."""

    key: str
    example: Example
    payload: bytes
    has_image: bool
    """Whether Pillow encoded one of the element's values."""


@dataclass(frozen=True, slots=True)
class Converter:
    """Converts the elements of one split to records. Picklable if the key function is picklable."""

    split: str
    keys: KeyRule

    def convert(self, position: int, element: object) -> ElementRecord:
        """The record of an element."""
        if not isinstance(element, Mapping):
            kind = type(element).__name__
            raise RawDataError(
                f"{self._place(position)} is an object of type `{kind}`, expected a dictionary "
                "from feature name to value"
            )
        key = self._key(position, element)
        with calling_program(self._place(position, key)):  # values may be of its classes
            example = to_example(element)
            has_image = any(map(is_image, element.values()))
            return ElementRecord(key, example, encode(example), has_image)

    def changed(self, position: int, key: str) -> RawDataError:
        """The error for an element that changed since the first pass."""
        return RawDataError(
            f"{self._place(position, key)} changed between two reads",
            hint="a sequence has to give the same elements each time: leave out random "
            "augmentation, or pass `iter(data)`, which is read once",
        )

    def _key(self, position: int, element: Mapping[Any, Any]) -> str:
        rule = self.keys
        if rule is None:
            return position_key(position)
        what = "the result of the function `key`"
        if isinstance(rule, str):
            what = f"the feature `{rule}`"
            if rule not in element:
                raise RawDataError(
                    f"{self._place(position)} has no feature `{rule}`, which `key` names"
                    + did_you_mean(rule, map(str, element))
                )
        with calling_program(f"{self._place(position)}: {what} cannot be a key"):
            value = element[rule] if isinstance(rule, str) else rule(element)
            key = feature_key(to_example({_RESULT: value}), _RESULT)
            if key is None:
                raise UsageError("expected a text or an integer")
            return key

    def _place(self, position: int, key: str | None = None) -> str:
        named = "" if key is None else f", key `{key}`"
        return f"split `{self.split}`, element {position}{named}"
