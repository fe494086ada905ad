"""Which split a file is of: what was said comes first, then its name, then its folder's.

Nothing is guessed: where neither says it, files are refused, but for a single set that says
nothing of splits at all, which is `train`.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tfrecreg.errors import UsageError
from tfrecreg.scan import Shard
from tfrecreg.shards import ShardName, is_split_word, normal_split, parse_shard_name
from tfrecreg.text import safe

__all__ = ["DEFAULT_SPLIT", "deal"]

DEFAULT_SPLIT = "train"
"""Of a single set whose names say nothing."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_TFX = re.compile(r"split-(?P<split>\w+)", re.IGNORECASE)
_PATH = 1000


@dataclass(frozen=True, slots=True)
class _File:
    shard: Shard
    name: ShardName | None
    folder: str

    @property
    def group(self) -> tuple[str, str]:
        """What the files of one set have in common."""
        return self.folder, self.name.stem if self.name is not None else self.base

    @property
    def base(self) -> str:
        return self.shard.path.rpartition("/")[2]

    def order(self) -> tuple[tuple[str, str], int, bytes]:
        number = self.name.number if self.name is not None else 0
        return self.group, number, os.fsencode(self.base)


def deal(shards: Iterable[Shard], rules: Sequence[tuple[str, str]]) -> dict[str, list[Shard]]:
    """The files by split, in order of the split's name; in a split by set and number.

    Args:
        shards: of bare files.
        rules: split and glob. A glob without a slash is held against the file's name, one with
            slashes against the end of its path.

    Raises:
        UsageError: nothing says which split a file is of, two rules take one file, a rule takes
            none, or two sets would become one split because of what they are called.
    """
    for split, _ in rules:
        if not _NAME.fullmatch(split):
            raise UsageError(
                f"`{safe(split)}` is no name of a split: expected letters, digits and `_`",
                hint="--split NAME=GLOB, such as --split train='a-*.tfrecord'",
            )
    files = [_file(shard) for shard in shards]
    said = _by_rules(files, rules)
    rest = [file for file in files if file.shard.path not in said]
    found = said | _by_names(rest, alone=not rules)
    splits: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        splits[found[file.shard.path]].append(file)
    return {
        split: [file.shard for file in sorted(splits[split], key=_File.order)]
        for split in sorted(splits)
    }


def _file(shard: Shard) -> _File:
    folder, _, base = shard.path.rpartition("/")
    return _File(shard, parse_shard_name(base), folder)


def _by_rules(files: Sequence[_File], rules: Sequence[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for split, glob in rules:
        taken = [file for file in files if PurePosixPath(file.shard.path).match(glob)]
        if not taken:
            raise UsageError(
                f"`--split {safe(split)}={safe(glob)}` fits none of the {len(files)} files",
                hint="a glob without a slash is held against file names, quoted from the shell",
            )
        for file in taken:
            if found.setdefault(file.shard.path, split) != split:
                raise UsageError(
                    f"`{safe(file.shard.name, limit=_PATH)}` is of the split "
                    f"`{safe(found[file.shard.path])}` and of `{safe(split)}`, by what "
                    "`--split` says",
                    hint="let each file fit one glob",
                )
    return found


def _by_names(files: Sequence[_File], *, alone: bool) -> dict[str, str]:
    """What names and folders say; `alone` if nothing was said of any file."""
    folders = _folder_splits(files)
    owner: dict[str, _File] = {}
    found: dict[str, str] = {}
    sets = {file.group for file in files}
    for file in files:
        split = file.name.split if file.name is not None else None
        split = split or folders.get(file.folder)
        if split is None and alone and len(sets) == 1:
            split = DEFAULT_SPLIT
        if split is None:
            raise UsageError(
                f"nothing says which split `{safe(file.shard.name, limit=_PATH)}` is of",
                hint=f"--split NAME=GLOB says it, such as --split train='{safe(file.base)}'",
            )
        split = re.sub(r"[^A-Za-z0-9_]", "_", split)
        first = owner.setdefault(split, file)
        if first.group != file.group:
            raise UsageError(
                f"`{safe(first.shard.name, limit=_PATH)}` and "
                f"`{safe(file.shard.name, limit=_PATH)}` are of two sets, and both would be the "
                f"split `{safe(split)}`",
                hint=f"say that they are: --split {safe(split)}=GLOB; or give each its own name",
            )
        found[file.shard.path] = split
    return found


def _folder_splits(files: Sequence[_File]) -> dict[str, str]:
    """What folders say of the files in them: ``Split-train``, as TFX has it, or ``train``.

    A folder that is merely called `test` says nothing where it is the only one.
    """
    folders = sorted({file.folder for file in files})
    found = {}
    for folder in folders:
        last = folder.rpartition("/")[2]
        named = _TFX.fullmatch(last)
        if named is not None:
            found[folder] = normal_split(named["split"])
        elif len(folders) > 1 and is_split_word(last):
            found[folder] = normal_split(last)
    return found
