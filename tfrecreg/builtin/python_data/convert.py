"""One element of a program's data: its key, its example, its payload.

The forms in which a split may be given: a sequence, columns, or an iterable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from typing import Any, NamedTuple, Protocol

from tfrecreg.core.example.model import Example, encode, feature_key
from tfrecreg.core.example.values import is_image, to_example
from tfrecreg.core.plugins.guard import PluginId, calling, reason_of
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.text import safe

CALLER = PluginId("data", "python")
"""The code of the caller's data, which runs under the guard."""


class MapStyle(Protocol):
    """A sequence as PyTorch, Grain and Hugging Face have them: elements by their number."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> Any: ...


SplitData = MapStyle | Mapping[str, MapStyle] | Iterable[Any]
"""A sequence of elements, or a dictionary of columns of equal length, or an iterable of elements.
An element is a dictionary from feature name to value."""


class FeatureColumns:
    """Columns of equal length as a sequence of elements."""

    def __init__(self, split: str, columns: Mapping[str, Any]) -> None:
        self._columns: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for name, column in columns.items():
            if not _is_map_style(column):
                raise RawDataError(
                    f"split `{safe(split)}`: the column `{safe(str(name))}` is an object of type "
                    f"`{safe(type(column).__name__)}`, expected an array or a list",
                    hint=_COLUMNS,
                )
            # pandas finds the values of a Series by label.
            self._columns[name] = column.to_numpy() if hasattr(column, "iloc") else column
            lengths[str(name)] = length_of(split, column)
        if not lengths:
            raise RawDataError(f"split `{safe(split)}` is an empty dictionary", hint=_COLUMNS)
        self._length = next(iter(lengths.values()))
        for name, length in lengths.items():
            if length != self._length:
                first = next(iter(lengths))
                raise RawDataError(
                    f"split `{safe(split)}`: the column `{safe(first)}` has {self._length:,} "
                    f"values, `{safe(name)}` has {length:,}",
                    hint="columns have one value for each element",
                )

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, position: int) -> dict[str, Any]:
        return {name: column[position] for name, column in self._columns.items()}


_COLUMNS = 'a dictionary is one of columns: `{"image": images, "label": labels}`'
_FORMS = "give a sequence of dictionaries, a dictionary of columns, or an iterable of dictionaries"


def sequence_or_iterator(split: str, given: object) -> MapStyle | Iterator[Any]:
    """The elements of a split."""
    if isinstance(given, Mapping):
        return FeatureColumns(split, given)
    if isinstance(given, (str, bytes, bytearray, memoryview)):
        kind = safe(type(given).__name__)
        raise RawDataError(
            f"split `{safe(split)}` is an object of type `{kind}`, which holds no elements",
            hint=f"{_FORMS}; folders of files are read by a source: `source=`, `raw=`",
        )
    if hasattr(given, "iloc"):
        raise RawDataError(
            f"split `{safe(split)}` is an object of pandas, which has no elements by number",
            hint="give its columns: `{name: frame[name].to_numpy() for name in frame}`",
        )
    if _is_map_style(given):
        return given  # type: ignore[return-value]  # it has both methods
    try:
        with calling(CALLER, "iter"):
            return _bounded(iter(given))  # type: ignore[call-overload]
    except Exception as error:
        raise RawDataError(
            f"split `{safe(split)}` cannot be read: {reason_of(error)}", hint=_FORMS
        ) from error


def length_of(split: str, sequence: MapStyle) -> int:
    """The number of elements."""
    try:
        with calling(CALLER, "len"):
            return len(sequence)
    except Exception as error:
        raise RawDataError(
            f"split `{safe(split)}`: the length is not known: {reason_of(error)}",
            hint="an iterator has no length and is spooled: pass `iter(data)`",
        ) from error


def _bounded(elements: Iterator[Any]) -> Iterator[Any]:
    """The same elements, at most as many as the sequence has.

    Python iterates over a sequence without ``__iter__`` until it raises an IndexError, which those
    of PyTorch need not do.
    """
    if not isinstance(elements, _OF_SEQUENCE):
        return elements
    count = length_hint(elements, -1)
    return elements if count < 0 else islice(elements, count)


class _ByNumber:
    def __getitem__(self, position: int) -> None: ...


_OF_SEQUENCE = type(iter(_ByNumber()))
"""The type of iterators over sequences without ``__iter__``."""


def _is_map_style(value: object) -> bool:
    return hasattr(value, "__getitem__") and hasattr(value, "__len__")


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
