"""What becomes of a schema's features, as JSON that TFDS reads, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.builtin.export.connectors import (
    Connectors,
    ImagesSeen,
    make_connectors,
    require_expressible,
    usable_names,
)
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import SchemaError

ALWAYS = "presence { min_fraction: 1 }"


def make(text: str, labels: Any = (), **images: ImagesSeen) -> Connectors:
    schema = parse_schema(text, "things.pbtxt")
    require_expressible(schema)
    seen = {name: images.get(name, ImagesSeen()) for name in schema.images()}
    return make_connectors(schema, dict(labels), seen)


def one(text: str, labels: Any = ()) -> Any:
    """The connector of the feature `x`, without the module names of TFDS."""
    return short(make(f'feature {{ name: "x" {text} }}', labels).features["x"])


def short(connector: dict[str, Any]) -> Any:
    kind = connector["pythonClassName"].rpartition(".")[2]
    (content,) = (value for name, value in connector.items() if name != "pythonClassName")
    if kind == "Sequence":
        return (kind, short(content["feature"]), content["length"])
    if kind == "Tensor":
        assert content["encoding"] == "none"
        return (content["dtype"], *content["shape"].get("dimensions", ()))
    return (kind, content)


def seen(*facts: tuple[str, int, int, int, bool], strange: int = 0) -> ImagesSeen:
    made = ImagesSeen(count=len(facts))
    for form, height, width, channels, deep in facts:
        part = ImagesSeen(0, {form}, {channels}, {deep}, {height}, {width})
        made.merge(part)
    for _ in range(strange):
        made.add_strange("record 7 of `a shard`")
    return made


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"type: INT {ALWAYS} shape {{}}", ("int64",)),
        (f"type: FLOAT {ALWAYS} shape {{}}", ("float32",)),
        (f"type: BYTES {ALWAYS} shape {{}}", ("string",)),
        (f'type: BYTES {ALWAYS} shape {{}} string_domain {{ value: "a" }}', ("Text", {})),
        (f"type: BYTES {ALWAYS} shape {{}} url_domain {{}}", ("Text", {})),
        (f"type: BYTES {ALWAYS} shape {{}} time_domain {{}}", ("string",)),
        (f'{ALWAYS} shape {{}} string_domain {{ value: "a" }}', ("Text", {})),
        (f"type: INT {ALWAYS} shape {{}} bool_domain {{}}", ("int64",)),
        (f"type: INT {ALWAYS} shape {{ dim {{ size: 1 }} }}", ("int64", "1")),
        (f"type: INT {ALWAYS} value_count {{ min: 3 max: 3 }}", ("int64", "3")),
        (
            f"type: FLOAT {ALWAYS} shape {{ dim {{ size: 2 }} dim {{ size: 3 }} }}",
            ("float32", "2", "3"),
        ),
        (f"type: INT {ALWAYS} shape {{ dim {{}} }}", ("Sequence", ("int64",), "-1")),
        (f"type: INT {ALWAYS} shape {{ dim {{}} dim {{ size: 4 }} }}", ("int64", "-1", "4")),
        ("type: INT shape { dim { size: 4 } dim {} }", ("int64", "4", "-1")),
        ("type: INT shape { dim {} dim {} }", ("Sequence", ("int64",), "-1")),
        (f"type: INT {ALWAYS}", ("Sequence", ("int64",), "-1")),
        (f"type: INT {ALWAYS} value_count {{ min: 1 max: 3 }}", ("Sequence", ("int64",), "-1")),
        ("type: INT shape {}", ("Sequence", ("int64",), "-1")),
        ("type: BYTES presence { min_fraction: 0.5 } shape {}", ("Sequence", ("string",), "-1")),
        ("type: INT shape { dim { size: 2 } }", ("Sequence", ("int64",), "-1")),
        (
            "type: INT shape { dim { size: 2 } dim { size: 2 } }",
            ("Sequence", ("int64", "2", "2"), "-1"),
        ),
        (
            f'type: BYTES {ALWAYS} shape {{ dim {{ size: 2 }} }} string_domain {{ value: "a" }}',
            ("Sequence", ("Text", {}), "2"),
        ),
    ],
)
def test_forms_of_features(text: str, wanted: Any) -> None:
    assert one(text) == wanted


@pytest.mark.parametrize(
    ("names", "wanted", "replaced"),
    [
        (["cat", "dog"], ["cat", "dog"], 0),
        (["", "cat", ""], ["0", "cat", "2"], 2),
        (["cat", "dog", "cat"], ["cat", "dog", "2"], 1),
        ([" cat", "dog\t", "a b"], ["0", "1", "a b"], 2),
        (["a\nb", "a\rb", "a\x0bb"], ["0", "1", "a\x0bb"], 2),
        (["", "0", "class 0"], ["class class 0", "0", "class 0"], 1),
        (["1", ""], ["1", "class 1"], 1),
        ([], [], 0),
    ],
)
def test_class_names_that_tfds_does_not_take_become_numbers(names, wanted, replaced) -> None:
    assert usable_names(names) == (tuple(wanted), replaced)


@pytest.mark.medium
@given(st.lists(st.text(st.sampled_from("a1 \n\r\t\x0b"), max_size=3), max_size=6))
def test_usable_names_survive_the_way_tfds_reads_them(names: list[str]) -> None:
    usable, replaced = usable_names(names)
    written = "".join(f"{name}\n" for name in usable).replace("\r\n", "\n").replace("\r", "\n")
    read = [name.strip() for name in written.split("\n") if name.strip()]
    assert read == list(usable)
    assert len(set(read)) == len(names)
    assert sum(a != b for a, b in zip(names, usable, strict=True)) <= replaced


@pytest.mark.parametrize(
    "text",
    [
        'feature { name: "x" }',
        'feature { name: "x" int_domain { min: 0 } }',
        'feature { name: "x" type: STRUCT struct_domain { feature { name: "y" type: INT } } }',
        'feature { name: "x" type: INT value_counts { value_count { min: 1 } '
        "value_count { min: 2 } } }",
        'feature { name: "##SEQUENCE##" type: STRUCT struct_domain { '
        'feature { name: "y" type: INT } } }',
    ],
)
def test_what_tfds_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"`things\.pbtxt`"):
        make(text)
