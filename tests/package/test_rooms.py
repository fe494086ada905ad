"""The core imports no room, and rooms do not import each other, but for libraries."""

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
    assert list(map(str, rooms.from_the_core)) == []


def test_rooms_do_not_import_each_other(rooms: Rooms) -> None:
    assert list(map(str, rooms.between_rooms)) == []


def test_each_keeps_to_its_lines(rooms: Rooms) -> None:
    assert set(rooms.lines) == set(rooms.lists.lines)
    beyond = {
        room: f"{lines} of {rooms.lists.lines[room]}"
        for room, lines in rooms.lines.items()
        if lines > rooms.lists.lines[room]
    }
    assert beyond == {}
