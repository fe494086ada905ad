"""What installed distributions declare as plugins: entry points of the group ``tfrecreg``.

The lines of ``entry_points.txt`` are read here, not by ``importlib.metadata``: once any library
has imported the backport ``importlib_metadata``, that one answers for the standard library as
well, and since its version 9 one invalid line makes all entry points of a distribution unreadable.
The format is that of https://packaging.python.org/specifications/entry-points/.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from importlib import metadata

GROUP = "tfrecreg"
"""The group of the entry points."""

_OTHERS = re.compile(r"(?!tfrecreg(-\d|\.)).*\.(dist|egg)-info")
"""Folders with the metadata of distributions other than this one."""
_VALUE = re.compile(r"([\w.]+)\s*(:\s*[\w.]+\s*)?(\[.*\]\s*)?")


class Broken(Exception):
    """What is wrong with a distribution or its plugin, in one line."""


class EntryPoint(NamedTuple):
    """An entry point of the group."""

    name: str
    value: str
    """``module`` or ``module:object``, if it is valid."""

    @property
    def module(self) -> str:
        """The module that it names; empty if the value is invalid."""
        found = _VALUE.fullmatch(self.value)
        return "" if found is None else found.group(1)

    def load(self) -> object:
        """Import what it names."""
        if not self.module:
            shown = safe(self.value)
            raise Broken(f"`{shown}` should have the form `module` or `module:object`")
        from importlib import metadata

        return metadata.EntryPoint(self.name, self.value, GROUP).load()


def entries(distribution: metadata.Distribution) -> list[EntryPoint]:
    """The entry points of a distribution, each once, in order of name."""
    found = set()
    group = ""
    for line in map(str.strip, (distribution.read_text("entry_points.txt") or "").splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1]
        elif line and not line.startswith("#") and group == GROUP:
            name, is_pair, value = line.partition("=")
            if not is_pair:
                raise Broken(f"its entry point `{safe(line)}` is not `name = value`")
            found.add(EntryPoint(name.strip(), value.strip()))
    return sorted(found)


def is_local(distribution: str) -> bool:
    """Whether it is the file of a local plugin, ``./checks/blanks.py``, in the place of a
    distribution; or the word for one, ``./sources/yolo.py:Yolo``.
    """
    return distribution.startswith("./")


def may_be_installed() -> bool:
    """Whether the metadata of a distribution on the path have entry points for plugins.

    This takes 4 ms for 280 distributions, and the help of all commands 50 ms; `importlib.metadata`
    takes 20 ms for its own import. It does not see what is in archives.
    """
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as found:
            for each in found:
                if _OTHERS.fullmatch(each.name) and _names_group(each.path):
                    return True
    return False


def _names_group(folder: str) -> bool:
    try:
        with open(f"{folder}/entry_points.txt", "rb") as file:  # noqa: PTH123
            return f"[{GROUP}]".encode() in file.read()
    except OSError:
        return False


def with_plugins(path: Sequence[str] | None = None) -> Iterator[metadata.Distribution]:
    """Other distributions with plugins; of several with the same name, the first on the path, which
    is imported.
    """
    from importlib import metadata

    where: dict[str, Any] = {} if path is None else {"path": list(path)}
    seen: set[str] = set()
    for found in metadata.distributions(**where):
        if not _mentions_plugins(found):
            continue
        try:
            name = canonical_name(identity(found)[0])
        except Exception:
            yield found  # it has no name to compare, and will be reported as broken
            continue
        if name in seen or name == OURS:
            continue
        seen.add(name)
        # The first may have no plugins: then the package that is imported has none.
        first = next(iter(metadata.distributions(name=name, **where)), found)
        if _mentions_plugins(first):
            yield first


def identity(distribution: metadata.Distribution) -> tuple[str, str]:
    """Name and version of a distribution."""
    try:
        found: Any = distribution.metadata
    except FileNotFoundError:  # importlib_metadata, where a library has imported it
        found = {}
    for key in ("Name", "Version"):
        if key not in found or not found[key]:
            place = safe(str(distribution.locate_file("")))
            raise Broken(f"a distribution in `{place}` has no `{key}` in its metadata")
    return found["Name"], found["Version"]


def canonical_name(distribution: str) -> str:
    """The name by which distributions are equal: ``My_Plugin`` is ``my-plugin`` (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _mentions_plugins(distribution: metadata.Distribution) -> bool:
    """A cheap test: most distributions have no plugins, and parsing all of them takes long."""
    try:
        return GROUP in (distribution.read_text("entry_points.txt") or "")
    except (OSError, ValueError):
        return False  # the plugins in an unreadable file are unknown
