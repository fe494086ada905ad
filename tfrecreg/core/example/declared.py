"""What a description beside the records says of a feature, before the records are asked."""

from __future__ import annotations

from dataclasses import dataclass

from tfrecreg.core.example.model import Kind


@dataclass(frozen=True, slots=True)
class DeclaredFeature:
    """One feature of a record, as somebody else declares it."""

    kind: Kind | None
    """None if only the rest is declared."""
    shape: tuple[int, ...] | None = None
    """Sizes of the dimensions in which the values of every record lie, ``()`` for one value; None
    if their number varies or is not declared.
    """
    classes: int = 0
    """Number of classes, numbered from 0; 0 for what is not a class."""
    is_image: bool = False
    """Whether its values are encoded images."""
    is_text: bool = False
    is_bool: bool = False
    pixels: tuple[int, int, int] | None = None
    """Height, width and channels of an image whose pixels the values are, row by row."""
