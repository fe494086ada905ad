"""Makes engines from their names, with options as text or as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tfrecreg.core.plugins.guard import called
from tfrecreg.core.values.errors import UnknownPluginError, UsageError
from tfrecreg.core.values.text import did_you_mean, listed
from tfrecreg.core.workers.interface import Engine, EngineRequest
from tfrecreg.core.workers.local import LocalEngine, usable_cores

if TYPE_CHECKING:
    from tfrecreg.core.plugins.manager import Plugins

_LOCAL = "local"


def engine(name: str = _LOCAL, *, jobs: int | None = None, **options: object) -> Engine:
    """An engine for the `engine` argument of operations.

    It starts its workers, or connects to them, when an operation needs them. It closes at the end
    of the `with` block::

        with tfrecreg.engine("dask", address="tcp://host:8786") as engine:
            tfrecreg.open()["mnist"].build(engine=engine)

    Args:
        name: `local`, `dask`, `beam`, `ray`, ``futures:MODULE:CALLABLE`` for an executor of
            :mod:`concurrent.futures`, or an engine of another plugin.
        jobs: number of workers. The default is one per usable processor, or all workers of a
            cluster.
        options: the engine's own options, as for ``--engine-option``. This page lists them:
            https://github.com/tfrecreg/tfrecreg/tree/main/docs/engines.md

    Raises:
        UsageError: there is no such engine or option, or a value has the wrong type.
        MissingExtraError: the engine's library is not installed.
        PluginError: the engine cannot be loaded, or several engines have that name.

    Example:
        >>> with tr.engine(jobs=2) as engine:
        ...     reg["mnist"].built.check(engine=engine).status
        'pass'
    """
    return named_engine(name, jobs, options)


def named_engine(
    name: str,
    jobs: int | None,
    options: Mapping[str, object],
    plugins_here: Callable[[], Plugins] | None = None,
) -> Engine:
    """Like :func:`engine`, but with the options in a mapping."""
    if name == _LOCAL:
        if options:
            raise UsageError(f"the engine `local` has no options, found {listed(sorted(options))}")
        return LocalEngine(usable_cores() if jobs is None else jobs)
    from tfrecreg.core.plugins.manager import plugins  # the local engine does not need it
    from tfrecreg.core.plugins.records import EngineRecord

    known = (plugins_here or plugins)()
    forms = {each.name: each.record.argument for each in known.every(EngineRecord)}
    kind, _, argument = name.partition(":")
    if not forms.get(kind):
        kind, argument = name, ""
    try:
        plugin_id = known.find(EngineRecord, kind).plugin_id
    except UnknownPluginError as error:
        available = (f"{each}:{form}" if form else each for each, form in forms.items())
        raise UsageError(
            f"no engine is named `{name}`{did_you_mean(name.partition(':')[0], (_LOCAL, *forms))}",
            hint=f"available: {listed((_LOCAL, *available))}{known.or_broken}",
        ) from error
    loaded: Any = known.load(EngineRecord, kind)
    own = {each.name for each in fields(loaded.Options)}
    others = {key: value for key, value in options.items() if key not in own}
    if getattr(loaded, "takes_any_option", False):
        options = {key: value for key, value in options.items() if key in own}
    request = EngineRequest(
        name=name,
        argument=argument,
        jobs=jobs,
        options=known.options(EngineRecord, kind, options)[0],
        others=others,
        plugin_id=plugin_id,
    )
    engine: Engine = called(plugin_id, "__init__", loaded, request)
    return engine
