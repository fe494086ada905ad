"""Checks one target: chooses validators, scans, applies the gate and reports."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tfrecreg.core.check.choose import asked_for, choose
from tfrecreg.core.check.findings import (
    complete_findings,
    judge_findings,
    without_repetitions,
)
from tfrecreg.core.check.options import CheckOptions, folder_of, limits_of, schema_digest
from tfrecreg.core.check.reports import Basis, ReadShard, Report
from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Running, Shard, Target, Validator
from tfrecreg.core.check.scan.run import ScanResult, run_scan
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.plugins.manager import plugins, plugins_of
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.records.batch import StreamEnd
from tfrecreg.core.registry.absence import absent_schema
from tfrecreg.core.registry.manifest import MANIFEST_NAME, parse_manifest
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.config import Config, FailOn, GateConfig
from tfrecreg.core.values.errors import StorageError, TfrecregError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import listed, safe
from tfrecreg.core.workers.interface import Engine


def check_target(
    target: Target,
    config: Config,
    options: CheckOptions,
    *,
    engine: Engine,
    progress: Progress = SILENT,
    today: datetime.date | None = None,
    cache: ScanCache | None = None,
    beside: Sequence[tuple[PluginId, Validator]] = (),
) -> Report:
    """Check one target with the gate of its dataset."""
    gate = config.gate(target.dataset)
    choice = choose(
        target, gate, options.only, options.skip, options.also, known=plugins_of(config)
    )
    before = _digest_beside(target)
    names = tuple(each.plugin_id.name for each in choice.running)
    limits = {name: limits_of(config, gate, target.dataset, name) for name in names}
    # Validators that collect data for a page: their measures are not part of the report.
    unjudged = {each.name for _, each in beside}.difference(names)
    seen = _Seen()
    result = run_scan(
        target,
        [*choice.running, *(Running(each, plugin_id, frozenset()) for plugin_id, each in beside)],
        engine.for_work(map(_seconds, target.shards)),
        options=limits,
        label=f"checking {target.name}",
        progress=progress,
        seen=seen.add,
        cache=cache,
    )
    fail_on = None if options.fail_on is None else FailOn.parse(options.fail_on)
    judged = fail_on is not FailOn.NEVER
    gate = gate if judged else GateConfig()
    distinct, unexplained = without_repetitions(result.findings, choice.running, gate.severity)
    verdict = judge_findings(
        complete_findings(distinct, target),
        gate,
        config.waivers if judged else (),
        dataset=target.dataset,
        fail_on=fail_on,
        today=today,
    )
    for note in (*verdict.notes, *_notes_on_cache(options, result, cache, beside)):
        progress.note(note)
    errors = (
        *choice.problems,
        *unexplained,
        *_schema_problems(target, options),
        *_errors(result),
        *_replaced(target, before),
    )
    return Report(
        target=target.name,
        status="error" if errors else verdict.status,
        shards=result.shards,
        records=result.records,
        bytes=result.file_bytes,
        payload_bytes=result.payload_bytes,
        cached=result.cached if options.cached else None,
        splits={name: seen.splits[name] for name in sorted(seen.splits)},
        judged=judged,
        fail_on=verdict.fail_on,
        findings=verdict.findings,
        waived=verdict.waived,
        waivers=verdict.waivers,
        lowered=verdict.lowered,
        measures=tuple(
            each for each in result.measures if each.name.partition(".")[0] not in unjudged
        ),
        validators=names,
        skipped=tuple(choice.skipped),
        errors=errors,
        folder=folder_of(target),
        notes=(*target.notes, *choice.notes),
        basis=_basis(target, options, limits, seen.read),
    )


class _Seen:
    """What a scan has read: the number of records of each split, and the shards by name."""

    def __init__(self) -> None:
        self.splits: Counter[str] = Counter()
        self.read: dict[str, ReadShard] = {}

    def add(self, shard: Shard, end: StreamEnd | None) -> None:
        if end is not None:
            self.splits[shard.split] += end.records
            path = shard.entry.path if shard.entry is not None else shard.name
            self.read[shard.name] = ReadShard(path=path, bytes=end.file_bytes, blake3=end.blake3)


def _notes_on_cache(
    options: CheckOptions, result: ScanResult, cache: ScanCache | None, beside: Sequence[object]
) -> Iterator[str]:
    if options.cached and result.uncacheable and not beside:
        slow = listed(result.uncacheable)
        yield f"every shard was read, because results of {slow} cannot be cached"
    if cache is not None and cache.problem:
        yield f"the result could not be cached: {cache.problem}"


def _replaced(target: Target, before: str | None) -> Iterator[str]:
    if target.kind == "build" and target.manifest is not None:
        before = target.manifest.digest
    after = _digest_beside(target)
    if None not in (before, after) and after != before:
        # Then the findings are meaningless: they describe neither build.
        replaced = f"the build under `{target.name}` was replaced while it was checked"
        yield f"{replaced}: check it again"


def _basis(
    target: Target,
    options: CheckOptions,
    limits: Mapping[str, Mapping[str, Any]],
    read: Mapping[str, ReadShard],
) -> Basis:
    return Basis(
        manifest=target.manifest.digest if target.manifest is not None else None,
        schema=schema_digest(target.schema),
        raw=options.raw,
        against=options.against,
        same_as=options.same_as,
        expect=dict(options.expect),
        only=options.only,
        skip=options.skip,
        limits={name: given for name, given in limits.items() if given},
        shards=tuple(read[each.name] for each in target.shards if each.name in read),
    )


def _schema_problems(target: Target, options: CheckOptions) -> Iterator[str]:
    """The reason why a build cannot be checked against its schema. Yields nothing if the schema
    can be read, or if no validator needs the schema."""
    if target.kind != "build" or target.schema is not None or target.home is None:
        return
    needing = [each for each in plugins().every(ValidatorRecord) if each.record.needs_schema]
    if asked_for(needing, options.only, options.skip):
        error = absent_schema(Registry(target.home).dataset(target.dataset))
        yield f"{error.message}; hint: {error.hint}"


def _digest_beside(target: Target) -> str | None:
    """The digest in the manifest next to the shards; None if the manifest cannot be read."""
    if target.storage is None:
        return None
    try:
        return parse_manifest(target.storage.read(MANIFEST_NAME), MANIFEST_NAME).digest
    except TfrecregError:
        return None


def _errors(result: ScanResult) -> Iterator[str]:
    """Reasons why the scan is incomplete. A validator that fails on many shards is listed once."""
    for each in result.unreadable:
        yield f"`{safe(each.shard)}` was not read: {each.reason}"
    crashes: dict[tuple[PluginId, str], list[str]] = {}
    for crash in result.crashes:
        crashes.setdefault((crash.plugin_id, crash.reason), []).append(crash.shard)
    for (validator, reason), shards in crashes.items():
        where = f" on `{safe(shards[0])}`" if shards[0] else ""
        more = f" and {len(shards) - 1} more" if len(shards) > 1 else ""
        yield f"{validator} failed{where}{more}: {reason}"


_BYTE_SECONDS, _RECORD_SECONDS = 2e-9, 10e-6
"""Approximate seconds per byte and per record with the default validators."""


def _seconds(shard: Shard) -> float:
    if shard.entry is not None:
        return shard.entry.bytes * _BYTE_SECONDS + shard.entry.records * _RECORD_SECONDS
    try:
        entry = shard.storage.stat(shard.path)
    except StorageError:
        return 0.0  # it costs nothing, and the scan reports the reason
    return entry.size * _BYTE_SECONDS if entry is not None else 0.0
