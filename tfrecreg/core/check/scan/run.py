"""Scans all shards of a target with an engine.

:func:`scan_shard`, in the workers, reads the bytes of one shard once. Each visitor makes one part.
:func:`run_scan`, in the parent, gets the parts in shard order and makes the findings.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from tfrecreg.core.check.scan.cache import ScanCache, key_of
from tfrecreg.core.check.scan.indexes import index_hints
from tfrecreg.core.check.scan.interface import (
    BaselineError,
    Need,
    Part,
    Running,
    Shard,
    Target,
    Validator,
    Visitor,
)
from tfrecreg.core.plugins.guard import PluginId, calling, is_told, reason_of, traced
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.scanner import scanner_kind
from tfrecreg.core.values.errors import TfrecregError, TransferError, UsageError
from tfrecreg.core.values.findings import MAX_LOCATIONS, Finding, Location, Measure
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.text import overrides
from tfrecreg.core.workers.interface import Engine


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One shard and its visitors. Picklable with any visitors."""

    shard: Shard
    makers: tuple[bytes, ...]
    """The result of each validator's `begin`, each pickled alone, so that each fails alone."""
    needs: Need
    """The data that any of the validators needs."""


@dataclass(frozen=True, slots=True)
class ShardScan:
    """The result of one shard."""

    parts: tuple[bytes | str | None, ...]
    """For each of the task's `makers` the pickled part, the reason why the visitor failed, or None
    if the shard could not be read.
    """
    end: StreamEnd | None
    """The totals; None if the shard could not be read to its end."""
    unreadable: str
    """The file system's reason why the shard could not be read; empty if it was read."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A shard that could not be read, so the scan is incomplete."""

    shard: str
    reason: str


@dataclass(frozen=True, slots=True)
class Crash:
    """A validator that raised an exception. It has no verdict, so the scan is incomplete."""

    plugin_id: PluginId
    shard: str
    """The shard on which it raised; empty if it raised before or after all shards."""
    reason: str


@dataclass(slots=True)
class ScanResult:
    """The result of the scan of one target."""

    findings: list[Finding] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    shards: int = 0
    records: int = 0
    file_bytes: int = 0
    payload_bytes: int = 0
    cached: int = 0
    """Number of shards that were not read again, because they are unchanged."""
    uncacheable: tuple[str, ...] = ()
    """Validators whose parts cannot be cached. Because of them, every shard is read."""

    @property
    def complete(self) -> bool:
        """Whether every shard was read and every validator has a verdict."""
        return not self.unreadable and not self.crashes

    def count(self, end: StreamEnd | None) -> None:
        """Count a shard. `end` is None if it cannot be read."""
        self.shards += 1
        if end is not None:
            self.records += end.records
            self.file_bytes += end.file_bytes
            self.payload_bytes += end.payload_bytes


class _Scanning:
    """A validator during a scan: the factory of its visitors, and the parts so far."""

    def __init__(self, running: Running, target: Target, options: Mapping[str, Any]) -> None:
        validator, plugin_id, self.codes = running
        self.validator = validator
        self.plugin_id = plugin_id
        self.name = plugin_id.name
        self.maker = b""
        self.needs = Need(0)
        self.key: str | None = None
        """The key of its parts; None if they cannot be cached."""
        self.parts: list[tuple[Shard, Part]] = []
        self.crashes: list[Crash] = []
        try:
            with calling():
                self.needs = Need(validator.needs)
                maker = validator.begin(target, options)
                try:
                    self.maker = pickle.dumps(maker)
                except Exception as error:
                    raise TypeError(f"the result of `begin` cannot be pickled: {error}") from error
                self.key = key_of(validator, target, options, plugin_id)
        except Exception as error:
            if isinstance(error, BaselineError) and plugin_id.is_ours:
                raise error.reason from error
            if isinstance(error, UsageError) and is_told(error):
                raise
            self.crash(error)

    def crash(self, error: BaseException, shard: str = "") -> None:
        """Keep the reason for an exception that the validator raised in this process."""
        self.crashes.append(Crash(self.plugin_id, shard, reason_of(traced(error))))

    def opened(self, shard: Shard, part: bytes | str | None) -> list[Part]:
        """A list with the unpickled part of a shard; empty if there is no part, or if it cannot be
        unpickled.
        """
        if isinstance(part, str):
            self.crashes.append(Crash(self.plugin_id, shard.name, part))
        elif part is not None:
            try:
                with calling():
                    return [pickle.loads(part)]
            except Exception as error:
                self.crash(error, shard.name)
        return []

    def keep(self, shard: Shard, part: Part) -> None:
        """Keep a part, or merge it with the previous shard's part if the validator merges parts."""
        if self.parts and overrides(self.validator, Validator, "merge"):
            first, before = self.parts[-1]
            if first.split == shard.split:
                try:
                    with calling():
                        self.parts[-1] = (first, self.validator.merge(before, part))
                except Exception as error:
                    self.crash(error, shard.name)
                return
        self.parts.append((shard, part))

    def finish(self, target: Target) -> list[Finding | Measure]:
        """The validator's findings and measures for all shards; empty if it crashed."""
        if self.crashes:
            return []
        try:
            with calling():
                found = self.validator.finish(target, self.parts)
                return [_checked(item, self.codes) for item in found]
        except Exception as error:
            self.crash(error)
            return []


def run_scan(
    target: Target,
    validators: Sequence[Validator | Running],
    engine: Engine,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    label: str = "",
    progress: Progress = SILENT,
    seen: Callable[[Shard, StreamEnd | None], None] | None = None,
    cache: ScanCache | None = None,
) -> ScanResult:
    """Scan every shard of `target` once, for all `validators`.

    A validator that raises has no verdict, and does not affect the other validators.
    """
    scanner_kind()  # Report a wrong setting here once, not for every shard.
    result = ScanResult()
    told = [
        each if isinstance(each, Running) else Running(each, PluginId("validator", each.name), None)
        for each in validators
    ]
    running = [
        _Scanning(each, target, (options or {}).get(each.plugin_id.name, {})) for each in told
    ]
    looking = [each for each in running if not each.crashes]
    makers = tuple(each.maker for each in looking)
    needs = reduce(or_, (each.needs for each in looking), Need(0))
    result.uncacheable = tuple(each.name for each in looking if each.key is None)
    recalled: dict[int, tuple[StreamEnd, list[Part]] | None] = {}
    if cache is not None:
        keyed = [(each.plugin_id, each.validator, each.key) for each in looking]
        cache.prepare(keyed, digest=Need.DIGESTS in needs)
        recalled = {number: cache.recall(number, each) for number, each in enumerate(target.shards)}
    result.cached = sum(before is not None for before in recalled.values())
    tasks = (
        ScanTask(shard, makers, needs)
        for number, shard in enumerate(target.shards)
        if recalled.get(number) is None
    )
    total = sum(shard.entry.records for shard in target.shards if shard.entry is not None)
    with working(progress, label, total):
        with _fetching(target, engine), closing(engine.run(scan_shard, tasks)) as scans:
            for number, shard in enumerate(target.shards):
                before = recalled.get(number)
                if before is not None:
                    end: StreamEnd | None = before[0]
                    for each, part in zip(looking, before[1], strict=True):
                        each.keep(shard, part)
                else:
                    scanned = next(scans)
                    end = scanned.end
                    if end is None:
                        result.unreadable.append(Unreadable(shard.name, scanned.unreadable))
                    opened = [
                        each.opened(shard, part)
                        for each, part in zip(looking, scanned.parts, strict=True)
                    ]
                    pairs = list(zip(looking, opened, strict=True))
                    if cache is not None:  # before they are merged, because merging may change them
                        parts = {each.plugin_id: mine[0] for each, mine in pairs if mine}
                        result.crashes += [
                            Crash(plugin_id, shard.name, f"its part cannot be packed: {reason}")
                            for plugin_id, reason in cache.remember(number, shard, end, parts)
                        ]
                    # By validator, because the validators of a report format may share its name.
                    for each, mine in pairs:
                        for part in mine:
                            each.keep(shard, part)
                result.count(end)
                if end is not None:
                    progress.advance(end.records, end.file_bytes)
                if seen is not None:
                    seen(shard, end)
        for each in running:
            for item in each.finish(target):
                if isinstance(item, Finding):
                    result.findings.append(item)
                else:
                    result.measures.append(item)
            result.crashes.extend(each.crashes)
    result.findings.sort(key=lambda finding: (-finding.severity.rank, finding.fingerprint))
    return result


def _fetching(target: Target, engine: Engine) -> AbstractContextManager[None]:
    """Prefetch small shards of a remote build, if this process scans them."""
    shards = target.shards
    if not shards or target.manifest is None:
        return nullcontext()
    storage, paths = shards[0].storage, [shard.path for shard in shards]
    reading = engine.run_here(lambda: storage.reading_ahead(paths, storage.list(recursive=False)))
    return reading or nullcontext()


def _checked(item: object, codes: frozenset[str] | None) -> Finding | Measure:
    """A validator's finding or measure, with its types checked and its locations in order."""
    if isinstance(item, Measure):
        if not isinstance(item.value, int | float | str | Mapping | None):
            raise TypeError(f"the measure `{item.name}` is {item.value!r}, expected a number")
        text: object
        for text in (item.name, item.text):
            if not isinstance(text, str):
                raise TypeError(f"a measure has {text!r}, expected a text")
        json.dumps(item.value)  # the report is JSON
        return item
    found = msgspec.convert(msgspec.to_builtins(item, enc_hook=str), Finding)
    if codes is not None and found.code not in codes:
        raise ValueError(f"it yielded the code {found.code!r}, which it does not announce")
    if found.count < 1:
        raise ValueError(f"`count` of a finding is {found.count!r}, expected at least 1")
    locations = sorted(found.locations, key=Location.order)
    return replace(found, locations=tuple(locations[:MAX_LOCATIONS]))


class _GuardedVisitor:
    """A visitor whose exceptions affect only its own validator."""

    def __init__(self, maker: bytes, shard: Shard) -> None:
        self._visitor: Visitor | None = None
        self.crash: str | None = None
        try:
            with calling():
                self._visitor = pickle.loads(maker)(shard)
        except Exception as error:
            self._fail(error)

    def call(self, method: str, argument: object) -> Part:
        """Call a method of the visitor. Returns None if the visitor has crashed."""
        if self._visitor is None:
            return None
        try:
            with calling():
                return getattr(self._visitor, method)(argument)
        except Exception as error:
            self._fail(error)
            return None

    def close(self, end: StreamEnd | None) -> bytes | str | None:
        """The pickled part; None if the shard was not read to its end."""
        part = self.call("close", end) if end is not None else None
        if self.crash is not None or end is None:
            return self.crash
        try:
            with calling():
                return pickle.dumps(part)
        except Exception as error:
            return f"its part cannot be pickled: {reason_of(traced(error))}"

    def _fail(self, error: BaseException) -> None:
        self._visitor = None
        self.crash = reason_of(traced(error))


_READS = 3
"""Maximum number of attempts to read a shard, if its bytes differ between two reads."""


def scan_shard(task: ScanTask) -> ShardScan:
    """Read one shard to its end and return every validator's part.

    If a shard cannot be read, the result says so, and the other shards are still scanned. If a
    store gave other bytes on a second read, the shard is read again, with new visitors.
    """
    reason = ""
    for _ in range(_READS):
        try:
            return _scan_once(task)
        except TransferError as error:
            reason = error.message
    return ShardScan((None,) * len(task.makers), None, reason)


def _scan_once(task: ScanTask) -> ShardScan:
    visitors = [_GuardedVisitor(maker, task.shard) for maker in task.makers]
    end: StreamEnd | None = None
    unreadable = ""
    shard = task.shard
    offsets, members = index_hints(shard)
    try:
        for event in scan(
            shard.storage,
            shard.path,
            declared=shard.declared,
            digest=Need.DIGESTS in task.needs,
            sha256=Need.SHA256 in task.needs,
            known_offsets=offsets,
            members=members,
            list_members=Need.MEMBERS in task.needs,
        ):
            if isinstance(event, StreamEnd):
                end = event
                continue
            method = "batch" if isinstance(event, RecordBatch) else "fault"
            for visitor in visitors:
                visitor.call(method, event)
    except TransferError:
        raise
    except TfrecregError as error:
        end, unreadable = None, error.message
    return ShardScan(tuple(visitor.close(end) for visitor in visitors), end, unreadable)
