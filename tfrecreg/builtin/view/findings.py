"""The findings of a target as cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from tfrecreg.builtin.view.background import Counted
from tfrecreg.builtin.view.shards import ViewedShards
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report, location_lines
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.target import check_target
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.local import LocalEngine

CHECKED_BYTES = 4 << 30
"""Maximum size of a target that is checked when it is opened."""
_SHOWN = 20


class Findings:
    """The report of a target, made in the background. Safe for threads."""

    def __init__(self, target: Target, shards: ViewedShards, jobs: int) -> None:
        self._target = target
        self._shards = shards
        self._jobs = jobs
        self._report: Report | None = None
        self._progress = Counted()
        self._about: dict[tuple[str, int], list[Finding]] = {}
        self.codes: dict[str, int] = {}
        """Number of places per code."""
        self.state: Literal["checking", "ready", "none"] = "checking"
        self.why = ""
        """The reason why there is no report, as escaped text."""
        size = sum(each.size for each in shards.shards)
        if size > CHECKED_BYTES:
            self.state = "none"
            self.why = f"large targets are not checked here: use `tfrecreg check {target.name}`"
        elif any(each.shard and not each.shard.storage.local_path() for each in shards.shards):
            self.state = "none"
            self.why = "a target behind a URL is not checked automatically"

    def stop(self) -> None:
        self._progress.stopping.set()

    def make(self) -> None:
        if self.state != "checking":
            return
        home = self._target.home
        config = Registry(home).config if home is not None else Config()
        options = CheckOptions(fail_on="never")
        engine = LocalEngine(self._jobs)
        try:
            report = check_target(
                self._target, config, options, engine=engine, progress=self._progress
            )
        except Exception as error:  # the viewer goes on without a report, and shows the reason
            told = error.message if isinstance(error, TfrecregError) else repr(error)
            self.why, self.state = safe(told, limit=300), "none"
            return
        codes: Counter[str] = Counter()
        for finding in report.findings:
            codes[finding.code] += finding.count
            for place in finding.locations:
                if place.shard is not None and place.record is not None:
                    self._about.setdefault((place.shard, place.record), []).append(finding)
        self._report, self.codes = report, dict(codes)
        self.state = "ready"

    def codes_of(self, shard: str, record: int) -> list[str]:
        return list(dict.fromkeys(each.code for each in self._about.get((shard, record), ())))

    def about(self, shard: str, record: int) -> list[dict[str, str]]:
        return [
            {
                "code": each.code,
                "severity": each.severity.value,
                "message": safe(each.message, limit=1000),
                "hint": safe(each.hint, limit=1000),
            }
            for each in self._about.get((shard, record), ())
        ]

    def records(self, codes: Iterable[str]) -> list[int]:
        """The sorted numbers of the records in which findings with these codes are located."""
        wanted = set(codes)
        found = set()
        for (shard, record), findings in self._about.items():
            seen = self._shards.named.get(shard)
            is_meant = any(each.code in wanted for each in findings)
            if is_meant and seen is not None and record < seen.records:
                found.add(self._shards.number(seen.number, record))
        return sorted(found)

    def note(self, codes: Iterable[str]) -> str:
        """A note if findings with these codes do not list all of their places; otherwise empty."""
        wanted, every = set(codes), self._report.findings if self._report is not None else ()
        found = [each for each in every if each.code in wanted and each.locations]
        named, total = sum(len(each.locations) for each in found), sum(each.count for each in found)
        return f"the findings list {named:,} of {total:,} places" if named < total else ""

    def to_json(self) -> dict[str, Any]:
        records = len(self._shards)
        report = self._report
        done = records if self.state == "ready" else min(self._progress.done, records)
        return {
            "state": self.state,
            "done": done,
            "of": records,
            "why": self.why,
            "cards": [self._card(each) for each in report.findings] if report is not None else [],
        }

    def _card(self, finding: Finding) -> dict[str, Any]:
        numbers = {each.name: each.number for each in self._shards.shards}
        places = finding.locations[:_SHOWN]
        told = tuple(
            each
            for each in places
            if each.detail or each.record is None or each.shard not in numbers
        )
        records = [
            {"shard": numbers[place.shard], "record": place.record}
            for place in places
            if place.shard in numbers and place.record is not None
        ]
        return {
            "code": finding.code,
            "severity": finding.severity.value,
            "rule": finding.rule,
            "message": safe(finding.message, limit=1000),
            "hint": safe(finding.hint, limit=1000),
            "count": finding.count,
            "named": len(places),
            "records": records,
            "places": list(
                location_lines(replace(finding, locations=told, count=len(told)), _SHOWN)
            ),
        }
