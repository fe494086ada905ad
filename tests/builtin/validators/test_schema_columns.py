"""The schema check finds the same by columns, hundreds of records at once, as one by one."""

from __future__ import annotations

import tempfile
from math import inf, nan
from pathlib import Path

import pytest
from check_support import Document, document, framed
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.records import batch_columns as columns

ALWAYS = "presence { min_fraction: 1 }"
SCHEMA = f"""
feature {{ name: "image" type: BYTES {ALWAYS} shape {{}} image_domain {{}} }}
feature {{ name: "label" type: INT {ALWAYS} shape {{}} int_domain {{ min: 0 max: 9 }} }}
feature {{ name: "format" type: BYTES shape {{}} presence {{ min_fraction: 0.5 }}
           string_domain {{ value: "png" value: "jpeg" }} }}
feature {{ name: "box" type: FLOAT value_count {{ max: 4 }} float_domain {{ min: 0 max: 1 }} }}
feature {{ name: "flag" type: INT bool_domain {{}} }}
feature {{ name: "word" type: BYTES string_domain {{ value: "a" }}
           distribution_constraints {{ min_domain_mass: 0.5 }} }}
feature {{ name: "size" type: INT presence {{ min_count: 30 }} shape {{ dim {{ size: 2 }} }} }}
feature {{ name: "soon" lifecycle_stage: PLANNED }}
"""

CHANGES: list[dict[str, Feature]] = [
    {"image": bytes_feature([])},
    {"image": bytes_feature([b"a", b"b"])},
    {"label": int64_feature(10)},
    {"label": int64_feature(-1)},
    {"label": int64_feature([])},
    {"label": float_feature(1)},
    {"label": unset_feature()},
    {"format": bytes_feature(b"gif")},
    {"format": bytes_feature(b"jpeg")},
    {"format": bytes_feature(b"\xff")},
    {"box": float_feature([0, 1, 0.5])},
    {"box": float_feature([0, 1.5])},
    {"box": float_feature([nan, inf])},
    {"box": float_feature([0] * 5)},
    {"flag": int64_feature(1)},
    {"flag": int64_feature(2)},
    {"flag": int64_feature([0, 2])},
    {"word": bytes_feature([b"a", b"b", b"b"])},
    {"word": bytes_feature(b"a")},
    {"size": int64_feature([3, 4])},
    {"size": int64_feature([3])},
    {"soon": int64_feature(1)},
    {"other": int64_feature(1)},
]
OTHERS = [b"", b"\xff\xff", b"\x12\x00", encode({"label": int64_feature(3)})]


def row(**changes: Feature) -> bytes:
    features = {
        "image": bytes_feature(b"\x89PNG"),
        "label": int64_feature(3),
        "format": bytes_feature(b"png"),
    }
    return encode({**features, **changes})


def look(folder: Path, payloads: list[bytes]) -> Document:
    """What is found in two splits, after both ways found the same."""
    paths = []
    for number, split in enumerate(("train", "test")):
        path = folder / f"x-{split}.tfrecord-00000-of-00001"
        path.write_bytes(framed(*payloads[number::2]))
        paths.append(path)
    schema = folder / "schema.pbtxt"
    schema.write_text(SCHEMA)
    found = []
    for least in (8, 1 << 40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "_WORTH_IT", least)
            found.append(document(paths, only=("schema",), schema=str(schema)))
    assert found[0] == found[1]
    return found[0]


def test_what_is_found_is_the_same_either_way(tmp_path: Path) -> None:
    payloads = [row()] * 40 + [row(**change) for change in CHANGES for _ in range(20)] + OTHERS
    found = look(tmp_path, payloads)
    codes = {each["code"] for each in found["findings"]}
    assert codes >= {f"SCH00{number}" for number in (1, 2, 3, 4, 5, 6, 7)}


@pytest.mark.parametrize("change", CHANGES)
def test_each_layout_is_read_either_way(tmp_path: Path, change: dict[str, Feature]) -> None:
    planned = {**change, "soon": float_feature(1)}
    look(tmp_path, [row(**change)] * 40 + [row()] * 40 + [row(**planned)] * 40)


def test_values_of_a_domain_are_counted_either_way(tmp_path: Path) -> None:
    """Half of the values of a split have to be in the domain: 40 of 80 are, then 40 of 84."""
    inside, outside = row(word=bytes_feature(b"a")), row(word=bytes_feature([b"b"] * 4))
    for times, expected in ((20, []), (22, ["SCH006"] * 2)):
        found = look(tmp_path, [inside] * 80 + [outside] * times)
        codes = [each["code"] for each in found["findings"] if "`word`" in each["message"]]
        assert codes == expected


RECORDS = st.builds(lambda changes: row(**changes), st.sampled_from([{}, *CHANGES]))
PAIRS = st.tuples(*[st.sampled_from(CHANGES)] * 2).map(
    lambda pair: (
        row(**pair[0], **pair[1]) if not pair[0].keys() & pair[1].keys() else row(**pair[1])
    )
)


@pytest.mark.medium
@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(RECORDS | PAIRS | st.sampled_from(OTHERS), st.sampled_from([1, 2, 9, 20])),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_any_records_give_the_same_findings_either_way(groups, dice) -> None:
    payloads = [payload for payload, times in groups for _ in range(times)]
    dice.shuffle(payloads)
    with tempfile.TemporaryDirectory() as folder:
        look(Path(folder), payloads)
