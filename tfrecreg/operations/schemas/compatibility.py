"""Whether readers made from one version of a schema parse the records of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.errors import UsageError
from tfrecreg.findings import Finding, Location, Severity, fingerprint
from tfrecreg.gating import FailOn
from tfrecreg.operations.schemas.find import find_schema
from tfrecreg.reference import looks_like_reference, parse_reference
from tfrecreg.registry import RegistryLike, open_registry, resolve
from tfrecreg.registry.yanks import held
from tfrecreg.schema import Schema, parse_schema
from tfrecreg.schema.compat import Clash, Mode, clashes
from tfrecreg.text import safe

__all__ = ["CompatibilityOptions", "CompatibilityReport", "check_compatibility"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatibilityOptions:
    """How to compare. The defaults are those of the command line."""

    mode: Mode = "full"
    transitive: bool = False
    """Against every release rather than the latest."""
    against: tuple[str, ...] = ()
    """Datasets, releases or files to hold it against instead of releases."""
    environment: str | None = None
    fail_on: FailOn = FailOn.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatibilityReport:
    """The result of comparing one schema with others."""

    schema: str
    """Where it is."""
    mode: Mode
    against: tuple[str, ...]
    """The others, oldest first; empty where there is no release yet."""
    status: Literal["pass", "fail"]
    findings: tuple[Finding, ...]
    """The worst first, then by the schema compared with and the feature."""

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail."""
        return 0 if self.status == "pass" else 1

    def to_json(self) -> dict[str, Any]:
        """The document of ``schema check --json``."""
        return {
            "schema": self.schema,
            "mode": self.mode,
            "against": list(self.against),
            "status": self.status,
            "findings": [finding.to_json() for finding in self.findings],
        }


def check_compatibility(
    name: str,
    *,
    registry: RegistryLike | None = None,
    options: CompatibilityOptions | None = None,
) -> CompatibilityReport:
    """Hold a schema against those of releases, or against others.

    Args:
        name: a dataset, a release or a file: today's schema.
        registry: an open registry or a path in one; None for that of the current folder.
        options: which way, and against what.

    Raises:
        UsageError: there is no such schema, or for a file nothing to hold it against.
        SchemaError: one does not parse, or has no such environment.
    """
    options = options or CompatibilityOptions()
    text, where = find_schema(name, registry=registry)
    today = parse_schema(text, where)
    others = options.against or tuple(_releases(name, registry, transitive=options.transitive))
    dataset = parse_reference(name).name if looks_like_reference(name) else ""
    findings: list[Finding] = []
    for other in others:
        before = parse_schema(*find_schema(other, registry=registry))
        findings += _findings(dataset, today, before, other, options)
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
    """The releases that `name` has to fit, oldest first: those before it, of a release.

    Those that were withdrawn bind nobody.
    """
    if not looks_like_reference(name):
        raise UsageError(
            f"`{safe(name)}` is a file: there is nothing to hold it against",
            hint="name another schema with --against",
        )
    opened = open_registry(registry)
    reference = parse_reference(name)
    versions = held(opened, reference.name)
    if reference.selector is not None:
        own = resolve(opened, name).version
        versions = [version for version in versions if own is None or version < own]
    if not transitive:
        versions = versions[-1:]
    return [f"{reference.name}@{version}" for version in versions]


def _findings(
    dataset: str, today: Schema, before: Schema, other: str, options: CompatibilityOptions
) -> Iterator[Finding]:
    if options.mode in ("backward", "full"):
        for clash in clashes(today, before, options.environment):
            yield _finding(dataset, clash, "backward", f"today's reader, records of {other}")
    if options.mode in ("forward", "full"):
        for clash in clashes(before, today, options.environment):
            yield _finding(dataset, clash, "forward", f"reader of {other}, today's records")


def _finding(dataset: str, clash: Clash, direction: str, who: str) -> Finding:
    code = clash.code
    return Finding(
        code=code.code,
        rule=code.rule,
        severity=Severity(code.severity),
        message=clash.message,
        hint=code.hint,
        fingerprint=fingerprint(
            code.code, dataset=dataset, feature=clash.feature, subject=f"{direction}/{clash.rule}"
        ),
        count=1,
        locations=(Location(feature=clash.feature, detail=who),),
    )
