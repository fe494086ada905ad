"""The operation `gate`: judging the report of a check under today's gate and waivers.

A check is a function of the data and may be cached; a verdict also depends on the date. So a
pipeline measures in one stage and judges in the next. A report counts only where it is about the
current state of the target, and covers everything that the gate now requires.

Gates and waivers that could never apply, refused before any work is judged by them.

The configuration is parsed without knowing which datasets and codes there are. Here both are known:
the datasets of the registry, the codes of the bundled validators and those of the plugins that are
installed.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import groupby
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
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.lookup import Resolved, expect_schema, resolve
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.config import CONFIG_NAME, Config, GateConfig, Waiver
from tfrecreg.core.values.errors import ConfigError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import did_you_mean, listed, safe
from tfrecreg.core.values.typed_values import KeyPath

_DEFAULT = "default"
_POINTER, _SCHEMA = ".dvc", ".pbtxt"
_ALL_CODES = "`tfrecreg explain` lists all codes; those of a plugin are known where it is installed"


def expect_policy(
    registry: Registry, *names: str | None, today: datetime.date | None = None
) -> None:
    """Refuse a policy that is silently not applied, and a waiver that covers nearly everything, or
    for longer than `policy.max_waiver_days`.
    """
    config = registry.config
    _expect_datasets(registry, {_DEFAULT, *filter(None, names)})
    if config.waivers or any(gate.severity for gate in config.gates.values()):
        known = list(plugins_of(config).codes())
        _expect_severities(config, known)
        last = _last_day(config, today)
        for number, waiver in enumerate(config.waivers):
            place = KeyPath(CONFIG_NAME) / "waivers" / number
            _expect_waiver(waiver, place, known)
            if last is not None and waiver.expires > last:
                raise (place / "expires").error(
                    f"is {waiver.expires}, more than {config.policy.max_waiver_days} days from "
                    "today, the `policy.max_waiver_days`",
                    hint=f"let it expire on {last} or earlier, and renew it then",
                )


def _last_day(config: Config, today: datetime.date | None) -> datetime.date | None:
    """The last day that a waiver may have; None for any."""
    days = config.policy.max_waiver_days
    if days is None:
        return None
    day = today or datetime.datetime.now(datetime.timezone.utc).date()
    return day + datetime.timedelta(days=min(days, (datetime.date.max - day).days))


def _expect_datasets(registry: Registry, names: set[str]) -> None:
    unknown = [name for name in registry.config.gates if name not in names]
    if not unknown:
        return
    datasets = _datasets(registry)
    for name in unknown:
        if name not in datasets:
            raise (KeyPath(CONFIG_NAME) / "gates" / name).error(
                f"matches no dataset{did_you_mean(name, datasets)}",
                hint=f"datasets: {listed(sorted(datasets))}; for a new dataset, add "
                f"`{layout.DATASETS}/{safe(name)}.toml`",
            )


def _datasets(registry: Registry) -> set[str]:
    """Configured, built or released, or known to git by a schema or by DVC's pointer."""
    found = set(registry.dataset_names())
    for folder, suffix in (("schemas", _SCHEMA), (layout.BUILDS, _POINTER)):
        for entry in registry.storage.list(folder, recursive=False):
            name = entry.path.rpartition("/")[2]
            if name.endswith(suffix):
                found.add(name.removesuffix(suffix))
    return found


def _expect_severities(config: Config, known: Iterable[str]) -> None:
    # The default's first: a key of it is in every gate.
    for name in sorted(config.gates, key=lambda each: each != _DEFAULT):
        for glob in config.gates[name].severity:
            if not any(fnmatchcase(code, glob) for code in known):
                place = KeyPath(CONFIG_NAME) / "gates" / name / "severity" / glob
                raise place.error(f"matches no code{did_you_mean(glob, known)}", hint=_ALL_CODES)


def _expect_waiver(waiver: Waiver, place: KeyPath, known: list[str]) -> None:
    if not any(fnmatchcase(code, waiver.code) for code in known):
        raise _no_code(place / "code", waiver.code, known)
    named, colon, _ = waiver.fingerprint.partition(":")
    # A `*` may match more than the rest of the code.
    start = f"{named.partition('*')[0]}*" if "*" in named or not colon else named
    if not any(fnmatchcase(code, start) for code in known):
        raise _no_code(place / "fingerprint", named, known)
    families = list(_covered_families(waiver, known))
    if len(families) > 1:
        raise place.error(
            f"covers every finding of {listed(families)}",
            hint="a waiver must cover one family of codes, such as `IMG*`, or the `fingerprint` of "
            "one dataset",
        )


def _no_code(place: KeyPath, pattern: str, known: Iterable[str]) -> ConfigError:
    return place.error(
        f"matches no code: `{safe(pattern)}`{did_you_mean(pattern, known)}", hint=_ALL_CODES
    )


def _covered_families(waiver: Waiver, known: Iterable[str]) -> Iterator[str]:
    """The families whose every code it covers, in any dataset, split and shard."""
    for family, codes in groupby(sorted(known), key=lambda code: code[:3]):
        if all(
            fnmatchcase(code, waiver.code)
            and fnmatchcase(f"{code}:any dataset:any split:any subject", waiver.fingerprint)
            for code in codes
        ):
            yield family


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
