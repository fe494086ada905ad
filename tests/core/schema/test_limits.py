"""A schema costs what its size says, and one that is too large is refused before it is read."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tfrecreg.core.schema.compat import SchemaChange, clashes
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.terminal.render.catalog import print_changes
from tfrecreg.core.values.errors import SchemaError


def features(count: int, kind: str = "INT") -> str:
    return "".join(f'feature {{ name: "f{n}" type: {kind} }}\n' for n in range(count))


def calls(work: Callable[[], object]) -> int:
    """How many functions and generators of Python were entered."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def refusal(text: str) -> tuple[str, str]:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text, "a.pbtxt")
    return caught.value.message, caught.value.hint


HINT = (
    "many features of one kind are one feature with a shape; a long list of values is a range of "
    "numbers, or no part of a schema"
)


def test_a_schema_of_too_many_features_is_refused() -> None:
    assert refusal(features(50_001)) == (
        "a.pbtxt: the schema has 50,001 messages, and no more than 50,000 are read",
        HINT,
    )


def test_a_schema_of_too_many_values_is_refused() -> None:
    text = 'feature { name: "f" type: BYTES string_domain {' + 'value: "x"\n' * 400_000 + "} }"
    assert refusal(text) == (
        f"a.pbtxt: the schema has {len(text):,} characters, and no more than 4,194,304 are read",
        HINT,
    )


def test_what_was_parsed_is_not_parsed_again() -> None:
    text = features(50)
    assert parse_schema(text, "a") is parse_schema(text.encode(), "a")
    assert parse_schema(text, "b").where == "b"


def test_comparing_takes_twice_as_long_for_twice_the_features() -> None:
    taken = []
    for count in (200, 400, 800):
        sides = parse_schema(features(count), "a"), parse_schema(features(count, "FLOAT"), "b")
        taken.append(calls(lambda sides=sides: clashes(*sides)))  # type: ignore[misc]  # bound now
    assert taken[1] < 2.5 * taken[0]
    assert taken[2] < 2.5 * taken[1]


class Value(str):
    """Text that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Value.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_showing_a_changed_list_compares_each_value_a_few_times() -> None:
    from rich.console import Console

    before = tuple(Value(f"a{n}") for n in range(2000))
    after = tuple(Value(f"b{n}") for n in range(2000))
    change = SchemaChange(part="feature", name="f", field="value", expected=before, found=after)
    Value.compared = 0
    print_changes(Console(quiet=True), [change])
    assert Value.compared < 10 * 2000
