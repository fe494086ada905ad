"""All plugins: lookup by name, and loading of classes."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tfrecreg.codes import CORE_CODES
from tfrecreg.errors import MissingExtraError, PluginError, UnknownPluginError
from tfrecreg.findings import Code
from tfrecreg.guard import calling, failure, one_line
from tfrecreg.plugins.discovery import Announced, BrokenPlugin, canonical_name, discover
from tfrecreg.scan.interface import Validator, ValidatorRecord
from tfrecreg.sources.guarded import GuardedSource
from tfrecreg.sources.interface import Source, SourceRecord
from tfrecreg.storage.interface import Readable
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe
from tfrecreg.typed_values import options_as_text, parse_options

if TYPE_CHECKING:
    from tfrecreg.plugins.describe import OptionInfo

_Kind = Literal["source", "validator"]
R = TypeVar("R", SourceRecord, ValidatorRecord)

_FLAGS: dict[_Kind, str] = {"source": "--source", "validator": "--only"}
_METHODS: dict[_Kind, tuple[str, ...]] = {
    "source": ("raw_files", "labels", "items", "example", "schema"),
    "validator": ("applies", "begin", "finish"),
}


@dataclass(frozen=True, slots=True)
class NameClash:
    """Several plugins announce the same name. None of them is preferred: the name alone is
    refused.
    """

    kind: _Kind
    name: str
    announced: tuple[Announced[Any], ...]


class Plugins:
    """All plugins, without loading their classes. Lists are in order of name.

    Args:
        announced: records of sources and validators, in any order.
        broken: the broken entry points.
    """

    def __init__(
        self, announced: Iterable[Announced[Any]] = (), broken: Iterable[BrokenPlugin] = ()
    ) -> None:
        ordered = sorted(announced, key=lambda one: (one.name, one.distribution, one.entry_point))
        self._sources: list[Announced[SourceRecord]] = [
            found for found in ordered if isinstance(found.record, SourceRecord)
        ]
        self._validators: list[Announced[ValidatorRecord]] = [
            found for found in ordered if isinstance(found.record, ValidatorRecord)
        ]
        self._broken = sorted(broken, key=lambda one: (one.entry_point, one.distribution))

    @classmethod
    def load(cls, path: Sequence[str] | None = None) -> Plugins:
        """Find and import the plugins. See :func:`plugins` for those of this process.

        Args:
            path: folders to look for distributions in, instead of :data:`sys.path`.
        """
        found = list(discover(path))
        return cls(
            (one for one in found if isinstance(one, Announced)),
            (one for one in found if isinstance(one, BrokenPlugin)),
        )

    @property
    def broken(self) -> list[BrokenPlugin]:
        """Broken plugins, with the reason; in order of entry point."""
        return list(self._broken)

    @property
    def clashes(self) -> list[NameClash]:
        """Names that more than one plugin announces, sources first."""
        return [*_clashes("source", self._sources), *_clashes("validator", self._validators)]

    def sources(self) -> list[Announced[SourceRecord]]:
        """All sources, including those that clash, in order of name and distribution."""
        return list(self._sources)

    def validators(self) -> list[Announced[ValidatorRecord]]:
        """All validators, including those that clash, in order of name and distribution."""
        return list(self._validators)

    def codes(self) -> dict[str, Code]:
        """All finding codes by name, the bundled ones and those of validators."""
        found = dict(CORE_CODES)
        for each in self._validators:
            for code in each.record.codes:
                found.setdefault(code.code, code)
        return dict(sorted(found.items()))

    def source(self, name: str) -> Announced[SourceRecord]:
        """The source of that name, ``mnist`` or ``distribution:mnist``.

        Raises:
            PluginError: there is none, or more than one.
        """
        return self._find("source", self._sources, name)

    def validator(self, name: str) -> Announced[ValidatorRecord]:
        """The validator of that name, ``crc`` or ``distribution:crc``.

        Raises:
            PluginError: there is none, or more than one.
        """
        return self._find("validator", self._validators, name)

    def load_source(self, name: str) -> type[Source]:
        """Import the class of the source of that name.

        Raises:
            PluginError: the source does not exist, importing it failed, or worker processes cannot
                use the class. The message has distribution and version.
            MissingExtraError: it needs an extra that is not installed.
        """
        found = self.source(name)
        loaded: type[Source] = _loaded("source", found)
        options = getattr(loaded, "Options", None)
        frozen = getattr(getattr(options, "__dataclass_params__", None), "frozen", False)
        if not isinstance(options, type) or not is_dataclass(options) or not frozen:
            raise _unfit("source", found, "its `Options` is not a frozen dataclass")
        return loaded

    def source_options(
        self, name: str, given: Sequence[str] | Mapping[str, Any]
    ) -> tuple[Any, dict[str, str]]:
        """The options of the source of that name: an object of its `Options`, and as text.

        Raises:
            UsageError: an option is unknown, or a value is invalid.
            PluginError: as :meth:`load_source`, or its `Options` failed.
        """
        brought = self.source(name).brought
        kind = self.load_source(name)
        try:
            with calling(brought, "Options"):
                options = parse_options(kind.Options, given, of=name)
                return options, options_as_text(options)
        except Exception as error:
            raise failure(brought, "failed over its options", error) from error

    def open_source(self, name: str, raw: Readable, options: Any) -> GuardedSource:
        """The source of that name, opened on raw data; all calls to it are guarded.

        Raises:
            PluginError: as :meth:`load_source`, or it cannot be opened.
        """
        return GuardedSource.open(self.load_source(name), self.source(name).brought, raw, options)

    def load_validator(self, name: str) -> type[Validator]:
        """Import the class of the validator of that name.

        Raises:
            PluginError: as :meth:`load_source`.
            MissingExtraError: it needs an extra that is not installed.
        """
        loaded: type[Validator] = _loaded("validator", self.validator(name))
        return loaded

    def named(self, name: str) -> list[Announced[Any]]:
        """The sources and validators of that name, ``mnist`` or ``distribution:mnist``.

        Raises:
            UnknownPluginError: there is none.
        """
        known: list[Announced[Any]] = [*self._sources, *self._validators]
        found = [each for each in known if _has_name(each, name)]
        if not found:
            raise self._unknown("source or validator", known, name)
        return found

    def describe(self, announced: Announced[Any]) -> list[OptionInfo]:
        """The options of a source or a validator; empty if it declares none.

        Raises:
            PluginError: it cannot be loaded, or its `Options` failed.
            MissingExtraError: it needs an extra that is not installed.
        """
        from tfrecreg.plugins.describe import describe_options  # no other command needs it

        is_source = isinstance(announced.record, SourceRecord)
        load = self.load_source if is_source else self.load_validator
        kind = getattr(load(announced.qualified), "Options", None)
        if kind is None:
            return []
        try:
            with calling(announced.brought, "Options"):
                return describe_options(kind, text=is_source)
        except Exception as error:
            raise failure(announced.brought, "failed over its options", error) from error

    def _find(self, kind: _Kind, announced: Sequence[Announced[R]], name: str) -> Announced[R]:
        found = [one for one in announced if _has_name(one, name)]
        if not found:
            raise self._unknown(kind, announced, name)
        if len(found) > 1:
            raise _clashing(NameClash(kind, name, tuple(found)))
        return found[0]

    def _unknown(
        self, kind: str, announced: Sequence[Announced[Any]], name: str
    ) -> UnknownPluginError:
        known = {one.qualified if ":" in name else one.name for one in announced}
        hint = f"available: {listed(sorted(known))}" if known else f"no {kind} is installed"
        if self._broken:
            names = listed(sorted({one.distribution or "?" for one in self._broken}))
            hint += f"; broken plugins of {names}: see `tfrecreg plugins list`"
        shown = safe(name, limit=60)
        message = f"no {kind} named `{shown}`{did_you_mean(name, known)}"
        return UnknownPluginError(message, hint=hint)


@cache
def plugins() -> Plugins:
    """The plugins of this process, searched on the first call."""
    return Plugins.load()


def _has_name(announced: Announced[Any], name: str) -> bool:
    distribution, colon, bare = name.rpartition(":")
    if announced.name != bare:
        return False
    return not colon or canonical_name(announced.distribution) == canonical_name(distribution)


def _clashes(kind: _Kind, announced: Sequence[Announced[R]]) -> Iterator[NameClash]:
    for name, group in groupby(announced, key=lambda one: one.name):
        found = tuple(group)
        if len(found) > 1:
            yield NameClash(kind, name, found)


def _clashing(clash: NameClash) -> PluginError:
    origins = [f"{one.origin} (entry point `{safe(one.entry_point)}`)" for one in clash.announced]
    choices = sorted({one.qualified for one in clash.announced})
    hint = "uninstall or fix one of them"
    if len(choices) == len(clash.announced):
        flag = _FLAGS[clash.kind]
        hint = f"choose one: {' or '.join(f'`{flag} {safe(choice)}`' for choice in choices)}"
    return PluginError(
        f"the {clash.kind} `{safe(clash.name)}` is announced by {' and by '.join(origins)}",
        hint=hint,
    )


def _loaded(kind: _Kind, announced: Announced[R]) -> Any:
    try:
        with calling(announced.brought, "load"):
            loaded: Any = announced.record.load()
            wrong = _wrong(kind, loaded)
    except MissingExtraError as error:
        raise failure(announced.brought, "cannot be loaded", error) from error
    except Exception as error:
        raise PluginError(
            f"the {kind} `{announced.name}` of {announced.origin} cannot be loaded: "
            f"{one_line(error)}",
            hint=f"reinstall or update `{safe(announced.distribution)}`, or report this to its "
            "authors",
        ) from error
    if wrong:
        raise _unfit(kind, announced, wrong)
    return loaded


def _wrong(kind: _Kind, loaded: Any) -> str:
    """Why it cannot be used; empty if it can."""
    if not isinstance(loaded, type):
        return f"`load` returned an object of type `{safe(type(loaded).__name__)}`, not a class"
    methods = {name: getattr(loaded, name, None) for name in _METHODS[kind]}
    missing = [
        name
        for name, method in methods.items()
        if not callable(method) or getattr(method, "__isabstractmethod__", False)
    ]
    if missing:
        return f"its class has no {listed(missing, word='or')}"
    try:
        pickle.dumps(loaded)
    except (pickle.PicklingError, AttributeError, TypeError):
        return "its class is not found by name, as worker processes need: define it in a module"
    return ""


def _unfit(kind: _Kind, announced: Announced[R], reason: str) -> PluginError:
    return PluginError(
        f"the {kind} `{announced.name}` of {announced.origin} cannot be used: {reason}",
        hint=f"report this to the authors of `{safe(announced.distribution)}`",
    )
