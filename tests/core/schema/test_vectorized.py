"""The vectorized pre-filter passes no record in which the checker finds a problem."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.schema.check import Checker
from tfrecreg.core.schema.compiled import compile_schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.schema.vectorized import VectorizedCheck

ALWAYS = "presence { min_fraction: 1 }"

SCHEMA = f"""
feature {{ name: "image" type: BYTES {ALWAYS} shape {{}} image_domain {{}} }}
feature {{ name: "label" type: INT {ALWAYS} shape {{}} int_domain {{ min: 0 max: 9 }} }}
feature {{ name: "format" type: BYTES shape {{}} string_domain {{ value: "png" value: "jpeg" }} }}
feature {{ name: "box" type: FLOAT value_count {{ max: 4 }} float_domain {{ min: 0 max: 1 }} }}
feature {{ name: "flag" type: INT bool_domain {{}} }}
feature {{ name: "id" type: INT }}
feature {{ name: "soon" lifecycle_stage: PLANNED }}
"""


def example(**changes: object) -> Example:
    made = {
        "image": bytes_feature(b"\x89PNG"),
        "label": int64_feature(3),
        "format": bytes_feature(b"png"),
        "id": int64_feature(7),
        **changes,
    }
    return {name: feature for name, feature in made.items() if feature is not None}  # type: ignore[misc]


GOOD = encode(example())


class Both:
    """The same records by both ways."""

    def __init__(self, schema: str) -> None:
        compiled = compile_schema(parse_schema(schema))
        self.slow, self.quick = Checker(compiled), Checker(compiled)
        self.vectorized = VectorizedCheck(compiled, self.quick)

    def left(self, payloads: list[bytes]) -> list[int]:
        """Positions that the quick way leaves, after they were looked at by the slow one."""
        starts = [sum(map(len, payloads[:number])) for number in range(len(payloads))]
        lengths = [len(payload) for payload in payloads]
        batch = RecordBatch(0, starts, lengths, starts, b"".join(payloads))
        rest = list(self.vectorized.remaining(batch))
        examples = [decode_or_none(payload) for payload in payloads]
        for number, each in enumerate(examples):
            bad = each is None or self.slow(each)
            assert not bad or number in rest
        for number in rest:
            each = examples[number]
            if each is not None:
                self.quick(each)
        assert self.quick.absent == self.slow.absent
        counts = [
            {name: (mass.total, mass.outside) for name, mass in checker.masses.items()}
            for checker in (self.quick, self.slow)
        ]
        assert counts[0] == counts[1]
        return rest


def test_records_in_order_need_no_second_look() -> None:
    assert Both(SCHEMA).left([GOOD] * 40) == []


def test_few_records_are_looked_at_one_by_one() -> None:
    assert Both(SCHEMA).left([GOOD] * 31) == list(range(31))


BAD = [
    example(label=int64_feature(10)),
    example(label=int64_feature(-1)),
    example(label=float_feature(1)),
    example(label=None),
    example(label=unset_feature()),
    example(image=bytes_feature([])),
    example(format=bytes_feature(b"gif")),
    example(box=float_feature(1.5)),
    example(box=float_feature(-0.5)),
    example(box=float_feature(nan)),
    example(box=float_feature([0, inf])),
    example(box=float_feature([0] * 5)),
    example(flag=int64_feature(2)),
    example(other=int64_feature(2)),
    {},
]


@pytest.mark.parametrize("bad", BAD)
def test_a_record_that_is_not_in_order_is_left(bad: Example) -> None:
    payloads = [GOOD] * 50 + [encode(bad)] + [GOOD] * 50
    assert Both(SCHEMA).left(payloads) == [50]


@pytest.mark.parametrize("bad", BAD)
def test_where_all_are_like_it_all_are_left(bad: Example) -> None:
    assert Both(SCHEMA).left([encode(bad)] * 40) == list(range(40))


@pytest.mark.parametrize(
    "fine",
    [
        example(format=None),
        example(box=float_feature([0, 0.5, 1])),
        example(flag=int64_feature(1)),
        example(soon=float_feature([1, 2])),
    ],
)
def test_each_layout_of_a_shard_is_learnt(fine: Example) -> None:
    both = Both(SCHEMA)
    assert both.left([encode(fine)] * 40 + [GOOD] * 40) == []
    assert both.left([GOOD, encode(fine)] * 40) == []


def test_values_that_only_mostly_have_to_be_in_a_domain_are_counted() -> None:
    schema = """feature { name: "w" type: BYTES string_domain { value: "a" }
                distribution_constraints { min_domain_mass: 0.5 } }"""
    payloads = [encode({"w": bytes_feature(b"b" if n % 3 else b"a")}) for n in range(90)]
    assert len(Both(schema).left(payloads)) == 60


@pytest.mark.parametrize(
    "schema",
    [
        'feature { name: "label" type: INT unique_constraints { max: 3 } }',
        'feature { name: "i" type: INT } feature { name: "v" type: INT } '
        'sparse_feature { name: "s" index_feature { name: "i" } value_feature { name: "v" } }',
        'feature { name: "label" type: BYTES int_domain {} }',
    ],
)
def test_what_columns_cannot_tell_is_left(schema: str) -> None:
    payloads = [encode({"label": bytes_feature(b"3")})] * 40
    if "sparse" in schema:
        payloads = [encode({"i": int64_feature(1), "v": int64_feature(1)})] * 40
    if "unique" in schema:
        payloads = [encode({"label": int64_feature(1)})] * 40
    assert len(Both(schema).left(payloads)) == 40


features = st.one_of(
    st.none(),
    st.just(unset_feature()),
    st.lists(st.integers(-1, 10), max_size=2).map(int64_feature),
    st.lists(st.sampled_from([0.0, 1.0, 0.5, 2.0, nan, inf, -inf]), max_size=5).map(float_feature),
    st.lists(st.sampled_from([b"png", b"jpeg", b"a", b""]), max_size=2).map(bytes_feature),
)
names = ("image", "label", "format", "box", "flag", "soon", "other")


@pytest.mark.medium
@settings(max_examples=50)
@given(st.lists(st.fixed_dictionaries(dict.fromkeys(names, features)), min_size=1, max_size=6))
def test_nothing_that_is_wrong_is_passed(records: list[dict[str, object]]) -> None:
    payloads = [
        encode({name: each for name, each in record.items() if each is not None})  # type: ignore[misc]
        for record in records
    ]
    both = Both(SCHEMA)
    for _ in range(2):
        both.left([*payloads, GOOD] * 40)
