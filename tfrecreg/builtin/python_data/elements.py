"""The forms in which a split may be given: a sequence, columns, or an iterable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import length_hint
from typing import Any, Protocol

from tfrecreg.core.plugins.guard import PluginId, calling, reason_of
from tfrecreg.core.values.errors import RawDataError
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
