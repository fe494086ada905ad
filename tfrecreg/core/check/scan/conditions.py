"""SQL conditions for lower layers. The package `query` is imported when it is first needed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.plugins.bundled import PROGRESS
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.workers.interface import Engine

_ROOM = "tfrecreg.builtin.query.where"


def chosen_records(
    target: Target, where: str, *, engine: Engine | None = None, progress: Progress
) -> AbstractContextManager[list[npt.NDArray[np.int64]]]:
    """A context that gives the numbers of the records that meet the condition, by shard."""
    room = import_module(_ROOM)
    found: AbstractContextManager[list[npt.NDArray[np.int64]]] = room.choosing_records(
        target, where, engine=engine, progress=progress
    )
    return found


def weights_of_records(
    target: Target, expression: str, progress: Progress
) -> list[npt.NDArray[np.float64]]:
    """The values of an expression for all records, as one array per shard of the target."""
    room = import_module(_ROOM)
    found: list[npt.NDArray[np.float64]] = room.record_values(target, expression, progress=progress)
    return found


def shown_progress(progress: Progress | bool) -> Progress:
    """A :class:`Progress`; True and False mean the same as in the methods of handles."""
    found: Progress = import_module(PROGRESS).shown(progress)
    return found
