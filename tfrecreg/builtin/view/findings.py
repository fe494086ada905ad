"""The findings of a target as cards, and its damaged shards as strips."""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from tfrecreg.builtin.salvage.shard import salvage_shard
from tfrecreg.builtin.view.background import Child, Counted
from tfrecreg.builtin.view.shards import ViewedShard, ViewedShards
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report, location_lines
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.target import check_target
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.local import LocalEngine

CHECKED_BYTES = 4 << 30
"""Size of a target up to which it is checked when it is opened."""
_SALVAGED_BYTES = 256 << 20
"""Size of a damaged shard up to which it is found out what `salvage` keeps of it."""
_STRIPS = 50
_RANGES = 500
_SHOWN = 20
_OTHER = re.compile(r"record (\d{1,18}) of ")
_FAMILY_OF_BYTES = "CRC"


class Findings:
    """The report of a target, made in the background. Safe for threads."""

    def __init__(self, target: Target, shards: ViewedShards, jobs: int) -> None:
        self._target = target
        self._shards = shards
        self._jobs = jobs
        self._report: Report | None = None
        self._child = Child()
        self._done = 0
        self._about: dict[tuple[str, int], list[Finding]] = {}
        self.codes: dict[str, int] = {}
        """Number of places by code."""
        self.state: Literal["checking", "ready", "none"] = "checking"
        self.why = ""
        """Why there is none; escaped."""
        self._strips: list[dict[str, Any]] = []
        size = sum(each.size for each in shards.shards)
        if size > CHECKED_BYTES:
            self.state = "none"
            self.why = f"`tfrecreg check {target.name}` reads all of it"
        elif any(each.shard and not each.shard.storage.is_local for each in shards.shards):
            self.state = "none"
            self.why = "a target behind a URL is not read as a whole"

    def stop(self) -> None:
        self._child.close()

    def make(self) -> None:
        if self.state != "checking":
            return
        try:
            report: Report = self._child.call(
                check_report, self._target, self._jobs, report=partial(setattr, self, "_done")
            )
            strips = self._made_strips(report)
        except TfrecregError as error:
            self.why, self.state = error.message, "none"
            return
        finally:
            self._child.close()
        codes: Counter[str] = Counter()
        for finding in report.findings:
            codes[finding.code] += finding.count
            for place in finding.locations:
                if place.shard is not None and place.record is not None:
                    self._about.setdefault((place.shard, place.record), []).append(finding)
        self._report, self._strips, self.codes = report, strips, dict(codes)
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
        """Numbers of the records that findings with these codes name, in order."""
        wanted = set(codes)
        found = set()
        for (shard, record), findings in self._about.items():
            seen = self._shards.named.get(shard)
            is_meant = any(each.code in wanted for each in findings)
            if is_meant and seen is not None and record < seen.records:
                found.add(self._shards.number(seen.number, record))
        return sorted(found)

    def note(self, codes: Iterable[str]) -> str:
        """Of how many places of findings with these codes the records are known; empty for all."""
        found = [each for each in self.findings(codes) if each.locations]
        named, every = sum(len(each.locations) for each in found), sum(each.count for each in found)
        return f"findings name {named:,} of {every:,} places" if named < every else ""

    def findings(self, codes: Iterable[str]) -> list[Finding]:
        wanted = set(codes)
        every = self._report.findings if self._report is not None else ()
        return [each for each in every if each.code in wanted]

    def to_json(self) -> dict[str, Any]:
        records = len(self._shards)
        report = self._report
        done = records if self.state == "ready" else min(self._done, records)
        return {
            "state": self.state,
            "done": done,
            "of": records,
            "why": self.why,
            "cards": [self._card(each) for each in report.findings] if report is not None else [],
            "strips": self._strips,
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
            "pairs": _pairs(finding, numbers, {safe(each): numbers[each] for each in numbers}),
        }

    def _made_strips(self, report: Report) -> list[dict[str, Any]]:
        damaged = {
            place.shard
            for finding in report.findings
            if finding.code.startswith(_FAMILY_OF_BYTES)
            for place in finding.locations
        }
        shards = self._shards.shards
        some = [each for each in shards if each.name in damaged or each.state != "ok"]
        return [_strip(each) for each in some[:_STRIPS]]


def check_report(report: Callable[[int], None], target: Target, jobs: int) -> Report:
    """The report of a check, in a child."""

    class Told(Counted):
        def advance(self, records: int, size: int) -> None:
            super().advance(records, size)
            report(self.done)

    home = target.home
    config = Registry(home).config if home is not None else Config()
    options = CheckOptions(fail_on="never")
    return check_target(target, config, options, engine=LocalEngine(jobs), progress=Told())


def _pairs(
    finding: Finding, shards: dict[str, int], named: dict[str, int]
) -> list[list[dict[str, Any]]]:
    """The records of a finding beside those that they are compared with, which its places name."""
    found = []
    for place in finding.locations[:_SHOWN]:
        match = _OTHER.search(place.detail or "")
        if match is None or place.record is None or place.shard not in shards:
            continue
        # A name may have any characters: the longest that fits is the one.
        fits = [name for name in named if (place.detail or "").startswith(name, match.end())]
        if fits:
            other = {"shard": named[max(fits, key=len)], "record": int(match[1])}
            found.append([{"shard": shards[place.shard], "record": place.record}, other])
    return found


def _strip(seen: ViewedShard) -> dict[str, Any]:
    strip: dict[str, Any] = {
        "shard": seen.number,
        "name": safe(seen.name, limit=1000),
        "bytes": seen.size,
        "damage": [],
        "doubted": [],
        "doubtful": 0,
        "kept": [],
    }
    if seen.shard is None or seen.state == "gone":
        why = {"from": 0, "to": seen.size, "code": "SHD001", "text": seen.why}
        return {**strip, "damage": [why]}
    if seen.size > _SALVAGED_BYTES:
        return strip
    name = posixpath.basename(seen.shard.path)
    with tempfile.TemporaryDirectory(prefix="tfrecreg-view-") as folder:
        result = salvage_shard(seen.shard, name, LocalStorage(folder))
    if result.original is None or result.status in ("refused", "unreadable"):
        why = {"from": 0, "to": seen.size, "code": "CRC008", "text": safe(result.reason)}
        return {**strip, "damage": [why]}
    end = max([seen.size, *(each.offset + each.length for each in result.cuts)])
    kept, start = [], 0
    for cut in result.cuts[:_RANGES]:
        range_ = {"from": cut.offset, "to": cut.offset + cut.length}
        if cut.what == "doubtful records":
            strip["doubted"].append(range_)
        else:
            strip["damage"].append(
                {**range_, "code": cut.code, "text": safe(cut.detail, limit=500)}
            )
        if cut.what == "header":
            continue  # its record is kept
        if cut.offset > start:
            kept.append({"from": start, "to": cut.offset})
        start = max(start, cut.offset + cut.length)
    if start < end:
        kept.append({"from": start, "to": end})
    return {**strip, "bytes": end, "kept": kept, "doubtful": result.doubtful}
