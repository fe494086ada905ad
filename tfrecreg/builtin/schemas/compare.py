"""Comparisons of schemas of datasets, releases and files, and how they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from tfrecreg.core.example.sequences import ListRule, compile_sequences
from tfrecreg.core.registry.lookup import Release, resolve
from tfrecreg.core.registry.registry import RegistryLike, not_yanked, open_registry
from tfrecreg.core.registry.schemas import find_schema
from tfrecreg.core.schema.check import rule_text
from tfrecreg.core.schema.compat import (
    Clash,
    Mode,
    SchemaChange,
    clashes,
    compare_schemas,
    values_within,
)
from tfrecreg.core.schema.definition import SEQUENCE, Schema, ValueCount
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.terminal.catalog import print_changes
from tfrecreg.core.terminal.console import line
from tfrecreg.core.terminal.findings import print_findings
from tfrecreg.core.values.codes import SCH020, SCH021
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code, Finding, Location, Severity, fingerprint
from tfrecreg.core.values.reference import looks_like_reference, parse_reference
from tfrecreg.core.values.text import ShortRepr, count, safe

if TYPE_CHECKING:
    from tfrecreg.builtin.schemas.accept import Proposal


def list_clashes(
    reader: Schema, records: Schema, environment: str | None = None
) -> Iterator[Clash]:
    """How a reader of lists fails on records, or misreads them, as `compat.clashes` has it for
    features of the context.
    """
    ours, theirs = reader.describes_sequences(), records.describes_sequences()
    if not (ours and theirs):
        if ours or theirs:
            kinds = ("SequenceExamples", "Examples") if ours else ("Examples", "SequenceExamples")
            message = f"the reader reads {kinds[0]}, and the records are {kinds[1]}"
            yield Clash("other-message", SCH020, SEQUENCE, message)
        return
    rules = compile_sequences(records, environment)
    found = {each.name: each for each in rules.lists}
    for rule in compile_sequences(reader, environment).lists:
        if rule.kind is not None:
            clash = _clash(rule, found.get(rule.name))
            if clash is not None:
                name, code, asks, may = clash
                yield Clash(
                    f"list-{name}",
                    code,
                    rule.name,
                    f"{rule_text(rule.feature, asks)} for the reader; in the records it {may}",
                )


def _clash(reader: ListRule, records: ListRule | None) -> tuple[str, Code, str, str] | None:
    """Rule, code, what the reader asks and what the records may do; None if all is well."""
    fails = reader.step_shape is not None
    lacking = SCH020 if fails and reader.is_required else SCH021
    if records is None:
        return "absent", lacking, "be there", "is not there, or nothing about it is checked"
    kind = reader.feature.kind
    if records.kind is not reader.kind:
        return "other-type", SCH020, f"be {kind}", f"is {records.feature.kind or 'of any type'}"
    if fails and not _is_exactly(records.values, reader.values):
        asks = "have steps of one length"
        return "other-length", SCH020, asks, "may have steps of another length"
    if reader.is_required and not records.is_required:
        return "optional", lacking, "be in every example", "may be missing"
    if fails and reader.step_shape != records.step_shape:
        asks = "have steps of one shape"
        return "other-shape", SCH021, asks, "has as many values in steps of another shape"
    within = _is_within(records.steps, reader.steps) and _is_within(records.values, reader.values)
    if not within:
        asks = "keep its numbers of steps and of values"
        return "other-counts", SCH021, asks, "may have more or fewer"
    if not values_within(records.feature, reader.feature):
        return "other-values", SCH021, "keep its domain", "may have values outside of it"
    return None


def _is_exactly(inner: ValueCount, outer: ValueCount) -> bool:
    return inner.min == inner.max == outer.min and inner.min is not None


def _is_within(inner: ValueCount, outer: ValueCount) -> bool:
    if (inner.min or 0) < (outer.min or 0):
        return False
    return outer.max is None or (inner.max is not None and inner.max <= outer.max)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SchemaDiff(ShortRepr):
    """The difference between two schemas."""

    expected: str
    """Path of the first one."""
    found: str
    """Path of the second one."""
    changes: tuple[SchemaChange, ...]
    """The schema's own fields first, then by the names of features."""


def diff_schemas(expected: str, found: str, *, registry: RegistryLike | None = None) -> SchemaDiff:
    """Compare two schemas."""
    first, second = (find_schema(name, registry=registry) for name in (expected, found))
    changes = compare_schemas(parse_schema(*first), parse_schema(*second))
    return SchemaDiff(expected=first[1], found=second[1], changes=changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatibilityOptions:
    """Options of a check, with the defaults of the command line."""

    mode: Mode = "full"
    transitive: bool = False
    """Compare with every release instead of the latest."""
    against: tuple[str, ...] = ()
    """Datasets, releases or files to compare with instead of releases."""
    environment: str | None = None
    fail_on: FailOn = FailOn.ERROR


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompatibilityReport(ShortRepr):
    """The result of comparing one schema with others."""

    schema: str
    """Path of the schema."""
    mode: Mode
    against: tuple[str, ...]
    """The others, oldest first; empty if there is no release yet."""
    status: Literal["pass", "fail"]
    findings: tuple[Finding, ...]
    """The worst first, then by the schema compared with and the feature."""

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail."""
        return 0 if self.status == "pass" else 1


def check_compatibility(
    name: str, *, registry: RegistryLike | None = None, options: CompatibilityOptions | None = None
) -> CompatibilityReport:
    """Check whether readers of a schema parse the records of releases, and the other way round."""
    options = options or CompatibilityOptions()
    text, where = find_schema(name, registry=registry)
    today = parse_schema(text, where)
    others = options.against or tuple(_releases(name, registry, transitive=options.transitive))
    dataset = parse_reference(name).name if looks_like_reference(name) else ""
    findings: list[Finding] = []
    for other in others:
        before = parse_schema(*find_schema(other, registry=registry))
        if options.mode != "forward":
            who = f"today's reader, records of {other}"
            findings += _findings(dataset, today, before, "backward", who, options.environment)
        if options.mode != "backward":
            who = f"reader of {other}, today's records"
            findings += _findings(dataset, before, today, "forward", who, options.environment)
    findings.sort(key=lambda finding: -finding.severity.rank)
    failed = any(options.fail_on.fails(finding.severity) for finding in findings)
    return CompatibilityReport(
        schema=where,
        mode=options.mode,
        against=tuple(others),
        status="fail" if failed else "pass",
        findings=tuple(findings),
    )


def _releases(name: str, registry: RegistryLike | None, *, transitive: bool) -> Sequence[str]:
    """The releases to compare with, oldest first; for a release, those before it.

    Yanked releases are left out.
    """
    if not looks_like_reference(name):
        raise UsageError(
            f"`{safe(name)}` is a file: there is no release to compare it with",
            hint="name another schema with --against",
        )
    opened = open_registry(registry)
    reference = parse_reference(name)
    versions = not_yanked(opened.dataset(reference.name))
    own = resolve(opened, name) if reference.selector is not None else None
    if isinstance(own, Release):
        versions = [version for version in versions if version < own.version]
    if not transitive:
        versions = versions[-1:]
    return [f"{reference.name}@{version}" for version in versions]


def _findings(
    dataset: str, reader: Schema, records: Schema, way: str, who: str, environment: str | None
) -> Iterator[Finding]:
    broken = (*clashes(reader, records, environment), *list_clashes(reader, records, environment))
    for clash in broken:
        code = clash.code
        subject = f"{way}/{clash.rule}"
        yield Finding(
            code=code.code,
            rule=code.rule,
            severity=Severity(code.severity),
            message=clash.message,
            hint=code.hint,
            fingerprint=fingerprint(
                code.code, dataset=dataset, feature=clash.feature, subject=subject
            ),
            count=1,
            locations=(Location(feature=clash.feature, detail=who),),
        )


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_schema_diff(console: Console, diff: SchemaDiff) -> None:
    """Each feature that differs, with the expected and the found value of its fields."""
    console.print(line(("expected: ", "bold"), safe(diff.expected)))
    console.print(line(("found:    ", "bold"), safe(diff.found)))
    print_changes(console, diff.changes)
    same = "no difference" if not diff.changes else count(len(diff.changes), "difference")
    console.print(line(same))


def print_compatibility(console: Console, report: CompatibilityReport) -> None:
    """The schemas compared, the findings and the verdict."""
    others = ", ".join(safe(each) for each in report.against)
    if not others:
        console.print(line((safe(report.schema), "bold"), ": no release to compare with yet"))
    else:
        console.print(line((safe(report.schema), "bold"), f": {report.mode}, against {others}"))
    print_findings(console, report.findings)
    style = "bold green" if report.status == "pass" else "bold red"
    counts = [
        count(sum(each.severity.value == name for each in report.findings), name)
        for name in ("error", "warning")
    ]
    console.print(line((report.status, style), f": {', '.join(counts)}"))


def print_proposal(out: Console, err: Console, proposal: Proposal, *, written: bool) -> None:
    """The change as a diff on stdout; its edits and refusals on stderr."""
    for each in proposal.diff.splitlines():
        # A schema's own text: its tabs and its letters stay, but nothing drives the terminal.
        text = "".join(part if part == "\t" else safe(part, limit=10_000) for part in _cells(each))
        out.print(line((text, _DIFF_STYLES.get(each[:1], ""))))
    for edit in proposal.edits:
        err.print(line((f"{edit.code} ", "green"), f"{_feature_prefix(edit.feature)}{edit.text}"))
    for refusal in proposal.refused:
        about = f"{_feature_prefix(refusal.feature)}not accepted: {refusal.text}"
        err.print(line((f"{refusal.code} ", "bold red"), about))
    where = safe(proposal.schema)
    if written:
        err.print(line(f"wrote {where}: review it, commit it, build again"))
    elif proposal.before != proposal.after:
        err.print(line(("nothing was written: ", "bold"), f"--write puts the change into {where}"))
    elif not proposal.refused:
        err.print(line(f"{proposal.target} fits {where}: there is nothing to accept"))


def _cells(text: str) -> list[str]:
    """The text split at its tabs, which are kept."""
    cells: list[str] = []
    for number, cell in enumerate(text.split("\t")):
        cells += [cell] if not number else ["\t", cell]
    return cells


def _feature_prefix(feature: str) -> str:
    return f"`{safe(feature)}`: " if feature else ""
