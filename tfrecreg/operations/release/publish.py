"""A build and its release as one operation, between which no other build can come."""

from __future__ import annotations

from functools import partial

from tfrecreg.engines import Engine
from tfrecreg.operations.builds import BuildRequest, BuildResult, build
from tfrecreg.operations.release.run import ReleaseRequest, ReleaseResult, release
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry import Registry
from tfrecreg.registry.lock import locked

__all__ = ["publish"]


def publish(
    registry: Registry,
    request: BuildRequest,
    version: str | None,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> tuple[BuildResult, ReleaseResult]:
    """Build a dataset and release what was built, though others do so at the same time.

    Args:
        registry: the registry.
        request: what to build.
        version: its number; None for the smallest legal one.
        engine: what runs the work.
        progress: what is told of it.

    Raises:
        UsageError, ConflictError, RefusedError, FailureError: as `build` and `release` do. The
            build stays where only the release was refused.
    """
    with locked(registry, request.name, partial(progress.note, "waiting for another command")):
        built = build(registry, request, engine=engine, progress=progress)
        wanted = ReleaseRequest(name=request.name, version=version)
        return built, release(registry, wanted, engine=engine, progress=progress)
