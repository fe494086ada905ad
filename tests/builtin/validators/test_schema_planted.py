"""Twenty violations of every kind, planted in a sound set: each is found where it lies, no more.

The set is checked through the library, as JSON and as text, by one process and by two.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path

import pytest
from check_support import framed

from tfrecreg.cli.main import main
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.example.model import Example, Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.values.findings import Severity

B, F, N = bytes_feature, float_feature, int64_feature
EACH = 20
SHARDS, RECORDS = 4, 500

SCHEMA = """
feature { name: "always" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "set" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "typed" type: INT }
feature { name: "empty_typed" type: BYTES }
feature { name: "scalar" type: INT shape {} }
feature { name: "matrix" type: FLOAT shape { dim { size: 2 } dim { size: 3 } } }
feature { name: "rows" type: INT shape { dim {} dim { size: 2 } } }
feature { name: "few" type: INT value_count { min: 1 max: 3 } }
feature { name: "range" type: INT int_domain { min: 0 max: 9 } }
feature { name: "wide" type: INT int_domain { max: 9223372036854775806 } }
feature { name: "number" type: BYTES int_domain { min: 0 } }
feature { name: "part" type: FLOAT float_domain { min: 0 max: 1 } }
feature { name: "decimal" type: BYTES float_domain { max: 1 } }
feature { name: "word" type: BYTES string_domain { value: "cat" value: "dog" } }
feature { name: "bit" type: INT bool_domain {} }
feature { name: "truth" type: BYTES bool_domain { true_value: "y" false_value: "n" } }
feature { name: "image" type: BYTES image_domain { max_image_byte_size: 100 } }
feature { name: "day" type: BYTES time_domain { string_format: "%Y-%m-%d" } }
feature { name: "finite" type: FLOAT float_domain { disallow_nan: true disallow_inf: true } }
feature { name: "warned" type: FLOAT }
feature { name: "i" type: INT }
feature { name: "j" type: INT }
feature { name: "v" type: FLOAT }
feature { name: "weight" type: FLOAT }
sparse_feature {
  name: "sparse" index_feature { name: "i" } index_feature { name: "j" }
  value_feature { name: "v" } dense_shape { dim { size: 4 } dim { size: 4 } } is_sorted: true
}
weighted_feature { name: "weighted" feature { step: "few" } weight_feature { step: "weight" } }
feature { name: "planned" lifecycle_stage: PLANNED }
"""


def sound(number: int) -> dict[str, Feature]:
    """A record that keeps the schema; every third has all that is optional, and in other forms."""
    record = {
        "always": N(number),
        "set": N(-number),
        "scalar": N(number * 7),
        "range": N(number % 10),
        "word": B([b"cat", b"dog"][number % 2]),
        "part": F(number % 5 / 4),
        "warned": F([number, -number]),
        "image": B(bytes(number % 100)),
    }
    if number % 3 == 0:
        record |= {
            "typed": N([]),
            "empty_typed": B([b"", b"x"]),
            "matrix": F(range(6)),
            "rows": N(range(number % 4 * 2)),
            "few": N([1, 2]),
            "weight": F([0.5, 0.5]),
            "wide": N(-(2**63)),
            "number": B(b"12"),
            "decimal": B(b"-1e3"),
            "bit": N([0, 1, 1]),
            "truth": B([b"y", b"n"]),
            "day": B(b"2024-02-29"),
            "finite": F([0.0, 1e38]),
            "i": N([0, 0, 3]),
            "j": N([0, 1, 0]),
            "v": F([1, 2, 3]),
            "planned": F(nan),
        }
    return record


@dataclass(frozen=True)
class Kind:
    """One way to break the schema: what is found, and how a record comes to have it."""

    code: str
    feature: str
    plant: Mapping[str, Feature | None] | bytes
    detail: str | None
    severity: Severity = Severity.ERROR


SPARSE: dict[str, Feature | None] = {"i": N([0, 1]), "j": N([0, 1]), "v": F([1, 2])}

KINDS = {
    "no example": Kind("SCH001", "", b"\xffgarbage", "found 8 bytes: ff 67 61 72 62 61 67 65"),
    "missing": Kind("SCH002", "always", {"always": None}, None),
    "without a kind": Kind(
        "SCH002", "set", {"set": unset_feature()}, "there, but its kind is not set"
    ),
    "another type": Kind("SCH003", "typed", {"typed": F(1)}, "found FLOAT"),
    "another type, empty": Kind("SCH003", "empty_typed", {"empty_typed": N([])}, "found INT"),
    "two for one": Kind("SCH004", "scalar", {"scalar": N([1, 2])}, "found 2 values"),
    "a value short": Kind("SCH004", "matrix", {"matrix": F(range(5))}, "found 5 values"),
    "half a row": Kind("SCH004", "rows", {"rows": N(range(5))}, "found 5 values"),
    "too many": Kind("SCH004", "few", {"few": N(range(4)), "weight": F([1] * 4)}, "found 4 values"),
    "a new one": Kind("SCH005", "nwe", {"nwe": N([1, 2])}, "found INT, 2 values"),
    "out of range": Kind("SCH006", "range", {"range": N([3, 10])}, "found 10, value 1 of 2"),
    "out of a wide range": Kind(
        "SCH006", "wide", {"wide": N(2**63 - 1)}, "found 9223372036854775807"
    ),
    "text that is no number": Kind("SCH006", "number", {"number": B(b"12a")}, "found `12a`"),
    "a part above one": Kind("SCH006", "part", {"part": F(1.5)}, "found 1.5"),
    "a decimal above one": Kind("SCH006", "decimal", {"decimal": B(b"1.5")}, "found 1.5"),
    "another word": Kind("SCH006", "word", {"word": B(b"Cat")}, "found `Cat`"),
    "neither 0 nor 1": Kind("SCH006", "bit", {"bit": N(2)}, "found 2"),
    "neither yes nor no": Kind("SCH006", "truth", {"truth": B(b"Y")}, "found `Y`"),
    "a large image": Kind(
        "SCH006", "image", {"image": B(bytes(101))}, "found an image of 101 bytes"
    ),
    "no day": Kind("SCH006", "day", {"day": B(b"2024-13-01")}, "found `2024-13-01`"),
    "NaN": Kind("SCH007", "finite", {"finite": F([0, nan])}, "found nan, value 1 of 2"),
    "infinite, and nobody said": Kind(
        "SCH007", "warned", {"warned": F(-inf)}, "found -inf", Severity.WARNING
    ),
    "a part missing": Kind(
        "SCH009", "sparse", {**SPARSE, "j": None}, "found 2 values in `i`, no `j`, 2 values in `v`"
    ),
    "a weight short": Kind(
        "SCH009",
        "weighted",
        {"few": N([1, 2]), "weight": F(1)},
        "found 2 values in `few`, 1 value in `weight`",
    ),
}

MORE = {
    "an index short": Kind(
        "SCH009",
        "sparse",
        {**SPARSE, "i": N(1)},
        "found 1 value in `i`, 2 values in `j`, 2 values in `v`",
    ),
    "an index too large": Kind(
        "SCH009", "sparse", {**SPARSE, "j": N([0, 4])}, "found 4, value 1 of 2"
    ),
    "indices out of order": Kind(
        "SCH009",
        "sparse",
        {**SPARSE, "i": N([1, 0])},
        "found (0, 1) after (1, 0), value 1",
    ),
}
"""Of one feature with another kind: they differ in their messages."""

ALL = KINDS | MORE

Place = tuple[str, int, int, str | None]
"""Shard, record, offset, detail."""


@dataclass(frozen=True)
class PlantedSet:
    schema: Path
    shards: Path
    places: dict[str, list[Place]]
    """By kind, in order of shard and record."""


def changed(record: Example, kind: Kind) -> bytes:
    if isinstance(kind.plant, bytes):
        return kind.plant
    after = {**record, **kind.plant}
    return encode({name: feature for name, feature in after.items() if feature is not None})


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedSet:
    folder = tmp_path_factory.mktemp("planted")
    chance = random.Random(20)
    spots = chance.sample(range(SHARDS * RECORDS), EACH * len(ALL))
    kinds = dict(zip(spots, (name for name in ALL for _ in range(EACH)), strict=True))
    places: dict[str, list[Place]] = {name: [] for name in ALL}
    for shard in range(SHARDS):
        name = f"train-{shard:05d}-of-{SHARDS:05d}.tfrecord"
        payloads = []
        offset = 0
        for record in range(RECORDS):
            number = shard * RECORDS + record
            payload = encode(sound(number))
            if number in kinds:
                kind = kinds[number]
                places[kind].append((name, record, offset, ALL[kind].detail))
                payload = changed(sound(number), ALL[kind])
            payloads.append(payload)
            offset += len(payload) + 16
        (folder / name).write_bytes(framed(*payloads))
    schema = folder / "schema.pbtxt"
    schema.write_text(SCHEMA)
    return PlantedSet(schema, folder, places)


def judged(planted: PlantedSet, found: list[tuple[str, str, str, int, list[Place]]]) -> None:
    """Hold findings (code, feature, severity, count, places) against what was planted."""
    wanted = sorted(
        (kind.code, kind.feature, kind.severity.value, EACH, planted.places[name])
        for name, kind in ALL.items()
    )
    # A shard is named by its path, as it was given.
    short = [
        (*head, [(Path(shard).name, *rest) for shard, *rest in places]) for *head, places in found
    ]
    assert sorted(short, key=repr) == sorted(wanted, key=repr)


@pytest.fixture
def arguments(planted: PlantedSet, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("TFRECREG_JOBS", "1")
    monkeypatch.delenv("COLUMNS", raising=False)
    files = str(planted.shards / "*.tfrecord")
    return ["check", files, "--only", "schema", "--schema", str(planted.schema)]


def test_the_json_names_each_at_its_record_and_nothing_else(
    planted: PlantedSet, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    found = []
    for finding in document["findings"]:
        places = [
            (each["shard"], each["record"], each["offset"], each.get("detail"))
            for each in finding["locations"]
        ]
        feature = finding["locations"][0].get("feature", "")
        found.append((finding["code"], feature, finding["severity"], finding["count"], places))
    judged(planted, found)


def test_the_set_is_sound_but_for_what_was_planted(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed(*(encode(sound(n)) for n in range(300))))
    schema = tmp_path / "schema.pbtxt"
    schema.write_text(SCHEMA)
    options = CheckOptions(only=("schema",), schema=str(schema))
    (report,) = check([str(tmp_path / "a.tfrecord")], options=options)
    assert report.findings == ()
    assert report.status == "pass"


@pytest.mark.parametrize(
    ("code", "place", "rule", "broken", "kept"),
    [
        ("SCH008", 'name: "word" type: BYTES', "unique_constraints { min: %d }", 3, 2),
        ("SCH008", 'name: "range" type: INT', "unique_constraints { max: %d }", 9, 10),
        ("SCH002", 'name: "bit" type: INT', "presence { min_fraction: 0.%d }", 34, 33),
        ("SCH002", 'name: "bit" type: INT', "presence { min_count: %d }", 101, 100),
        ("SCH010", "", "dataset_constraints { min_examples_count: %d }", 301, 300),
        ("SCH010", "", "dataset_constraints { max_examples_count: %d }", 299, 300),
    ],
)
def test_what_only_the_whole_set_breaks_is_found_alone(
    tmp_path: Path, code: str, place: str, rule: str, broken: int, kept: int
) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed(*(encode(sound(n)) for n in range(300))))
    schema = tmp_path / "schema.pbtxt"
    options = CheckOptions(only=("schema",), schema=str(schema))
    for bound, wanted in ((broken, [(code, 1)]), (kept, [])):
        added = f"{place} {rule % bound} "
        schema.write_text(SCHEMA.replace(place, added) if place else SCHEMA + added)
        (report,) = check([str(tmp_path / "a.tfrecord")], options=options)
        assert [(finding.code, finding.count) for finding in report.findings] == wanted
