"""All plugins: lookup by name, and loading of classes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from tfrecreg.core.plugins.bundled import DISABLE, LOCAL, OURS
from tfrecreg.core.plugins.discovery import Announced, BrokenPlugin, discover
from tfrecreg.core.plugins.entry_points import canonical_name, is_local
from tfrecreg.core.plugins.guard import calling, failure, place_of
from tfrecreg.core.plugins.records import (
    PLUGIN_KINDS,
    CommandRecord,
    PluginRecord,
    SourceRecord,
    ValidatorRecord,
)
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.config import CONFIG_NAME
from tfrecreg.core.values.errors import (
    DisabledPluginError,
    MissingExtraError,
    PluginError,
    UnknownPluginError,
    UsageError,
)
from tfrecreg.core.values.findings import Code
from tfrecreg.core.values.text import did_you_mean, listed, safe
from tfrecreg.core.values.typed_values import options_as_text, pairs_of, parse_options

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.deal import SourceOptions
    from tfrecreg.core.build.sources.guarded import GuardedSource
    from tfrecreg.core.plugins.recognition import OptionInfo
    from tfrecreg.core.storage.interface import Readable, Storage
    from tfrecreg.core.values.config import Config

R = TypeVar("R", bound=PluginRecord[Any])
T = TypeVar("T")
_ORDER = attrgetter("name", "distribution", "entry_point")


@dataclass(frozen=True, slots=True)
class NameClash:
    """Several plugins announce the same name. None of them is preferred: the name alone is
    refused.
    """

    kind: str
    """In words, as :attr:`tfrecreg.core.plugins.records.PluginRecord.kind`."""
    name: str
    announced: tuple[Announced[Any], ...]


@dataclass(frozen=True, slots=True)
class Disabled:
    """A plugin that is switched off."""

    announced: Announced[Any]
    by: str
    """What switches it off, for messages: `` `TFRECREG_DISABLE` ``."""


class Plugins:
    """All plugins, without loading their classes. Lists are in order of name."""

    def __init__(
        self,
        announced: Iterable[Announced[Any]] = (),
        broken: Iterable[BrokenPlugin] = (),
        disabled: Sequence[Disabled] = (),
    ) -> None:
        self._disabled = list(disabled)
        self._announced = sorted(announced, key=_ORDER)
        self._broken = sorted(broken, key=lambda one: (one.entry_point, one.distribution))

    @classmethod
    def search(cls, path: Sequence[str] | None = None) -> Plugins:
        """Find and import the plugins. See :func:`plugins` for those of this process."""
        found = list(discover(path))
        return cls(
            (one for one in found if isinstance(one, Announced)),
            (one for one in found if isinstance(one, BrokenPlugin)),
        )

    def without(self, names: Iterable[str], by: str) -> Plugins:
        """These plugins, but for some that are switched off."""
        names = tuple(names)
        off = [each for each in self._announced if any(has_name(each, name) for name in names)]
        for each in off:
            if each.plugin_id.is_ours and getattr(each.record, "reads_back", False):
                raise UsageError(
                    f"the {each.record.kind} `{each.name}` cannot be disabled: every build has to "
                    "pass it",
                    hint=f"take it out of {by}; `--skip {each.name}` leaves it out of one check",
                )
            if each.plugin_id.is_ours and isinstance(each.record, CommandRecord):
                raise UsageError(
                    f"the command `{each.name}` cannot be disabled: it comes with {OURS}",
                    hint=f"take it out of {by}",
                )
        on = (each for each in self._announced if each not in off)
        disabled = [*self._disabled, *(Disabled(each, by) for each in off)]
        return Plugins(on, self._broken, disabled)

    def of_registry(self, config: Config, *, untrusted: bool) -> Plugins:
        """These plugins, and the local ones of a registry: see :func:`plugins_of`."""
        found: list[Any] = []
        if config.plugins.local:
            local = import_module(LOCAL)  # a room, which few registries need
            found = local.local_plugins(config.home, config.plugins.local, untrusted=untrusted)
        more = [each for each in found if isinstance(each, Announced)]
        broken = [each for each in found if isinstance(each, BrokenPlugin)]
        _remember_codes(more)
        return Plugins([*self._announced, *more], [*self._broken, *broken], self._disabled)

    @contextmanager
    def lending(self, announced: Announced[Any]) -> Iterator[None]:
        """Have one more plugin while the block lasts: that of a test, which is not installed."""
        before = self._announced
        self._announced = sorted([*before, announced], key=_ORDER)
        try:
            yield
        finally:
            self._announced = before

    @property
    def disabled(self) -> list[Disabled]:
        """The plugins that are switched off, in order of discovery."""
        return list(self._disabled)

    @property
    def broken(self) -> list[BrokenPlugin]:
        """Broken plugins, with the reason; in order of entry point."""
        return list(self._broken)

    @property
    def clashes(self) -> list[NameClash]:
        """Names that more than one plugin announces, in order of kind."""
        return [clash for kind in PLUGIN_KINDS for clash in _clashes(kind, self.every(kind))]

    def every(self, kind: type[R]) -> list[Announced[R]]:
        """All plugins of a kind, including those that clash, in order of name and distribution."""
        return [each for each in self._announced if isinstance(each.record, kind)]

    def names(self, kind: type[PluginRecord[Any]]) -> list[str]:
        """The names of all plugins of a kind, each once, in order."""
        return sorted({each.name for each in self.every(kind)})

    def codes(self) -> dict[str, Code]:
        """All finding codes by name, the bundled ones and those of plugins."""
        found = dict(CORE_CODES)
        for each in (*self._announced, *(off.announced for off in self._disabled)):
            for code in each.record.codes:
                found.setdefault(code.code, code)
        return dict(sorted(found.items()))

    def find(self, kind: type[R], name: str) -> Announced[R]:
        """The plugin of that kind and name, ``mnist`` or ``distribution:mnist``."""
        announced = self.every(kind)
        found = [one for one in announced if has_name(one, name)]
        if not found:
            self._expect_enabled(kind, name)
            if is_local(name):
                raise self._no_local(kind, name)
            raise self._unknown(kind.kind, announced, name)
        if len(found) > 1:
            raise _clashing(kind, NameClash(kind.kind, name, tuple(found)))
        return found[0]

    def load(self, kind: type[PluginRecord[T]], name: str) -> T:
        """The class or command of the plugin of that kind and name."""
        found = self.find(kind, name)
        loaded: T = _loaded(found)
        if kind.has_options:
            _expect_options(found, loaded)
        return loaded

    def options(
        self,
        kind: type[PluginRecord[Any]],
        name: str,
        given: Sequence[str] | Mapping[str, Any],
        *,
        hint: str = "",
        also: Iterable[str] = (),
    ) -> tuple[Any, dict[str, str]]:
        """The options of the plugin of that kind and name: an object of its `Options`, and as
        text.
        """
        plugin_id = self.find(kind, name).plugin_id
        loaded = self.load(kind, name)
        try:
            with calling(plugin_id, "Options"):
                options = parse_options(loaded.Options, given, of=name, hint=hint, also=also)
                return options, options_as_text(options)
        except Exception as error:
            what, of = "failed over its options", getattr(loaded, "Options", loaded)
            raise failure(plugin_id, what, error, of) from error

    def source_options(
        self, name: str, given: Sequence[str] | Mapping[str, Any]
    ) -> tuple[SourceOptions, dict[str, str]]:
        """The options of the source of that name, with those that all sources have.

        The text has the latter only where they are given.
        """
        from tfrecreg.core.build.sources.deal import DealOptions, SourceOptions, shared_options

        shared = shared_options(self.load(SourceRecord, name).Options)
        pairs = given if isinstance(given, Mapping) else pairs_of(given, name)
        own = {key: pairs[key] for key in pairs if key not in shared}
        options, text = self.options(SourceRecord, name, own, also=shared)
        dealt = {key: pairs[key] for key in pairs if key in shared}
        deal = parse_options(DealOptions, dealt, of=name)
        if deal.split:
            text = dict(sorted({**text, **options_as_text(deal)}.items()))
        if not deal.stratify and "stratify" in shared:
            text.pop("stratify", None)  # as it was before there was the option
        return SourceOptions(options, deal), text

    def open_source(self, name: str, raw: Readable, options: SourceOptions) -> GuardedSource:
        """The source of that name, opened on raw data; all calls to it are guarded."""
        from tfrecreg.core.build.sources.guarded import (
            GuardedSource,  # with NumPy, which listings do not need
        )

        found = self.find(SourceRecord, name)
        kind = self.load(SourceRecord, name)
        codes = frozenset(code.code for code in found.record.codes)
        return GuardedSource.open(kind, found.plugin_id, raw, options, codes)

    def named(self, name: str) -> list[Announced[Any]]:
        """The plugins of that name, ``mnist`` or ``distribution:mnist``, in order of kind."""
        known = [each for kind in PLUGIN_KINDS for each in self.every(kind)]
        found = [each for each in known if has_name(each, name)]
        if not found:
            self._expect_enabled(PluginRecord, name)
            raise self._unknown("plugin", known, name)
        return found

    def describe(self, announced: Announced[Any]) -> list[OptionInfo]:
        """The options of a plugin; empty if it declares none."""
        from tfrecreg.core.build.sources.deal import DealOptions, shared_options
        from tfrecreg.core.plugins.recognition import describe_options

        record = announced.record
        options = getattr(self.load(type(record), announced.qualified), "Options", None)
        if options is None:
            return []
        try:
            with calling(announced.plugin_id, "Options"):
                found = describe_options(options, text=not isinstance(record, ValidatorRecord))
        except Exception as error:
            raise failure(announced.plugin_id, "failed over its options", error) from error
        if isinstance(record, SourceRecord) and shared_options(options):
            found += describe_options(DealOptions)
        return found

    def _no_local(self, kind: type[PluginRecord[Any]], name: str) -> PluginError:
        """The error for the word of a local plugin that is not found."""
        for each in self._broken:
            if each.distribution == name.rpartition(":")[0]:
                return PluginError(
                    f"the local plugin `{safe(each.distribution)}` is broken: {each.reason}",
                    hint="correct the file, and run the command again",
                )
        return UnknownPluginError(
            f"no {kind.kind} named `{safe(name, limit=200)}`",
            hint=f"`[plugins] local` in `{CONFIG_NAME}` names its file, and the word its class: "
            "`./FOLDER/FILE.py:CLASS`",
        )

    def _expect_enabled(self, kind: type[PluginRecord[Any]], name: str) -> None:
        for off in self._disabled:
            record = off.announced.record
            if isinstance(record, kind) and has_name(off.announced, name):
                raise DisabledPluginError(
                    f"the {record.kind} `{safe(name, limit=60)}` is disabled by {off.by}",
                    hint=f"take it out of {off.by} to use it",
                )

    def _unknown(
        self, kind: str, announced: Sequence[Announced[Any]], name: str
    ) -> UnknownPluginError:
        known = {one.qualified if ":" in name else one.name for one in announced}
        hint = f"available: {listed(sorted(known))}" if known else f"no {kind} is installed"
        shown = safe(name, limit=60)
        message = f"no {kind} named `{shown}`{did_you_mean(name, known)}"
        return UnknownPluginError(message, hint=f"{hint}{self.or_broken}")

    @property
    def or_broken(self) -> str:
        """The end of a hint that lists what is available; empty if no plugin is broken."""
        if not self._broken:
            return ""
        names = listed(sorted({one.distribution or "?" for one in self._broken}))
        return f"; broken plugins of {names}: see `tfrecreg plugins list`"


@cache
def plugins() -> Plugins:
    """The plugins of this process, searched on the first call."""
    names = [name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip()]
    return Plugins.search().without(names, f"`{DISABLE}`")


def plugins_of(config: Config, *, untrusted: bool = False) -> Plugins:
    """The plugins of a registry: those of this process and its local ones, but for those that it
    switches off.
    """
    off = config.plugins.disable
    found = plugins().of_registry(config, untrusted=untrusted) if config.home else plugins()
    return found.without(off, f"`plugins.disable` in `{CONFIG_NAME}`") if off else found


def plugins_but(off: Sequence[str]) -> Plugins:
    """As :func:`plugins_of`, by the configuration."""
    found = plugins()
    return found.without(off, f"`plugins.disable` in `{CONFIG_NAME}`") if off else found


def plugins_with(name: str, home: Storage | None) -> Plugins:
    """The plugins among which `name` is found: with those of a registry if it is a local one."""
    if home is None or not is_local(name):
        return plugins()
    from tfrecreg.core.registry.registry import Registry  # few sources are local

    return plugins_of(Registry(home).config)


def code_named(name: str) -> Code | None:
    """The finding code of that name; None if there is none. Only one that is not bundled needs the
    plugins.
    """
    found = CORE_CODES.get(name)
    return plugins().codes().get(name, _codes_of_local.get(name)) if found is None else found


_codes_of_local: dict[str, Code] = {}
"""Codes of the local plugins that this process has found, by name."""


def _remember_codes(announced: Iterable[Announced[Any]]) -> None:
    _codes_of_local.update((code.code, code) for each in announced for code in each.record.codes)


def has_name(announced: Announced[Any], name: str) -> bool:
    """Whether a plugin has this name, ``crc`` or ``distribution:crc``."""
    distribution, colon, bare = name.rpartition(":")
    if announced.name != bare:
        return False
    return not colon or canonical_name(announced.distribution) == canonical_name(distribution)


def _clashes(
    kind: type[PluginRecord[Any]], announced: Iterable[Announced[Any]]
) -> Iterator[NameClash]:
    for name, group in groupby(announced, key=lambda one: one.name):
        found = tuple(group)
        if len(found) > 1:
            yield NameClash(kind.kind, name, found)


def _clashing(kind: type[PluginRecord[Any]], clash: NameClash) -> PluginError:
    origins = [f"{one.origin} (entry point `{safe(one.entry_point)}`)" for one in clash.announced]
    choices = sorted({one.qualified for one in clash.announced})
    hint = "uninstall or fix one of them"
    if len(choices) == len(clash.announced):
        shown = [f"`{f'{kind.flag} {safe(choice)}'.strip()}`" for choice in choices]
        hint = f"choose one: {' or '.join(shown)}"
    return PluginError(
        f"the {clash.kind} `{safe(clash.name)}` is announced by {' and by '.join(origins)}",
        hint=hint,
    )


def _loaded(announced: Announced[Any]) -> Any:
    record = announced.record
    try:
        with calling(announced.plugin_id, "load"):
            loaded: Any = record.load()
            wrong = _wrong(record, loaded) if record.is_class else ""
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and record.extra is not None:
            feature = f"the {record.kind} `{announced.name}`"
            raise MissingExtraError(feature, record.extra, announced.distribution) from error
        raise failure(announced.plugin_id, "cannot be loaded", error, record.load) from error
    if wrong:
        raise _unfit(announced, wrong, loaded if isinstance(loaded, type) else record.load)
    return loaded


def _wrong(record: PluginRecord[Any], loaded: Any) -> str:
    """Why it cannot be used; empty if it can."""
    if not isinstance(loaded, type):
        return f"`load` returned an object of type `{safe(type(loaded).__name__)}`, not a class"
    missing = {name for name in record.methods if not callable(getattr(loaded, name, None))}
    missing |= getattr(loaded, "__abstractmethods__", frozenset())
    if missing:
        return f"its class has no {listed(sorted(missing), word='or')}"
    try:
        pickle.dumps(loaded)
    except (pickle.PicklingError, AttributeError, TypeError):
        return "its class is not found by name, as worker processes need: define it in a module"
    return ""


def _expect_options(announced: Announced[Any], loaded: object) -> None:
    options = getattr(loaded, "Options", None)
    frozen = getattr(getattr(options, "__dataclass_params__", None), "frozen", False)
    if not isinstance(options, type) or not is_dataclass(options) or not frozen:
        of = options if isinstance(options, type) else loaded
        raise _unfit(announced, "its `Options` is not a frozen dataclass", of)


def _unfit(announced: Announced[Any], reason: str, of: object) -> PluginError:
    plugin_id = announced.plugin_id
    return PluginError(f"{plugin_id} cannot be used: {reason}{place_of(of)}", hint=plugin_id.hint)
