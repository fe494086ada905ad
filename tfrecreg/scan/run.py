"""All shards of a target through an engine: parts in shard order, findings at the end.

:func:`scan_shard` runs in the engine's workers: it reads the bytes of one shard once, and every
visitor sees them. :func:`run_scan` runs in the parent.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from tfrecreg.engines import Engine
from tfrecreg.errors import TfrecregError, UsageError
from tfrecreg.findings import (
    MAX_LOCATIONS,
    Finding,
    Location,
    Measure,
    Severity,
    TensorflowOutcome,
)
from tfrecreg.guard import Brought, calling, is_told, reason_of
from tfrecreg.records import RecordBatch, StreamEnd, scan, scanner_kind
from tfrecreg.scan.cache import Reuse, ScanCache, key_of
from tfrecreg.scan.indexes import IndexHints
from tfrecreg.scan.interface import Need, Part, Shard, Target, Validator, Visitor
from tfrecreg.suggest import overrides

Progress = Callable[[Shard, StreamEnd | None], None]
"""Called in the parent for each shard that is done."""


_FIELDS = {
    "code": str,
    "rule": str,
    "severity": Severity,
    "message": str,
    "hint": str,
    "fingerprint": str,
    "count": int,
}
"""What faces rely on, whoever wrote the validator."""
_PLACE: dict[str, type] = {
    **dict.fromkeys(("split", "shard", "feature", "key", "detail"), str),
    **dict.fromkeys(("record", "offset", "length"), int),
    "tensorflow": TensorflowOutcome,
}
"""So of a location, where it says anything."""
_DEFAULTS = {"batch": Visitor.batch, "fault": Visitor.fault}
"""Methods that a visitor need not have."""


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One shard and who looks at it. Picklable, whatever the visitors are."""

    shard: Shard
    makers: tuple[tuple[Brought, bytes], ...]
    """Who brought each validator, and what its `begin` returned, in the order of the validators.
    Pickled one by one, so that one that cannot be unpickled in a worker costs no other."""
    digest: bool
    """Whether anybody needs the file's and the stream's digests."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """Stands in a part's place where the visitor raised: its validator has no verdict."""

    reason: str


@dataclass(frozen=True, slots=True)
class ShardScan:
    """What came of one shard."""

    parts: tuple[bytes | Crashed | None, ...]
    """One a validator, pickled, in the order of the task's makers; None where the shard could not
    be read, so that there is none."""
    end: StreamEnd | None
    """None where the shard could not be read to its end."""
    unreadable: str
    """Why it could not: the file system's words. Empty where it could."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A shard that could not be read: the scan is incomplete."""

    shard: str
    reason: str


@dataclass(frozen=True, slots=True)
class Crash:
    """A validator that raised: it has no verdict, so the scan is incomplete."""

    brought: Brought
    shard: str
    """Where it happened; empty where it was before or after the shards."""
    reason: str

    @property
    def validator(self) -> str:
        """Its name."""
        return self.brought.name


@dataclass(slots=True)
class ScanResult:
    """What a scan of one target gave."""

    findings: list[Finding] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    shards: int = 0
    records: int = 0
    file_bytes: int = 0
    payload_bytes: int = 0
    cached: int = 0
    """Shards that were not read again: they are as an earlier scan saw them."""
    uncacheable: tuple[str, ...] = ()
    """Validators whose parts cannot be kept: for them every shard is read."""

    @property
    def complete(self) -> bool:
        """Whether every shard was read and every validator came to a verdict."""
        return not self.unreadable and not self.crashes


class _Running:
    """A validator at work: what makes its visitors, and what they handed back so far."""

    def __init__(
        self,
        validator: Validator,
        brought: Brought,
        codes: frozenset[str] | None,
        target: Target,
        options: Mapping[str, Any],
    ) -> None:
        self.validator = validator
        self.brought = brought
        self.name = brought.name
        self.codes = codes
        self.maker = b""
        self.digest = False
        self.key: str | None = None
        """What its parts depend on; None where they cannot be kept."""
        self.parts: list[tuple[Shard, Part]] = []
        self.crashes: list[Crash] = []
        try:
            with calling(brought, "begin"):
                needs = validator.needs
                if not isinstance(needs, Need):
                    raise TypeError(f"its `needs` should be a Need, found {needs!r}")
                self.digest = Need.DIGESTS in needs
                self.maker = pickle.dumps(validator.begin(target, options))
                self.key = key_of(validator, target, options, brought)
        except Exception as error:
            if isinstance(error, UsageError) and is_told(error):
                raise
            self.crash(error)

    def crash(self, error: BaseException) -> None:
        """Note that it raised, in this process."""
        self.crashes.append(Crash(self.brought, "", reason_of(error)))

    def opened(self, shard: Shard, part: bytes | Crashed | None) -> list[Part]:
        """What came of a shard: one part, or none."""
        if isinstance(part, Crashed):
            self.crashes.append(Crash(self.brought, shard.name, part.reason))
        elif part is not None:
            try:
                with calling(self.brought, "unpickle"):
                    return [pickle.loads(part)]
            except Exception as error:
                self.crashes.append(Crash(self.brought, shard.name, reason_of(error)))
        return []

    def keep(self, shard: Shard, part: Part) -> None:
        """Keep a part, as one with that of the shard before where the validator merges them."""
        if self.parts and overrides(self.validator, Validator, "merge"):
            first, before = self.parts[-1]
            if first.split == shard.split:
                try:
                    with calling(self.brought, "merge"):
                        self.parts[-1] = (first, self.validator.merge(before, part))
                except Exception as error:
                    self.crashes.append(Crash(self.brought, shard.name, reason_of(error)))
                return
        self.parts.append((shard, part))

    def finish(self, target: Target) -> list[Finding | Measure]:
        """What it says of all shards; nothing where it has crashed, now or before."""
        if self.crashes:
            return []
        try:
            with calling(self.brought, "finish"):
                found = self.validator.finish(target, self.parts)
                return [_checked(item, self.codes) for item in found]
        except Exception as error:
            self.crash(error)
            return []


def run_scan(
    target: Target,
    validators: Sequence[Validator],
    engine: Engine,
    *,
    announced: Sequence[tuple[Brought, frozenset[str] | None]] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress | None = None,
    cache: ScanCache | None = None,
) -> ScanResult:
    """Scan every shard of `target` once, for all `validators`.

    A validator that raises has no verdict, and costs no other validator its own.

    Args:
        target: what to look at.
        validators: those that apply to it.
        engine: where the shards are scanned.
        announced: who brought each of the validators, and the codes that its findings may have
            (None for any); empty where all are this project's.
        options: by validator name, what its `begin` is given.
        progress: updated for every finished shard.
        cache: what earlier scans found; None to read every shard and to remember nothing.

    Raises:
        UsageError: a validator cannot begin with these options or this schema, or
            `TFRECREG_SCANNER` names no scanner.
        FailureError: the engine failed (a worker died), or the scanner that `TFRECREG_SCANNER`
            names is not there.
    """
    scanner_kind()  # A setting that is wrong is told here, and not of every shard.
    result = ScanResult()
    told = announced or [(Brought("validator", each.name), None) for each in validators]
    running = [
        _Running(each, brought, codes, target, (options or {}).get(brought.name, {}))
        for each, (brought, codes) in zip(validators, told, strict=True)
    ]
    looking = [each for each in running if not each.crashes]
    makers = tuple((each.brought, each.maker) for each in looking)
    digest = any(each.digest for each in looking)
    reuse = Reuse(
        cache, [(each.brought, each.validator, each.key) for each in looking], digest=digest
    )
    result.uncacheable = tuple(each.name for each in looking if each.key is None)
    known = [reuse.knows(number, shard) for number, shard in enumerate(target.shards)]
    tasks = (
        ScanTask(shard, makers, digest)
        for shard, is_known in zip(target.shards, known, strict=True)
        if not is_known
    )
    with closing(engine.run(scan_shard, tasks)) as scans:
        for number, (shard, is_known) in enumerate(zip(target.shards, known, strict=True)):
            before = reuse.recall(number, shard) if is_known else None
            if before is not None:
                end: StreamEnd | None = before.end
                result.cached += 1
                for each, part in zip(looking, before.parts, strict=True):
                    each.keep(shard, part)
            else:
                # What was known may be gone, or not be what it seemed: then it is read here.
                task = ScanTask(shard, makers, digest)
                scanned = scan_shard(task) if is_known else next(scans)
                end = scanned.end
                _take(scanned, number, shard, looking, reuse, result)
            _count(result, end)
            if progress is not None:
                progress(shard, end)
    for each in running:
        for item in each.finish(target):
            if isinstance(item, Finding):
                result.findings.append(item)
            else:
                result.measures.append(item)
        result.crashes.extend(each.crashes)
    result.findings.sort(key=lambda finding: (-finding.severity.rank, finding.fingerprint))
    return result


def _take(
    scanned: ShardScan,
    number: int,
    shard: Shard,
    looking: Sequence[_Running],
    reuse: Reuse,
    result: ScanResult,
) -> None:
    """Take what came of a shard that was read."""
    if scanned.end is None:
        result.unreadable.append(Unreadable(shard.name, scanned.unreadable))
    opened = [each.opened(shard, part) for each, part in zip(looking, scanned.parts, strict=True)]
    # Remembered before they are merged, for that may change them.
    parts = {
        each.brought: part for each, parts in zip(looking, opened, strict=True) for part in parts
    }
    if reuse.keeps(number):
        result.crashes += [
            Crash(brought, shard.name, f"its part cannot be packed: {reason}")
            for brought, reason in reuse.remember(number, shard, scanned.end, parts)
        ]
    for each in looking:
        if each.brought in parts:
            each.keep(shard, parts[each.brought])


def _count(result: ScanResult, end: StreamEnd | None) -> None:
    result.shards += 1
    if end is not None:
        result.records += end.records
        result.file_bytes += end.file_bytes
        result.payload_bytes += end.payload_bytes


def _checked(item: object, codes: frozenset[str] | None) -> Finding | Measure:
    """What a validator yielded, if it is what it should be, its locations in order."""
    if isinstance(item, Measure):
        _check_measure(item)
        return item
    if not isinstance(item, Finding):
        raise TypeError(f"it yielded {item!r}, expected a Finding or a Measure")
    for name, kind in _FIELDS.items():
        if not isinstance(value := getattr(item, name), kind):
            raise TypeError(f"`{name}` of a finding is {value!r}, expected {kind.__name__}")
    if codes is not None and item.code not in codes:
        raise ValueError(f"it yielded the code {item.code!r}, which it does not announce")
    if item.count < 1:
        raise ValueError(f"`count` of a finding is {item.count!r}, expected at least 1")
    for location in item.locations:
        _check_location(location)
    locations = sorted(item.locations, key=Location.order)
    return replace(item, locations=tuple(locations[:MAX_LOCATIONS]))


def _check_measure(item: Measure) -> None:
    if not isinstance(item.value, int | float | str | Mapping | None):
        raise TypeError(f"the measure `{item.name}` is {item.value!r}, expected a number")
    for text in (item.name, item.text):
        if not isinstance(text, str):
            raise TypeError(f"a measure says {text!r}, expected a text")
    json.dumps(item.value)  # the report is JSON


def _check_location(location: object) -> None:
    if not isinstance(location, Location):
        raise TypeError(f"a location is {location!r}, expected a Location")
    for name, kind in _PLACE.items():
        value = getattr(location, name)
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"`{name}` of a location is {value!r}, expected {kind.__name__}")


class _Guarded:
    """A visitor whose exceptions cost only its own verdict."""

    def __init__(self, brought: Brought, maker: bytes, shard: Shard) -> None:
        self._brought = brought
        self._visitor: Visitor | None = None
        self._silent: frozenset[str] = frozenset()
        self.crash: Crashed | None = None
        try:
            with calling(brought, "begin"):
                make: Callable[[Shard], Visitor] = pickle.loads(maker)
                self._visitor = made = make(shard)
                self._silent = frozenset(
                    name
                    for name, default in _DEFAULTS.items()
                    if getattr(type(made), name, None) is default
                )
        except Exception as error:
            self._fail(error)

    def call(self, method: str, argument: object) -> Part:
        """What the visitor's method returns; None from a visitor that has crashed, and from one
        that has only the default, which does nothing.
        """
        if self._visitor is None or method in self._silent:
            return None
        try:
            with calling(self._brought, method):
                return getattr(self._visitor, method)(argument)
        except Exception as error:
            self._fail(error)
            return None

    def close(self, end: StreamEnd | None) -> bytes | Crashed | None:
        """The part, pickled; None where there is no end to close at."""
        part = self.call("close", end) if end is not None else None
        if self.crash is not None or end is None:
            return self.crash
        try:
            with calling(self._brought, "pickle"):
                return pickle.dumps(part)
        except Exception as error:
            return Crashed(f"its part cannot be pickled: {reason_of(error)}")

    def _fail(self, error: BaseException) -> None:
        self._visitor = None
        self.crash = Crashed(reason_of(error))


def scan_shard(task: ScanTask) -> ShardScan:
    """Read one shard to its end and hand back every validator's part.

    A shard that cannot be read is no exception but a result, so that the others are still
    scanned; the check as a whole is then incomplete.
    """
    visitors = [_Guarded(brought, make, task.shard) for brought, make in task.makers]
    end: StreamEnd | None = None
    unreadable = ""
    shard = task.shard
    hints = IndexHints(shard)
    try:
        for event in scan(
            shard.storage,
            shard.path,
            declared=shard.declared,
            digest=task.digest,
            known_offsets=hints.offsets,
            members=hints.members,
        ):
            if isinstance(event, StreamEnd):
                end = event
                continue
            method = "batch" if isinstance(event, RecordBatch) else "fault"
            for visitor in visitors:
                visitor.call(method, event)
    except TfrecregError as error:
        end, unreadable = None, error.message
    return ShardScan(tuple(visitor.close(end) for visitor in visitors), end, unreadable)
