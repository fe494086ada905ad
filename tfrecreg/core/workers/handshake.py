"""The comparison of a worker with the command: both need the same code and see the same folders.

Every task carries the versions of the command, digests of code that can change without them, and
the folders that it names. A worker compares them before it runs the task, so that a worker that
joins later is compared, too.
"""

from __future__ import annotations

import os
import socket
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from tfrecreg._version import __version__
from tfrecreg.core.plugins.entry_points import Broken, code_beside, code_of, identity, with_plugins
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import FailureError, install_command
from tfrecreg.core.values.text import safe

_DEPTH = 4
"""Levels of dataclasses in a task that are searched for folders."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the command requires of its workers. Picklable."""

    host: str
    process: int
    """Of the command."""
    versions: dict[str, str]
    """Version by name: of Python, zlib, NumPy, tfrecreg and the distributions with plugins."""
    code: dict[str, str]
    """Digest of the code of each of these distributions; empty if the version identifies it."""


@lru_cache(maxsize=1)
def terms() -> Terms:
    """The terms of this process. Versions and code are read once."""
    plugins = _plugins()
    code = {name: code_of(name) for name in ("tfrecreg", *plugins)}
    return Terms(socket.gethostname(), os.getpid(), {**_versions(), **plugins}, code)


def _versions() -> dict[str, str]:
    return {
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "numpy": metadata.version("numpy"),
        "tfrecreg": __version__,
    }


def _plugins() -> dict[str, str]:
    found = {}
    for distribution in with_plugins():
        with suppress(Broken):  # discovery reports the error
            name, version = identity(distribution)
            found[name] = version
    return found


def expect_terms(theirs: Terms) -> None:
    """In a worker: raise where its versions or its code differ from those of the command.

    A distribution that only the worker has is not used, so it does not count.
    """
    mine = terms()
    for name, version in theirs.versions.items():
        found = mine.versions.get(name)
        if found is None:
            raise FailureError(
                f"the worker on `{safe(mine.host)}` lacks the plugin distribution `{safe(name)}` "
                f"{safe(version)}",
                hint="install it in the workers' environment: "
                f"{install_command(name, version=version)}",
            )
        if found != version:
            raise FailureError(
                f"the worker on `{safe(mine.host)}` has {safe(name)} {safe(found)}, expected "
                f"{safe(version)} as on `{safe(theirs.host)}`",
                hint="install the same versions in the workers' environment as here",
            )
    for name, code in theirs.code.items():
        if code_beside(name, code) != code:
            raise FailureError(
                f"the worker on `{safe(mine.host)}` has other code of {safe(name)} "
                f"{safe(theirs.versions.get(name, ''))} than `{safe(theirs.host)}`: one of them "
                "has it as an editable or local install",
                hint="install the same code in the workers' environment as here",
            )


def is_elsewhere(theirs: Terms) -> bool:
    """Whether this process is another one than that of the command."""
    return (theirs.host, theirs.process) != (socket.gethostname(), os.getpid())


def folders_of(task: object) -> list[str]:
    """Folders on this machine that a task reads or writes, as far as they exist: of one that does
    not exist yet, the nearest that does.
    """
    return sorted({_existing(root) for root in _roots(task, _DEPTH)})


def _roots(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, Readable) and value.is_local:
        yield value.root
    elif depth and is_dataclass(value):
        for field in fields(value):
            yield from _roots(getattr(value, field.name, None), depth - 1)


def _existing(root: str) -> str:
    path = Path(root).absolute()
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return str(path)


def expect_folders(folders: list[str]) -> None:
    """In a worker: raise where it does not see one of the folders."""
    for folder in folders:
        if not Path(folder).is_dir():
            raise FailureError(
                f"the worker on `{safe(socket.gethostname())}` does not see the folder "
                f"`{safe(folder)}`",
                hint="workers need the registry, the data and the raw data under the same paths as "
                "here, on a shared file system",
            )
