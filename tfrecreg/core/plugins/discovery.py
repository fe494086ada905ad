"""Loads modules with hooks one by one, catches their errors, and finds the records they announce.

:mod:`tfrecreg.core.plugins.bundled` names the bundled plugins. Entry points name the plugins of
other distributions.

pluggy's own manager is not used: it stops loading at an exception in one plugin, and it silently
ignores one of two entry points that have the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Generic, TypeVar

from tfrecreg._version import __version__
from tfrecreg.core.plugins.bundled import BUNDLED, COMMANDS, OURS
from tfrecreg.core.plugins.entry_points import (
    Broken,
    entries,
    identity,
    module_of,
    with_plugins,
)
from tfrecreg.core.plugins.guard import PluginId, calling, reason_of, traced
from tfrecreg.core.plugins.records import PLUGIN_KINDS, CommandRecord, PluginRecord, SourceRecord
from tfrecreg.core.values.codes import PAGES
from tfrecreg.core.values.findings import Code
from tfrecreg.core.values.text import did_you_mean, listed, safe, type_text

R_co = TypeVar("R_co", bound=PluginRecord[Any], covariant=True)

MARK = "tfrecreg_impl"
"""The name of the attribute that `hookimpl` sets on a function."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CODE = re.compile(r"[A-Z]{3}[0-9]{3}")
_FAMILIES = frozenset(PAGES.values())
"""Prefixes of tfrecreg's own codes, which third-party plugins must not use."""


@dataclass(frozen=True, slots=True)
class Announced(Generic[R_co]):
    """A record that a plugin announces, and its origin."""

    record: R_co
    name: str
    """The name of the record."""
    distribution: str
    version: str
    """Version of the distribution."""
    entry_point: str
    """Name of the entry point, or of the module if the plugin is bundled."""
    module: str = ""
    """The module with the hook."""
    disabled_by: str = ""
    """The setting that switches the plugin off, for messages; empty if the plugin is on."""

    @property
    def qualified(self) -> str:
        """``distribution:name``, which can be used wherever the name alone can."""
        return f"{self.distribution}:{self.name}"

    @property
    def plugin_id(self) -> PluginId:
        """How messages refer to the plugin."""
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
    """Name of the distribution; empty if its metadata have none."""
    version: str
    reason: str
    """One line, escaped."""


def discover(path: Sequence[str] | None = None) -> Iterator[Announced[Any] | BrokenPlugin]:
    """Load all plugins."""
    for module in BUNDLED if path is None else ():
        plugin_id = PluginId("plugin", module, OURS, __version__)
        yield from _announced(plugin_id, module, partial(import_module, module))
    for distribution in with_plugins(path):
        name = version = ""
        try:
            name, version = identity(distribution)
            declared = entries(distribution)
        except Exception as error:
            yield BrokenPlugin("", name, version, reason(error))
            continue
        for entry in declared:
            plugin_id = PluginId("plugin", entry.name, name, version)
            yield from _announced(plugin_id, module_of(entry), entry.load)


def _announced(
    plugin_id: PluginId, module: str, load: Callable[[], object]
) -> Iterator[Announced[Any] | BrokenPlugin]:
    """The records that one entry point announces."""
    where = plugin_id.distribution, plugin_id.version
    try:
        with calling():
            records = list(records_of(load(), ours=plugin_id.is_ours))
    except Exception as error:
        yield BrokenPlugin(plugin_id.name, *where, reason(error))
        return
    for record in records:
        yield Announced(record, record.name, *where, plugin_id.name, module)


def reason(error: Exception) -> str:
    """One line about an exception that an import or a hook raised."""
    if isinstance(error, Broken):
        return safe(str(error), limit=500)
    return reason_of(traced(error))


def records_of(plugin: object, *, ours: bool = False) -> Iterator[PluginRecord[Any]]:
    """The records that the hooks of a module yield."""
    known = {kind.hook: kind for kind in PLUGIN_KINDS}
    marked = [each for each in dir(plugin) if hasattr(getattr(plugin, each, None), MARK)]
    if not marked:
        raise Broken(f"implements no hook: expected {listed(known, word='or')}, marked `hookimpl`")
    for name in marked:
        if name not in known:
            raise Broken(f"`{name}` is not a hook{did_you_mean(name, known)}")
        yield from _checked(known[name], getattr(plugin, name)(), ours=ours)


def _checked(
    kind: type[PluginRecord[Any]], result: object, *, ours: bool
) -> Iterator[PluginRecord[Any]]:
    if not isinstance(result, Iterable) or isinstance(result, str):
        raise Broken(f"`{kind.hook}` returned {type_text(result)}, expected {kind.__name__}s")
    for record in result:
        if not isinstance(record, kind):
            raise Broken(f"`{kind.hook}` yielded {type_text(record)}, expected {kind.__name__}s")
        if not ours:  # tests check the bundled records: a check would read them for every command
            check_record(record)
        yield record


def check_record(record: Any, *, any_name: bool = False) -> None:
    """Raise an error if a record has a wrong field."""
    hook, name = record.hook, record.name
    if not any_name and (not isinstance(name, str) or not _NAME.fullmatch(name)):
        raise Broken(f"`{hook}` yielded the name `{name}`, expected `[a-z][a-z0-9_]*`")
    if name in record.taken or (isinstance(record, CommandRecord) and name in COMMANDS):
        raise Broken(f"`{hook}` yielded the name `{name}`, which tfrecreg reserves")
    if not isinstance(record.summary, str) or not callable(record.load):
        raise Broken(f"`{hook}`: `{name}` needs a summary in words and a function to load it")
    if isinstance(record, SourceRecord) and isinstance(record.recognizes, str):
        raise Broken(f"`{hook}`: `{name}` needs a list of globs as `recognizes`")
    for code in record.codes:
        if not isinstance(code, Code) or not _CODE.fullmatch(code.code):
            shown = getattr(code, "code", code)
            raise Broken(f"`{hook}`: `{name}` has the code `{shown}`, expected one like `ABC001`")
        if code.code[:3] in _FAMILIES:
            raise Broken(f"`{hook}`: `{name}` has the code `{code.code}`, which tfrecreg reserves")
