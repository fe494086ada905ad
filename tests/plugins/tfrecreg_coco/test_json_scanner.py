"""Elements are found whatever the blocks are, and what is no dataset's JSON is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.errors import RawDataError
from tfrecreg.storage.local import LocalStorage
from tfrecreg_coco.json_scanner import Batch, BracketScanner, ListScan

WANTED = frozenset({"images", "annotations"})


def walked(raw: Any, text: str | bytes, block: int = 1 << 20) -> dict[str, list[Any]]:
    """The elements of each wanted list, by way of their places in the file."""
    data = text.encode() if isinstance(text, str) else text
    raw.put("a.json", data)
    found: dict[str, list[Any]] = {}
    scan = ListScan(LocalStorage(raw.path), "a.json", WANTED, block=block)
    for batch in scan:
        places = zip(batch.starts.tolist(), batch.ends.tolist(), strict=True)
        pieces = [data[start:end] for start, end in places]
        assert pieces == [batch.element(number) for number in range(len(pieces))]
        elements = [json.loads(piece) for piece in pieces]
        assert json.loads(b"[" + batch.data + b"]") == elements
        found.setdefault(batch.section, []).extend(elements)
    for name in scan.members:
        found.setdefault(name, [])
    return found


def refusal(raw: Any, text: str | bytes, block: int = 1 << 20) -> str:
    with pytest.raises(RawDataError) as caught:
        walked(raw, text, block)
    message = caught.value.message
    assert message.startswith("`a.json` ")
    assert message.isprintable()
    return message


texts = st.text(st.sampled_from('a"\\[]{},:é\n'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.lists(st.dictionaries(texts, values, max_size=3), max_size=4)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    images=objects,
    annotations=objects,
    others=st.dictionaries(texts.filter(lambda key: key not in WANTED), values, max_size=3),
    order=st.randoms(use_true_random=False),
    block=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_every_element_is_found_in_blocks_of_any_size(
    raw: Any, images, annotations, others, order, block, indent, ascii_only
) -> None:
    members = [("images", images), ("annotations", annotations), *others.items()]
    order.shuffle(members)
    text = json.dumps(dict(members), indent=indent, ensure_ascii=ascii_only)
    found = walked(raw, text, block)
    assert found["images"] == images
    assert found["annotations"] == annotations
    assert found.keys() == dict(members).keys()


SMALL = '{"images": [{"a": 1}, {"b": "]}"}], "x": {"y": [0]}, "annotations": [{"c": [[]]}]}'


def test_a_file_that_is_cut_anywhere_is_refused(raw: Any) -> None:
    walked(raw, SMALL)
    for end in range(len(SMALL)):
        for block in (3, 1 << 20):
            refusal(raw, SMALL[:end], block)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"images": [{"a": 1', "is cut short: it ends inside its JSON, after 19 bytes"),
        ("hello", "is not JSON: expected one object"),
        ("[{}]", "is not JSON: expected one object"),
        ("{}{}", "is not JSON: expected one object"),
        ("{} x", "is not JSON: expected one object"),
        ("x {}", "is not JSON: expected one object"),
        ("{}}", "is not JSON: a bracket closes nothing at byte 2"),
        ('{"images": [{}}, {}]}', "is not JSON: a bracket that does not fit at byte 14"),
        ('{"images": [{}]]', "is not JSON: a bracket that does not fit at byte 15"),
        ("{[]}", "is not JSON: a list or an object without a name"),
        ('{"images": {}}', "is not a COCO dataset: `images` is an object, expected a list"),
        ('{"images": [], "images": []}', "has `images` twice"),
        ('{"images": [1, 2]}', "is not a COCO dataset: `images` holds more than objects"),
        ('{"images": [{}, 2]}', "is not a COCO dataset: `images` holds more than objects"),
        ('{"images": [2, {}]}', "is not a COCO dataset: `images` holds more than objects"),
        ('{"images": [{},]}', "is not a COCO dataset: `images` holds more than objects"),
        ('{"images": [,{}]}', "is not a COCO dataset: `images` holds more than objects"),
        ('{"images": [] "x": 1}', "is not JSON"),
        ('{"images": [], x: 1}', "is not JSON"),
        ('{"images": [],}', "is not JSON"),
    ],
)
@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_what_is_no_dataset_is_refused_in_one_line(raw: Any, text, says, block) -> None:
    assert says in refusal(raw, text, block)


def test_a_byte_order_mark_is_passed_over(raw: Any) -> None:
    assert walked(raw, b"\xef\xbb\xbf" + SMALL.encode(), block=8)["annotations"] == [{"c": [[]]}]


def test_elements_that_are_no_objects_are_left_to_who_decodes_them(raw: Any) -> None:
    # Nested lists have brackets of their own, so only a decoder sees that they are no objects.
    assert walked(raw, '{"images": [[1], [2]]}')["images"] == [[1], [2]]


def test_an_element_without_end_does_not_fill_the_memory(raw: Any, monkeypatch) -> None:
    monkeypatch.setattr("tfrecreg_coco.json_scanner._MAX_ELEMENT", 1000)
    text = '{"images": [{"a": "' + "x" * 5000 + '"}]}'
    assert "has an element of more than 1000 bytes in `images`" in refusal(raw, text, block=100)
    monkeypatch.setattr("tfrecreg_coco.json_scanner._MAX_OUTLINE", 1000)
    text = '{"note": "' + "x" * 5000 + '", "images": []}'
    assert "holds more than 1000 bytes outside its lists" in refusal(raw, text, block=100)


def test_brackets_without_end_do_not_end_the_process(raw: Any) -> None:
    text = '{"images": [{"a": ' + "[" * 200_000 + "]" * 200_000 + "}]}"
    raw.put("a.json", text)
    batches = list(ListScan(LocalStorage(raw.path), "a.json", WANTED))
    assert sum(len(batch.data) for batch in batches) == len(text) - len('{"images": []}')


def test_an_element_can_be_taken_out_of_a_batch(raw: Any) -> None:
    raw.put("a.json", SMALL)
    batch = next(iter(ListScan(LocalStorage(raw.path), "a.json", WANTED)))
    assert isinstance(batch, Batch)
    assert batch.element(1) == b'{"b": "]}"}'
    assert SMALL[int(batch.starts[1]) : int(batch.ends[1])] == '{"b": "]}"}'


def plain(text: bytes) -> tuple[list[tuple[int, bool, int]], bool]:
    """The same, a byte at a time."""
    found, in_string, escaped, depth = [], False, False, 0
    for place, byte in enumerate(text):
        character, before, escaped = chr(byte), escaped, False
        if character == "\\":
            escaped = not before
        elif character == '"':
            in_string = in_string != (not before)
        elif not in_string and character in "{}[]":
            depth += 1 if character in "{[" else -1
            found.append((place, character in "{[", depth))
    return found, in_string


@given(st.text(st.sampled_from('{}[]"\\\\\\a'), max_size=60), st.integers(1, 9))
def test_blocks_change_nothing(text: str, block: int) -> None:
    data = text.encode()
    brackets = BracketScanner()
    found: list[tuple[int, bool, int]] = []
    for base in range(0, len(data), block):
        places, opens, depths = brackets.find(data[base : base + block], base)
        found += zip(places.tolist(), opens.tolist(), depths.tolist(), strict=True)
    assert (found, brackets.in_string) == plain(data)
