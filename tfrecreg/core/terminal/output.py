"""Writes a requested output file completely or not at all, and writes JSON.

The module also has the values of ``--format``: the core's text and JSON, and plugins' formats.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfrecreg.core.plugins.guard import PluginId, called
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import PluginError, StorageError, UsageError
from tfrecreg.core.values.text import json_data, type_text

if TYPE_CHECKING:
    from tfrecreg.core.check.report_format import ReportContext
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.check.scan.interface import Target, Validator
    from tfrecreg.core.plugins.manager import Plugins


def expect_free_file(path: str) -> None:
    """Refuse an existing output file, before any work is done."""
    if os.path.lexists(path):
        raise UsageError(f"`{path}` already exists: name a new file")


def write_text(path: str, text: str, *, in_new_folder: bool = False) -> None:
    """Write a text as UTF-8: see :func:`write_pieces`."""
    data = text.encode("utf-8", "backslashreplace")
    write_pieces(path, (data,), in_new_folder=in_new_folder)


def write_pieces(path: str, pieces: Iterable[bytes], *, in_new_folder: bool = False) -> None:
    """Write a file piece by piece. A reader sees either the old file or the whole new file.

    ``/dev/stdout``, pipes and other special files are written directly. A symbolic link stays, and
    its target is replaced. A shard is never replaced: the shell may have expanded a glob after the
    option.
    """
    from tfrecreg.core.values.shards import parse_shard_name  # `--help` needs none

    try:
        if _is_stream(path):
            with Path(path).open("wb") as stream:
                stream.writelines(pieces)
            return
        if parse_shard_name(Path(path).name) is not None and Path(path).is_file():
            raise UsageError(f"`{path}` is named like a shard, so it is not replaced")
        folder, name = os.path.split(os.path.realpath(path))
        if not in_new_folder:
            os.stat(folder)  # noqa: PTH116 - a str stays a str
        with LocalStorage(folder).create(name) as writer:
            for piece in pieces:
                writer.write(piece)
    except BrokenPipeError:
        raise
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
    """Whether `path` is a pipe or device, which must not be replaced by a file."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as above
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def cannot_write(path: str, reason: str) -> UsageError:
    return UsageError(f"`{path}` cannot be written: {reason}")


CORE_FORMATS = ("text", "json")


def open_format(name: str, known: Callable[[], Plugins]) -> str | PluginFormat:
    """The format with this name, for one call. ``text`` and ``json`` are returned as they are."""
    return name if name in CORE_FORMATS else PluginFormat(name, known())


def expect_format(name: str) -> None:
    if name not in CORE_FORMATS:
        from tfrecreg.core.plugins.manager import plugins
        from tfrecreg.core.plugins.records import ReportFormatRecord

        plugins().find(ReportFormatRecord, name)


def expect_report_format(
    ctx: click.Context, param: click.Parameter, name: str | None
) -> str | None:
    """The callback of ``--format``: returns its value, or refuses a value that names no format."""
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
        """Whether the format gave validators to a check. If so, the format may show records."""

    def look(self, target: Target) -> list[tuple[PluginId, Validator]]:
        """The validators that the format has for a target, each with the plugin of the format."""
        from tfrecreg.core.check.scan.interface import Validator

        found = called(self._plugin_id, "look", lambda: list(self._inner.look(target)))
        for each in found:
            if not isinstance(each, Validator):
                raise self._plugin_id.error(f"answered `look` with {type_text(each)}")
        self.has_looked = self.has_looked or bool(found)
        return [(self._plugin_id, each) for each in found]

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        text = called(self._plugin_id, "render", self._inner.render, reports, context)
        if not isinstance(text, str):
            raise self._plugin_id.error(f"answered `render` with {type_text(text)}")
        return text

    def finish(self, reports: Sequence[Report], context: ReportContext) -> None:
        called(self._plugin_id, "finish", self._inner.finish, reports, context)
