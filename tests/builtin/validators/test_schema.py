from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from math import nan

import pytest

from tfrecreg.builtin.schemas.validator import SchemaValidator
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.features import (
    bytes_feature,
    float_feature,
    int64_feature,
    unset_feature,
)
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.errors import ConfigError, SchemaError
from tfrecreg.core.values.findings import Finding, Location, Measure, Severity

SCHEMA = """
default_environment: "TRAINING"
default_environment: "SERVING"
feature {
  name: "image" type: BYTES presence { min_fraction: 1 } shape {} image_domain {}
}
feature {
  name: "label" type: INT presence { min_fraction: 1 } shape {} int_domain { min: 0 max: 9 }
  not_in_environment: "SERVING"
}
feature { name: "box" type: FLOAT value_count { max: 4 } float_domain { disallow_nan: true } }
"""

Payload = Example | bytes


def shard(split: str = "train", number: int = 0) -> Shard:
    name = f"d-{split}.tfrecord-0000{number}-of-00002" if split else f"{number}.tfrecord"
    return Shard(split, number, name, LocalStorage("/"), name, None, None, None)


def target(schema: str | None = SCHEMA, dataset: str = "d") -> Target:
    return Target(
        name="d",
        kind="build",
        dataset=dataset,
        shards=(),
        storage=None,
        manifest=None,
        schema=schema,
        schema_path=None if schema is None else "schemas/d.pbtxt",
        raw=None,
    )


def batch(payloads: Sequence[bytes], first: int, stream: int) -> RecordBatch:
    """The records as they lie in a stream that goes on at byte `stream`."""
    memory, starts, offsets = b"", [], []
    for payload in payloads:
        offsets.append(stream + len(memory))
        starts.append(len(memory) + 12)
        memory += bytes(12) + payload + bytes(4)
    return RecordBatch(first, offsets, [len(payload) for payload in payloads], starts, memory)


def run(
    shards: Mapping[Shard, Iterable[Payload]] | Iterable[Payload],
    *,
    schema: str = SCHEMA,
    options: Mapping[str, object] | None = None,
    size: int = 2,
) -> tuple[list[Finding], dict[str, Measure]]:
    """Findings and measures of records in batches of `size`, through pickles as in real life."""
    if not isinstance(shards, Mapping):
        shards = {shard(): shards}
    validator = SchemaValidator()
    assert validator.applies(target(schema)) is None
    make = pickle.loads(pickle.dumps(validator.begin(target(schema), options or {})))
    parts = []
    for each, records in shards.items():
        visitor = make(each)
        payloads = [p if isinstance(p, bytes) else encode(p) for p in records]
        stream = 0
        for first in range(0, len(payloads), size):
            some = payloads[first : first + size]
            visitor.batch(batch(some, first, stream))
            stream += sum(len(payload) + 16 for payload in some)
        end = StreamEnd("none", stream, stream, len(payloads), 0, None, None)
        parts.append((each, pickle.loads(pickle.dumps(visitor.close(end)))))
    results = list(validator.finish(target(schema), parts))
    findings = [result for result in results if isinstance(result, Finding)]
    return findings, {m.name: m for m in results if isinstance(m, Measure)}


def example(**changes: object) -> dict[str, object]:
    """A record that keeps the schema, with changes; None takes a feature away."""
    made = {"image": bytes_feature(b"\x89PNG"), "label": int64_feature(3), **changes}
    return {name: feature for name, feature in made.items() if feature is not None}


GOOD = example()


def test_the_validator_announces_itself() -> None:
    assert SchemaValidator.name == "schema"
    assert [code.code for code in SchemaValidator.codes] == [f"SCH{n:03}" for n in range(1, 11)]


def test_every_code_is_explained() -> None:
    for code in SchemaValidator.codes:
        assert CORE_CODES[code.code] is code
        assert len(code.page.split("\n\n")) >= 3
        assert "\n" not in code.hint
        assert not code.summary.endswith(".")


def test_without_a_schema_it_does_not_apply() -> None:
    assert SchemaValidator().applies(target(None)) == "no schema: name one with --schema"


def test_a_schema_of_sequences_applies() -> None:
    schema = 'feature { name: "##SEQUENCE##" type: STRUCT }'
    assert SchemaValidator().applies(target(schema)) is None


def test_a_schema_that_does_not_parse_is_an_error_with_its_path() -> None:
    with pytest.raises(SchemaError, match=r"^schemas/d.pbtxt:1:"):
        SchemaValidator().applies(target("nonsense"))


def test_clean_data_have_no_findings() -> None:
    records = [GOOD, example(box=float_feature([0.5, 1])), example(box=unset_feature())]
    findings, measures = run(records)
    assert findings == []
    assert measures["schema.records"] == Measure("schema.records", 3, "3 records checked")
    assert "schema.unexamined" not in measures


def test_an_empty_split_has_no_findings() -> None:
    findings, measures = run([])
    assert findings == []
    assert measures["schema.records"].value == 0


@pytest.mark.parametrize(
    ("code", "message", "bad", "feature", "detail"),
    [
        (
            "SCH001",
            "the payload should be a tf.train.Example",
            b"\xffnot an example",
            None,
            "found 15 bytes: ff 6e 6f 74 20 61 6e 20 …",
        ),
        (
            "SCH001",
            "the payload should be a tf.train.Example",
            b"\x12\x03abc",
            None,
            "found 5 bytes: 12 03 61 62 63",
        ),
        ("SCH002", "`label` should be in every example", example(label=None), "label", None),
        (
            "SCH002",
            "`label` should be in every example",
            example(label=unset_feature()),
            "label",
            "there, but its kind is not set",
        ),
        (
            "SCH003",
            "`label` should be INT, found BYTES",
            example(label=bytes_feature(b"3")),
            "label",
            "found BYTES",
        ),
        (
            "SCH004",
            "`image` should have exactly 1 value",
            example(image=bytes_feature([])),
            "image",
            "found 0 values",
        ),
        (
            "SCH004",
            "`box` should have at most 4 values",
            example(box=float_feature([0] * 5)),
            "box",
            "found 5 values",
        ),
        (
            "SCH005",
            "`lable` is not in the schema",
            example(lable=int64_feature(3)),
            "lable",
            "found INT, 1 value",
        ),
        (
            "SCH006",
            "`label` should be a whole number from 0 to 9",
            example(label=int64_feature(10)),
            "label",
            "found 10",
        ),
        (
            "SCH007",
            "`box` should be finite",
            example(box=float_feature([1, nan])),
            "box",
            "found nan, value 1 of 2",
        ),
    ],
)
def test_a_planted_violation_is_found_at_its_record(
    code: str, message: str, bad: Payload, feature: str | None, detail: str | None
) -> None:
    payload = bad if isinstance(bad, bytes) else encode(bad)
    before = len(encode(GOOD)) + 16
    (finding,), _ = run([GOOD, GOOD, GOOD, payload, GOOD])
    assert finding.code == code
    assert finding.rule == CORE_CODES[code].rule
    assert finding.hint.startswith(CORE_CODES[code].hint)
    assert finding.severity is Severity.ERROR
    assert finding.message == message
    assert finding.fingerprint == f"{code}:d:train:{feature or ''}:"
    assert finding.count == 1
    assert finding.locations == (
        Location(
            split="train",
            shard="d-train.tfrecord-00000-of-00002",
            record=3,
            offset=3 * before,
            length=len(payload),
            feature=feature,
            detail=detail,
        ),
    )


def test_floats_that_are_not_finite_are_a_warning_where_no_domain_says_anything() -> None:
    (finding,), _ = run([{"x": float_feature(nan)}], schema='feature { name: "x" type: FLOAT }')
    assert (finding.code, finding.severity) == ("SCH007", Severity.WARNING)


@pytest.mark.parametrize("payload", [b"", b"\n\x00"])
def test_an_empty_record_is_an_example_without_features(payload: bytes) -> None:
    findings, _ = run([payload])
    assert [(finding.code, finding.locations[0].length) for finding in findings] == [
        ("SCH002", len(payload)),
        ("SCH002", len(payload)),
    ]


def test_many_occurrences_are_one_finding_with_the_first_twenty_locations() -> None:
    bad = [example(label=int64_feature(100 + number)) for number in range(30)]
    shards = {shard(number=0): [GOOD, *bad], shard(number=1): bad}
    (finding,), measures = run(shards)
    assert finding.count == 60
    assert [location.record for location in finding.locations] == list(range(1, 21))
    assert finding.locations[0].detail == "found 100"
    assert measures["schema.records"].value == 61


def test_splits_have_findings_of_their_own() -> None:
    bad = example(label=None)
    findings, _ = run({shard("test"): [bad], shard("train"): [bad, bad]})
    assert [(finding.fingerprint, finding.count) for finding in findings] == [
        ("SCH002:d:test:label:", 1),
        ("SCH002:d:train:label:", 2),
    ]


def test_bare_files_have_no_split() -> None:
    (finding,), _ = run({shard(""): [example(label=None)]})
    assert finding.locations[0].split is None
    assert finding.fingerprint == "SCH002:d::label:"


def test_two_wrong_types_are_one_finding_that_names_both() -> None:
    wrong = [example(label=float_feature(3)), example(label=bytes_feature(b"3"))]
    (finding,), _ = run({shard(number=0): wrong[:1], shard(number=1): wrong[1:]})
    assert finding.message == "`label` should be INT, found BYTES and FLOAT"
    assert finding.count == 2


def test_unexpected_names_are_bounded_and_still_counted() -> None:
    records = [example(**{f"id{number:04}": int64_feature(1)}) for number in range(150)]
    findings, _ = run(records)
    assert len(findings) == 101
    rest = next(f for f in findings if f.message == "more features are not in the schema")
    assert rest.count == 50
    assert rest.locations[0].feature == "id0100"
    assert rest.fingerprint == "SCH005:d:train::"


def test_names_from_the_data_are_escaped_in_messages() -> None:
    (finding,), _ = run([example(**{"a\n\x1b[2J": int64_feature(1)})])
    assert finding.message == r"`a\x0a\x1b[2J` is not in the schema"


def test_records_too_large_to_be_held_are_counted_apart() -> None:
    visitor = SchemaValidator().begin(target(), {})(shard())
    visitor.batch(RecordBatch(0, [0], [1 << 40], [0], b"", whole=False))
    part = visitor.close(StreamEnd("none", 0, 0, 1, 0, None, None))
    validator = SchemaValidator()
    validator.begin(target(), {})
    measures = list(validator.finish(target(), [(shard(), part)]))
    assert measures == [
        Measure("schema.records", 0, "0 records checked"),
        Measure("schema.unexamined", 1, "1 record too large to be checked"),
    ]


@pytest.mark.parametrize(
    ("presence", "asks"),
    [
        ("min_fraction: 0.5", "in at least 50% of the examples of a split"),
        ("min_fraction: 0.375", "in at least 37.5% of the examples of a split"),
        ("min_count: 2", "in at least 2 of the examples of a split"),
        (
            "min_fraction: 0.5 min_count: 2",
            "in at least 50% of and in at least 2 of the examples of a split",
        ),
    ],
)
def test_what_a_split_has_too_little_of_is_found_at_the_split(presence: str, asks: str) -> None:
    schema = f'feature {{ name: "x" type: INT presence {{ {presence} }} }}'
    has: Payload = {"x": int64_feature(1)}
    shards = {
        shard("train", 0): [has, b""],
        shard("train", 1): [b"", b""],
        shard("test"): [has] * 2,
    }
    (finding,), _ = run(shards, schema=schema)
    assert finding.code == "SCH002"
    assert finding.message == f"`x` should be {asks}"
    assert finding.count == 1
    assert finding.locations == (Location(split="train", feature="x", detail="in 1 of 4 examples"),)


def test_enough_of_a_split_is_enough() -> None:
    schema = 'feature { name: "x" type: INT presence { min_fraction: 0.5 min_count: 2 } }'
    has: Payload = {"x": int64_feature(1)}
    assert run([has, has, b"", b""], schema=schema)[0] == []


def test_a_required_feature_that_is_nowhere_is_said_once() -> None:
    schema = 'feature { name: "x" type: INT presence { min_fraction: 1 min_count: 1 } }'
    (finding,), _ = run([b"", b""], schema=schema)
    assert (finding.message, finding.count) == ("`x` should be in every example", 2)


def test_a_required_feature_can_still_be_in_too_few_examples() -> None:
    schema = 'feature { name: "x" type: INT presence { min_fraction: 1 min_count: 3 } }'
    (finding,), _ = run([{"x": int64_feature(1)}] * 2, schema=schema)
    assert finding.message == "`x` should be in at least 3 of the examples of a split"


MASS = """
feature {
  name: "w" type: BYTES string_domain { value: "a" }
  distribution_constraints { min_domain_mass: 0.75 }
}
"""


def words(*values: str) -> Example:
    return {"w": bytes_feature(values)}


def test_values_outside_a_domain_of_most_values_are_fine_while_they_are_few() -> None:
    assert run([words("a", "a"), words("a", "x")], schema=MASS)[0] == []


def test_values_outside_a_domain_of_most_values_are_found_where_they_are_many() -> None:
    shards = {
        shard("test"): [words("a", "a", "a", "x")],
        shard("train", 0): [words("a", "x")],
        shard("train", 1): [words("a"), words("y", "a")],
    }
    (finding,), _ = run(shards, schema=MASS)
    assert finding.code == "SCH006"
    assert finding.message == "`w` should be one of `a` in at least 75% of its values"
    assert finding.fingerprint == "SCH006:d:train:w:"
    assert [location.detail for location in finding.locations] == [
        "found `x`, value 1 of 2",
        "found `y`, value 0 of 2",
    ]


def test_an_environment_decides_what_has_to_be_there() -> None:
    serving = {"environment": "SERVING"}
    assert run([example(label=None)], options=serving)[0] == []
    (finding,), _ = run([GOOD], options=serving)
    assert finding.code == "SCH005"
    assert finding.message == "`label` is not in the environment `SERVING` of the schema"


def test_an_environment_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(SchemaError, match="has no environment `PROD`"):
        SchemaValidator().begin(target(), {"environment": "PROD"})


def test_an_option_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"schema\.enviroment` is not known; did you mean `env"):
        SchemaValidator().begin(target(), {"enviroment": "SERVING"})


def test_an_option_of_the_wrong_type_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"schema\.environment` should be text, found `3`"):
        SchemaValidator().begin(target(), {"environment": 3})


def test_features_out_of_validation_may_be_anything() -> None:
    schema = 'feature { name: "x" type: INT lifecycle_stage: ALPHA presence { min_fraction: 1 } }'
    assert run([b"", {"x": bytes_feature(b"a")}], schema=schema)[0] == []


def test_splits_may_be_of_environments_of_their_own() -> None:
    shards = {shard("test"): [example(label=None)], shard("train"): [GOOD]}
    options = {"environments": {"test": "SERVING"}}
    assert run(shards, options=options)[0] == []
    (finding,) = run(shards)[0]
    assert finding.fingerprint == "SCH002:d:test:label:"
    shards = {shard("test"): [GOOD], shard("train"): [example(label=None)]}
    found = run(shards, options={"environment": "TRAINING", **options})[0]
    assert [(each.fingerprint, each.message) for each in found] == [
        ("SCH002:d:train:label:", "`label` should be in every example"),
        (
            "SCH005:d:test:label:",
            "`label` is not in the environment `SERVING` of the schema",
        ),
    ]


@pytest.mark.parametrize("given", [3, {"test": 3}, ["SERVING"]])
def test_environments_of_splits_are_a_table_of_names(given: object) -> None:
    with pytest.raises(ConfigError, match=r"schema\.environments.* should be ") as caught:
        SchemaValidator().begin(target(), {"environments": given})
    assert caught.value.hint


def test_an_environment_of_a_split_has_to_exist() -> None:
    with pytest.raises(SchemaError, match="has no environment `PROD`"):
        SchemaValidator().begin(target(), {"environments": {"test": "PROD"}})


DISTINCT = 'feature { name: "x" type: INT unique_constraints { min: 2 max: 3 } }'


def ids(*values: int) -> list[Payload]:
    return [{"x": int64_feature(value)} for value in values]


def test_different_values_are_counted_over_a_split() -> None:
    shards = {
        shard("test"): ids(1, 1, 1),
        shard("train", 0): ids(1, 2, 2),
        shard("train", 1): ids(2, 3),
    }
    (finding,), _ = run(shards, schema=DISTINCT)
    assert finding.code == "SCH008"
    assert finding.message == "`x` should have from 2 to 3 different values in a split"
    assert finding.fingerprint == "SCH008:d:test:x:"
    assert finding.locations == (Location(split="test", feature="x", detail="found 1"),)
    (finding,), _ = run({shard(number=0): ids(1, 2), shard(number=1): ids(3, 4)}, schema=DISTINCT)
    assert finding.locations[0].detail == "found 4"


def test_values_that_are_too_many_to_be_counted_are_said_to_be() -> None:
    schema = DISTINCT.replace("min: 2 max: 3", "max: 1000000")
    findings, measures = run([{"x": int64_feature(range(100_001))}], schema=schema)
    assert findings == []
    assert measures["schema.uncounted"].text == (
        "more than 100,000 different values in `x`: `unique_constraints` not judged"
    )
    assert "schema.uncounted" not in run(ids(1, 2), schema=schema)[1]


@pytest.mark.parametrize(
    ("bounds", "asks"),
    [
        ("min_examples_count: 5", "at least 5 examples"),
        ("max_examples_count: 3", "at most 3 examples"),
        ("min_examples_count: 1 max_examples_count: 2", "from 1 to 2 examples"),
        ("min_examples_count: 7 max_examples_count: 7", "exactly 7 examples"),
    ],
)
def test_examples_are_counted_over_all_splits(bounds: str, asks: str) -> None:
    schema = f"dataset_constraints {{ {bounds} }}"
    (finding,), _ = run({shard("test"): [b""], shard("train"): [b""] * 3}, schema=schema)
    assert finding.code == "SCH010"
    assert finding.message == f"there should be {asks}, found 4"
    assert finding.fingerprint == "SCH010:d:::"
    assert (finding.count, finding.locations) == (1, ())


def test_sparse_features_have_findings_at_their_records_and_splits() -> None:
    schema = """
    feature { name: "i" type: INT } feature { name: "v" type: INT }
    sparse_feature { name: "s" index_feature { name: "i" } value_feature { name: "v" }
                     presence { min_count: 2 } }
    """
    whole: Payload = {"i": int64_feature(0), "v": int64_feature(5)}
    findings, _ = run([whole, {"i": int64_feature(1)}, b"", b""], schema=schema)
    assert [(each.code, each.message) for each in findings] == [
        ("SCH009", "`s` should have `v` and `i` together")
    ]
    assert findings[0].locations[0].record == 1
    findings, _ = run([whole, b""], schema=schema)
    assert [(each.code, each.message) for each in findings] == [
        ("SCH002", "`s` should be in at least 2 of the examples of a split")
    ]
