"""Records of SequenceExamples against a schema that describes them, and its drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from foreign_support import sequence
from sequences_support import SCHEMA

from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.kinds import PayloadKind, payload_kind
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.sequences import PayloadSketch
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.schema.proto import parse_schema

from .test_schema import run, shard

CONTEXT = {"id": bytes_feature(b"a"), "labels": int64_feature([1, 2])}
LISTS: dict[str, list[Feature]] = {
    "action": [int64_feature(0), int64_feature(2)],
    "rgb": [float_feature([0.5] * 4), float_feature([1.5] * 4)],
    "tokens": [int64_feature([]), unset_feature()],
}


def record(context: Mapping[str, Any] | None = None, **lists: Sequence[Feature] | None) -> bytes:
    """A record that keeps the schema, with changes; None takes a list away."""
    changed = {name: steps for name, steps in {**LISTS, **lists}.items() if steps is not None}
    return sequence(CONTEXT if context is None else context, changed)


PROBLEMS: dict[str, tuple[bytes, str, str, str | None]] = {
    "a list is missing": (record(rgb=None), "SCH002", "`rgb` should be in every example", None),
    "a feature of the context is missing": (
        record({"labels": int64_feature(1)}),
        "SCH002",
        "`id` should be in every example",
        None,
    ),
    "another type": (
        record(action=[int64_feature(0), *[bytes_feature(b"x")] * 2]),
        "SCH003",
        "`action` should be INT, found BYTES",
        "found BYTES",
    ),
    "a step without a kind": (
        record(rgb=[unset_feature()]),
        "SCH003",
        "`rgb` should be FLOAT, found no kind",
        "found no kind",
    ),
    "no step": (
        record(action=[]),
        "SCH004",
        "`action` should have at least 1 step",
        "found 0 steps",
    ),
    "a step of another length": (
        record(rgb=[float_feature([0.5] * 4), *[float_feature([0.5] * 3)] * 2]),
        "SCH004",
        "`rgb` should have exactly 4 values in each step",
        "found 3 values in step 1",
    ),
    "a list that the schema lacks": (
        record(audio=[int64_feature(1)]),
        "SCH005",
        "`audio` is not in the schema",
        "found a list of 1 step",
    ),
    "a number that is not finite": (
        record(rgb=[float_feature([0.5] * 4), *[float_feature([0.5, 1, float("nan"), 2])] * 2]),
        "SCH007",
        "`rgb` should be finite",
        "found nan, value 2 of 4; step 1",
    ),
    "text": (
        b"text",
        "SCH001",
        "the payload should be a tf.train.SequenceExample",
        "found 4 bytes: 74 65 78 74",
    ),
}


def test_records_that_keep_the_schema_have_no_findings() -> None:
    findings, measures = run([record(), record(frame=[bytes_feature(b"x")])], schema=SCHEMA)
    assert findings == []
    assert measures["schema.records"].text == "2 records checked"
    assert "schema.lists_not_judged" not in measures


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_problem_has_a_finding_with_its_place(case: str) -> None:
    payload, code, message, detail = PROBLEMS[case]
    findings, _ = run([record(), record(), payload], schema=SCHEMA)
    assert [(each.code, each.message, each.count) for each in findings] == [(code, message, 1)]
    (location,) = findings[0].locations
    assert (location.record, location.detail) == (2, detail)


def test_a_context_alone_lacks_its_lists() -> None:
    findings, _ = run([encode(CONTEXT)], schema=SCHEMA)
    assert [(each.code, each.message) for each in findings] == [
        ("SCH002", "`action` should be in every example"),
        ("SCH002", "`rgb` should be in every example"),
    ]


def test_domains_hold_for_each_step_and_what_is_not_judged_is_said() -> None:
    schema = """feature { name: "##SEQUENCE##" type: STRUCT struct_domain {
        feature { name: "a" type: INT int_domain { min: 0 max: 3 } presence { min_count: 2 } }
        feature { name: "b" type: BYTES string_domain { value: "x" }
          distribution_constraints { min_domain_mass: 0.5 } }
        feature { name: "c" type: INT unique_constraints { min: 1 max: 2 } } } }"""
    lists = {"a": [int64_feature(1), int64_feature(7)], "b": [bytes_feature(b"y")]}
    findings, measures = run([sequence({}, lists)], schema=schema)
    assert sorted((each.code, each.message) for each in findings) == [
        ("SCH002", "`a` should be in at least 2 of the examples of a split"),
        ("SCH006", "`a` should be a whole number from 0 to 3"),
    ]
    detail = next(each for each in findings if each.code == "SCH006").locations[0].detail
    assert detail is not None
    assert detail.endswith("step 1")
    assert measures["schema.lists_not_judged"].text == (
        "unchecked in lists: `unique_constraints`, `min_domain_mass` of `b` and `c`"
    )


def test_environments_choose_lists() -> None:
    schema = """default_environment: "TRAIN" default_environment: "SERVE"
        feature { name: "id" type: BYTES }
        feature { name: "##SEQUENCE##" type: STRUCT struct_domain {
          feature { name: "y" type: INT presence { min_fraction: 1 } not_in_environment: "SERVE" }
          feature { name: "x" type: INT presence { min_fraction: 1 } } } }"""
    records = {shard("serving"): [sequence({}, {"x": [int64_feature(1)]})]}
    assert [each.code for each in run(records, schema=schema)[0]] == ["SCH002"]
    options = {"environments": {"serving": "SERVE"}}
    assert run(records, schema=schema, options=options)[0] == []


def drafted(*payloads: bytes) -> str:
    """A draft of payloads in two shards."""
    sketches = PayloadSketch(), PayloadSketch()
    for number, payload in enumerate(payloads):
        sketches[number % 2].add(payload, payload_kind(payload), decode_or_none(payload))
    sketches[0].merge(sketches[1])
    return sketches[0].render("videos", PayloadKind.SEQUENCE_EXAMPLE)


def test_what_was_drafted_from_passes_its_draft() -> None:
    records = [
        record(),
        record(frame=[bytes_feature(b"x")]),
        record({**CONTEXT, "fps": float_feature(30)}, tokens=None, rgb=LISTS["rgb"] * 2),
    ]
    draft = drafted(*records)
    assert "# Drafted from 3 examples of videos.\n" in draft
    assert '# in 1 of 3 examples\n    feature {\n      name: "frame"' in draft
    findings, _ = run([*records, record(rgb=LISTS["rgb"][:1])], schema=draft)
    assert findings == []
    others = [
        record(rgb=[float_feature([0.5] * 3)] * 2),
        record(action=[int64_feature(0)] * 3),
        record(action=[float_feature(0)] * 2),
    ]
    assert [each.code for each in run(others, schema=draft)[0]] == ["SCH003", "SCH004", "SCH004"]


def test_a_draft_counts_records_without_lists() -> None:
    schema = parse_schema(drafted(record(), record(), encode(CONTEXT)))
    (struct,) = (each for each in schema.features if each.name == "##SEQUENCE##")
    assert not any(each.is_required for each in struct.domain.features)  # type: ignore[union-attr]


def test_names_that_draft_cannot_have_are_said() -> None:
    both = sequence({"x": int64_feature(1)}, {"x": [int64_feature(1)], "y": [], "z": []})
    draft = drafted(both)
    assert run([both], schema=draft)[0] == []
    assert "# Not checked, because a feature of the context has the same name." in draft
    assert "# in 1 of 1 example, never with a value, so its type is not known" in draft
