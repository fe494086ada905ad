"""Finds plugins by name, and loads their classes.

Modules with hooks are loaded one by one. :mod:`tfrecreg.core.plugins.bundled` names the bundled
plugins, and entry points name the plugins of other distributions. pluggy's own manager is not used:
it stops loading at an exception in one plugin, and it silently ignores one of two entry points that
have the same name.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from functools import cache, partial
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tfrecreg._version import __version__
from tfrecreg.core.plugins.bundled import BUNDLED, DISABLE, LOCAL, OURS
from tfrecreg.core.plugins.entry_points import (
    Broken,
    canonical_name,
    entries,
    identity,
    is_local,
    with_plugins,
)
from tfrecreg.core.plugins.guard import PluginId, blaming, calling, failure, reason_of, traced
from tfrecreg.core.plugins.records import (
    PLUGIN_KINDS,
    CommandRecord,
    DecoderRecord,
    PluginRecord,
    SourceRecord,
    ValidatorRecord,
)
from tfrecreg.core.values.codes import CORE_CODES, PAGES, former_codes
from tfrecreg.core.values.config import CONFIG_NAME
from tfrecreg.core.values.errors import (
    DisabledPluginError,
    MissingExtraError,
    PluginError,
    UnknownPluginError,
    UsageError,
)
from tfrecreg.core.values.findings import Code
from tfrecreg.core.values.text import did_you_mean, listed, safe, type_text
from tfrecreg.core.values.typed_values import NoOptions, options_as_text, pairs_of, parse_options

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.deal import SourceOptions
    from tfrecreg.core.build.sources.guarded import GuardedSource
    from tfrecreg.core.plugins.recognition import OptionInfo
    from tfrecreg.core.storage.interface import Readable
    from tfrecreg.core.values.config import Config

R_co = TypeVar("R_co", bound=PluginRecord[Any], covariant=True)

BY_REGISTRY = f"`plugins.disable` in `{CONFIG_NAME}`"
"""The setting with which a registry switches plugins off, for messages."""
MARK = "tfrecreg_impl"
"""The name of the attribute that `hookimpl` sets on a function."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
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


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """An entry point that is broken. All of its records are ignored."""

    entry_point: str
    distribution: str
    """Name of the distribution; empty if its metadata have none."""
    version: str
    reason: str
    """One line, escaped."""


def discover() -> Iterator[Announced[Any] | BrokenPlugin]:
    """Load all plugins."""
    for module in BUNDLED:
        plugin_id = PluginId("plugin", module, OURS, __version__)
        yield from _announced(plugin_id, module, partial(import_module, module))
    for distribution in with_plugins():
        name = version = ""
        try:
            name, version = identity(distribution)
            declared = [(each, each.module) for each in entries(distribution)]
        except Exception as error:
            yield BrokenPlugin("", name, version, reason(error))
            continue
        for entry, module in declared:
            plugin_id = PluginId("plugin", entry.name, name, version)
            yield from _announced(plugin_id, module, entry.load)


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
    kind: type[PluginRecord[Any]], result: Iterable[Any], *, ours: bool
) -> Iterator[PluginRecord[Any]]:
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
    if name in record.taken:
        raise Broken(f"`{hook}` yielded the name `{name}`, which tfrecreg reserves")
    if not isinstance(record.summary, str) or not callable(record.load):
        raise Broken(f"`{hook}`: `{name}` needs text in `summary` and a function in `load`")
    if isinstance(record, SourceRecord) and isinstance(record.recognizes, str):
        raise Broken(f"`{hook}`: `{name}` needs a list of globs in `recognizes`")
    for code in record.codes:
        if code.code[:3] in _FAMILIES:
            raise Broken(f"`{hook}`: `{name}` has the code `{code.code}`, which tfrecreg reserves")


R = TypeVar("R", bound=PluginRecord[Any])
T = TypeVar("T")
_ORDER = attrgetter("name", "distribution", "entry_point")


class Plugins:
    """All plugins. Their classes are not loaded yet. Lists are in order of name."""

    def __init__(self, found: Iterable[Announced[Any] | BrokenPlugin] = ()) -> None:
        found = list(found)
        announced = [each for each in found if isinstance(each, Announced)]
        broken = [each for each in found if isinstance(each, BrokenPlugin)]
        self._announced = sorted(announced, key=_ORDER)
        self.broken = sorted(broken, key=attrgetter("entry_point", "distribution"))
        """Broken plugins with the reasons, in order of entry point."""

    def without(self, names: Iterable[str], by: str) -> Plugins:
        """These plugins, but with the plugins in `names` disabled.

        Args:
            by: the setting that switches them off, for messages: `` `TFRECREG_DISABLE` ``.
        """
        names = tuple(names)
        if not names:
            return self
        found: list[Announced[Any] | BrokenPlugin] = [*self.broken]
        for each in self._announced:
            off = not each.disabled_by and any(has_name(each, name) for name in names)
            found.append(replace(each, disabled_by=by) if off else each)
            record = each.record
            is_needed = getattr(record, "reads_back", False)
            is_needed = is_needed or isinstance(record, CommandRecord | DecoderRecord)
            if off and each.plugin_id.is_ours and is_needed:
                raise UsageError(
                    f"{by} disables the {record.kind} `{each.name}`, which cannot be disabled"
                )
        return Plugins(found)

    @contextmanager
    def lending(self, announced: Announced[Any]) -> Iterator[None]:
        """Add a plugin for the duration of the block, for example to test one not yet installed."""
        before = self._announced
        self._announced = sorted([*before, announced], key=_ORDER)
        try:
            yield
        finally:
            self._announced = before

    @property
    def disabled(self) -> list[Announced[Any]]:
        """The plugins that are switched off, in order of kind and name."""
        off = (each for each in self._announced if each.disabled_by)
        return sorted(off, key=lambda each: each.record.kind)

    @property
    def clashes(self) -> list[list[Announced[Any]]]:
        """Groups of plugins that have the same kind and name, in order of kind. No plugin of a
        group is preferred, so a name without its distribution is refused.
        """
        groups = (
            list(group)
            for kind in PLUGIN_KINDS
            for _, group in groupby(self.every(kind), key=attrgetter("name"))
        )
        return [each for each in groups if len(each) > 1]

    def every(self, kind: type[R]) -> list[Announced[R]]:
        """All plugins of a kind, even if their names clash, in order of name and distribution."""
        return [
            each
            for each in self._announced
            if isinstance(each.record, kind) and not each.disabled_by
        ]

    def names(self, kind: type[PluginRecord[Any]]) -> list[str]:
        """The names of all plugins of a kind, without duplicates, in order."""
        return sorted({each.name for each in self.every(kind)})

    def codes(self) -> dict[str, Code]:
        """All finding codes, of bundled modules and of plugins, by name."""
        found = dict(CORE_CODES)
        for each in self._announced:
            for code in each.record.codes:
                found.setdefault(code.code, code)
        return dict(sorted(found.items()))

    def find(self, kind: type[R], name: str) -> Announced[R]:
        """The plugin of that kind and name, ``mnist`` or ``distribution:mnist``."""
        found = self.named(kind, name)
        if len(found) > 1:
            raise _clashing(found)
        return found[0]

    def named(self, kind: type[R], name: str) -> list[Announced[R]]:
        """The plugins of that kind and name; of any kind, if `kind` is :class:`PluginRecord`."""
        announced = self.every(kind)
        found = [each for each in announced if has_name(each, name)]
        if not found:
            self._expect_enabled(kind, name)
            raise self._unknown(kind.kind, announced, name)
        return found

    def load(self, kind: type[PluginRecord[T]], name: str) -> T:
        """The class or command of the plugin of that kind and name."""
        loaded: T = _loaded(self.find(kind, name))
        return loaded

    def options(
        self,
        kind: type[PluginRecord[Any]],
        name: str,
        given: Sequence[str] | Mapping[str, Any],
        *,
        also: Iterable[str] = (),
    ) -> tuple[Any, dict[str, str]]:
        """Read the options of the plugin of that kind and name. The first result is an object of
        the plugin's `Options`. The second result has the options as text.
        """
        plugin_id = self.find(kind, name).plugin_id
        loaded = self.load(kind, name)
        with blaming(plugin_id, "failed to read its options"):
            options = parse_options(loaded.Options, given, of=name, also=also)
            return options, options_as_text(options)

    def source_options(
        self, name: str, given: Sequence[str] | Mapping[str, Any]
    ) -> tuple[SourceOptions, dict[str, str]]:
        """Read the options of the source of that name, and the options that all sources share.

        The second result has the options as text. It contains the shared options only if `split` is
        given.
        """
        from tfrecreg.core.build.sources.deal import DealOptions, SourceOptions, shared_options

        shared = shared_options(self.load(SourceRecord, name).Options)
        pairs = given if isinstance(given, Mapping) else pairs_of(given)
        own = {key: pairs[key] for key in pairs if key not in shared}
        options, text = self.options(SourceRecord, name, own, also=shared)
        dealt = {key: pairs[key] for key in pairs if key in shared}
        deal = parse_options(DealOptions, dealt, of=name)
        if deal.split:
            text = dict(sorted({**text, **options_as_text(deal)}.items()))
        if not deal.stratify and "stratify" in shared:
            text.pop("stratify", None)  # as in manifests from before this option
        return SourceOptions(options, deal), text

    def open_source(self, name: str, raw: Readable, options: SourceOptions) -> GuardedSource:
        """The source of that name, opened on raw data. All its calls are guarded."""
        from tfrecreg.core.build.sources.guarded import (
            GuardedSource,  # imports NumPy, which listings do not need
        )

        found = self.find(SourceRecord, name)
        kind = self.load(SourceRecord, name)
        codes = frozenset(code.code for code in found.record.codes)
        return GuardedSource.open(kind, found.plugin_id, raw, options, codes)

    def describe(self, announced: Announced[Any]) -> list[OptionInfo]:
        """The options of a plugin; empty if it declares none."""
        from tfrecreg.core.build.sources.deal import DealOptions, shared_options
        from tfrecreg.core.plugins.recognition import describe_options

        record = announced.record
        options = getattr(self.load(type(record), announced.qualified), "Options", None)
        if options is None:
            return []
        with blaming(announced.plugin_id, "failed to read its options"):
            found = describe_options(options, text=not isinstance(record, ValidatorRecord))
        if isinstance(record, SourceRecord) and shared_options(options):
            found += describe_options(DealOptions)
        return found

    def _expect_enabled(self, kind: type[PluginRecord[Any]], name: str) -> None:
        for each in self.disabled:
            if isinstance(each.record, kind) and has_name(each, name):
                raise DisabledPluginError(
                    f"the {each.record.kind} `{name}` is disabled by {each.disabled_by}"
                )

    def _unknown(self, kind: str, announced: Sequence[Announced[Any]], name: str) -> PluginError:
        for each in self.broken:
            if is_local(name) and each.distribution == name.rpartition(":")[0]:
                return PluginError(
                    f"the local plugin `{each.distribution}` is broken: {each.reason}"
                )
        known = {one.qualified if ":" in name else one.name for one in announced}
        hint = f"available: {listed(sorted(known))}" if known else f"no {kind} is installed"
        message = f"no {kind} named `{name}`{did_you_mean(name, known)}"
        return UnknownPluginError(message, hint=f"{hint}{self.or_broken}")

    @property
    def or_broken(self) -> str:
        """The last part of a hint about available plugins; empty if no plugin is broken."""
        if not self.broken:
            return ""
        names = listed(sorted({one.distribution or "?" for one in self.broken}))
        return f"; plugins of {names} are broken: see `tfrecreg plugins list`"


@cache
def plugins() -> Plugins:
    """The plugins of this process. The first call searches for them."""
    names = [name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip()]
    return Plugins(discover()).without(names, f"`{DISABLE}`")


def plugins_of(config: Config, *, untrusted: bool = False) -> Plugins:
    """The plugins of a registry: the plugins of this process and the registry's local plugins,
    except plugins that the registry switches off.
    """
    found = plugins()
    if config.home and config.plugins.local:
        room = import_module(LOCAL)  # few registries need this room
        local: list[Announced[Any] | BrokenPlugin] = room.local_plugins(
            config.home, config.plugins.local, untrusted=untrusted
        )
        more = [each for each in local if isinstance(each, Announced)]
        _codes_of_local.update((code.code, code) for each in more for code in each.record.codes)
        found = Plugins([*found._announced, *found.broken, *local])
    return found.without(config.plugins.disable, BY_REGISTRY)


def code_named(name: str) -> Code | None:
    """The finding code of that name, or the code that replaced it; None if no code has the name.
    The plugins are only searched if no bundled code has the name.
    """
    former = former_codes().get(name)
    found = CORE_CODES.get(name if former is None else former.became[0])
    return plugins().codes().get(name, _codes_of_local.get(name)) if found is None else found


_codes_of_local: dict[str, Code] = {}
"""Codes of the local plugins that this process has found, by name."""


def has_name(announced: Announced[Any], name: str) -> bool:
    """Whether a plugin has this name. The distribution is optional: ``crc``, ``other:crc``."""
    distribution, colon, bare = name.rpartition(":")
    if announced.name != bare:
        return False
    return not colon or canonical_name(announced.distribution) == canonical_name(distribution)


def _clashing(found: Sequence[Announced[Any]]) -> PluginError:
    first = found[0]
    origins = [f"`{safe(one.distribution)}` {safe(one.version)}" for one in found]
    flag = f"{first.record.flag} " if first.record.flag else ""
    choices = [f"`{flag}{one.qualified}`" for one in found]
    return PluginError(
        f"the {first.record.kind} `{first.name}` is announced by {' and by '.join(origins)}",
        hint=f"choose one: {' or '.join(choices)}",
    )


def _loaded(announced: Announced[Any]) -> Any:
    record = announced.record
    try:
        with calling():
            loaded: Any = record.load()
            wrong = _wrong(record, loaded) if record.is_class else ""
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and record.extra is not None:
            feature = f"the {record.kind} `{announced.name}`"
            raise MissingExtraError(feature, record.extra, announced.distribution) from error
        raise failure(announced.plugin_id, "cannot be loaded", error) from error
    if wrong:
        raise announced.plugin_id.error(f"cannot be used: {wrong}")
    return loaded


def _wrong(record: PluginRecord[Any], loaded: Any) -> str:
    """Why the loaded object cannot be used; empty if it can."""
    missing = {name for name in record.methods if not callable(getattr(loaded, name, None))}
    missing |= getattr(loaded, "__abstractmethods__", frozenset())
    if missing:
        return f"its class has no {listed(sorted(missing), word='or')}"
    if not is_dataclass(getattr(loaded, "Options", None) or NoOptions):
        return "its `Options` are not a dataclass"
    try:
        pickle.dumps(loaded)
    except (pickle.PicklingError, AttributeError, TypeError):
        return "worker processes cannot find its class by name: define it in a module"
    return ""
