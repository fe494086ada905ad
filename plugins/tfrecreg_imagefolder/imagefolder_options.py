"""The options of the source `imagefolder`, and the splitter that two of them describe."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tfrecreg.api import Conversion, Item, RawDataError, Skipped, UsageError, normal_splits, safe

DEFAULT_SPLIT = "train"
Symlinks = Literal["all", "inside", "none"]

_RESIZE = re.compile(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,4}))?")
_SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_DOMAIN = b"tfrecreg imagefolder shares v1\0"
_HASHES = 1 << 64
_GROUP_EXAMPLE = "--option 'group=^(patient[0-9]+)_'"
_REENCODE = re.compile(r"png|jpeg:([1-9][0-9]?|100)")


@dataclass(frozen=True)
class ImageFolderOptions:
    """Options of the source `imagefolder`."""

    layout: Literal["auto", "class", "split", "flat"] = "auto"
    """`class`: folders of classes. `split`: folders of splits, with folders of classes in each.
    `flat`: a label file names the images. `auto` finds out which it is."""
    split: tuple[str, ...] = ()
    """Splits by fractions, as `train=0.8,validation=0.1,test=0.1`. Default: all images of a folder
    without splits are `train`."""
    group: str | None = None
    """With `split`: a regular expression, searched in the path below the class folder. Images with
    the same text in its first group stay in one split: `^(patient[0-9]+)_`."""
    extensions: tuple[str, ...] = ()
    """Take only files with these extensions, as `jpg,jpeg,png`; others are counted as stray.
    Default: every file is an item. The format of a file is never taken from its name."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead, as into DVC's cache. `inside`: follow those
    that stay in the raw folder. `none`: follow none."""
    labels_from: Literal[0, 1] = 0
    """The number of the first class."""
    label_file: str | None = None
    """A file in the raw folder that labels its images: CSV with file and label, lines of file and
    label, or one label a line in the order of the files' names, as ImageNet's synsets."""
    twins: Literal["refuse", "apart"] = "refuse"
    """Handling of class names that differ only by case or Unicode normal form: refuse the folder,
    or keep them apart as different classes.
    """
    verify: Literal["header", "decode"] = "header"
    """`header`: read the header of each image. `decode`: decode each completely, in a process with
    limits, and skip those that do not decode."""
    resize: str | None = None
    """Make images smaller: `256` for the shorter side, `320x240` for width and height. Needs
    `reencode`."""
    reencode: str | None = None
    """Encode images again: `jpeg:90` or `png`. Default: their bytes are stored unchanged."""

    def __post_init__(self) -> None:
        Splitter(self.split, self.group)  # which checks both
        if self.layout == "flat" and self.label_file is None:
            raise UsageError(
                "`layout=flat` needs a label file", hint="--option label_file=labels.csv"
            )
        if self.label_file is not None and self.layout in ("class", "split"):
            raise UsageError(
                f"`label_file` labels a flat folder, and `layout` is `{self.layout}`",
                hint="leave out one of them: the names of class folders are labels",
            )
        if self.split and self.layout == "split":
            raise UsageError(
                "`split` assigns images to splits, and with `layout=split` they have theirs",
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
    def flat(self) -> bool:
        """Whether a label file takes the place of class folders."""
        return self.label_file is not None

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


def is_split_name(name: str) -> bool:
    """Whether a split may have this name: it becomes a part of file names."""
    return _SPLIT_NAME.fullmatch(name) is not None


class Splitter:
    """Deals images to splits by fractions, or gives all of them to one split.

    The share of a split is that part of all possible hashes, so with more groups the sizes come
    closer to it. Adding groups moves none; changing a share moves only what has to move from its
    neighbours in the order given.

    Args:
        shares: each ``NAME=SHARE``. Shares are decimal numbers or fractions above 0, and only their
            proportions count: ``0.8``, ``80`` and ``4/5`` beside ``0.2``, ``20`` and ``1/5``. Empty
            for one split.
        group: a regular expression; images with the same text in its first group stay together.
            Without it each image is a group of its own.
        default: the split without shares.

    Raises:
        UsageError: a share has another form, a name occurs twice, there is only one share, or the
            group is not a regular expression with a group.
    """

    def __init__(
        self, shares: Sequence[str], group: str | None = None, default: str = DEFAULT_SPLIT
    ) -> None:
        self._default = default
        self._bounds: list[tuple[int, str]] = []  # where the hashes of each split end
        self._pattern: re.Pattern[str] | None = None
        if shares:
            found = _parse_shares(shares)
            total, reached = sum(found.values(), Fraction(0)), Fraction(0)
            for name, share in found.items():
                reached += share
                self._bounds.append((int(reached / total * _HASHES), name))
        if group is not None:
            self._pattern = _parse_group(group, shares)

    @property
    def names(self) -> list[str]:
        """The splits, in the order given."""
        return [name for _, name in self._bounds] or [self._default]

    def split(self, path: str, below: str) -> str:
        """The split of an image.

        Args:
            below: the part of the path that the expression for groups is searched in.

        Raises:
            RawDataError: there is such an expression, and it finds no group.
        """
        if self._pattern is None:
            return self.split_of_group(path)
        match = self._pattern.search(below)
        if match is None or match[1] is None:
            raise RawDataError(
                f"`group` finds nothing in `{safe(path)}`: every image needs a group, or it "
                "could land in another split than those it belongs to",
                hint="widen the pattern, or take the file out of the raw folder",
            )
        return self.split_of_group(match[1])

    def split_of_group(self, group: str) -> str:
        """The split of a group, and of the path of a skipped item."""
        if not self._bounds:
            return self._default
        name = group.encode("utf-8", "surrogateescape")
        place = int.from_bytes(hashlib.sha256(_DOMAIN + name).digest()[:8], "big")
        return next(name for bound, name in self._bounds if place < bound)

    def require_all(self, entries: Iterable[Item | Skipped]) -> None:
        """Refuse shares so small that a split got nothing.

        Raises:
            RawDataError: a split of the shares has no item among `entries`.
        """
        found = {entry.split for entry in entries if isinstance(entry, Item)}
        missing = {name for _, name in self._bounds} - found
        if missing:
            raise RawDataError(
                f"the split `{safe(min(missing))}` got no image: there are too few of them, or "
                "of their groups, for its share",
                hint="make its share larger, or leave it out",
            )


def _parse_shares(texts: Sequence[str]) -> dict[str, Fraction]:
    shares: dict[str, Fraction] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        name = name.strip()
        if not equals or not is_split_name(name):
            raise _bad_share(text, "expected a name, `=` and a number")
        try:
            share = Fraction(number.strip()) if len(number) <= 40 else Fraction(0)
        except (ValueError, ZeroDivisionError):
            share = Fraction(0)
        if not 0 < share < 1 << 64:
            raise _bad_share(text, "expected a share above 0, as `0.8` or `4/5`")
        name = normal_splits([name])[name]
        if name in shares:
            raise _bad_share(text, f"the split `{safe(name)}` is named twice")
        shares[name] = share
    if len(shares) < 2:
        raise _bad_share(",".join(texts), "expected at least two splits")
    return shares


def _bad_share(text: str, reason: str) -> UsageError:
    return UsageError(
        f"the option `split` has `{safe(text, limit=60)}`: {reason}",
        hint="--option split=train=0.8,validation=0.1,test=0.1",
    )


def _parse_group(group: str, shares: Sequence[str]) -> re.Pattern[str]:
    if not shares:
        raise UsageError(
            "the option `group` needs `split`: it says which images stay together when images are "
            "dealt to splits",
            hint="--option split=train=0.9,test=0.1",
        )
    try:
        pattern = re.compile(group)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"the option `group` is not a regular expression: {safe(str(error))}",
            hint=_GROUP_EXAMPLE,
        ) from error
    if not pattern.groups:
        raise UsageError(
            f"the option `group` has no group in parentheses: `{safe(group, limit=60)}`",
            hint=_GROUP_EXAMPLE,
        )
    return pattern
