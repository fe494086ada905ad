"""The core and the rooms: their modules, imports and sizes.

python tests/rooms_support.py             # the table
python tests/rooms_support.py --write     # lower the numbers of rooms.toml to what is needed
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import grimp
import msgspec

__all__ = ["CORE", "Import", "Rooms", "table"]

CHECKOUT = Path(__file__).parents[1]
FILE = CHECKOUT / "tests/package/rooms.toml"
CORE = "core"
SURFACE = frozenset({"tfrecreg", "tfrecreg.api"})
"""Lists of public names, wherever they are defined: neither core nor room."""
LIBRARY = "tfrecreg.library"
"""The verbs of the public names, which call operations of all rooms."""


class Import(NamedTuple):
    """A module that imports another, in a function or for a type among them."""

    module: str
    imported: str

    def __str__(self) -> str:
        return f"{self.module} -> {self.imported}"


class Lists(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of `rooms.toml`."""

    rooms: Mapping[str, list[str]]
    libraries: Mapping[str, str]
    """Rooms that other rooms may import, with the reason."""
    lines: Mapping[str, int]


class Rooms:
    """The modules of the package, by room.

    Args:
        file: the lists that they are held against.
    """

    def __init__(self, file: Path = FILE) -> None:
        self.lists = msgspec.toml.decode(file.read_bytes(), type=Lists)
        self._room_of = {
            prefix: room for room, prefixes in self.lists.rooms.items() for prefix in prefixes
        }
        self._graph = grimp.build_graph("tfrecreg", cache_dir=None)

    def room(self, module: str) -> str:
        """The room of a module, by the longest prefix that a room claims."""
        while module:
            if module in self._room_of:
                return self._room_of[module]
            module = module.rpartition(".")[0]
        return CORE

    @cached_property
    def claims_of_nothing(self) -> list[str]:
        """Prefixes of `rooms.toml` that no module has."""
        return sorted(set(self._room_of) - self._graph.modules)

    @cached_property
    def _across(self) -> list[tuple[str, Import]]:
        """Imports of rooms from elsewhere, with the room of the importing module."""
        return [
            (here, Import(module, imported))
            for module in sorted(self._graph.modules - SURFACE)
            if not module.startswith(LIBRARY)
            for imported in sorted(self._graph.find_modules_directly_imported_by(module))
            if (here := self.room(module)) != self.room(imported) != CORE
            and imported not in SURFACE
        ]

    @cached_property
    def from_the_core(self) -> list[Import]:
        """Imports of rooms by the core."""
        return [each for here, each in self._across if here == CORE]

    @cached_property
    def between_rooms(self) -> list[Import]:
        """Imports of rooms by other rooms, but for libraries."""
        return [
            each
            for here, each in self._across
            if here != CORE and self.room(each.imported) not in self.lists.libraries
        ]

    @cached_property
    def lines(self) -> Counter[str]:
        """Lines of Python by room, the bundled sources among them."""
        lines: Counter[str] = Counter()
        for path in sorted((CHECKOUT / "tfrecreg").rglob("*.py")):
            name = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
            lines[self.room(name.removesuffix(".__init__"))] += _lines(path)
        for path in sorted((CHECKOUT / "plugins").rglob("*.py")):
            lines[path.relative_to(CHECKOUT / "plugins").parts[0]] += _lines(path)
        return lines


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def table(rooms: Rooms) -> str:
    """Lines of the core and of each room, and the imports of them."""
    core = Counter(rooms.room(each.imported) for each in rooms.from_the_core)
    others = Counter(rooms.room(each.imported) for each in rooms.between_rooms)
    rows = [f"{'':24}{'lines':>8}{'core':>8}{'rooms':>8}"]
    rows += [
        f"{room:24}{lines:8,}{core[room]:8}{others[room]:8}"
        for room, lines in rooms.lines.most_common()
    ]
    totals = rooms.lines.total(), core.total(), others.total()
    rows.append(f"{'in all':24}{totals[0]:8,}{totals[1]:8}{totals[2]:8}")
    return "\n".join(rows)


def _shortened(rooms: Rooms) -> str:
    """`rooms.toml` without what is superfluous in it. It never gets longer."""
    text = FILE.read_text(encoding="utf-8")
    head = text[: text.index("# Lines of Python")]
    lines = {
        room: min(rooms.lists.lines.get(room, sys.maxsize), -(-count // 50) * 50)
        for room, count in sorted(rooms.lines.items())
    }
    budgets = "".join(f"{room} = {count}\n" for room, count in lines.items())
    return (
        f"{head}# Lines of Python that each may have. These numbers only get smaller, or an ADR\n"
        f"# says why not.\n[lines]\n{budgets}"
    )


if __name__ == "__main__":
    found = Rooms()
    print(table(found))
    if "--write" in sys.argv:
        FILE.write_text(_shortened(found), encoding="utf-8")
