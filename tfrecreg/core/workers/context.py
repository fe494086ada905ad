"""The arguments `registry`, `engine` and `progress`, which operations pass to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from tfrecreg.core.values.progress import SILENT, Progress

if TYPE_CHECKING:
    from tfrecreg.core.registry.registry import RegistryLike
    from tfrecreg.core.workers.interface import Engine


class Work(TypedDict, total=False):
    """The arguments `engine` and `progress`."""

    engine: Engine | None
    progress: Progress


class Context(Work, total=False):
    """Keyword arguments that operations share. They declare ``**context: Unpack[Context]``."""

    registry: RegistryLike | None


class Travelling(NamedTuple):
    """A context in which missing arguments have their defaults.

    To unpack a context, write ``registry, engine, progress = Travelling(**context)``.
    """

    registry: RegistryLike | None = None
    engine: Engine | None = None
    progress: Progress = SILENT
