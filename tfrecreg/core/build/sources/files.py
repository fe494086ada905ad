"""The splits of files by their names: `train-000000.tar`, `data/test-00000-of-00001.parquet`.

Sets of numbered files that lack one: `train-00001-of-00003.parquet` where the others exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from tfrecreg.core.build.sources.interface import Skipped
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.shards import is_split_word, normal_splits
from tfrecreg.core.values.text import listed, safe

_DEFAULT_SPLIT = "train"
_HUB = re.compile(r"(?:.*/)?data/(?P<split>\w+)-[0-9]{5}-of-[0-9]{5}(?:-\w+)?\.\w+", re.ASCII)
_WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*", re.ASCII)


def splits_of_files(paths: Sequence[str], rules: Sequence[str] = ()) -> dict[str, str]:
    """Each file and its split. Files that no rule takes are absent.

    Without rules, a file's split is the split in its path: `data/NAME-00000-of-00001.parquet` as
    Hugging Face writes it, or a usual word such as `val` in its name, otherwise in its folders. If
    no file has one, all are of the split `train`.

    Args:
        paths: the files.
        rules: ``SPLIT=PATTERN``, for paths that the pattern matches; `*` also matches slashes. The
            first rule that takes a file decides.

    Raises:
        UsageError: a rule is not in that form, or takes no file.
        RawDataError: some paths name a split, and some do not.
    """
    if rules:
        return _by_rules(paths, rules)
    words = {path: _word(path) for path in paths}
    named = {path: word for path, word in words.items() if word}
    without = next((path for path, word in words.items() if not word), None)
    if named and without is not None:
        example, word = next(iter(named.items()))
        raise RawDataError(
            f"`{safe(example)}` names the split `{safe(word)}`, and `{safe(without)}` names none",
            hint="assign all files: `--option 'splits=train=PATTERN,test=PATTERN'`",
        )
    normal = normal_splits(sorted(set(named.values())))
    return {path: normal[word] if word else _DEFAULT_SPLIT for path, word in words.items()}


def _by_rules(paths: Sequence[str], rules: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for rule in rules:
        split, equals, pattern = rule.partition("=")
        if not (equals and pattern and re.fullmatch(r"[A-Za-z0-9]\w*", split, re.ASCII)):
            raise UsageError(
                f"`splits` expects SPLIT=PATTERN, found `{safe(rule)}`",
                hint="--option 'splits=train=a-*,test=b-*'",
            )
        taken = [path for path in paths if fnmatchcase(path, pattern)]
        if not taken:
            raise UsageError(
                f"no file matches `{safe(pattern)}` of the option `splits`",
                hint=f"the files are {listed(paths, most=3)}",
            )
        for path in taken:
            found.setdefault(path, split)
    return found


def _word(path: str) -> str:
    """The split that a path names; empty for none."""
    hub = _HUB.fullmatch(path)
    if hub:
        return hub["split"]
    folder, _, name = path.rpartition("/")
    for part in (name, *reversed(folder.split("/"))):
        words = [each for found in _WORD.findall(part) for each in (found, *found.split("_"))]
        for word in reversed(words):
            if is_split_word(word):
                return str(word)
    return ""


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
