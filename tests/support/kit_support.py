"""A sound source and a sound validator, and faulty ones."""

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

PAGE = "Notes without text teach nothing."
NOT001 = Code("NOT001", "no-text", Severity.WARNING, "A note has no text", "write one", PAGE)


class Notes(Source):
    """A text file a note: the first line names one of two labels."""

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


@dataclass(frozen=True)
class Fault:
    fault: str = ""
    """The test of the kit that finds it."""


class Faulty(Notes):
    """Has the fault that its option names."""

    Options: ClassVar[type[Any]] = Fault
    calls = 0

    def raw_files(self) -> Iterator[RawFile]:
        if self.options.fault == "empty_folder":
            return (RawFile(each.path, each.size, each.size) for each in self.raw.list())
        more = self.options.fault == "raw_files"
        return (each._replace(stored=each.stored + more) for each in super().raw_files())

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {"label": ["bad"]} if self.options.fault == "labels" else super().labels()

    def items(self) -> Iterator[Item | Skipped]:
        if self.options.fault == "source_is_picklable":
            self.listed = (each for each in ())
        for item in super().items():
            if self.options.fault == "listing_is_repeatable":
                yield item._replace(size=random.randrange(1 << 40))
            elif self.options.fault == "items":
                yield item._replace(key="key", state=item.key.encode())
            else:
                yield item

    def example(self, item: Item) -> Example | Skipped:
        fault = self.options.fault
        if fault == "items":
            item = item._replace(key=item.state.decode())
        if fault == "damaged_raw_data":
            self.raw.read(item.key).decode("ascii")
        if fault == "strange_names" and not item.key.isprintable():
            return Skipped(item.split, item.key, "SRC001", f"{item.key} is a strange name")
        made = super().example(item)
        self.calls += 1
        worker = f"{tempfile.gettempdir()}/tfrecreg-kit-{os.getpid()}"
        more = {
            "examples_are_repeatable": int64_feature(self.calls),
            "another_process": int64_feature(hash(item.key)),
            "place_does_not_matter": bytes_feature(os.fsencode(self.raw.root)),
            "bytes_on_every_engine": bytes_feature(worker.encode()),
        }
        if isinstance(made, Skipped) or fault not in more:
            return made
        return {**made, "n": more[fault]}

    def schema(self) -> str:
        if self.options.fault == "examples_fit_the_schema":
            return 'feature { name: "label" type: BYTES presence { min_fraction: 1 } shape {} }'
        more = 'feature { name: "n" type: BYTES }'
        return super().schema() + more * (self.options.fault == "bytes_on_every_engine")

    def raw_path(self, split: str, key: str) -> str | None:
        return "a.txt" if self.options.fault == "raw_paths" else key


class UnknownCode(Notes):
    codes: ClassVar[Sequence[Code]] = ()


@dataclass(frozen=True)
class Silent:
    upper: bool = False


class SilentOptions(Notes):
    Options: ClassVar[type[Any]] = Silent


FAULTS: dict[str, tuple[type[Source], str]] = {
    "examples_are_repeatable": (Faulty, "differs, made "),
    "another_process": (Faulty, "differs, made "),
    "place_does_not_matter": (Faulty, "differs, made "),
    "bytes_on_every_engine": (Faulty, "with one process and with two"),
    "listing_is_repeatable": (Faulty, "`items` differs"),
    "items": (Faulty, "these keys are not unique"),
    "source_is_picklable": (Faulty, "cannot be sent to a worker process"),
    "examples_fit_the_schema": (Faulty, "SCH003"),
    "labels": (
        Faulty,
        "has the number 1 in `label`, but `labels` names only 1 of this feature's classes",
    ),
    "raw_files": (Faulty, "`stored` of `a.txt`"),
    "raw_paths": (Faulty, "differs from the bytes of `a.txt`"),
    "strange_names": (Faulty, "has characters that `safe` has to escape"),
    "damaged_raw_data": (Faulty, "UnicodeDecodeError"),
    "empty_folder": (Faulty, "expected a RawDataError"),
    "codes": (UnknownCode, "is not a code of a source"),
    "options_are_documented": (SilentOptions, "'upper'"),
}
"""By the test of the kit that finds it: who has the fault, and words of the message."""


def write_raw(tests: SourceTests, folder: Path) -> None:
    for name, label in zip("abcdef", itertools.cycle(("good", "bad"))):
        (folder / f"{name}.txt").write_text(f"{label}\nnote {name}")
    (folder / "empty.txt").write_text("good\n")


def source_tests(kind: type[Source], **options: str) -> Any:
    given = {"source": kind, "options": options, "write_raw": write_raw}
    return type("Tests", (SourceTests,), given)


class Short(RecordValidator):
    name = "short"
    codes = (NOT001,)
    features = ("text",)

    def look(self, example: Example) -> str | None:
        text = example["text"].values[0] if example["text"].values else b"x"
        return None if text else "found no text"


class FindsAll(Short):
    found_by = "good_records", "NOT001 A note has no text"

    def look(self, example: Example) -> str | None:
        return "found something"


class FindsNothing(Short):
    found_by = "bad_records", "not found in"

    def look(self, example: Example) -> str | None:
        return None


class Fails(Short):
    found_by = "strange_records", "the check is incomplete"
    features = ()

    def look(self, example: Example) -> str | None:
        return None if example["text"].values[0] else "found no text"


class Forgetful(Short):
    found_by = "any_shards", "in one shard and in three"
    seen = False

    def look(self, example: Example) -> str | None:
        found, self.seen = None if self.seen else super().look(example), True
        return found


def validator_tests(kind: type[RecordValidator]) -> Any:
    records = {"good": [{"text": "one"}, {"text": "two"}], "bad": {"NOT001": [{"text": ""}] * 2}}
    return type("Tests", (ValidatorTests,), {"validator": kind, **records})


def failures(tests: type[unittest.TestCase], only: str = "") -> dict[str, str]:
    """The messages of tests that fail, and the reasons of those that are skipped; of tests whose
    names begin with `only`.
    """
    loader = unittest.TestLoader()
    loader.testMethodPrefix = f"test_{only}"
    result = unittest.TestResult()
    loader.loadTestsFromTestCase(tests).run(result)
    assert result.testsRun
    found = [*result.failures, *result.errors, *result.skipped]
    return {str(case).split(" ")[0].removeprefix("test_"): text for case, text in found}
