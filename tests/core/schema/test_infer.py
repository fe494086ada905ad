from __future__ import annotations

import pickle
from collections import Counter
from math import nan
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example, Feature, Kind, encode
from tfrecreg.core.example.tensors import serialize_tensor
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.schema.check import Checker
from tfrecreg.core.schema.compiled import compile_schema
from tfrecreg.core.schema.definition import StringDomain
from tfrecreg.core.schema.infer import SchemaSketch
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.findings import Severity

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def sketch(*examples: Example | None) -> SchemaSketch:
    made = SchemaSketch()
    for example in examples:
        made.add(example if example is None else decode(encode(example)))
    return made


def drafted(*features: Feature | None, name: str = "x") -> str:
    """What the draft says below its header of one feature; None where it is missing."""
    text = sketch(*({} if each is None else {name: each} for each in features)).render("d")
    parse_schema(text, "draft")
    return text.partition("\n\n")[2]


def block(*lines: str) -> str:
    return "\n".join(("feature {", *(f"  {line}" for line in lines), "}")) + "\n"


ALWAYS = ("presence {", "  min_fraction: 1", "  min_count: 1", "}")


def test_a_draft_is_a_schema_with_a_header_for_its_reader() -> None:
    text = sketch(
        {"image/encoded": bytes_feature(PNG), "image/class/label": int64_feature(0)},
        {"image/encoded": bytes_feature(PNG), "image/class/label": int64_feature(3)},
        None,
    ).render("mnist")
    assert text == dedent(
        """\
        # proto-file: tensorflow_metadata/proto/v0/schema.proto
        # proto-message: Schema
        #
        # Drafted from 2 examples of mnist.
        # It describes the data as found: review it, correct it, keep it in git.
        # Not a tf.train.Example, so left out: 1 record.

        feature {
          name: "image/class/label"
          type: INT
          presence {
            min_fraction: 1
            min_count: 1
          }
          shape {}
          int_domain {
            min: 0
            max: 3
            is_categorical: true
          }
        }

        # png in 2 of 2 values
        feature {
          name: "image/encoded"
          type: BYTES
          presence {
            min_fraction: 1
            min_count: 1
          }
          shape {}
          image_domain {}
        }
        """
    )


@pytest.mark.parametrize(
    ("features", "comment", "body"),
    [
        ([int64_feature(1), int64_feature(2)], "", (*ALWAYS, "shape {}")),
        (
            [int64_feature([1, 2, 3]), int64_feature([4, 5, 6])],
            "",
            (*ALWAYS, "shape {", "  dim {", "    size: 3", "  }", "}"),
        ),
        (
            [int64_feature([1, 2]), int64_feature([3] * 9)],
            "# 2 to 9 values in an example\n",
            (*ALWAYS, "value_count {", "  min: 1", "}"),
        ),
        ([int64_feature([])] * 2, "", (*ALWAYS, "value_count {", "  min: 0", "}")),
        (
            [int64_feature(1), None, unset_feature()],
            "# in 1 of 3 examples\n# in 1 of 3 examples without a kind\n",
            ("value_count {", "  min: 1", "  max: 1", "}"),
        ),
    ],
    ids=["scalar", "shape", "lengths", "empty", "sometimes"],
)
def test_presence_and_lengths_are_drafted(
    features: list[Feature | None], comment: str, body: tuple[str, ...]
) -> None:
    assert drafted(*features) == comment + block('name: "x"', "type: INT", *body)


def test_a_feature_without_a_kind_is_drafted_as_planned() -> None:
    text = drafted(unset_feature(), None)
    assert "# in 1 of 2 examples, never with a value, so its type is not known:" in text
    assert block('name: "x"', "lifecycle_stage: PLANNED") in text


def test_of_two_types_the_usual_one_is_drafted_and_both_are_named() -> None:
    text = drafted(int64_feature(1), int64_feature(1), bytes_feature(b"1"))
    assert text.startswith(
        "# found several types, but a feature can have only one: BYTES in 1, INT in 2 examples\n"
    )
    assert "type: INT" in text


def test_a_few_strings_that_come_again_become_a_domain() -> None:
    values = [bytes_feature(word) for word in (b"dog", b'c"at\n') * 5]
    domain = ("string_domain {", '  value: "c\\"at\\012"', '  value: "dog"', "}")
    assert drafted(*values) == block('name: "x"', "type: BYTES", *ALWAYS, "shape {}", *domain)


@pytest.mark.parametrize(
    "values",
    [
        [bytes_feature(f"{number}.jpg") for number in range(20)],
        [bytes_feature(f"{number % 51}") for number in range(51 * 9)],
        [bytes_feature(b"\xff")] * 9,
        [bytes_feature(b"a" * 65)] * 9,
        [bytes_feature([])] * 9,
        [bytes_feature(serialize_tensor(np.array([[1, 0], [0, 1]])))] * 9,
    ],
    ids=["all different", "too many", "no text", "too long", "none", "tensors"],
)
def test_other_bytes_have_no_domain(values: list[Feature]) -> None:
    assert "domain" not in drafted(*values)


@pytest.mark.parametrize(
    "words",
    [[f"{number:02}" for number in range(50)], ["a" * 64], ["é" * 32]],
    ids=["as many as may be", "as long as may be", "as long in bytes"],
)
def test_strings_at_the_limits_still_become_a_domain(words: list[str]) -> None:
    text = drafted(*(bytes_feature(word) for word in words * 5))
    (feature,) = parse_schema(text).features
    assert feature.domain == StringDomain(tuple(words))


def test_images_are_known_by_how_they_begin_and_only_where_all_do() -> None:
    jpeg = bytes_feature(b"\xff\xd8\xff\xe0")
    mixed = drafted(bytes_feature(PNG), jpeg)
    assert mixed.startswith("# jpeg in 1 of 2 values\n# png in 1 of 2 values\n")
    assert "image_domain {}" in mixed
    assert "image_domain" not in drafted(bytes_feature(PNG), bytes_feature(b"none"))


@pytest.mark.parametrize(
    "name", ["image/object/class/label", "label", "hardlabel", "class", "target"]
)
def test_labels_get_their_bounds(name: str) -> None:
    text = drafted(int64_feature([2, 7]), int64_feature([-1]), name=name)
    assert "min: -1\n    max: 7\n    is_categorical: true" in text


@pytest.mark.parametrize("side", ["height", "width", "channels"])
def test_sides_that_all_images_share_are_drafted(side: str) -> None:
    text = drafted(int64_feature(28), int64_feature(28), name=f"image/{side}")
    assert "int_domain {\n    min: 28\n    max: 28\n  }" in text
    for others in ([int64_feature(27)], []):  # other sides, and one image alone
        assert "domain" not in drafted(int64_feature(28), *others, name=f"image/{side}")


def test_floats_are_to_stay_finite_unless_some_are_not() -> None:
    assert "disallow_nan: true\n    disallow_inf: true" in drafted(float_feature([0.5]))
    text = drafted(float_feature([0.5, nan]))
    assert text.startswith("# 1 of 2 values NaN or infinite\n")
    assert "float_domain" not in text


def test_names_from_data_cannot_break_out_of_the_draft() -> None:
    text = sketch({'a"\n}\x1b\u202e': int64_feature(1)}).render('"\n feature { name: "evil" }')
    (feature,) = parse_schema(text).features
    assert feature.name == 'a"\n}\x1b\u202e'
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_number_of_features_is_bounded() -> None:
    made = SchemaSketch()
    made.add({f"f{number:05}": unset_feature() for number in range(10_001)})
    text = made.render("d")
    assert "# Left out: all features after the first 10000." in text
    assert 'name: "f09999"' in text
    assert 'name: "f10000"' not in text


FEATURES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(int64_feature),
    st.lists(st.floats(width=32), max_size=3).map(float_feature),
    st.lists(st.binary(max_size=4) | st.sampled_from([b"a", b"b", PNG]), max_size=3).map(
        bytes_feature
    ),
    st.just(unset_feature()),
)
EXAMPLES = st.lists(
    st.dictionaries(st.sampled_from(["x", "y", "class/label"]), FEATURES), max_size=12
)


@pytest.mark.medium
@given(EXAMPLES, st.integers(0, 12))
@settings(max_examples=150)
def test_a_draft_does_not_depend_on_how_the_data_was_split(
    examples: list[Example], cut: int
) -> None:
    left, right = sketch(*examples[:cut]), sketch(*examples[cut:])
    right = pickle.loads(pickle.dumps(right))
    left.merge(right)
    assert left.render("d") == sketch(*examples).render("d")
    assert left.render("d") == sketch(*reversed(examples)).render("d")


@pytest.mark.medium
@given(EXAMPLES)
@settings(max_examples=150)
def test_data_pass_the_draft_that_was_made_from_them_but_for_a_second_type(
    examples: list[Example],
) -> None:
    kinds: dict[str, Counter[Kind]] = {}
    for example in examples:
        for name, feature in example.items():
            if feature.kind is not Kind.UNSET:
                kinds.setdefault(name, Counter())[feature.kind] += 1
    usual = {
        name: max(sorted(found), key=lambda kind: found[kind]) for name, found in kinds.items()
    }
    check = Checker(compile_schema(parse_schema(sketch(*examples).render("d"), "draft")))
    for example in examples:
        wrong = {
            ("SCH003", name)
            for name, feature in example.items()
            if feature.kind not in (Kind.UNSET, usual.get(name))
        }
        problems = [p for p in check(example) if p.code.severity is Severity.ERROR]
        assert {(p.code.code, p.feature) for p in problems} == wrong


@pytest.mark.slow
def test_tfdv_finds_nothing_in_data_that_its_draft_was_made_from() -> None:
    tfdv = pytest.importorskip("tensorflow_data_validation")
    coder = pytest.importorskip("tfx_bsl.coders.example_coder")
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    examples = [
        {
            "image": bytes_feature(PNG),
            "label": int64_feature(number % 3),
            "word": bytes_feature(["cat", "dog"][number % 2]),
            "boxes": float_feature([0.5] * (number % 4)),
            **({"rare": int64_feature([1, 2])} if number % 5 else {}),
        }
        for number in range(40)
    ]
    schema = text_format.Parse(sketch(*examples).render("d"), schema_pb2.Schema())
    batch = coder.ExamplesToRecordBatchDecoder().DecodeBatch([encode(each) for each in examples])
    impl = pytest.importorskip("tensorflow_data_validation.statistics.stats_impl")
    options = tfdv.StatsOptions(schema=schema)
    statistics = impl.generate_statistics_in_memory(batch, options)
    assert not tfdv.validate_statistics(statistics, schema).anomaly_info
