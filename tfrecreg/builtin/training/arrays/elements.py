"""The form of a source's elements, as chosen when it was opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tfrecreg.builtin.training.arrays.arrays import ArrayColumn
from tfrecreg.builtin.training.arrays.image_sizes import ImageSize


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The form of a source's elements, as plain data."""

    raw: bool = False
    """Payloads, as they are."""
    with_key: bool = False
    """Pairs of key and element."""
    with_digest: bool = False
    """Elements carry the digest of their record, for a certificate."""
    columns: tuple[ArrayColumn, ...] | None = None
    """The features of the schema; None without one."""
    sequence: bool = False
    """Whether the schema is one of SequenceExamples."""
    images: tuple[str, ...] = ()
    """Features whose values are decoded."""
    size: ImageSize = field(default_factory=ImageSize)
    """That decoded images get."""
    channels: int = 0
    """That decoded images get: 1, 3 or 4; 0 for those that each has."""
    damaged: Literal["raise", "skip"] = "raise"
    """Treatment of a damaged record in batches and iteration."""
    max_damaged: int = 0
    """Maximum number of damaged records to leave out, in all parts of the source together."""

    def only(self, features: Collection[str]) -> Elements:
        """The same with these features of the schema alone."""
        columns = tuple(each for each in self.columns or () if each.name in features)
        images = tuple(each for each in self.images if each in features)
        return replace(self, columns=columns, images=images)

    def plain(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return asdict(self)

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Elements:
        """The inverse of :meth:`plain`."""
        columns = plain["columns"]
        if columns is not None:
            columns = tuple(
                ArrayColumn(name, kind, tuple(shape), *rest) for name, kind, shape, *rest in columns
            )
        size = plain["size"]
        if isinstance(size["size"], list):
            size = {**size, "size": tuple(size["size"])}
        images = tuple(plain["images"])
        return cls(**{**plain, "columns": columns, "images": images, "size": ImageSize(**size)})
