"""Turns the findings of validators into a report's findings, in this order:

1. :func:`without_repetitions` drops findings that another finding explains better;
2. :func:`complete_findings` adds records, keys and repair commands;
3. :func:`judge_findings` applies the gate and the waivers.

The module also makes the files for `dvc metrics` (only numbers) and `dvc plots` (tables).

DVC flattens nested objects and drops lists, so metrics are objects of numbers. Metrics and plots do
not depend on the gate.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from blake3 import blake3

from tfrecreg.core.check.reports import Report, severities_of
from tfrecreg.core.check.scan.indexes import keys_of
from tfrecreg.core.check.scan.interface import Running, Shard, Target, Validator
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.plugins.guard import calling, reason_of, traced
from tfrecreg.core.registry.absence import fetch_command
from tfrecreg.core.registry.manifest import is_adopted, is_python_data
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.codes import REG009, SCH005
from tfrecreg.core.values.codes.pages import record_code
from tfrecreg.core.values.config import FailOn, GateConfig, Verdict, Waiver, judge, severity_of
from tfrecreg.core.values.findings import MAX_LOCATIONS, Finding, Severity, fingerprint
from tfrecreg.core.values.text import overrides, safe

_SHOWN = 16
"""Maximum number of features that a finding names, and of declarations in its hint."""
_NOT_TFRECORD = "CRC008"
_REPAIRABLE = frozenset(
    {
        *(f"CRC00{number}" for number in range(1, 8)),
        *(f"SHD00{number}" for number in range(1, 5)),
        _NOT_TFRECORD,
    }
)


def complete_findings(findings: Sequence[Finding], target: Target) -> list[Finding]:
    """The findings of all validators, with keys and hints."""
    located = with_keys(_with_causes(findings), target.shards)
    return [replace(each, hint=_hint(each, target) or each.hint) for each in located]


def without_repetitions(
    findings: Sequence[Finding],
    validators: Iterable[Running],
    severity: Mapping[str, Severity],
) -> tuple[list[Finding], list[str]]:
    """The findings that no other finding explains better, and messages about failed validators.

    `severity` maps codes to the severities that the gate gives them. A finding with lowered
    severity cannot explain a more severe finding, so a warning never hides an error.
    """

    def rank(finding: Finding) -> int:
        return severity_of(finding, severity).rank

    kept, problems = list(findings), []
    for validator, plugin_id, _ in validators if len(findings) > 1 else ():
        if not overrides(validator, Validator, "explains"):
            continue
        try:
            with calling():
                codes = {code.code for code in validator.codes}
                own = [each for each in findings if each.code in codes]
                others = [each for each in kept if each.code not in codes]
                explained: set[int] = set()
                for level in {rank(other) for other in others}:
                    causes = [each for each in own if rank(each) >= min(level, each.severity.rank)]
                    same = [other for other in others if rank(other) == level]
                    explained.update(map(id, validator.explains(causes, same) if causes else ()))
        except Exception as error:
            problems.append(f"{plugin_id} failed in `explains`: {reason_of(traced(error))}")
            continue
        kept = [each for each in kept if each.code in codes or id(each) not in explained]
    return kept, problems


def _with_causes(findings: Sequence[Finding]) -> list[Finding]:
    """Give each anomaly the count and the locations of its cause, a finding about records.

    TFDV's statistics cover whole splits. Only the validator `schema`, if it ran, knows the records.
    """
    causes = {_cause_key(each.code, each): each for each in findings if each.locations}
    completed = []
    for each in findings:
        cause = causes.get(_cause_key(record_code(each.code), each))
        if cause is not None:
            each = replace(each, count=cause.count, locations=cause.locations)
        completed.append(each)
    return completed


def _cause_key(code: str, finding: Finding) -> tuple[str, str | None, str | None]:
    if not finding.locations:
        return code, None, None
    first = finding.locations[0]
    return code, first.split, first.feature


def with_keys(findings: Sequence[Finding], shards: Sequence[Shard]) -> list[Finding]:
    """Add keys of records to locations, if the shard's index has them."""
    without = [each for finding in findings for each in finding.locations if each.key is None]
    keys = keys_of(
        shards,
        (
            (each.shard, each.record)
            for each in without
            if each.shard is not None and each.record is not None
        ),
    )
    completed = []
    for finding in findings:
        places = (
            each if each.key is not None else replace(each, key=keys.get((each.shard, each.record)))
            for each in finding.locations
        )
        completed.append(replace(finding, locations=tuple(places)))
    return completed


def _hint(finding: Finding, target: Target) -> str:
    """The command that repairs damaged bytes of this target, or an empty text."""
    # imports NumPy, which `audit` does not need
    from tfrecreg.core.records.resync import LFS_POINTER, ZLIB

    if finding.code == _NOT_TFRECORD:
        details = "".join(each.detail or "" for each in finding.locations)
        if LFS_POINTER in details:
            return "`git lfs pull` fetches the files behind git-LFS pointers"
        if ZLIB in details:
            return "write the files again with `GZIP` or without compression"
    if finding.code not in _REPAIRABLE:
        return ""
    # An unpublished build has no home, and nothing to repair.
    manifest = target.manifest
    if target.home is None or manifest is None:
        return ""
    if command := fetch_command(Registry(target.home).dataset(target.dataset), manifest):
        return f"`{command}` fetches the bytes of the release again"
    # Files that no source can rebuild may still be in DVC.
    kept = manifest.release is not None and manifest.release.dvc is not None
    if not kept and (is_adopted(manifest) or is_python_data(manifest)):
        return ""
    return f"`tfrecreg repair {target.reference}` rebuilds the damaged files, byte for byte"


def judge_findings(
    findings: Iterable[Finding],
    gate: GateConfig,
    waivers: Sequence[Waiver],
    *,
    dataset: str,
    fail_on: FailOn | None = None,
    today: datetime.date | None = None,
) -> Verdict:
    """Apply a gate and its waivers to findings.

    The result has the most severe findings first, with a `REG009` for each expired waiver.
    """
    day = today or datetime.datetime.now(datetime.timezone.utc).date()
    limit = fail_on or gate.fail_on
    found = judge(
        _in_common(findings, waivers, dataset),
        limit,
        severity=gate.severity,
        waivers=waivers,
        today=day,
    )
    lapsed: dict[Waiver, list[Finding]] = {}
    for finding, waiver in found.lapsed:
        lapsed.setdefault(waiver, []).append(finding)
    marked = {
        id(finding): replace(
            finding,
            message=f"{finding.message} (waived by {safe(waiver.owner)} until {waiver.expires})",
        )
        for finding, waiver in found.lapsed
    }
    shown = [marked.get(id(finding), finding) for finding in found.findings]
    shown += [_expired(waiver, len(covered), dataset) for waiver, covered in lapsed.items()]
    return replace(
        found,
        findings=tuple(sorted(shown, key=severity_order)),
        notes=tuple(
            f"the waiver of `{safe(_subject(waiver))}` by {safe(waiver.owner)} expired on "
            f"{waiver.expires.isoformat()}: its findings count again"
            for waiver in lapsed
        ),
    )


def _in_common(
    findings: Iterable[Finding], waivers: Sequence[Waiver], dataset: str
) -> list[Finding]:
    """Merge findings about undeclared features if the features are in the same records.

    A feature that a waiver covers keeps its own finding.
    """
    kept: list[Finding] = []
    by_records: dict[tuple[str, object], list[Finding]] = {}
    for each in findings:
        about = each.message.removeprefix(f"`{safe(_first_feature(each))}` is ")
        is_undeclared = each.code == SCH005.code and about != each.message
        if not is_undeclared or any(waiver.covers(each) for waiver in waivers):
            kept.append(each)
            continue
        records = tuple((place.split, place.shard, place.record) for place in each.locations)
        by_records.setdefault((about, (each.count, records)), []).append(each)
    several: dict[tuple[str, str, str], list[Finding]] = {}
    for (about, _), group in by_records.items():
        if len(group) == 1:
            kept += group
            continue
        together = _of_features(sorted(group, key=_first_feature), about, dataset)
        same = together.fingerprint, together.message, together.hint
        several.setdefault(same, []).append(together)
    for first, *others in several.values():  # one per split
        count = sum((each.count for each in others), first.count)
        places = sum((each.locations for each in others), first.locations)[:MAX_LOCATIONS]
        kept.append(replace(first, count=count, locations=places))
    return kept


def _of_features(group: Sequence[Finding], about: str, dataset: str) -> Finding:
    """Make one finding that replaces findings about several features of the same records."""
    names = list(map(_first_feature, group))
    shown, hint = ", ".join(f"`{safe(each)}`" for each in names[:_SHOWN]), SCH005.hint
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    texts = [text for each in group[:_SHOWN] if (text := each.hint[len(hint) + 2 :])]
    detail = f"{len(names)} features"
    digest = blake3(repr(names).encode("utf-8", "surrogateescape")).hexdigest(4)
    return replace(
        group[0],
        message=f"{detail} are {about}: {shown}{more}",
        hint=": ".join((hint, *([" ".join(texts)] if texts else []))),
        fingerprint=fingerprint(SCH005.code, dataset=dataset, subject=digest),
        locations=tuple(
            replace(place, feature=None, detail=detail) for place in group[0].locations
        ),
    )


def _first_feature(finding: Finding) -> str:
    return (finding.locations[0].feature or "") if finding.locations else ""


def severity_order(finding: Finding) -> tuple[int, str]:
    """Sort key: the most severe findings come first, then fingerprints decide."""
    return -finding.severity.rank, finding.fingerprint


def _expired(waiver: Waiver, count: int, dataset: str) -> Finding:
    tally, what = Tally(), _subject(waiver)
    message = (
        f"The waiver of `{safe(what)}` by {safe(waiver.owner)} expired on "
        f"{waiver.expires.isoformat()}, and its findings are still present; its reason was: "
        f"{safe(waiver.reason)}"
    )
    tally.add(REG009, message, None, subject=what, count=count)
    return next(tally.findings(dataset))


def _subject(waiver: Waiver) -> str:
    return waiver.fingerprint if waiver.code == "*" else waiver.code


PLOTS = {
    "findings": ("severity", "count"),
    "splits": ("split", "records"),
    "features": ("feature", "bytes"),
    "classes": ("class", "records"),
}
"""For each table, the names of its two columns: the column of values and the column of numbers."""

_FORMULA = ("=", "+", "-", "@")
"""Spreadsheets interpret a cell that begins with one of these as a formula."""


def metrics(report: Report) -> dict[str, Any]:
    """Numbers in nested objects: sizes, records per split, findings, measures."""
    codes: Counter[str] = Counter()
    for finding in report.findings:
        codes[finding.code] += finding.count
    found: dict[str, Any] = {
        "shards": report.shards,
        "records": report.records,
        "bytes": report.bytes,
        "payload_bytes": report.payload_bytes,
        "splits": dict(report.splits),
        "findings": severities_of(report.findings),
        "codes": dict(sorted(codes.items())),
    }
    for measure in report.measures:
        if isinstance(measure.value, int | float) and math.isfinite(measure.value):
            _put(found, measure.name, measure.value)
    return found


def plots(report: Report) -> dict[str, str]:
    """The tables of :data:`PLOTS` as CSV, by name. A table may have no rows."""
    measures = {measure.name: measure.value for measure in report.measures}
    classes = sorted(name for name in measures if name.startswith("annotations.histogram."))
    rows: dict[str, Iterable[tuple[str, int]]] = {
        "findings": severities_of(report.findings).items(),
        "splits": report.splits.items(),
        "features": _mapping(measures.get("inflation.features")),
        "classes": _mapping(measures[classes[0]]) if classes else (),
    }
    return {name: _table(columns, rows[name]) for name, columns in PLOTS.items()}


def _mapping(value: object) -> Iterable[tuple[str, int]]:
    if not isinstance(value, Mapping):
        return ()
    return [(str(name), count) for name, count in value.items() if isinstance(count, int)]


def _put(found: dict[str, Any], name: str, value: float) -> None:
    """Set ``a.b.c`` in nested objects, or the key ``"a.b.c"`` if ``a`` or ``a.b`` is a number."""
    *above, last = name.split(".")
    inner: Any = found
    for part in above:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else None
    if isinstance(inner, dict) and not isinstance(inner.get(last), dict):
        inner[last] = value
    else:
        found[name] = value


def _table(columns: tuple[str, str], rows: Iterable[tuple[str, int]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for name, count in rows:
        shown = safe(name)
        writer.writerow((f"'{shown}" if shown.startswith(_FORMULA) else shown, count))
    return text.getvalue()
