"""Writing a requested output file, completely or not at all, and JSON.

The values of ``--format``: text and JSON, which are the core's, and the formats of plugins.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfrecreg.core.plugins.guard import PluginId, called, wrong_answer
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import PluginError, StorageError, UsageError
from tfrecreg.core.values.text import json_data, safe

if TYPE_CHECKING:
    from tfrecreg.core.check.report_format import ReportContext
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.check.scan.interface import Target, Validator
    from tfrecreg.core.plugins.manager import Plugins

_HINT = "name a file in a folder that is there and that you may write to"


def expect_free_file(path: str) -> None:
    """Refuse a file that exists, before the work whose result it would hold."""
    if os.path.lexists(path):
        raise UsageError(
            f"`{safe(path)}` exists", hint="name another file; existing files are not overwritten"
        )


def write_text(path: str, text: str, *, in_new_folder: bool = False, new: bool = False) -> None:
    """Write a text as UTF-8. Who reads the file sees the old one, or the whole new one.

    Other than regular files, such as ``/dev/stdout`` or a pipe, are written into. A symbolic link
    stays, and its target is replaced.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if _is_stream(path):
            Path(path).write_bytes(data)
            return
        real = path if new else os.path.realpath(path)
        folder, name = os.path.split(real)
        if not in_new_folder:
            os.stat(folder or ".")  # noqa: PTH116 - a str stays a str
        storage = LocalStorage(folder or ".")
        if not new:
            with storage.create(name) as writer:
                writer.write(data)
        elif not storage.put_if_absent(name, data):
            expect_free_file(path)
    except OSError as error:
        raise cannot_write(path, error.strerror or str(error)) from None
    except StorageError as error:
        raise cannot_write(path, error.message.rpartition(": ")[2]) from None


def write_json(document: object, path: str | None = None) -> None:
    """Write a result as one JSON document, in ASCII, so that no name in it can mislead a
    terminal.
    """
    text = json.dumps(json_data(document), indent=2, ensure_ascii=True) + "\n"
    if path is None:
        sys.stdout.write(text)
    else:
        write_text(path, text)


def _is_stream(path: str) -> bool:
    """Whether it is a pipe or device, which a file must not replace."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as above
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def cannot_write(path: str, reason: str) -> UsageError:
    """The error for a file that a user asked for."""
    full = reason in map(os.strerror, (errno.ENOSPC, errno.EDQUOT))
    hint = "make room on its disk, or name a file on another one" if full else _HINT
    return UsageError(f"`{safe(path)}` cannot be written: {reason}", hint=hint)


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
