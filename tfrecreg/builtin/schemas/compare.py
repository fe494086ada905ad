"""Compares the schemas of datasets, releases and files, and prints the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.registry.data import Release, resolve
from tfrecreg.core.registry.registry import RegistryLike, not_yanked, open_registry
from tfrecreg.core.registry.schemas import find_schema
from tfrecreg.core.schema.compat import Mode, SchemaChange, clashes, compare_schemas, parse_mode
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.terminal.catalog import print_changes
from tfrecreg.core.terminal.console import line
from tfrecreg.core.terminal.findings import print_findings
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Finding, Location
from tfrecreg.core.values.reference import looks_like_reference, parse_reference
from tfrecreg.core.values.text import ShortRepr, count, safe

if TYPE_CHECKING:
    from tfrecreg.builtin.schemas.accept import Proposal


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SchemaDiff(ShortRepr):
    """The difference between two schemas."""

    expected: str
    """Paths of the first and of the second schema."""
    found: str
    changes: tuple[SchemaChange, ...]
    """The changes: first the fields of the schema, then the features in order of their names."""


def diff_schemas(expected: str, found: str, *, registry: RegistryLike | None = None) -> SchemaDiff:
    """Compare two schemas."""
    first, second = (find_schema(name, registry=registry) for name in (expected, found))
    changes = compare_schemas(parse_schema(*first), parse_schema(*second))
    return SchemaDiff(expected=first[1], found=second[1], changes=changes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompatibilityReport(ShortRepr):
    """The result of comparing one schema with other schemas."""

    schema: str
    """Path of the schema."""
    mode: Mode
    against: tuple[str, ...]
    """The other schemas, oldest first; empty if there is no release yet."""
    status: Literal["pass", "fail"]
    findings: tuple[Finding, ...]
    """The findings, worst severity first. Equal severities are in the order of `against`."""

    @property
    def exit_code(self) -> int:
        """0 if the check passes, 1 if it fails."""
        return 0 if self.status == "pass" else 1


def check_compatibility(
    name: str,
    *,
    registry: RegistryLike | None = None,
    mode: str = "full",
    against: Sequence[str] = (),
    environment: str | None = None,
    fail_on: FailOn = FailOn.ERROR,
) -> CompatibilityReport:
    """Check whether readers of a schema can parse the records of releases, and whether readers of
    the releases can parse records of the schema.
    """
    way, transitive = parse_mode(mode)
    today = _schema_of_examples(name, registry)
    others = against or _releases(name, registry, transitive=transitive)
    dataset = parse_reference(name).name if looks_like_reference(name) else ""
    findings: list[Finding] = []
    for other in others:
        before = _schema_of_examples(other, registry)
        if way != "forward":
            who = f"today's reader, records of {other}"
            findings += _findings(dataset, today, before, "backward", who, environment)
        if way != "backward":
            who = f"reader of {other}, today's records"
            findings += _findings(dataset, before, today, "forward", who, environment)
    findings.sort(key=lambda finding: -finding.severity.rank)
    failed = any(fail_on.fails(finding.severity) for finding in findings)
    return CompatibilityReport(
        schema=today.where,
        mode=way,
        against=tuple(others),
        status="fail" if failed else "pass",
        findings=tuple(findings),
    )


def _schema_of_examples(name: str, registry: RegistryLike | None) -> Schema:
    schema = parse_schema(*find_schema(name, registry=registry))
    if schema.describes_sequences():
        raise UsageError(
            f"`{schema.where}` describes SequenceExamples, but only readers of Examples can be "
            "checked",
            hint="tfrecreg schema diff A B",
        )
    return schema


def _releases(name: str, registry: RegistryLike | None, *, transitive: bool) -> Sequence[str]:
    """The releases to compare with, oldest first, without yanked releases.

    A release is compared only with earlier releases.
    """
    if not looks_like_reference(name):
        raise UsageError(
            f"`{name}` is a file, so it has no earlier release to compare with: "
            "name a schema with `--against`"
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
    tally = Tally()
    for clash in clashes(reader, records, environment):
        where, subject = Location(feature=clash.feature, detail=who), f"{way}/{clash.rule}"
        tally.add(clash.code, clash.message, where, feature=clash.feature, subject=subject)
    return tally.findings(dataset)


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_schema_diff(console: Console, diff: SchemaDiff) -> None:
    """Print each feature that differs, with the expected and the found value of its fields."""
    console.print(line(("expected: ", "bold"), safe(diff.expected)))
    console.print(line(("found:    ", "bold"), safe(diff.found)))
    print_changes(console, diff.changes)
    same = "no difference" if not diff.changes else count(len(diff.changes), "difference")
    console.print(line(same))


def print_compatibility(console: Console, report: CompatibilityReport) -> None:
    """Print the compared schemas, the findings and the verdict."""
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
    """Print the change as a diff on stdout, and its edits and refusals on stderr."""
    for each in proposal.diff.splitlines():
        # Tabs and letters of the schema's text stay; control sequences are escaped.
        text = "\t".join(safe(part, limit=10_000) for part in each.split("\t"))
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


def _feature_prefix(feature: str) -> str:
    return f"`{safe(feature)}`: " if feature else ""
