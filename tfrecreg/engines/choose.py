"""Engines by name, with options as text or as values."""

from __future__ import annotations

from tfrecreg.engines.interface import Engine
from tfrecreg.engines.local import LocalEngine, usable_cores
from tfrecreg.engines.remote import read_options
from tfrecreg.errors import UsageError
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

_NAMES = ("local", "dask", "beam", "ray", "futures:MODULE:CALLABLE")
_FUTURES = "futures"


def open_engine(name: str = "local", *, jobs: int | None = None, **options: object) -> Engine:
    """An engine for the `engine` argument of operations.

    It starts or connects to its workers when an operation needs them. Close it after use::

        with contextlib.closing(tfrecreg.open_engine("dask", address="tcp://host:8786")) as engine:
            tfrecreg.build(registry, request, engine=engine)

    Args:
        name: `local`, `dask`, `beam`, `ray`, or ``futures:MODULE:CALLABLE`` for an executor of
            :mod:`concurrent.futures`.
        jobs: number of workers. By default one for each usable processor, or those that a cluster
            has.
        options: of that engine, as ``--engine-option`` takes them; ``docs/engines.md`` lists them.

    Raises:
        UsageError: there is no such engine or option, or a value of another type.
        MissingExtraError: the engine's library is not installed.
    """
    kind, _, rest = name.partition(":")
    if kind == _FUTURES:
        from tfrecreg.engines.futures import FuturesEngine

        return FuturesEngine(rest, options, jobs=jobs)
    if name == "local":
        if options:
            raise UsageError(
                f"the engine `local` has no options, found {listed(sorted(options))}",
                hint="`--jobs` is the number of its processes",
            )
        return LocalEngine(usable_cores() if jobs is None else jobs)
    if name == "dask":
        from tfrecreg.engines.dask import DaskEngine, DaskOptions

        return DaskEngine(read_options(DaskOptions, options, name), jobs=jobs)
    if name == "beam":
        from tfrecreg.engines.beam import BeamEngine

        return BeamEngine(options, jobs=jobs)
    if name == "ray":
        from tfrecreg.engines.ray import RayEngine, RayOptions

        return RayEngine(read_options(RayOptions, options, name), jobs=jobs)
    raise UsageError(
        f"no engine is named `{safe(name, limit=60)}`{did_you_mean(kind, (*_NAMES, _FUTURES))}",
        hint=f"available: {listed(_NAMES)}",
    )
