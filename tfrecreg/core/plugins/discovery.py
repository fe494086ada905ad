"""From modules with hooks to announced records, one guarded plugin at a time.

The bundled plugins are named in :mod:`tfrecreg.core.plugins.bundled`, those of other distributions
by their entry points.

pluggy's own ``load_setuptools_entrypoints`` is not used: an exception in one plugin ends it for
all, and of two entry points with the same name it silently loads one. Here each entry point gets
a pluggy manager of its own, so that a plugin cannot affect another one through it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tfrecreg._version import __version__
from tfrecreg.core.plugins.bundled import BUNDLED, COMMANDS, OURS
from tfrecreg.core.plugins.entry_points import (
    GROUP,
    Broken,
    EntryPoint,
    entries,
    identity,
    with_plugins,
)
from tfrecreg.core.plugins.guard import PluginId, calling, place_of, reason_of, traced
from tfrecreg.core.plugins.records import PLUGIN_KINDS, CommandRecord, PluginRecord, SourceRecord
from tfrecreg.core.values.codes import PAGES
from tfrecreg.core.values.findings import Code
from tfrecreg.core.values.text import did_you_mean, listed, safe, type_text

R_co = TypeVar("R_co", bound=PluginRecord[Any], covariant=True)

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CODE = re.compile(r"[A-Z]{3}[0-9]{3}")
_FAMILIES = frozenset(PAGES.values())
"""Prefixes of tfrecreg's own codes, which third-party plugins must not use."""


@dataclass(frozen=True, slots=True)
class Announced(Generic[R_co]):
    """A record that a plugin announces, and its origin."""

    record: R_co
    name: str
    """The record's."""
    distribution: str
    version: str
    """Version of the distribution."""
    entry_point: str
    """Its name; of a bundled plugin, the module."""
    module: str = ""
    """The module with the hook."""

    @property
    def qualified(self) -> str:
        """``distribution:name``, which is valid wherever the name alone is."""
        return f"{self.distribution}:{self.name}"

    @property
    def plugin_id(self) -> PluginId:
        """The plugin as named in messages."""
        return PluginId(self.record.kind, self.name, self.distribution, self.version)

    @property
    def origin(self) -> str:
        """Distribution and version, for messages."""
        return f"`{safe(self.distribution)}` {safe(self.version)}"


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """An entry point that is broken. All of its records are ignored."""

    entry_point: str
    distribution: str
    """Name of the distribution; empty if its metadata lack it."""
    version: str
    reason: str
    """One line, escaped."""


def discover(path: Sequence[str] | None = None) -> Iterator[Announced[Any] | BrokenPlugin]:
    """Load all plugins."""
    found: list[tuple[PluginId, EntryPoint] | BrokenPlugin] = []
    if path is None:
        declared = [EntryPoint(module, module) for module in BUNDLED]
        found += ((PluginId("plugin", each.name, OURS, __version__), each) for each in declared)
    for distribution in with_plugins(path):
        name = version = ""
        try:
            name, version = identity(distribution)
            declared = entries(distribution)
        except Exception as error:
            found.append(BrokenPlugin("", name, version, reason(error)))
            continue
        found += ((PluginId("plugin", entry.name, name, version), entry) for entry in declared)
    for each in found:
        if isinstance(each, BrokenPlugin):
            yield each
            continue
        plugin_id, entry = each
        name, version = plugin_id.distribution, plugin_id.version
        try:
            with calling(plugin_id, "import"):
                records = list(records_of(entry.load(), ours=plugin_id.is_ours))
        except Exception as error:
            yield BrokenPlugin(entry.name, name, version, reason(error))
            continue
        for record in records:
            yield Announced(record, record.name, name, version, entry.name, entry.module)


def reason(error: BaseException) -> str:
    """One line on the exception of an import, or of a hook."""
    return str(error) if isinstance(error, Broken) else reason_of(traced(error), error)


def records_of(plugin: object, *, ours: bool = False) -> Iterator[PluginRecord[Any]]:
    """The records that the hooks of a module yield."""
    import pluggy

    from tfrecreg.core.plugins import specs

    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(specs)
    try:
        manager.register(plugin)
    except pluggy.PluginValidationError as error:
        wrong = (each for each in vars(plugin) if f"hook '{each}'" in str(error))
        place = place_of(vars(plugin).get(next(wrong, "")))
        raise Broken(" ".join(map(safe, str(error).split("\n"))) + place) from error
    known = {kind.hook: kind for kind in PLUGIN_KINDS}
    callers = {caller.name: caller for caller in manager.get_hookcallers(plugin) or ()}
    for name in sorted(callers):
        if name not in known:
            near = did_you_mean(name, known)
            raise Broken(f"`{safe(name)}` is not a hook{near}{place_of(getattr(plugin, name))}")
    if not callers:
        raise Broken(f"implements no hook: expected {listed(known, word='or')}, marked `hookimpl`")
    for name, caller in sorted(callers.items()):
        result: Any = None
        try:
            for result in caller() or (None,):
                yield from _checked(known[name], result, ours=ours)
        except Broken as error:
            raise Broken(f"{error}{place_of(result, getattr(plugin, name))}") from None


def _checked(
    kind: type[PluginRecord[Any]], result: object, *, ours: bool
) -> Iterator[PluginRecord[Any]]:
    if not isinstance(result, Iterable) or isinstance(result, str):
        raise Broken(f"`{kind.hook}` returned {type_text(result)}, expected {kind.__name__}s")
    for record in result:
        if not isinstance(record, kind):
            raise Broken(f"`{kind.hook}` yielded {type_text(record)}, expected {kind.__name__}s")
        _check(record, ours=ours)
        yield record


def checked_record(record: PluginRecord[Any], *, any_name: bool = False) -> PluginRecord[Any]:
    """A record that fits the rules for records."""
    _check(record, ours=False, any_name=any_name)
    return record


def _check(record: Any, *, ours: bool, any_name: bool = False) -> None:
    hook, name = record.hook, record.name
    if not any_name and (not isinstance(name, str) or not _NAME.fullmatch(name)):
        shown = safe(str(name), limit=60)
        raise Broken(f"`{hook}` yielded the name `{shown}`, expected `[a-z][a-z0-9_]*`")
    if name in record.taken:
        raise Broken(f"`{hook}` yielded the name `{name}`, which is tfrecreg's own")
    if not isinstance(record.summary, str) or not callable(record.load):
        raise Broken(f"`{hook}`: `{name}` needs a summary in words and a function to load it")
    if ours:
        return  # the project's tests check them; checking here would read them for every command
    if isinstance(record, CommandRecord) and name in COMMANDS:
        raise Broken(f"`{hook}` yielded the name `{name}`, which is a command of tfrecreg's own")
    if isinstance(record, SourceRecord):
        globs = record.recognizes
        if isinstance(globs, str) or not all(isinstance(each, str) for each in globs):
            raise Broken(f"`{hook}`: `{name}` needs a list of globs as `recognizes`")
        if record.examine is not None and not callable(record.examine):
            raise Broken(f"`{hook}`: `{name}` needs a function as `examine`")
    for code in record.codes:
        if not isinstance(code, Code) or not _CODE.fullmatch(code.code):
            shown = safe(str(getattr(code, "code", code)), limit=60)
            raise Broken(f"`{hook}`: `{name}` has the code `{shown}`, expected one like `ABC001`")
        if code.code[:3] in _FAMILIES:
            raise Broken(f"`{hook}`: `{name}` has the code `{code.code}`, which is tfrecreg's own")
