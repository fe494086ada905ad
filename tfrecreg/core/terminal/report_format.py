"""The values of ``--format``: text and JSON, which are the core's, and the formats of plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click

from tfrecreg.core.plugins.guard import PluginId, called, wrong_answer
from tfrecreg.core.values.errors import PluginError

if TYPE_CHECKING:
    from tfrecreg.core.check.reports.interface import ReportContext
    from tfrecreg.core.check.reports.model import Report
    from tfrecreg.core.check.scan.interface import Target, Validator
    from tfrecreg.core.plugins.manager import Plugins

_CORE = ("text", "json")


def report_formats() -> list[str]:
    """All values of ``--format``, the core's first."""
    from tfrecreg.core.plugins.manager import plugins
    from tfrecreg.core.plugins.records import ReportFormatRecord

    return [*_CORE, *plugins().names(ReportFormatRecord)]


def complete_format(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Candidates for a value of ``--format``."""
    del ctx, incomplete
    return report_formats()


def expect_format(name: str) -> None:
    """Refuse an invalid value of ``--format``."""
    if name not in _CORE:
        from tfrecreg.core.plugins.manager import plugins
        from tfrecreg.core.plugins.records import ReportFormatRecord

        plugins().find(ReportFormatRecord, name)


def open_format(name: str, known: Callable[[], Plugins]) -> str | PluginFormat:
    """The format of that name, for one call; ``text`` and ``json`` stand for themselves."""
    return name if name in _CORE else PluginFormat(name, known())


def expect_report_format(
    ctx: click.Context, param: click.Parameter, name: str | None
) -> str | None:
    """The callback of ``--format``: its value, which names a format."""
    try:
        expect_format(name or "text")
    except PluginError as error:
        raise click.BadParameter(f"{error.message}; {error.hint}", ctx, param) from None
    return name


class PluginFormat:
    """A report format of a plugin, made for one call. All calls to it are guarded."""

    def __init__(self, name: str, known: Plugins) -> None:
        from tfrecreg.core.plugins.records import ReportFormatRecord

        self._plugin_id = known.find(ReportFormatRecord, name).plugin_id
        kind = known.load(ReportFormatRecord, name)
        self._inner = called(self._plugin_id, "__init__", kind)
        self.has_looked = False
        """Whether it has seen records, so that it may show them."""

    def look(self, target: Target) -> list[tuple[PluginId, Validator]]:
        """Its validators for a target, and whose they are."""
        from tfrecreg.core.check.scan.interface import Validator

        found = called(self._plugin_id, "look", lambda: list(self._inner.look(target)))
        for each in found:
            if not isinstance(each, Validator):
                raise wrong_answer(self._plugin_id, "look", each, "Validators")
        self.has_looked = self.has_looked or bool(found)
        return [(self._plugin_id, each) for each in found]

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The document."""
        text = called(self._plugin_id, "render", self._inner.render, reports, context)
        if not isinstance(text, str):
            raise wrong_answer(self._plugin_id, "render", text, "text")
        return text

    def finish(self, reports: Sequence[Report], context: ReportContext) -> None:
        """Call the format's `finish`."""
        called(self._plugin_id, "finish", self._inner.finish, reports, context)
