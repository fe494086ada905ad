"""The operation `gate`: judging the report of a check under today's gate and waivers.

A check is a function of the data and may be cached; a verdict also depends on the date. So a
pipeline measures in one stage and judges in the next. A report counts only where it is about the
current state of the target, and covers everything that the gate now requires.
"""

from __future__ import annotations

import datetime
import os
from dataclasses import replace
from pathlib import Path

import msgspec

from tfrecreg.core.check.basis import limits_of, schema_digest
from tfrecreg.core.check.findings import judge_findings
from tfrecreg.core.check.policy import expect_policy
from tfrecreg.core.check.reports.model import Basis, Report
from tfrecreg.core.check.saved_report import read_report
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.lookup import Resolved, expect_schema, resolve
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.config import Config, GateConfig
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.suggest import listed
from tfrecreg.core.values.text import safe


def gate(
    registry: Registry,
    reference: str,
    report: str | os.PathLike[str],
    *,
    today: datetime.date | None = None,
    progress: Progress = SILENT,
) -> Report:
    """Hold a report against the gate of its dataset."""
    resolved = resolve(registry, reference)
    path = os.fspath(report)
    found = read_report(path, resolved.name)
    dataset = resolved.dataset.name
    expect_policy(registry, dataset, today=today)
    if resolved.kind == "build":
        tracker().expect_current(registry, dataset)
    policy = registry.config.gate(dataset)
    _is_of_today(found, resolved, path)
    _looked_at_all(found, registry.config, policy, resolved, path)
    verdict = judge_findings(
        found.findings, policy, registry.config.waivers, dataset=dataset, today=today
    )
    for note in verdict.notes:
        progress.note(note)
    return replace(
        found,
        status="error" if found.status == "error" else verdict.status,
        judged=True,
        fail_on=verdict.fail_on,
        findings=verdict.findings,
        waived=verdict.waived,
        waivers=verdict.waivers,
        lowered=verdict.lowered,
    )


def wanted_validators(config: Config, policy: GateConfig) -> list[str]:
    """The names of the validators that a gate requires."""
    every = plugins_of(config).every(ValidatorRecord)
    runs = {each.name: each.record.runs_with for each in every}
    wanted = policy.validators
    if wanted is None:
        wanted = tuple(name for name, when in runs.items() if when == "always")
    limited = [name for name, when in runs.items() if when == "limits" and policy.options_of(name)]
    return sorted({*wanted, *limited})


def _is_of_today(found: Report, resolved: Resolved, path: str) -> None:
    """Refuse a report about another target, or one that lacks findings."""
    if found.judged:
        raise UsageError(
            f"the report `{safe(path)}` was judged already: it lacks the findings that "
            "waivers covered",
            hint=_command(resolved, path),
        )
    schema = expect_schema(resolved)
    basis = found.basis or Basis()
    for what, then, now in (
        (f"`{resolved.name}`", basis.manifest, resolved.manifest.digest),
        ("the schema", basis.schema, schema_digest(schema)),
    ):
        if then != now:
            raise UsageError(
                f"the report `{safe(path)}` is about another state of {what}: expected digest "
                f"{_digest(now)}, found {_digest(then)}",
                hint=_command(resolved, path),
            )
    _has_the_bytes(basis, resolved, path)


def _has_the_bytes(basis: Basis, resolved: Resolved, path: str) -> None:
    """Refuse a report about other bytes than those of the shards on this machine.

    Sizes are compared. A shard that changed after the report was written, or was put in its place
    again, is read for its digest.
    """
    if resolved.folder is None:
        return
    storage = resolved.registry.storage
    written = Path(path).stat().st_mtime_ns
    checked = {each.path: each for each in basis.shards}
    for shard in resolved.manifest.shards:
        then, place = checked.get(shard.path), f"{resolved.folder}/{shard.path}"
        now = storage.stat(place, follow="all") if then is not None else None
        if then is None or now is None or now.kind != "file":
            continue
        expected, found = f"{now.size} bytes", f"{then.bytes} bytes"
        if expected == found and now.mtime_ns >= written:
            if then.blake3 is None:
                raise UsageError(
                    f"`{safe(place)}` changed after the report `{safe(path)}` was written, and the "
                    "report has no digest of it",
                    hint=_command(resolved, path),
                )
            digest = hash_file(storage, place)[1]
            expected, found = f"blake3 {_digest(digest)}", f"blake3 {_digest(then.blake3)}"
        if expected != found:
            raise UsageError(
                f"the report `{safe(path)}` is about another state of `{safe(place)}`: expected "
                f"{expected}, found {found}",
                hint=_command(resolved, path),
            )


def _looked_at_all(
    found: Report, config: Config, policy: GateConfig, resolved: Resolved, path: str
) -> None:
    """Refuse a report that lacks something that the gate requires."""
    basis = found.basis or Basis()
    looked = {*found.validators, *(each.name for each in found.skipped)}
    missing = [name for name in wanted_validators(config, policy) if name not in looked]
    if missing and found.status != "error":
        raise UsageError(
            f"the report `{safe(path)}` lacks {listed(missing)}, which the gate of "
            f"`{resolved.dataset}` asks for",
            hint=_command(resolved, path),
        )
    for name in found.validators:
        now = limits_of(config, policy, resolved.dataset.name, name)
        then = dict(basis.limits.get(name, {}))
        if then != msgspec.to_builtins(now):
            raise UsageError(
                f"the report `{safe(path)}` was measured under other limits of `{safe(name)}`: "
                f"expected {safe(str(now))}, found {safe(str(then))}",
                hint=_command(resolved, path),
            )


def _command(resolved: Resolved, path: str) -> str:
    return (
        f"tfrecreg check {resolved.name} --fail-on never --format json --output {safe(path)}; in a "
        "pipeline: tfrecreg pipeline, then dvc repro"
    )


def _digest(digest: str | None) -> str:
    return f"{safe(digest)[:16]}…" if digest is not None else "none"
