"""A sound source and a sound validator, and faulty ones, each with the test of the kit that finds
its fault.
"""

from __future__ import annotations

import itertools
import os
import random
import tempfile
import unittest
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tfrecreg.api import (
    Code,
    Example,
    Item,
    RawDataError,
    RawFile,
    RecordValidator,
    Severity,
    Skipped,
    Source,
    bytes_feature,
    int64_feature,
    safe,
)
from tfrecreg.testing import SourceTests, ValidatorTests

NOT001 = Code(
    code="NOT001",
    rule="no-text",
    severity=Severity.WARNING,
    summary="A note has no text",
    hint="write one",
    page="Notes without text teach nothing.",
)


@dataclass(frozen=True)
class NotesOptions:
    upper: bool = False
    """Whether texts are written in capitals."""


class Notes(Source):
    """A text file a note: the first line names one of two labels."""

    Options: ClassVar[type[Any]] = NotesOptions
    codes: ClassVar[Sequence[Code]] = (NOT001,)

    def raw_files(self) -> Iterator[RawFile]:
        found = [each for each in self.raw.list() if each.path.endswith(".txt")]
        if not found:
            raise RawDataError(f"`{safe(self.raw.root)}` has no `.txt` file", hint="add notes")
        for each in found:
            yield RawFile(each.path, each.size, each.size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {"label": ["bad", "good"]}

    def items(self) -> Iterator[Item | Skipped]:
        for file in self.raw_files():
            yield Item("train", file.path, file.stored)

    def example(self, item: Item) -> Example | Skipped:
        label, _, text = self.raw.read(item.key).partition(b"\n")
        if label not in (b"bad", b"good"):
            return Skipped(item.split, item.key, "SRC001", f"the label is {safe(repr(label))}")
        if not text:
            return Skipped(item.split, item.key, "NOT001", "nothing behind the label")
        return {
            "image/encoded": bytes_feature(label + b"\n" + text),
            "label": int64_feature(int(label == b"good")),
        }

    def schema(self) -> str:
        return """
            feature { name: "image/encoded" type: BYTES presence { min_fraction: 1 } shape {} }
            feature { name: "label" type: INT presence { min_fraction: 1 } shape {} }
        """

    def raw_path(self, split: str, key: str) -> str | None:
        return key


class Random(Notes):
    def example(self, item: Item) -> Example | Skipped:
        made = super().example(item)
        if isinstance(made, Skipped):
            return made
        return {**made, "label": int64_feature(random.randrange(1 << 40))}


class Counting(Notes):
    """Its examples depend on the calls before."""

    calls = 0

    def example(self, item: Item) -> Example | Skipped:
        made = super().example(item)
        self.calls += 1
        return made if isinstance(made, Skipped) else {**made, "n": int64_feature(self.calls)}


class ByHash(Notes):
    """Its examples depend on the hash seed of the process."""

    def example(self, item: Item) -> Example | Skipped:
        made = super().example(item)
        return made if isinstance(made, Skipped) else {**made, "h": int64_feature(hash(item.key))}


class ListedAtRandom(Notes):
    def items(self) -> Iterator[Item | Skipped]:
        for item in super().items():
            yield Item("train", item.key, random.randrange(1 << 40))


class SameKeys(Notes):
    def items(self) -> Iterator[Item | Skipped]:
        for item in super().items():
            yield Item("train", "key", item.size, item.key.encode())

    def example(self, item: Item) -> Example | Skipped:
        return super().example(item._replace(key=item.state.decode()))


class NotPicklable(Notes):
    def items(self) -> Iterator[Item | Skipped]:
        self.listed = (each for each in ())
        return super().items()


class OtherSchema(Notes):
    def schema(self) -> str:
        return 'feature { name: "label" type: BYTES presence { min_fraction: 1 } shape {} }'


class TooFewLabels(Notes):
    def labels(self) -> Mapping[str, Sequence[str]]:
        return {"label": ["bad"]}


class WrongSize(Notes):
    def raw_files(self) -> Iterator[RawFile]:
        return (each._replace(stored=each.stored + 1) for each in super().raw_files())


class OtherBytes(Notes):
    def raw_path(self, split: str, key: str) -> str | None:
        return "a.txt"


class KnowsItsPlace(Notes):
    def example(self, item: Item) -> Example | Skipped:
        made = super().example(item)
        if isinstance(made, Skipped):
            return made
        return {**made, "folder": bytes_feature(os.fsencode(self.raw.root))}


class PrintsNames(Notes):
    def example(self, item: Item) -> Example | Skipped:
        if not item.key.isprintable():
            return Skipped(item.split, item.key, "SRC001", f"{item.key} is a strange name")
        return super().example(item)


class Fragile(Notes):
    def example(self, item: Item) -> Example | Skipped:
        self.raw.read(item.key).decode("ascii")
        return super().example(item)


class Content(Notes):
    """It is content with an empty folder."""

    def raw_files(self) -> Iterator[RawFile]:
        return (RawFile(each.path, each.size, each.size) for each in self.raw.list())


class ByWorker(Notes):
    """What it writes tells in which process it is."""

    def example(self, item: Item) -> Example | Skipped:
        made = super().example(item)
        path = Path(tempfile.gettempdir()) / f"tfrecreg-kit-{os.getpid()}"
        return made if isinstance(made, Skipped) else {**made, "p": bytes_feature(str(path))}

    def schema(self) -> str:
        return f'{super().schema()} feature {{ name: "p" type: BYTES }}'


class UnknownCode(Notes):
    codes: ClassVar[Sequence[Code]] = ()


@dataclass(frozen=True)
class Silent:
    upper: bool = False


class SilentOptions(Notes):
    Options: ClassVar[type[Any]] = Silent


FAULTY_SOURCES: dict[type[Source], tuple[str, str]] = {
    Random: ("examples_are_repeatable", "the feature `label` is"),
    Counting: ("order_does_not_matter", "the feature `n` is"),
    ByHash: ("another_process", "the feature `h` is"),
    ListedAtRandom: ("listing_is_repeatable", "`items` differs"),
    SameKeys: ("items", "these keys are not unique"),
    NotPicklable: ("source_is_picklable", "cannot travel to a worker process"),
    OtherSchema: ("examples_fit_the_schema", "SCH003"),
    TooFewLabels: ("labels", "has the number 1 in `label`, and `labels` has 1 names"),
    WrongSize: ("raw_files", "`stored` of `a.txt` is"),
    OtherBytes: ("raw_paths", "is not the bytes of `a.txt`"),
    KnowsItsPlace: ("place_does_not_matter", "the feature `folder` is"),
    PrintsNames: ("strange_names", "has characters of the raw data"),
    Fragile: ("damaged_raw_data", "UnicodeDecodeError"),
    Content: ("empty_folder", "expected a RawDataError"),
    ByWorker: ("bytes_on_every_engine", "by one and by two processes"),
    UnknownCode: ("codes", "is not a code of a source"),
    SilentOptions: ("options_are_documented", "'upper'"),
}
"""Faulty sources: the test of the kit that finds each, and words of its message."""


def source_tests(kind: type[Source]) -> type[SourceTests]:
    """The tests of one of these sources."""

    class Tests(SourceTests):
        source = kind

        def write_raw(self, folder: Path) -> None:
            for name, label in zip("abcdef", itertools.cycle(("good", "bad"))):
                (folder / f"{name}.txt").write_text(f"{label}\nnote {name}")
            (folder / "empty.txt").write_text("good\n")

    return Tests


class Short(RecordValidator):
    """Finds empty texts."""

    name = "short"
    codes = (NOT001,)
    features = ("text",)

    def look(self, example: Example) -> str | None:
        text = example["text"].values[0] if example["text"].values else b"x"
        return None if text else "found no text"


class FindsAll(Short):
    def look(self, example: Example) -> str | None:
        return "found something"


class FindsNothing(Short):
    def look(self, example: Example) -> str | None:
        return None


class Fails(Short):
    features = ()

    def look(self, example: Example) -> str | None:
        return None if example["text"].values[0] else "found no text"


class Forgetful(Short):
    """It reports only the first text of a shard."""

    seen = False

    def look(self, example: Example) -> str | None:
        found, self.seen = None if self.seen else super().look(example), True
        return found


FAULTY_VALIDATORS: dict[type[RecordValidator], tuple[str, str]] = {
    FindsAll: ("good_records", "NOT001 A note has no text"),
    FindsNothing: ("bad_records", "not found in"),
    Fails: ("strange_records", "the check is incomplete"),
    Forgetful: ("any_shards", "in one shard and in three"),
}
"""Faulty validators: the test of the kit that finds each, and words of its message."""


def validator_tests(kind: type[RecordValidator]) -> type[ValidatorTests]:
    """The tests of one of these validators."""

    class Tests(ValidatorTests):
        validator = kind
        good: ClassVar = [{"text": "one"}, {"text": "two"}]
        bad: ClassVar = {"NOT001": [{"text": ""}, {"text": ""}]}

    return Tests


def failures(tests: type[unittest.TestCase], only: str = "") -> dict[str, str]:
    """The message of each test that fails, run by unittest; of those that are skipped, the reason.

    Args:
        only: the name of one test; empty for all.
    """
    loader = unittest.defaultTestLoader
    suite = (
        unittest.TestSuite([tests(f"test_{only}")]) if only else loader.loadTestsFromTestCase(tests)
    )
    assert suite.countTestCases()
    result = unittest.TestResult()
    suite.run(result)
    found = [*result.failures, *result.errors, *result.skipped]
    return {str(case).split(" ")[0].removeprefix("test_"): text for case, text in found}
