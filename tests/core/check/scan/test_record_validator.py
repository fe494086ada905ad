"""Validators of single records: what they say of it becomes findings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from scan_support import ODD, files

from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.scan.record_validator import RecordCount, RecordProblem, RecordValidator
from tfrecreg.core.check.scan.run import ScanResult, run_scan
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code, Severity
from tfrecreg.core.workers.local import LocalEngine

EVEN = Code("ODD002", "even-record", Severity.WARNING, "a record is even", "make it odd", "A page.")


@dataclass(frozen=True)
class Options:
    least: int = 0
    share: float = 0.5
    note: str = ""


class Odd(RecordValidator):
    name = "odd"
    codes = (ODD,)
    features = ("number",)
    Options = Options

    def look(self, example: Any) -> Any:
        number = example["number"].values[0]
        return f"found {number}{self.options.note}" if number % 2 else None


class Both(Odd):
    name = "both"
    codes = (ODD, EVEN)

    def look(self, example: Any) -> Any:
        number = example["number"].values[0]
        yield RecordProblem(f"found {number}", ODD if number % 2 else EVEN, message="an integer")
        if number == 2:
            yield RecordProblem("two", EVEN, feature="pair")


class Counting(Odd):
    """Measures of its own beside problems."""

    name = "counting"

    def look(self, example: Any) -> Any:
        number = example["number"].values[0]
        yield RecordCount("sum_of_all", number)
        if number % 2:
            yield RecordCount("odd_ones")
            yield "odd"


class Returning(Odd):
    """Returns what its option `note` says."""

    def look(self, example: Any) -> Any:
        return eval(self.options.note)


def numbers(folder: Path, *shards: list[int]) -> Target:
    streams = (
        b"".join(framed(encode({"number": int64_feature(each)})) for each in shard)
        for shard in shards
    )
    return files(folder, *streams)


def scan(target: Target, validator: RecordValidator, jobs: int = 1, **options: Any) -> ScanResult:
    engine = LocalEngine(jobs)
    return run_scan(target, [validator], engine, options={validator.name: options})


@pytest.mark.medium
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_text_is_the_detail_of_a_location(tmp_path: Path, jobs: int) -> None:
    result = scan(numbers(tmp_path, [1, 2], [3, 4, 5]), Odd(), jobs, note="!")
    assert result.complete
    (finding,) = result.findings
    assert (finding.code, finding.message, finding.count) == ("ODD001", "a record is odd", 3)
    places = [(each.shard, each.record, each.detail) for each in finding.locations]
    assert places == [
        ("0.tfrecord", 0, "found 1!"),
        ("1.tfrecord", 0, "found 3!"),
        ("1.tfrecord", 2, "found 5!"),
    ]
    assert {each.feature for each in finding.locations} == {"number"}
    assert finding.locations[2].offset == 2 * finding.locations[2].length + 32
    assert [(each.name, each.value) for each in result.measures] == [("odd.records", 5)]


def test_several_problems_of_a_record_have_codes_messages_and_features(tmp_path: Path) -> None:
    result = scan(numbers(tmp_path, [1, 2]), Both())
    found = {(each.code, each.message, each.locations[0].feature) for each in result.findings}
    assert found == {
        ("ODD001", "an integer", "number"),
        ("ODD002", "an integer", "number"),
        ("ODD002", "a record is even", "pair"),
    }


def test_records_without_the_features_and_what_is_no_example_are_passed_over(
    tmp_path: Path,
) -> None:
    other = framed(encode({"text": bytes_feature("a")})) + framed(b"\xff\xff")
    result = scan(files(tmp_path, other), Odd())
    assert result.complete
    assert (result.findings, result.measures[0].value) == ([], 0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lest": 1}, "`limits.odd.lest` is not known; did you mean `least`?"),
        ({"least": "1"}, "`limits.odd.least` should be a whole number, found `1`"),
        ({"least": True}, "`limits.odd.least` should be a whole number, found `true`"),
        ({"share": "x"}, "`limits.odd.share` should be a number, found `x`"),
    ],
)
def test_options_are_those_that_it_declares(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        scan(numbers(tmp_path, [1]), Odd(), **options)
    assert caught.value.message == f"`tfrecreg.toml`: {told}"


@pytest.mark.parametrize("text", ["7", "[7]", "[b'a']"])
def test_an_answer_of_another_type_costs_the_verdict(tmp_path: Path, text: str) -> None:
    result = scan(numbers(tmp_path, [1]), Returning(), note=text)
    assert [crash.plugin_id.name for crash in result.crashes] == ["odd"]


@pytest.mark.medium
@pytest.mark.parametrize("jobs", [1, 2])
def test_counts_of_records_become_measures(tmp_path: Path, jobs: int) -> None:
    target = numbers(tmp_path, [1, 2], [3, 40, 1_000_000], [])
    result = scan(target, Counting(), jobs)
    assert [(each.name, each.value, each.text) for each in result.measures] == [
        ("counting.records", 5, "5 records looked at"),
        ("counting.odd_ones", 2, "2 odd ones"),
        ("counting.sum_of_all", 1_000_046, "1000046 sum of all"),
    ]
    assert [each.count for each in result.findings] == [2]


@pytest.mark.parametrize(("features", "applies"), [(("number",), True), (("text",), False)])
def test_it_applies_to_datasets_that_have_its_features(
    tmp_path: Path, features: tuple[str, ...], applies: bool
) -> None:
    class Manifest:
        pass

    manifest: Any = Manifest()
    manifest.features = dict.fromkeys(features)
    target = numbers(tmp_path, [1])
    assert Odd().applies(target) is None
    told = Odd().applies(files(tmp_path, manifest=manifest))
    assert told == (None if applies else "there is no feature `number`")
