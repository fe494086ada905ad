"""A schema costs what its size says, and one that is too large is refused before it is read."""

from __future__ import annotations

import pytest

from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import SchemaError


def features(count: int, kind: str = "INT") -> str:
    return "".join(f'feature {{ name: "f{n}" type: {kind} }}\n' for n in range(count))


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
