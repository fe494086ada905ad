"""Engines that run tasks with other libraries. An engine imports its library when it connects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tfrecreg.api import EngineRecord, hookimpl


@hookimpl
def tfrecreg_engines() -> Iterator[EngineRecord]:
    """Yield every bundled engine except `local`, which needs no plugin."""
    for name, library, summary in (
        ("dask", "distributed", "a Dask cluster, at an address or on this machine"),
        ("beam", "apache_beam", "a Beam runner: Flink, Spark or one in this process"),
        ("ray", "ray", "a Ray cluster, at an address or on this machine"),
    ):
        load = partial(_load, name, library)
        yield EngineRecord(name=name, summary=summary, load=load, extra=name)
    yield EngineRecord(
        name="futures",
        summary="any executor of concurrent.futures",
        load=partial(_load, "futures"),
        argument="MODULE:CALLABLE",
    )


def _load(name: str, library: str = "") -> type[Any]:
    if library and find_spec(library) is None:  # the import follows when the engine connects
        raise ModuleNotFoundError(library)
    found: type[Any] = getattr(
        import_module(f"tfrecreg.builtin.engines.{name}"), f"{name.capitalize()}Engine"
    )
    return found
