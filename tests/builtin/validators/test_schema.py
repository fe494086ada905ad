from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from math import nan

import pytest

from tfrecreg.builtin.schemas.validator import SchemaValidator
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import SchemaError
from tfrecreg.core.values.findings import Finding, Measure, Severity

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


def test_a_schema_that_does_not_parse_is_an_error_with_its_path() -> None:
    with pytest.raises(SchemaError, match=r"^schemas/d.pbtxt:1:"):
        SchemaValidator().applies(target("nonsense"))


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
        Measure("schema.unexamined", 1, "1 record too large to check"),
    ]


MASS = """
feature {
  name: "w" type: BYTES string_domain { value: "a" }
  distribution_constraints { min_domain_mass: 0.8 }
}
"""


def words(*values: str) -> Example:
    return {"w": bytes_feature(values)}


def test_values_outside_a_domain_of_most_values_are_found_where_they_are_many() -> None:
    shards = {
        shard("test"): [words("a", "a", "a", "a", "x")],  # 1 - 0.8 is less than 1 / 5
        shard("train", 0): [words("a", "x")],
        shard("train", 1): [words("a"), words("y", "a")],
    }
    (finding,), _ = run(shards, schema=MASS)
    assert finding.code == "SCH006"
    assert finding.message == "`w` should be one of `a` in at least 80% of its values"
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


DISTINCT = 'feature { name: "x" type: INT unique_constraints { min: 2 max: 3 } }'


def ids(*values: int) -> list[Payload]:
    return [{"x": int64_feature(value)} for value in values]


def test_values_that_are_too_many_to_be_counted_are_said_to_be() -> None:
    schema = DISTINCT.replace("min: 2 max: 3", "max: 1000000")
    findings, measures = run([{"x": int64_feature(range(100_001))}], schema=schema)
    assert findings == []
    assert measures["schema.uncounted"].text == (
        "`unique_constraints` not checked: more than 100,000 different values in `x`"
    )
    assert "schema.uncounted" not in run(ids(1, 2), schema=schema)[1]
