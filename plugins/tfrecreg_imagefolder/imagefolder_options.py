"""The options of the source `imagefolder`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tfrecreg.api import Conversion, Splitter, Symlinks, UsageError, check_stratify, safe

_RESIZE = re.compile(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,4}))?")
_REENCODE = re.compile(r"png|jpeg:([1-9][0-9]?|100)")


@dataclass(frozen=True)
class ImageFolderOptions:
    """Options of the source `imagefolder`."""

    layout: Literal["auto", "class", "split", "flat"] = "auto"
    """`class`: folders of classes. `split`: folders of splits, with folders of classes in each.
    `flat`: a label file or `class_pattern` names the classes. `auto` finds out which it is."""
    split: tuple[str, ...] = ()
    """Splits by fractions, such as `train=0.8,validation=0.1,test=0.1`. Default: all images of a
    folder without splits are `train`."""
    group: str | None = None
    """With `split`: a regular expression, searched in the path below the class folder. Images with
    the same text in its first group stay in one split: `^(patient[0-9]+)_`."""
    stratify: bool = False
    """With `split`: each split has its share of the images of every class, to within one image."""
    extensions: tuple[str, ...] = ()
    """Take only files with these extensions, such as `jpg,jpeg,png`; a remark counts the others.
    Default: every file is an item. The format of a file is never taken from its name."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead, as into DVC's cache. `inside`: follow those
    that stay in the raw folder. `none`: follow none."""
    labels_from: Literal[0, 1] = 0
    """The number of the first class."""
    label_file: str | None = None
    """A file that labels the images: CSV with file and label, lines of file and label, or one label
    per line in the order of the files' names, as ImageNet's synsets. A path from the raw folder on,
    also out of it, or an absolute path."""
    class_pattern: str | None = None
    """A regular expression, searched in the names of files: the text of its first group is the
    class. `^(n[0-9]+)_` for `n01440764_tench.jpg`."""
    twins: Literal["refuse", "apart"] = "refuse"
    """Handling of class names that differ only by case or Unicode normal form: refuse the folder,
    or keep them apart as different classes.
    """
    verify: Literal["header", "decode"] = "header"
    """`header`: read the header of each image. `decode`: decode each completely, and skip
    those that do not decode."""
    sha256: bool = True
    """Whether records have `image/key/sha256`, 64 characters by which `check` finds images that
    have changed."""
    resize: str | None = None
    """Make images smaller: `256` for the shorter side, `320x240` for width and height. Needs
    `reencode`."""
    reencode: str | None = None
    """Encode images again: `jpeg:90` or `png`. Default: their bytes are stored unchanged."""

    def __post_init__(self) -> None:
        Splitter(self.split, self.group)  # which checks both
        check_stratify(self.stratify, self.split, self.group)
        if self.layout == "flat" and not self.flat:
            raise UsageError(
                "`layout=flat` needs a label file or a pattern",
                hint="--option label_file=labels.csv, or --option 'class_pattern=^(n[0-9]+)_'",
            )
        if self.flat and self.layout in ("class", "split"):
            name = "label_file" if self.class_pattern is None else "class_pattern"
            raise UsageError(
                f"`{name}` needs `layout=flat`, found `{self.layout}`",
                hint="leave out one of them: the names of class folders are labels",
            )
        if self.class_pattern is not None:
            _parse_pattern(self.class_pattern, self.label_file)
        if self.split and self.layout == "split":
            raise UsageError(
                "`split` and `layout=split` exclude each other: folders already assign images to "
                "splits",
                hint="leave out one of them",
            )
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
                "the option `resize` needs `reencode`: resized images have to be encoded again",
                hint="--option reencode=jpeg:90, or --option reencode=png to lose nothing more",
            )

    @property
    def hashed(self) -> tuple[str, ...]:
        """The shares by which hashes deal images; none where classes do."""
        return () if self.stratify else self.split

    @property
    def flat(self) -> bool:
        """Whether a label file or the names of files take the place of class folders."""
        return self.label_file is not None or self.class_pattern is not None

    @property
    def conversion(self) -> Conversion | None:
        """How images are encoded again; None where their bytes are stored unchanged."""
        if self.reencode is None:
            return None
        format_, _, quality = self.reencode.partition(":")
        found = _RESIZE.fullmatch(self.resize or "")
        first, second = (found[1], found[2]) if found else ("0", None)
        sides = (0, int(first), int(second)) if second else (int(first), 0, 0)
        return Conversion(*sides, format_, int(quality or 0))


def _parse_pattern(text: str, label_file: str | None) -> None:
    problem = ""
    try:
        if not re.compile(text).groups:
            problem = "it has no group in parentheses"
    except (re.error, RecursionError, OverflowError) as error:
        problem = safe(str(error))
    if label_file is not None:
        problem = "`label_file` gives classes as well"
    if problem:
        raise UsageError(
            f"the option `class_pattern` cannot be used: {problem}",
            hint="--option 'class_pattern=^(n[0-9]+)_' takes `n01440764` of `n01440764_tench.jpg`",
        )
