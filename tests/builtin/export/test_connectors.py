"""What becomes of a schema's features, as JSON that TFDS reads, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.builtin.export.formats.connectors import (
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


def test_a_required_image_without_any_record_is_rgb_of_any_size() -> None:
    connector = one(f"type: BYTES {ALWAYS} shape {{}} image_domain {{}}")
    assert connector == ("Image", {"dtype": "uint8", "shape": {"dimensions": ["-1", "-1", "3"]}})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{ALWAYS} shape {{}}", ("ClassLabel", {"numClasses": "2"})),
        (f"{ALWAYS}", ("Sequence", ("ClassLabel", {"numClasses": "2"}), "-1")),
        (
            f"{ALWAYS} shape {{ dim {{ size: 5 }} }}",
            ("Sequence", ("ClassLabel", {"numClasses": "2"}), "5"),
        ),
        (f"{ALWAYS} shape {{ dim {{ size: 5 }} dim {{ size: 2 }} }}", ("int64", "5", "2")),
    ],
)
def test_a_feature_with_class_names_is_a_class_label(text: str, wanted: Any) -> None:
    assert one(f"type: INT {text}", {"x": ["cat", "dog"]}) == wanted


def test_class_names_of_what_is_no_number_are_left_alone() -> None:
    text = f"type: BYTES {ALWAYS} shape {{}}"
    assert one(text, {"x": ["cat", "dog"], "elsewhere": ["a"]}) == ("string",)
    assert one(f"type: INT {ALWAYS} shape {{}}", {"x": []}) == ("int64",)


def test_label_files_are_named_as_tfds_looks_for_them() -> None:
    scalar = f"type: INT {ALWAYS} shape {{}}"
    made = make(
        f'feature {{ name: "image/class/label" {scalar} }} feature {{ name: "many" type: INT }}',
        {"image/class/label": ["cat", "dög"], "many": ["a"]},
    )
    assert made.label_files == {
        "image.class.label.labels.txt": ("cat", "dög"),
        "many.labels.txt": ("a",),
    }
    assert made.notes == []


def test_label_files_that_would_clash_are_left_out_with_a_note() -> None:
    scalar = f"type: INT {ALWAYS} shape {{}}"
    text = f'feature {{ name: "a/b" {scalar} }} feature {{ name: "a.b" {scalar} }}'
    made = make(text, {"a/b": ["x"], "a.b": ["y"]})
    assert made.label_files == {}
    assert made.notes == [
        "class names were left out: two features would have theirs in `a.b.labels.txt`"
    ]
    assert make(text, {"a/b": ["x"], "a.b": ["x"]}).label_files == {"a.b.labels.txt": ("x",)}


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


def test_replaced_class_names_are_noted() -> None:
    made = make('feature { name: "x" type: INT }', {"x": ["cat", ""]})
    (note,) = made.notes
    assert note.startswith("`x`: 1 of 2 class names became their numbers: TFDS takes none that")


GREY = ("png", 28, 28, 1, False)


@pytest.mark.parametrize(
    ("facts", "shape", "dtype", "encoding"),
    [
        ([GREY, GREY], ["28", "28", "1"], "uint8", "png"),
        ([GREY, ("png", 28, 30, 1, False)], ["28", "-1", "1"], "uint8", "png"),
        ([("jpeg", 5, 6, 3, False), ("jpeg", 6, 5, 3, False)], ["-1", "-1", "3"], "uint8", "jpeg"),
        ([("jpeg", 5, 6, 3, False), ("png", 5, 6, 3, False)], ["5", "6", "3"], "uint8", None),
        ([("png", 5, 6, 4, False)], ["5", "6", "4"], "uint8", "png"),
        ([("png", 5, 6, 1, True)], ["5", "6", "1"], "uint16", "png"),
        ([("gif", 5, 6, 3, False)], ["-1", "-1", "-1", "3"], "uint8", None),
        ([("bmp", 5, 6, 3, False)], ["5", "6", "3"], "uint8", None),
    ],
)
def test_images_that_are_alike_need_no_note(facts, shape, dtype, encoding) -> None:
    text = f'feature {{ name: "x" type: BYTES {ALWAYS} shape {{}} image_domain {{}} }}'
    made = make(text, x=seen(*facts))
    wanted = {"dtype": dtype, "shape": {"dimensions": shape}}
    if encoding:
        wanted["encodingFormat"] = encoding
    assert short(made.features["x"]) == ("Image", wanted)
    assert made.notes == []


@pytest.mark.parametrize(
    ("facts", "strange", "channels", "dtype", "note"),
    [
        ([GREY, ("png", 28, 28, 3, False)], 0, "3", "uint8", "come as RGB"),
        ([("png", 1, 1, 3, False), ("png", 1, 1, 4, False)], 0, "3", "uint8", "come as RGB"),
        ([("png", 1, 1, 2, False)], 0, "4", "uint8", "grey images with alpha come as RGBA"),
        ([("png", 1, 1, 2, False), ("png", 1, 1, 4, False)], 0, "4", "uint8", "come as RGBA"),
        ([GREY, ("png", 28, 28, 1, True)], 0, "1", "uint8", "16 bits a channel the upper 8 come"),
        ([GREY, GREY], 2, None, None, "decode 2 of its 4 values, the first in record 7 of `a shar"),
        ([GREY, ("gif", 28, 28, 3, False)], 0, None, None, "GIF images have one dimension more"),
    ],
)
def test_images_that_differ_come_with_a_note(facts, strange, channels, dtype, note) -> None:
    text = f'feature {{ name: "x" type: BYTES {ALWAYS} shape {{}} image_domain {{}} }}'
    made = make(text, x=seen(*facts, strange=strange))
    if channels is None:
        assert short(made.features["x"]) == ("string",)
    else:
        _, content = short(made.features["x"])
        assert (content["shape"]["dimensions"][-1], content["dtype"]) == (channels, dtype)
    (found,) = made.notes
    assert found.startswith("`x`")
    assert note in found


def test_as_supervised_takes_the_only_image_and_the_only_class() -> None:
    image = f"type: BYTES {ALWAYS} shape {{}} image_domain {{}}"
    scalar = f"type: INT {ALWAYS} shape {{}}"
    text = f'feature {{ name: "p" {image} }} feature {{ name: "l" {scalar} }}'
    assert make(text, {"l": ["a"]}).supervised == ("p", "l")
    assert make(text).supervised is None
    more = f'{text} feature {{ name: "q" {image} }}'
    assert make(more, {"l": ["a"]}).supervised is None
    many = f'{text} feature {{ name: "m" type: INT }}'
    assert make(many, {"l": ["a"], "m": ["b"]}).supervised == ("p", "l")


def test_what_is_left_out_or_flat_is_noted() -> None:
    scalar = f"type: INT {ALWAYS} shape {{}}"
    made = make(
        f'feature {{ name: "i" type: INT }} feature {{ name: "v" type: FLOAT }}'
        f'feature {{ name: "old" {scalar} lifecycle_stage: DEPRECATED }}'
        'feature { name: "grid" type: INT shape { dim {} dim {} } }'
        'sparse_feature { name: "s" index_feature { name: "i" } value_feature { name: "v" } }'
        'weighted_feature { name: "w" feature { step: "v" } weight_feature { step: "i" } }'
    )
    assert sorted(made.features) == ["grid", "i", "v"]
    assert made.notes == [
        "`grid` comes flat: more than one of its dimensions varies",
        "TFDS has no sparse or weighted features: `s` and `w` are exported as their component "
        "features",
        "left out by lifecycle stage: `old`",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('feature { name: "x" }', "TFDS cannot read the feature `x`: it has no type"),
        (
            'feature { name: "x" int_domain { min: 0 } }',
            "TFDS cannot read the feature `x`: it has no type",
        ),
        (
            'feature { name: "x" type: STRUCT struct_domain { feature { name: "y" type: INT } } }',
            "TFDS cannot read the feature `x`: it is a STRUCT, which no tf.train.Example holds",
        ),
        (
            'feature { name: "x" type: INT value_counts { value_count { min: 1 } '
            "value_count { min: 2 } } }",
            "TFDS cannot read the feature `x`: it is nested (`value_counts`), which no",
        ),
        (
            'feature { name: "##SEQUENCE##" type: STRUCT struct_domain { '
            'feature { name: "y" type: INT } } }',
            "describes SequenceExamples, and TFDS reads Examples",
        ),
        ('feature { name: "\\033[1m" }', r"the feature `\x1b[1m`: it has no type"),
    ],
)
def test_what_tfds_cannot_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        make(text)
    assert message in caught.value.message
    assert "`things.pbtxt`" in caught.value.message
    assert caught.value.hint


def test_a_feature_that_is_not_validated_may_have_any_form() -> None:
    made = make('feature { name: "x" type: STRUCT lifecycle_stage: ALPHA }')
    assert made.features == {}
