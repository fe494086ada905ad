"""The options of the source `folder`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tfrecreg.api import Symlinks, UsageError, safe

_SUFFIX = re.compile(r"\.?[^./\\\s]{1,30}")


@dataclass(frozen=True)
class FolderOptions:
    """Options of the source `folder`."""

    suffixes: tuple[str, ...] = ()
    """Take only files with these suffixes, such as `wav,flac`, in any case; a remark counts the
    others. Default: every file."""
    pair: tuple[str, ...] = ()
    """Files that differ by these suffixes only are one record: `wav,txt` for `clip.wav` beside
    `clip.txt`. Only files with these suffixes are taken."""
    labels: Literal["none", "folder"] = "none"
    """`folder`: the folder that a file is in is its class."""
    layout: Literal["auto", "split", "flat"] = "auto"
    """`split`: the top-level folders are splits. `flat`: all files are `train`. `auto`: they are
    splits if all of them have names of splits."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead. `inside`: follow those that stay in the raw
    folder. `none`: follow none."""

    def __post_init__(self) -> None:
        for name, values in (("suffixes", self.suffixes), ("pair", self.pair)):
            for value in values:
                if not _SUFFIX.fullmatch(value):
                    raise UsageError(
                        f"the option `{name}` has `{safe(value, limit=60)}`, expected what follows "
                        "the last dot of a name",
                        hint=f"--option {name}=wav,txt",
                    )
        if len(self.pair) == 1 or len(set(self.paired)) != len(self.pair):
            raise UsageError(
                "the option `pair` needs two different suffixes or more",
                hint="--option pair=wav,txt",
            )
        if self.pair and self.suffixes:
            raise UsageError(
                "`pair` and `suffixes` exclude each other: both select files by suffix",
                hint="leave out `suffixes`",
            )

    @property
    def paired(self) -> tuple[str, ...]:
        """The suffixes of `pair`, in lower case and without the dot."""
        return tuple(each.lower().removeprefix(".") for each in self.pair)

    @property
    def taken(self) -> frozenset[str]:
        """The suffixes that are taken; empty for all."""
        suffixes = (each.lower().removeprefix(".") for each in self.suffixes)
        return frozenset(self.paired or suffixes)
