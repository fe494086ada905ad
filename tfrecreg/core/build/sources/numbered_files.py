"""Sets of numbered files that lack one: `train-00001-of-00003.parquet` where the others exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from tfrecreg.core.build.sources.interface import Skipped
from tfrecreg.core.values.text import safe

_NUMBERED = re.compile(
    r"(?P<stem>.*(?<![0-9])|)(?P<number>[0-9]{1,9})(?P<of>[-_]of[-_])(?P<count>[0-9]{1,9})(?![0-9])"
    r"(?P<rest>.*)",
    re.DOTALL,
)


def missing_files(paths: Iterable[str], splits: Mapping[str, str]) -> Iterator[Skipped]:
    """An entry with the code SRC037 for each numbered set of files that is incomplete.

    The names say how many files a set has: `data/train-00000-of-00003.parquet` is one of three.
    Numbers begin with 0 or 1. What follows the count, such as the fingerprint in some names of
    Hugging Face, may differ within a set.

    Args:
        paths: all files of a kind, including those that the source leaves out.
        splits: the split of each file that the source reads. Sets without such a file are ignored.
    """
    sets: dict[tuple[str, ...], dict[int, re.Match[str]]] = {}
    for path in paths:
        match = _NUMBERED.fullmatch(path)
        if match is not None:
            key = (match["stem"], match["of"], match["count"], match["rest"].rpartition(".")[2])
            sets.setdefault(key, {})[int(match["number"])] = match
    for (stem, of, counted, ending), found in sets.items():
        split = next((splits[each[0]] for each in found.values() if each[0] in splits), None)
        count = int(counted)
        first = 1 if 0 not in found and count in found else 0
        numbers = range(first, first + count)
        lacking = next((each for each in numbers if each not in found), None)
        if split is None or lacking is None:
            continue
        endings = {each["rest"] for each in found.values()}
        rest = endings.pop() if len(endings) == 1 else f"*.{ending}"
        digits = len(next(iter(found.values()))["number"])
        name = f"{stem}{lacking:0{digits}}{of}{counted}{rest}"
        here = sum(each in numbers for each in found)
        detail = f"`{safe(name, limit=200)}` is missing: {here:,} of {count:,} such files exist"
        yield Skipped(split, name, "SRC037", detail)
