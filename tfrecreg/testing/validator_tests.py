"""The tests that every validator should pass."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import tfrecreg
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.registry.find import bare_files, find_target, target_of
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.findings import Code
from tfrecreg.testing.kit import (
    GivenRecords,
    KitTests,
    Workers,
    build_examples,
    checked,
    write_shard,
)

_STRANGE: Sequence[Mapping[str, Any]] = (
    {},
    {"\x1b[31m\n": b"\x00\xff", "": 1},
    {"日本語": [1.5, float("nan"), float("inf")]},
)
"""A validator must not fail on these records."""


class ValidatorTests(KitTests):
    """Inherit from this class, set `validator`, `good` and `bad`, and run pytest or unittest::

        class TestBlanks(ValidatorTests):
            validator = "blanks"
            good = [{"text": "Never again"}]
            bad = {"TXT002": [{"text": " Never again"}]}

    Each method `verify_…` becomes a test. To replace a test that does not suit a validator, define
    a method with the same name.
    """

    _record = ValidatorRecord
    validator: ClassVar[str | type[Validator]]
    """The name of an installed validator, or a class."""
    good: ClassVar[GivenRecords] = ()
    """Records without findings: dictionaries from feature name to value."""
    bad: ClassVar[Mapping[str, GivenRecords]] = {}
    """For each code of the validator, records for which the validator reports this code."""
    limits: ClassVar[Mapping[str, Any]] = {}
    """Options of the validator, as in ``limits.NAME`` of a gate."""
    labels: ClassVar[Mapping[str, Sequence[str]]] = {}
    """For each feature with labels, its class names in the order of their numbers."""

    def check(self, target: Target, **more: Any) -> Report:
        """Return the report on a target. Fail the test if the validator fails."""
        try:
            report = checked(target, self.announced.qualified, **{"limits": self.limits, **more})
        except TfrecregError as error:
            self.refuse(error)
        self.assertFalse(report.errors, "the check is incomplete")
        return report

    def bare(self, records: GivenRecords, *, shards: int = 1) -> Target:
        """Write records into bare shards, and return them as a target."""
        folder = self.scratch()
        for number in range(shards):
            path = folder / f"kit.tfrecord-{number:05}-of-{shards:05}"
            write_shard(path, records[number::shards])
        return target_of(bare_files([str(folder / "kit.tfrecord-*")]))

    def built(self, records: GivenRecords) -> Target:
        """Build records with a manifest, keys, labels and a schema, and return them as a target."""
        return find_target(
            build_examples(self.scratch(), {"train": records}, labels=self.labels or None)
        )

    @property
    def everything(self) -> list[Mapping[str, Any]]:
        """All records, good and bad."""
        return [*self.good, *(each for records in self.bad.values() for each in records)]

    # The tests

    def verify_good_records(self) -> None:
        """The validator runs on shards or on a build, and finds nothing in good records."""
        self.assertTrue(self.good, f"{type(self).__name__} has no `good` records")
        reports = [self.check(self.bare(self.good)), self.check(self.built(self.good))]
        ran = [each for each in reports if self.announced.name in each.validators]
        if not ran:
            self.fail(f"the validator did not run: {reports[0].skipped} and {reports[1].skipped}")
        for each in ran:
            self.assertFalse([f"{found.code} {found.message}" for found in each.findings])

    def verify_bad_records(self) -> None:
        """Each code of the validator has bad records, for which the validator reports this code."""
        own = [code.code for code in self.announced.record.codes]
        silent = [code for code in own if code not in self.bad]
        self.assertFalse(silent, "`bad` has no records for these codes")
        for code, records in self.bad.items():
            self.assertIn(code, own, "`bad` names a code that the validator's record does not have")
            found = {each.code for each in self._run(records).findings}
            self.assertIn(code, found, f"not found in {records}")

    def verify_codes(self) -> None:
        """Each code of the validator has its texts, and no finding has another code."""
        own: Sequence[Code] = self.announced.record.codes
        for code in own:
            for what in ("rule", "summary", "hint", *(("page",) * (code.code not in CORE_CODES))):
                self.assertTrue(getattr(code, what), f"the code {code.code} has no `{what}`")
        names = {code.code for code in own}
        used = {each.code for each in self._run(self.everything).findings}
        self.assertFalse(used - names, "these codes are not in the `ValidatorRecord`")

    def verify_words_are_printable(self) -> None:
        """Messages, details and measures are printable as they are."""
        report = self._run([*self.everything, *_STRANGE])
        texts = [each.text for each in report.measures]
        for found in report.findings:
            texts += [found.message, found.hint]
            texts += [place.detail for place in found.locations if place.detail]
        for text in texts:
            self.assertTrue(
                text.isprintable(), f"{text!r} has characters that `safe` has to escape"
            )

    def verify_any_shards(self) -> None:
        """Records have the same findings in one shard and in three. Only the places may differ."""
        one, three = (self.check(self.bare(self.everything, shards=n)) for n in (1, 3))
        self.assertEqual(_counts(one), _counts(three), "in one shard and in three")

    def verify_any_engine(self) -> None:
        """Worker processes find what this process finds."""
        target = self.bare(self.everything, shards=3)
        here, there = self.check(target), self.check(target, engine=Workers(2))
        self.assertEqual(_places(here), _places(there), "in this process and in two workers")
        self.assertEqual(here.measures, there.measures)

    def verify_cached_results(self) -> None:
        """`check --cached` reports the same findings as a check that reads the records."""
        folder = self.scratch()
        target = self.bare(self.everything, shards=2)
        for shard in target.shards:  # a file that changed just now is not cached
            path = Path(shard.storage.root, shard.path)
            os.utime(path, (time.time() - 60, time.time() - 60))
        cache = ScanCache(LocalStorage(os.fspath(folder)), "checks", reuse=True)
        first = self.check(target, cache=cache)
        second = self.check(target, cache=cache)
        if not second.cached:
            self.skipTest("the results cannot be cached: see `part_codec` in the documentation")
        self.assertEqual(_places(first), _places(second), "read and from the cache")
        self.assertEqual(first.measures, second.measures)

    def verify_strange_records(self) -> None:
        """The validator does not fail on records without features, on strange features, or on
        payloads that are not examples.
        """
        self.check(self.bare(()))
        self.check(self.bare(_STRANGE))
        path = self.scratch() / "strange.tfrecord"
        with tfrecreg.TFRecordWriter(path) as file:
            for each in (b"", b"\xff" * 40, b"no example"):
                file.write(each)
            file.write({"a": 1})
        self.check(find_target(path))

    def verify_damaged_shards(self) -> None:
        """The validator does not fail on a shard that ends early, or that has a wrong checksum."""
        target = self.bare(self.everything)
        (shard,) = target.shards
        path = Path(shard.storage.root, shard.path)
        whole = path.read_bytes()
        for data in (whole[:-3], whole[:12] + bytes([whole[12] ^ 1]) + whole[13:]):
            path.write_bytes(data)
            self.check(target)

    def verify_options(self) -> None:
        """Each option is documented, and an unknown option is refused."""
        found = plugins().describe(self.announced)
        silent = [each.name for each in found if not each.help]
        self.assertFalse(silent, "these options have no docstring below them")
        given = {**self.limits, "no_such_option": 1}
        try:
            report = checked(self.bare(self.good), self.announced.qualified, limits=given)
        except UsageError:
            return
        if self.announced.name in report.validators:
            self.fail("the unknown option `no_such_option` is accepted: declare `Options`")

    # How they compare

    def _run(self, records: GivenRecords) -> Report:
        """Return the report on bare shards, or on a build if the validator skips bare shards."""
        report = self.check(self.bare(records))
        if self.announced.name in report.validators:
            return report
        return self.check(self.built(records))


def _counts(report: Report) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for each in report.findings:
        counts[each.code, each.message] += each.count
    return counts


def _places(report: Report) -> list[Any]:
    return [(each.code, each.message, each.count, each.locations) for each in report.findings]
