"""Lists the files of raw data, reads splits from their names, and makes remarks on them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal

from tfrecreg.core.build.sources.interface import Remark, Skipped
from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.shards import is_split_word, normal_splits
from tfrecreg.core.values.text import listed, safe

Symlinks = Literal["all", "inside", "none"]
"""Which links are followed: all, links that stay in the raw folder, or none."""

_SYSTEM_NAMES = frozenset(
    {
        *("$recycle.bin", "@eadir", "__macosx", "desktop.ini"),
        *("ehthumbs.db", "icon\r", "lost+found", "thumbs.db"),
    }
)
"""In lower case."""
_MAX_LINKS = 10_000
"""Maximum number of followed links to folders, because circular links multiply exponentially."""


def list_files(raw: Readable, folder: str = "", *, symlinks: Symlinks = "all") -> Iterator[Entry]:
    """Everything below a folder except folders, in the order of the paths' bytes.

    Links to files and to folders are followed. A link to a file is listed with the kind ``file``
    and the size of that file. A link that is broken, circular or not followed has the kind
    ``link``; a FIFO or a device has the kind ``other``.

    Raises:
        RawDataError: there are too many links to folders.
    """
    followed = 0
    waiting = [raw.list(folder)]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif entry.kind != "link":
            if entry.kind != "dir":
                yield entry
        else:
            found = None if symlinks == "none" else raw.stat(entry.path, follow=symlinks)
            if found is None or found.kind in ("file", "link", "other"):
                yield entry if found is None else replace(found, path=entry.path)
            elif _is_circle(raw, found, entry.path):
                yield entry
            else:
                followed += 1
                if followed > _MAX_LINKS:
                    raise RawDataError(
                        f"`{raw.root}` has more than {_MAX_LINKS} symbolic links to folders"
                    )
                waiting.append(raw.list(entry.path))


def hidden_part(path: str) -> str:
    """The part of a path up to its first hidden or system file name; empty if there is none."""
    parts = path.split("/")
    for number, name in enumerate(parts, 1):
        if name.startswith(".") or name.lower() in _SYSTEM_NAMES:
            return "/".join(parts[:number])
    return ""


def link_problem(symlinks: Symlinks) -> str:
    """Why a link was not followed, in words: `a symbolic link, which …`."""
    if symlinks == "none":
        return "a symbolic link, which `symlinks=none` does not follow"
    out = "out of the raw folder, " if symlinks == "inside" else ""
    return f"a symbolic link that leads {out}nowhere or in a circle"


def read_text(
    raw: Readable,
    path: str,
    *,
    limit: int = 1 << 28,
    entry: Entry | None = None,
    symlinks: Symlinks = "all",
) -> str:
    """The text of a small file, without its byte order mark.

    Args:
        entry: the entry from :func:`list_files`, if known. An unfollowed link has the kind
            ``link``.
        symlinks: the links that :func:`list_files` followed.

    Raises:
        RawDataError: the file is an unfollowed link, is larger than `limit` bytes, or is not UTF-8.
    """
    if entry is not None and entry.kind == "link":
        raise RawDataError(f"`{path}` is {link_problem(symlinks)}")
    with raw.open(path) as file:
        if file.size > limit:
            raise RawDataError(f"`{path}` has {file.size:,} bytes, expected at most {limit:,}")
        data = file.read_at(0, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text, start = error.object, error.start  # without the byte order mark
        line = text.count(b"\n", 0, start) + 1
        raise RawDataError(
            f"`{path}` is not UTF-8: line {line} has the byte 0x{text[start]:02x}"
        ) from None


def similar_names(split: str, key: str, names: Iterable[str]) -> Iterator[Remark]:
    """One remark on class names that differ only in case, spaces or Unicode normal form."""
    seen: dict[str, str] = {}
    pairs = []
    for name in filter(None, names):
        plain = " ".join(_plain(name).split())
        if plain in seen:
            pairs.append((seen[plain], name))
        seen.setdefault(plain, name)
    if pairs:
        one, other = (safe(name, limit=60) for name in pairs[0])
        detail = f"`{one}` and `{other}` are two classes"
        yield Remark(split, key, "SRC119", detail, len(pairs))


def similar_paths(split: str, paths: Callable[[], Iterable[str]]) -> Iterator[Remark]:
    """One remark on files whose paths differ only in case or Unicode normal form. If such files
    exist, `paths` is called again, because only hashes of the paths are kept.
    """
    import numpy as np  # plans use it, plain listings do not

    hashes = np.fromiter((hash(_plain(path)) for path in paths()), np.int64)
    hashes.sort()
    twice = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if not twice:
        return
    seen: dict[str, str] = {}
    similar = []
    for path in paths():
        plain = _plain(path)
        if hash(plain) in twice and seen.setdefault(plain, path) != path:
            similar.append(path)
    if similar:
        yield paths_remark(split, "SRC119", similar, "another file's name differs only in case")


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def path_ends(text: str) -> list[str]:
    """The trailing parts of another machine's path, longest first: `a/b/c`, `b/c`, `c`.

    Windows separators are accepted; a drive and parts such as `..` are left out.
    """
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if parts and parts[0].endswith(":"):
        del parts[0]
    return ["/".join(parts[start:]) for start in range(len(parts))]


def paths_remark(split: str, code: str, paths: Sequence[str], why: str) -> Remark:
    """One remark on several files. It names at most three of them."""
    shown = ", ".join(f"`{safe(path, limit=100)}`" for path in paths[:3])
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return Remark(split, paths[0], code, f"{why}: {shown}{more}", len(paths))


def _is_circle(raw: Readable, found: Entry, path: str) -> bool:
    """Whether a link leads to one of the folders above the link."""
    while path:
        path = path.rpartition("/")[0]
        above = raw.stat(path, follow="all")
        if above is not None and (above.device, above.inode) == (found.device, found.inode):
            return True
    return False


_DEFAULT_SPLIT = "train"
_HUB = re.compile(r"(?:.*/)?data/(?P<split>[^\W_]\w*)-[0-9]{5}-of-[0-9]{5}(?:-\w+)?\.\w+", re.ASCII)
_WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*", re.ASCII)


def splits_of_files(paths: Sequence[str], rules: Sequence[str] = ()) -> dict[str, str]:
    """Each file and its split. A file that no rule matches is absent.

    Without rules, the split is read from a file's path. In a path of Hugging Face, such as
    `data/NAME-00000-of-00001.parquet`, the split is `NAME`. In any other path, it is a usual word
    such as `val` in the file's name or, failing that, in its folders. If no path names a split, all
    files are in `train`.

    Args:
        paths: the paths of the files.
        rules: each ``SPLIT=PATTERN`` puts paths that match the pattern into the split. `*` also
            matches slashes. The first matching rule decides.

    Raises:
        UsageError: a rule is not in that form, or matches no file.
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
            f"`{example}` names the split `{word}`, but `{without}` names none",
            hint="`--option 'splits=train=PATTERN,test=PATTERN'` assigns all files",
        )
    normal = normal_splits(sorted(set(named.values())))
    return {path: normal[word] if word else _DEFAULT_SPLIT for path, word in words.items()}


def _by_rules(paths: Sequence[str], rules: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for rule in rules:
        split, equals, pattern = rule.partition("=")
        if not (equals and pattern and re.fullmatch(r"[A-Za-z0-9]\w*", split, re.ASCII)):
            raise UsageError(f"`splits` expects SPLIT=PATTERN, found `{rule}`")
        taken = [path for path in paths if fnmatchcase(path, pattern)]
        if not taken:
            raise UsageError(
                f"no file matches `{pattern}` of the option `splits`: the files are "
                f"{listed(paths, most=3)}"
            )
        for path in taken:
            found.setdefault(path, split)
    return found


def _word(path: str) -> str:
    """The split name found in a path; empty if the path has none."""
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
    """An entry with the code SRC112 for each numbered set of files that is incomplete.

    The names state how many files a set has: `data/train-00000-of-00003.parquet` is one of three.
    The first file of a set has the number 0 or 1. The text after the count may differ within a set.
    For example, Hugging Face writes a fingerprint there in some file names.

    Args:
        paths: all files of a kind, including files that the source leaves out.
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
        yield Skipped(split, name, "SRC112", detail)
