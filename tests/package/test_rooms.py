"""The core imports no room, and rooms do not import each other, but for lists that get shorter."""

from __future__ import annotations

import pytest
from rooms_support import Rooms, table


@pytest.fixture(scope="module")
def rooms() -> Rooms:
    found = Rooms()
    print(table(found))
    return found


def test_each_prefix_is_one_of_a_module(rooms: Rooms) -> None:
    assert rooms.claims_of_nothing == []


def test_the_core_imports_no_room(rooms: Rooms) -> None:
    found = {str(each) for each in rooms.from_the_core}
    known = set(rooms.lists.from_the_core)
    assert sorted(found - known) == []
    # Exceptions that are gone leave the list: `python tests/rooms_support.py --write`.
    assert sorted(known - found) == []


def test_rooms_do_not_import_each_other(rooms: Rooms) -> None:
    found = {str(each) for each in rooms.between_rooms}
    known = set(rooms.lists.between_rooms)
    assert sorted(found - known) == []
    assert sorted(known - found) == []


def test_each_keeps_to_its_lines(rooms: Rooms) -> None:
    assert set(rooms.lines) == set(rooms.lists.lines)
    beyond = {
        room: f"{lines} of {rooms.lists.lines[room]}"
        for room, lines in rooms.lines.items()
        if lines > rooms.lists.lines[room]
    }
    assert beyond == {}
