"""The operation `gate`: applies today's gate and waivers to the report of a check.

A check depends only on the data and may be cached, but a verdict also depends on the date. So a
pipeline checks in one stage and applies the gate in the next. A report is valid only if it
describes the current state of the target and covers everything that the gate now requires.

Gates and waivers that could never apply are refused. The parser of the configuration cannot do
that, because it does not know the registry's datasets, or the codes of validators and plugins.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

import msgspec

from tfrecreg.core.check.findings import judge_findings
from tfrecreg.core.check.options import limits_of, schema_digest
from tfrecreg.core.check.report_format import read_report
from tfrecreg.core.check.reports import Basis, Report
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.data import Resolved, expect_schema, resolve
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.codes import what_became_of
from tfrecreg.core.values.config import CONFIG_NAME, Config, GateConfig, Waiver
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import did_you_mean, listed, safe
from tfrecreg.core.values.typed_values import KeyPath

_DEFAULT = "default"
_POINTER, _SCHEMA = ".dvc", ".pbtxt"


def expect_policy(registry: Registry, *names: str, today: datetime.date | None = None) -> None:
    """Refuse a policy that could never apply, and a waiver that is too broad or too long."""
    config = registry.config
    _expect_datasets(registry, {_DEFAULT, *names})
    if config.waivers or any(gate.severity for gate in config.gates.values()):
        known = list(plugins_of(config).codes())
        _expect_severities(config, known)
        last = None
        if (days := config.policy.max_waiver_days) is not None:
            day = today or datetime.datetime.now(datetime.timezone.utc).date()
            last = day + datetime.timedelta(days=min(days, (datetime.date.max - day).days))
        for number, waiver in enumerate(config.waivers):
            place = KeyPath(CONFIG_NAME) / "waivers" / number
            _expect_waiver(waiver, place, known)
            if last is not None and waiver.expires > last:
                raise (place / "expires").error(
                    f"is {waiver.expires}, later than {last}: `policy.max_waiver_days` is "
                    f"{config.policy.max_waiver_days}"
                )


def _expect_datasets(registry: Registry, names: set[str]) -> None:
    unknown = [name for name in registry.config.gates if name not in names]
    if not unknown:
        return
    datasets = _datasets(registry)
    for name in unknown:
        if name not in datasets:
            raise (KeyPath(CONFIG_NAME) / "gates" / name).error(
                f"matches no dataset{did_you_mean(name, datasets)}"
            )


def _datasets(registry: Registry) -> set[str]:
    """Datasets that are configured, built or released, or that have a schema or a DVC pointer."""
    found = set(registry.dataset_names())
    for folder, suffix in (("schemas", _SCHEMA), (layout.BUILDS, _POINTER)):
        for entry in registry.storage.list(folder, recursive=False):
            name = entry.path.rpartition("/")[2]
            if name.endswith(suffix):
                found.add(name.removesuffix(suffix))
    return found


def _expect_severities(config: Config, known: list[str]) -> None:
    # The default gate comes first, because every gate inherits its keys.
    for name in sorted(config.gates, key=lambda each: each != _DEFAULT):
        for glob in config.gates[name].severity:
            named = glob.partition(" ")[0]
            _expect_code(KeyPath(CONFIG_NAME) / "gates" / name / "severity" / glob, named, known)


def _expect_code(place: KeyPath, pattern: str, known: list[str], glob: str = "") -> None:
    """Refuse a pattern if neither it nor its `glob` matches a code. The error names the codes that
    replaced the pattern or, if there are none, a similar code.
    """
    if not any(fnmatchcase(code, glob or pattern) for code in known):
        instead = what_became_of(pattern) or did_you_mean(pattern, known)
        raise place.error(f"matches no code: `{pattern}`{instead}")


def _expect_waiver(waiver: Waiver, place: KeyPath, known: list[str]) -> None:
    glob = waiver.code.partition(" ")[0]
    _expect_code(place / "code", glob, known)
    named, colon, _ = waiver.fingerprint.partition(":")
    # A `*` may match more than the rest of the code.
    start = f"{named.partition('*')[0]}*" if "*" in named or not colon else named
    _expect_code(place / "fingerprint", named, known, start)
    families = {
        code[:3]
        for code in known
        if fnmatchcase(code, glob)
        and fnmatchcase(f"{code}:any dataset:any split:any subject", waiver.fingerprint)
    }
    if len(families) > 1:
        raise place.error(
            f"covers findings of {listed(sorted(families))}",
            hint="a waiver must cover one family of codes, such as `IMG*`, or have a `fingerprint` "
            "that names one dataset",
        )


def gate(
    registry: Registry,
    reference: str,
    report: str | os.PathLike[str],
    *,
    today: datetime.date | None = None,
    progress: Progress = SILENT,
) -> Report:
    """Judge a report by the gate of its dataset."""
    resolved = resolve(registry, reference)
    path = os.fspath(report)
    found = read_report(path, resolved.name)
    dataset = resolved.dataset.name
    expect_policy(registry, dataset, today=today)
    if resolved.kind == "build":
        tracker().expect_current(registry, dataset)
    policy = registry.config.gate(dataset)
    basis = found.basis or Basis()
    for reason in chain(
        _of_another_state(found, basis, resolved),
        _other_bytes(basis, resolved, path),
        _not_looked_at(found, basis, registry.config, policy, dataset),
    ):
        raise UsageError(
            f"the report `{path}` {reason}",
            hint=f"`tfrecreg check {resolved.name} --fail-on never --format json --output {path}` "
            "makes a new one; in a pipeline: `tfrecreg pipeline`, then `dvc repro`",
        )
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


def _of_another_state(found: Report, basis: Basis, resolved: Resolved) -> Iterator[str]:
    """Yield why a report is unusable: it describes another target, or lacks findings."""
    if found.judged:
        yield "was already judged by a gate, so it lacks the findings that waivers covered"
    schema = schema_digest(expect_schema(resolved))
    for what, then, now in (
        (f"`{resolved.name}`", basis.manifest, resolved.manifest.digest),
        ("the schema", basis.schema, schema),
    ):
        if then != now:
            yield _differs(what, f"digest {_digest(now)}", _digest(then))


def _other_bytes(basis: Basis, resolved: Resolved, path: str) -> Iterator[str]:
    """Yield how the shards on this machine differ in size from those that a report describes. If a
    shard's file is newer than the report, the digest of the shard is compared as well.
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
        if now.size != then.bytes:
            yield _differs(f"`{safe(place)}`", f"{now.size} bytes", f"{then.bytes} bytes")
        elif now.mtime_ns >= written and (digest := hash_file(storage, place)[1]) != then.blake3:
            expected, known = f"blake3 {_digest(digest)}", f"blake3 {_digest(then.blake3)}"
            yield _differs(f"`{safe(place)}`", expected, known)


def _not_looked_at(
    found: Report, basis: Basis, config: Config, policy: GateConfig, dataset: str
) -> Iterator[str]:
    """The gate's requirements that a report does not meet."""
    looked = {*found.validators, *(each.name for each in found.skipped)}
    missing = [name for name in wanted_validators(config, policy) if name not in looked]
    if missing and found.status != "error":
        yield f"lacks {listed(missing)}, which the gate of `{dataset}` requires"
    for name in found.validators:
        now = limits_of(config, policy, dataset, name)
        then = dict(basis.limits.get(name, {}))
        if then != msgspec.to_builtins(now):
            what = f"was measured under other limits of `{safe(name)}`"
            yield f"{what}: expected {safe(str(now))}, found {safe(str(then))}"


def _differs(what: str, expected: str, found: str) -> str:
    return f"is about another state of {what}: expected {expected}, found {found}"


def _digest(digest: str | None) -> str:
    return f"{safe(digest)[:16]}…" if digest is not None else "none"
