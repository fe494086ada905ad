"""Writing a requested output file, completely or not at all, and JSON."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from pathlib import Path

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.json_data import json_data
from tfrecreg.core.values.text import safe

_HINT = "name a file in a folder that is there and that you may write to"


def expect_free_file(path: str) -> None:
    """Refuse a file that exists, before the work whose result it would hold."""
    if os.path.lexists(path):
        raise UsageError(
            f"`{safe(path)}` exists", hint="name another file; existing files are not overwritten"
        )


def write_text(path: str, text: str, *, in_new_folder: bool = False, new: bool = False) -> None:
    """Write a text as UTF-8. Who reads the file meanwhile sees the old one, or the whole new one.

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
