"""Label maps of TensorFlow's object detection, read strictly, and the feature they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.core.registry.foreign.labels import names_beside, parse_label_map
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("item { id: 1 name: 'a' }\nitem: { id: 2, name: \"b\" }", {1: "a", 2: "b"}),
        ("# map\nitem {\n  name: 'a' # first\n  id: 0\n}", {0: "a"}),
        ('item < id: 3 display_name: "cat" >', {3: "cat"}),
        ('item { id: 1 name: "/m/01g317" display_name: "person" }', {1: "person"}),
        ('item { id: 1 name: "n01" display_name: "tench" }', {1: "n01"}),
        ('item { id: 1 name: "a" keypoints { id: 4 label: "nose" } }', {1: "a"}),
        ('item { id: 1 name: "\\303\\251" }', {1: "é"}),
        ('\ufeffitem { id: 1 name: "a" }', {1: "a"}),
    ],
)
def test_items_are_read(text: str, names: dict[int, str]) -> None:
    assert parse_label_map(text.encode(), "m.pbtxt") == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cat\ndog\n", {0: "cat", 1: "dog"}),
        ("0:cat\n1:dog\n", {0: "cat", 1: "dog"}),
        ("2: fat cat\r\n\r\n1:dog: brown", {2: "fat cat", 1: "dog: brown"}),
        ("0:cat\ndog\n", {0: "0:cat", 1: "dog"}),
        ("1:43\n1:72\n", {0: "1:43", 1: "1:72"}),
    ],
)
def test_lines_are_names_by_their_place_or_by_their_number(
    text: str, names: dict[int, str]
) -> None:
    assert parse_label_map(text.encode(), "labels.txt") == names


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"item { id: 1 name: 'a'", "does not parse: 1:20 : Expected"),
        (b"item { id: 1 name: 'a' }}", "does not parse: 1:25"),
        (b"item { id: x name: 'a' }", "does not parse: 1:12"),
        (b"item { id: 99999999999 name: 'a' }", "does not parse: 1:12"),
        (b"item { name: 'a' }", "m.pbtxt`: item 1 has no `id` or no `name`"),
        (b"item { id: 1 name: 'a' } item { id: 2 }", "m.pbtxt`: item 2 has no `id` or no `name`"),
        (b"item { id: 1 name: 'a' } item { id: 1 name: 'b' }", "two names for the class 1"),
        (b"item { id: 1 name: '\xff' }", "is not UTF-8"),
        (b"item {" * 5000, "does not parse: "),
        (b"", "names no class"),
    ],
)
def test_what_is_no_label_map_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_label_map(data, "m.pbtxt")
    assert refused.value.message.startswith("the label map `m.pbtxt`")
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("name", "is_known"),
    [
        *((f"{each}.pbtxt", True) for each in ("label_map", "pets_label_map", "pets-labelmap")),
        *((name, False) for name in ("schema.pbtxt", "ssd.pbtxt", "my_classes.txt")),
        ("classes.txt", True),
        ("label_map.txt", False),
    ],
)
def test_label_files_are_known_by_their_names(tmp_path: Path, name: str, is_known: bool) -> None:
    (tmp_path / name).write_text("item { id: 0 name: 'cat' }")
    found = names_beside([(LocalStorage(tmp_path), "")], lambda: ["label"], [])
    assert found == ({"label": ["cat"]} if is_known else {})
