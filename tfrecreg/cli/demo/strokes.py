"""The shapes of the digits, as strokes of a pen: drawn for this project, taken from no font."""

from __future__ import annotations

Stroke = tuple[tuple[float, float], ...]
"""Points that a smooth curve runs through: x to the right and y down, in a box of 0 to 1. Where
a digit has a corner, one stroke ends and the next begins."""

_ZERO: Stroke = (
    (0.55, 0.0), (0.2, 0.14), (0.06, 0.5), (0.2, 0.88), (0.5, 1.0),
    (0.82, 0.85), (0.94, 0.48), (0.8, 0.12), (0.5, 0.0),
)  # fmt: skip
_ONE: Stroke = ((0.52, 0.0), (0.5, 0.5), (0.48, 1.0))
_ONE_FLAG: Stroke = ((0.22, 0.24), (0.4, 0.13), (0.52, 0.0))
_TWO: Stroke = (
    (0.1, 0.24), (0.3, 0.04), (0.62, 0.0), (0.84, 0.2), (0.72, 0.48), (0.42, 0.76), (0.08, 0.97),
)  # fmt: skip
_TWO_FOOT: Stroke = ((0.08, 0.97), (0.5, 0.93), (0.96, 0.97))
_TWO_LOOPED: Stroke = (
    (0.14, 0.2), (0.42, 0.0), (0.76, 0.14), (0.7, 0.46), (0.42, 0.78), (0.16, 0.96), (0.06, 0.84),
    (0.24, 0.76), (0.55, 0.92), (0.98, 0.94),
)  # fmt: skip
_THREE_TOP: Stroke = ((0.12, 0.12), (0.46, 0.0), (0.8, 0.16), (0.68, 0.38), (0.36, 0.47))
_THREE_BOTTOM: Stroke = ((0.36, 0.47), (0.74, 0.53), (0.9, 0.75), (0.6, 0.98), (0.1, 0.9))
_FOUR_OPEN: Stroke = ((0.2, 0.02), (0.12, 0.3), (0.1, 0.58))
_FOUR_BAR: Stroke = ((0.1, 0.58), (0.5, 0.57), (0.94, 0.52))
_FOUR_DOWN: Stroke = ((0.78, 0.06), (0.72, 0.5), (0.66, 1.0))
_FOUR_SLOPE: Stroke = ((0.62, 0.0), (0.34, 0.32), (0.06, 0.64))
_FOUR_FLOOR: Stroke = ((0.06, 0.64), (0.5, 0.64), (0.96, 0.62))
_FOUR_POST: Stroke = ((0.62, 0.0), (0.64, 0.5), (0.62, 1.0))
_FIVE_HAT: Stroke = ((0.9, 0.02), (0.55, 0.04), (0.26, 0.04))
_FIVE_NECK: Stroke = ((0.26, 0.04), (0.2, 0.22), (0.18, 0.44))
_FIVE_BELLY: Stroke = (
    (0.18, 0.44), (0.5, 0.37), (0.84, 0.52), (0.8, 0.84), (0.46, 1.0), (0.08, 0.9),
)  # fmt: skip
_SIX: Stroke = (
    (0.74, 0.0), (0.38, 0.2), (0.16, 0.56), (0.2, 0.88), (0.52, 1.0), (0.84, 0.84), (0.74, 0.58),
    (0.46, 0.54), (0.18, 0.74),
)  # fmt: skip
_SEVEN_TOP: Stroke = ((0.08, 0.07), (0.5, 0.05), (0.9, 0.03))
_SEVEN_DOWN: Stroke = ((0.9, 0.03), (0.62, 0.45), (0.44, 1.0))
_SEVEN_BAR: Stroke = ((0.34, 0.54), (0.58, 0.51), (0.86, 0.5))
_EIGHT: Stroke = (
    (0.78, 0.1), (0.46, 0.0), (0.2, 0.18), (0.42, 0.42), (0.76, 0.64), (0.76, 0.92), (0.46, 1.0),
    (0.18, 0.88), (0.26, 0.62), (0.6, 0.4), (0.82, 0.2), (0.72, 0.06),
)  # fmt: skip
_NINE_HEAD: Stroke = (
    (0.8, 0.14), (0.5, 0.0), (0.18, 0.18), (0.22, 0.42), (0.52, 0.48), (0.8, 0.28), (0.82, 0.12),
)  # fmt: skip
_NINE_STRAIGHT: Stroke = ((0.82, 0.12), (0.78, 0.5), (0.7, 1.0))
_NINE_HOOKED: Stroke = ((0.82, 0.12), (0.84, 0.6), (0.66, 0.94), (0.24, 0.96))

GLYPHS: tuple[tuple[tuple[Stroke, ...], ...], ...] = (
    ((_ZERO,),),
    ((_ONE,), (_ONE,), (_ONE_FLAG, _ONE)),
    ((_TWO, _TWO_FOOT), (_TWO_LOOPED,)),
    ((_THREE_TOP, _THREE_BOTTOM),),
    ((_FOUR_OPEN, _FOUR_BAR, _FOUR_DOWN), (_FOUR_SLOPE, _FOUR_FLOOR, _FOUR_POST)),
    ((_FIVE_HAT, _FIVE_NECK, _FIVE_BELLY),),
    ((_SIX,),),
    ((_SEVEN_TOP, _SEVEN_DOWN), (_SEVEN_TOP, _SEVEN_DOWN, _SEVEN_BAR)),
    ((_EIGHT,),),
    ((_NINE_HEAD, _NINE_STRAIGHT), (_NINE_HEAD, _NINE_HOOKED)),
)
"""For each digit, its ways of being written, each a tuple of strokes."""
