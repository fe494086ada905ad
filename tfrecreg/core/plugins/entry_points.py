"""The plugins that installed distributions declare: entry points of the group ``tfrecreg``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tfrecreg.core.plugins.bundled import OURS

if TYPE_CHECKING:
    from importlib import metadata

GROUP = "tfrecreg"
"""The group of the entry points."""

_OTHERS = re.compile(r"(?!tfrecreg(-\d|\.)).*\.(dist|egg)-info")
"""Folders with the metadata of distributions other than this one."""


class Broken(Exception):
    """A fault of a distribution or its plugin, in one line."""


def entries(distribution: metadata.Distribution) -> list[metadata.EntryPoint]:
    """The entry points of a distribution, without duplicates, in order of name."""
    found = {
        (each.name, each.value): each for each in distribution.entry_points.select(group=GROUP)
    }
    return [found[each] for each in sorted(found)]


def is_local(distribution: str) -> bool:
    """Whether `distribution` names a local plugin (``./sources/yolo.py:Yolo``) or its file
    (``./checks/blanks.py``) instead of a distribution.
    """
    return distribution.startswith("./")


def may_be_installed() -> bool:
    """Whether a distribution on the path may have plugins, according to its metadata.

    This takes 4 ms for 280 distributions. For comparison, importing `importlib.metadata` takes 20
    ms, and the help of all commands takes 50 ms. Distributions in archives are not found.
    """
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as found:
            places = [each.path for each in found if _OTHERS.fullmatch(each.name)]
            for place in places:
                with suppress(OSError), open(f"{place}/entry_points.txt", "rb") as file:  # noqa: PTH123
                    if f"[{GROUP}]".encode() in file.read():
                        return True
    return False


def with_plugins() -> Iterator[metadata.Distribution]:
    """Other distributions with plugins. If several have the same name, only the first on the path
    counts, because Python imports that one.
    """
    from importlib import metadata

    seen: set[str] = set()
    for found in metadata.distributions():
        if not _mentions_plugins(found):
            continue
        try:
            name = canonical_name(identity(found)[0])
        except Exception:
            yield found  # it has no name to compare, and is reported as broken later
            continue
        if name in seen or name == OURS:
            continue
        seen.add(name)
        # The first may have no plugins: then the package that Python imports has none.
        first = next(iter(metadata.distributions(name=name)), found)
        if _mentions_plugins(first):
            yield first


def identity(distribution: metadata.Distribution) -> tuple[str, str]:
    """Name and version of a distribution."""
    found: Any = distribution.metadata
    if not found["Name"] or not found["Version"]:
        place = distribution.locate_file("")
        raise Broken(f"a distribution in `{place}` has no name or no version in its metadata")
    return found["Name"], found["Version"]


def canonical_name(distribution: str) -> str:
    """The normalized name of a distribution (PEP 503): ``My_Plugin`` becomes ``my-plugin``."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _mentions_plugins(distribution: metadata.Distribution) -> bool:
    """Whether a distribution may have plugins. This is a quick test, because parsing takes long."""
    try:
        return GROUP in (distribution.read_text("entry_points.txt") or "")
    except (OSError, ValueError):
        return False  # plugins in an unreadable file stay unknown
