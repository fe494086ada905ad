"""The options of all sources that read boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, Protocol, TypeVar

from tfrecreg.core.build.sources.bundled import bundled_schema
from tfrecreg.core.images.decoder import require_pillow
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.suggest import listed
from tfrecreg.core.values.text import safe

_SHARED = "tfrecreg.core.build.sources"
"""The package that ships the shared schemas."""


@dataclass(frozen=True)
class ObjectOptions:
    """How unusable boxes are treated. The options of a source inherit from it.

    Raises:
        UsageError: `clip` is negative.
        MissingExtraError: `exif=apply` without Pillow.
    """

    bad_boxes: Literal["drop", "keep", "skip-image", "fail"] = "drop"
    """Handling of boxes that are not finite, have no area or leave the image: drop the object, keep
    it unchanged, skip the image, or fail.
    """
    clip: float = 1.0
    """Clip a box that sticks out of its image by at most this many pixels."""
    dangling: Literal["fail", "drop"] = "fail"
    """Handling of annotations whose image or category is not listed."""
    exif: Literal["keep", "apply"] = "keep"
    """Handling of images with an EXIF orientation: keep their bytes, or rotate them as viewers do
    and encode them again, unless their annotations have the sides of the stored pixels. Needs the
    extra `images`.
    """

    def __post_init__(self) -> None:
        if self.clip < 0:
            raise UsageError(
                f"the option `clip` is {self.clip:g}, expected 0 or more pixels",
                hint="--option clip=1",
            )
        if self.exif == "apply":
            require_pillow("`exif=apply`")

    def codecs(self) -> Mapping[str, str]:
        """The encoder of images that are rotated, with its version."""
        return {"pillow": version("pillow")} if self.exif == "apply" else {}

    def refuse_repeated(self, *names: str) -> None:
        """Refuse options with repeated values.

        Raises:
            UsageError: there is one.
        """
        for name in names:
            values = getattr(self, name)
            repeated = {each for each in values if values.count(each) > 1}
            if repeated:
                raise UsageError(
                    f"the option `{name}` has `{safe(min(repeated))}` twice",
                    hint="name each only once",
                )


class _Named(Protocol):
    @property
    def name(self) -> str: ...


S = TypeVar("S", bound=_Named)


def choose_splits(splits: Sequence[S], wanted: Sequence[str]) -> list[S]:
    """Those of `splits` that the option `splits` names; all if it names none.

    Raises:
        UsageError: it names one that does not exist.
    """
    unknown = {*wanted} - {split.name for split in splits}
    if unknown:
        raise UsageError(
            f"the option `splits` names `{safe(min(unknown))}`, and there are "
            f"{listed(split.name for split in splits)}",
            hint="leave out the option to read all",
        )
    return [split for split in splits if not wanted or split.name in wanted]


def object_schema(package: str, names: Iterable[str], options: ObjectOptions) -> str:
    """The schemas `names` as one text: those of an import package, and the shared `objects`,
    `objects_keypoints` and `objects_polygons`.

    Boxes that are kept as they are may be anywhere, and may be NaN: then their features have no
    domain.
    """
    text = "".join(
        bundled_schema(_SHARED if name.partition("_")[0] == "objects" else package, name)
        for name in names
    )
    if options.bad_boxes == "keep":
        within = "float_domain { min: 0 max: 1 disallow_nan: true }"
        text = text.replace(within, "float_domain {}")
    return text


def class_summary(names: Sequence[str]) -> str:
    """How many classes there are, with the first five: ``3 (cat, dog, emu)``."""
    shown = ", ".join(safe(name, limit=60) for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)} ({shown}{more})"
