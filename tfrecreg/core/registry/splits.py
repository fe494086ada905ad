"""Parses expressions for splits or parts of splits, and finds the records that they select.

The expressions are the same as in TensorFlow Datasets: ``train``, ``train[:80%]``,
``train[1000:2000]``, ``train[-500:]``, ``train[:2shard]``, ``train[3shard]``, ``train+validation``,
``all``. As in TFDS, a percentage is rounded to the nearest record, ``int(round(percent * records /
100.0))``, and a half is rounded to the even number. See https://www.tensorflow.org/datasets/splits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import did_you_mean, listed

ALL = "all"

_PART = re.compile(
    r"(?P<name>[^\[\]+]+?)\s*"
    r"(?:\[(?:(?P<start>[^\[\]:]*):(?P<stop>[^\[\]:]*)|(?P<one>\s*-?\d+)shard\s*)\])?"
)
_BOUND = re.compile(r"(?P<value>-?\d+(?:_\d+)*(?:\.\d+)?)(?P<unit>%|shard)?")
_FORMS = "`train`, `train[:80%]`, `train[1000:2000]`, `train[:2shard]`, `train+test` and `all` work"


def named_splits(words: str, splits: Sequence[str], name: str) -> list[str]:
    """The splits named in an expression, without duplicates."""
    found = [each for part, _ in _parts(words) for each in _splits(part, splits, name)]
    return list(dict.fromkeys(found))


def find_ranges(words: str, shards: Mapping[str, Sequence[int]]) -> list[tuple[str, range]]:
    """Each part of an expression, in order: the split, and the range of the split's records."""
    found: list[tuple[str, range]] = []
    for part, bounds in _parts(words):
        for split in _splits(part, list(shards), ""):
            found.append((split, _range(words, bounds, shards[split])))
    return found


def find_numbers(words: str, shards: Mapping[str, Sequence[int]]) -> list[range]:
    """The ranges of records that an expression selects, in the order of its parts. The records are
    numbered across all splits in `shards`.
    """
    counts = [sum(each) for each in shards.values()]
    starts = dict(zip(shards, accumulate(counts, initial=0), strict=False))
    return [
        range(starts[split] + part.start, starts[split] + part.stop)
        for split, part in find_ranges(words, shards)
    ]


def even_parts(numbers: range, count: int, *, drop_remainder: bool) -> list[range]:
    """Divide a range into contiguous parts as `tfds.even_splits` does, the larger parts first."""
    each, rest = divmod(len(numbers), count)
    if drop_remainder:
        rest = 0
    starts = [each * part + min(part, rest) for part in range(count + 1)]
    return [numbers[start:stop] for start, stop in pairwise(starts)]


def _parts(words: str) -> Iterator[tuple[str, tuple[str, str] | None]]:
    for part in words.split("+"):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise _malformed(words)
        bounds = None
        if match["one"] is not None:
            one = int(match["one"])
            # As in TFDS, the last shard is -1.
            bounds = f"{one}shard", f"{one + 1}shard" if one != -1 else ""
        elif match["start"] is not None:
            bounds = match["start"].strip(), match["stop"].strip()
            if bounds == ("", ""):
                raise _malformed(words)
        if bounds is not None and match["name"] == ALL:
            raise _malformed(words)
        yield match["name"], bounds


def _malformed(words: str) -> UsageError:
    return UsageError(f"`{words}` is not an expression for splits", hint=_FORMS)


def _splits(part: str, splits: Sequence[str], name: str) -> list[str]:
    if part in splits:
        return [part]
    if part == ALL:
        return sorted(splits)
    raise UsageError(
        f"`{name}` has no split `{part}`{did_you_mean(part, splits)}",
        hint=f"available: {listed(splits)}",
    )


def _range(words: str, bounds: tuple[str, str] | None, shards: Sequence[int]) -> range:
    records = sum(shards)
    if bounds is None:
        return range(records)
    units = set()
    for each in filter(None, bounds):
        match = _BOUND.fullmatch(each)
        if match is None or ("." in match["value"] and match["unit"] != "%"):
            raise _malformed(words)
        units.add(match["unit"] or "")
    if len(units) > 1:
        raise UsageError(
            f"`{words}` mixes units: both bounds should be percentages, record numbers or shards",
        )
    (unit,) = units
    start = _number(words, bounds[0], unit, shards) if bounds[0] else 0
    stop = _number(words, bounds[1], unit, shards) if bounds[1] else records
    if start > stop:
        raise UsageError(
            f"`{words}` begins at record {start}, but ends at record {stop}",
        )
    return range(start, stop)


def _number(words: str, bound: str, unit: str, shards: Sequence[int]) -> int:
    records = sum(shards)
    value = float(bound.removesuffix(unit).replace("_", "")) if unit == "%" else 0.0
    count, what = (len(shards), "shards") if unit == "shard" else (records, "records")
    number = round(value * records / 100.0) if unit == "%" else int(bound.removesuffix(unit))
    if abs(value) > 100 or abs(number) > count:
        raise UsageError(
            f"`{words}` reaches beyond its split, which has {count} {what}",
        )
    # As in TFDS, a small negative percentage is rounded to 0, which is the beginning.
    number = number if number >= 0 else count + number
    return sum(shards[:number]) if unit == "shard" else number
