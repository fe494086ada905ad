"""Temporary files that writers leave in a stage when they are killed."""

from __future__ import annotations

from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.writer import is_temporary


def remove_leftovers(stage: Storage) -> None:
    """Remove the temporary files of a stage, before and after workers write into it.

    An engine may run the task of a worker that died again: then the result is whole, and what the
    worker was writing is still there. A worker that still writes fails to rename its file.
    """
    for entry in list(stage.list()):
        if is_temporary(entry.path):
            stage.remove(entry.path)
