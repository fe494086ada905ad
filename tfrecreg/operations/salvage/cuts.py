"""The list of what was cut out of a shard: the first of it, and what all of it adds up to."""

from __future__ import annotations

from collections.abc import Sequence

from tfrecreg.operations.salvage.model import Cut, Piece, What

__all__ = ["MOST_CUTS", "Cuts"]

MOST_CUTS = 10_000
"""So many cuts of a shard are listed; all of them are counted and quarantined."""


class Cuts:
    """What was cut out so far."""

    def __init__(self) -> None:
        self.listed: list[Cut] = []
        """The first :data:`MOST_CUTS`, in order of the stream."""
        self.total = 0
        """How many there are."""
        self.lost = 0
        """Records that were lost, counted by what was cut out."""
        self.exact = True
        """Whether that is the number, not the least."""

    def add(
        self,
        code: str,
        what: What,
        where: tuple[int, int],
        record: int | None,
        lost: int,
        exact: bool,
        detail: str,
        pieces: Sequence[Piece],
    ) -> None:
        """Add one. The arguments are the fields of a :class:`Cut`; `where`: offset and length."""
        self.total += 1
        self.lost += lost
        self.exact = self.exact and exact
        if len(self.listed) < MOST_CUTS:
            self.listed.append(
                Cut(
                    code=code,
                    what=what,
                    offset=where[0],
                    length=where[1],
                    record=record,
                    lost=lost,
                    exact=exact,
                    detail=detail,
                    quarantined=tuple(_joined(pieces)),
                )
            )


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Fewer pieces: those that follow each other in the original as in the quarantine are one."""
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1] if found else None
        if before and before.of == piece.of and before.at + before.length == piece.at:
            length = before.length + piece.length
            found[-1] = Piece(offset=before.offset, length=length, of=piece.of, at=before.at)
        else:
            found.append(piece)
    return found
