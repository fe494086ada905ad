"""The options of the source `imagefolder`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tfrecreg.api import Conversion, UsageError, safe
from tfrecreg_imagefolder.shares import Shares
from tfrecreg_imagefolder.walk import Symlinks

__all__ = ["ImageFolderOptions"]

_RESIZE = re.compile(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,4}))?")
_REENCODE = re.compile(r"png|jpeg:([1-9][0-9]?|100)")


@dataclass(frozen=True)
class ImageFolderOptions:
    """What `--option` takes for the source `imagefolder`."""

    layout: Literal["auto", "class", "split", "flat"] = "auto"
    """`class`: folders of classes. `split`: folders of splits, with folders of classes in each.
    `flat`: a label file names the pictures. `auto` finds out which it is."""
    split: tuple[str, ...] = ()
    """Splits by fractions, as `train=0.8,validation=0.1,test=0.1`; without it all pictures of a
    folder without splits are `train`."""
    group: str | None = None
    """With `split`: a regular expression that is searched in the path below the class folder.
    Pictures for which its first group is the same text stay in one split: `^(patient[0-9]+)_`."""
    extensions: tuple[str, ...] = ()
    """Take files with these extensions only, as `jpg,jpeg,png`; others are counted as stray.
    Without it every file is an item. What format a file has is never taken from its name."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead, as into DVC's cache. `inside`: follow those
    that stay in the raw folder. `none`: follow none."""
    labels_from: Literal[0, 1] = 0
    """The number of the first class."""
    label_file: str | None = None
    """A file in the raw folder that labels its pictures: CSV with file and label, lines of file
    and label, or one label a line in the order of the files' names, as ImageNet's synsets."""
    twins: Literal["refuse", "apart"] = "refuse"
    """What to do with class names that differ only by case or by Unicode normal form: refuse
    the folder, or keep them apart as different classes."""
    verify: Literal["header", "decode"] = "header"
    """`header`: read the header of each picture. `decode`: decode each to its last pixel, in a
    process with limits, and skip what does not decode."""
    resize: str | None = None
    """Make pictures smaller: `256` for the shorter side, `320x240` for width and height. Needs
    `reencode`."""
    reencode: str | None = None
    """Encode pictures anew: `jpeg:90` or `png`. Without it their bytes go in as they are."""

    def __post_init__(self) -> None:
        if self.split:
            Shares(self.split)
        self._check_group()
        self._check_layout()
        if self.resize is not None and not _RESIZE.fullmatch(self.resize):
            raise UsageError(
                f"the option `resize` is `{safe(self.resize, limit=60)}`, expected the shorter "
                "side in pixels or WIDTHxHEIGHT",
                hint="--option resize=256, or --option resize=320x240",
            )
        if self.reencode is not None and not _REENCODE.fullmatch(self.reencode):
            raise UsageError(
                f"the option `reencode` is `{safe(self.reencode, limit=60)}`, expected `jpeg:1` to "
                "`jpeg:100` or `png`",
                hint="--option reencode=jpeg:90",
            )
        if self.resize is not None and self.reencode is None:
            raise UsageError(
                "the option `resize` needs `reencode`: what was resized has to be encoded anew",
                hint="--option reencode=jpeg:90, or --option reencode=png to lose nothing more",
            )

    @property
    def conversion(self) -> Conversion | None:
        """How pictures are made anew; None where their bytes go in as they are."""
        if self.reencode is None:
            return None
        format_, _, quality = self.reencode.partition(":")
        found = _RESIZE.fullmatch(self.resize or "")
        first, second = (found[1], found[2]) if found else ("0", None)
        sides = (0, int(first), int(second)) if second else (int(first), 0, 0)
        return Conversion(*sides, format_, int(quality or 0))

    def _check_group(self) -> None:
        if self.group is None:
            return
        if not self.split:
            raise UsageError(
                "the option `group` needs `split`: it says what stays together when pictures are "
                "dealt to splits",
                hint="--option split=train=0.9,test=0.1",
            )
        try:
            pattern = re.compile(self.group)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(
                f"the option `group` is no regular expression: {safe(str(error))}",
                hint="--option 'group=^(patient[0-9]+)_'",
            ) from error
        if not pattern.groups:
            raise UsageError(
                f"the option `group` has no group in parentheses: `{safe(self.group, limit=60)}`",
                hint="--option 'group=^(patient[0-9]+)_'",
            )

    def _check_layout(self) -> None:
        if self.layout == "flat" and self.label_file is None:
            raise UsageError(
                "`layout=flat` needs a label file", hint="--option label_file=labels.csv"
            )
        if self.label_file is not None and self.layout in ("class", "split"):
            raise UsageError(
                f"`label_file` labels a flat folder, and `layout` is `{self.layout}`",
                hint="leave one of them away: class folders label pictures by themselves",
            )
        if self.split and self.layout == "split":
            raise UsageError(
                "`split` deals pictures to splits, and with `layout=split` they have theirs",
                hint="leave one of them away",
            )
