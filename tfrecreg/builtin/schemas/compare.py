"""Comparisons of schemas of datasets, releases and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tfrecreg.builtin.schemas.lists import list_clashes
from tfrecreg.core.registry.find_schema import find_schema
from tfrecreg.core.registry.history.yanks import not_yanked
from tfrecreg.core.registry.lookup import Release, resolve
from tfrecreg.core.registry.registry import RegistryLike, open_registry
from tfrecreg.core.schema.compat import Mode, clashes
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.differ import SchemaChange, compare_schemas
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Finding, Location, Severity, fingerprint
from tfrecreg.core.values.gating import FailOn
from tfrecreg.core.values.reference import looks_like_reference, parse_reference
from tfrecreg.core.values.text import ShortRepr, safe


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
