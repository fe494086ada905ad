"""Functions for graphs that need no AutoGraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def plain(tensorflow: Any, function: Callable[..., Any]) -> Any:
    """A function that AutoGraph leaves alone: it warns of those whose source it does not find."""
    return tensorflow.autograph.experimental.do_not_convert(function)
