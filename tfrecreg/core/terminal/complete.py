"""Shell completion of paths, codes, plugin names, and names of datasets and releases.

Each function is a `shell_complete` for click: it gets the typed part of one argument. Nothing is
ever printed; without a readable registry there are no names to complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from tfrecreg.core.values.errors import TfrecregError

if TYPE_CHECKING:
    from tfrecreg.core.registry.registry import Registry

Items = list["CompletionItem[str]"]
Complete = Callable[[click.Context, click.Parameter, str], Items]


def silent(names: Callable[[click.Context, str], Iterable[str]]) -> Complete:
    """Complete names that begin with the typed text."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        del param
        try:
            found = [name for name in names(ctx, incomplete) if name.startswith(incomplete)]
        except (TfrecregError, OSError):
            return []
        return [CompletionItem(name) for name in found]

    return complete


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Paths of files, completed by the shell itself."""
    del ctx, param
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    del ctx, param
    return [CompletionItem(incomplete, type="dir")]


def _registry(ctx: click.Context) -> Registry:
    from tfrecreg.core.registry.registry import open_registry

    return open_registry(ctx.find_root().params.get("registry"))


@silent
def datasets(ctx: click.Context, incomplete: str) -> Iterable[str]:
    del incomplete
    return _registry(ctx).dataset_names()


@silent
def references(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Names of builds; if only one dataset matches, also names of its releases."""
    registry = _registry(ctx)
    names = _matching(registry, incomplete)
    if "@" not in incomplete:
        yield from names
    if len(names) == 1:
        yield from _releases_of(registry, names[0])


def targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    return [*references(ctx, param, incomplete), *files(ctx, param, incomplete)]


@silent
def releases(ctx: click.Context, incomplete: str) -> Iterable[str]:
    registry = _registry(ctx)
    for name in _matching(registry, incomplete):
        yield from _releases_of(registry, name)


def _matching(registry: Registry, incomplete: str) -> list[str]:
    """The datasets that an unfinished reference can mean."""
    name, at, _ = incomplete.partition("@")
    names = registry.dataset_names()
    return [each for each in names if (each == name if at else each.startswith(name))]


def _releases_of(registry: Registry, name: str) -> list[str]:
    versions = [f"{name}@{version}" for version in reversed(registry.dataset(name).versions)]
    return [f"{name}@latest", *versions] if versions else []


def named_by(record: str, *others: str) -> Complete:
    """Complete the names of all plugins with a record of the class `record`, and `others`."""

    def names(ctx: click.Context, incomplete: str) -> Iterable[str]:
        del ctx, incomplete
        from tfrecreg.core.plugins import manager, records

        return [*others, *manager.plugins().names(getattr(records, record))]

    return silent(names)


plugin_names = named_by("PluginRecord")
"""Names of plugins of all kinds."""


@silent
def validators(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Names of validators, separated by commas."""
    del ctx
    from tfrecreg.core.plugins.manager import plugins
    from tfrecreg.core.plugins.records import ValidatorRecord

    before, comma, _ = incomplete.rpartition(",")
    named = set(before.split(","))
    known = plugins().names(ValidatorRecord)
    return [f"{before}{comma}{name}" for name in known if name not in named]


@silent
def codes(ctx: click.Context, incomplete: str) -> Iterable[str]:
    del ctx, incomplete
    from tfrecreg.core.plugins.manager import plugins

    return plugins().codes()


sources = named_by("SourceRecord")
"""Names of sources."""
