"""Checks the releases of a registry without their bytes, for pull requests.

A fault in one branch shows in that branch's own files. But each of two branches can add a release
with the same number or the same parent. Such releases are found only by comparing the branches.
`base` names the other branch. A change can break data, and also loosen the gate in `tfrecreg.toml`
so that the data pass. The audit therefore reports loosened settings as well.
"""

from __future__ import annotations

import datetime
import posixpath
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tfrecreg.builtin.releases.audit_history import (
    SHALLOW,
    Audit,
    audit,
    by_cause,
    ever_released,
    fork_issue,
    forks,
    left_out_issue,
    version_in,
)
from tfrecreg.builtin.releases.audit_validator import HISTORY, add_issue
from tfrecreg.core.check.findings import judge_findings, severity_order
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.absence import (
    expect_dataset,
    expects_schema,
    missing_build,
    schema_hint,
)
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.history import Issue, Link, link_of
from tfrecreg.core.registry.manifest import MANIFEST_NAME, parse_manifest
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.codes import REG002, REG006, REG010, REG013
from tfrecreg.core.values.config import (
    CONFIG_NAME,
    Config,
    FailOn,
    GateConfig,
    Verdict,
    Waiver,
    parse_config,
    severity_of,
)
from tfrecreg.core.values.errors import (
    ConfigError,
    FailureError,
    ManifestError,
    SchemaError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.findings import Finding, Location, Measure, Severity
from tfrecreg.core.values.reference import Version
from tfrecreg.core.values.text import listed, safe

_STRICT = (FailOn.WARNING, FailOn.ERROR, FailOn.NEVER)
"""The values of `fail_on`, from the strictest to the loosest."""
_DEFAULT = "default"


def loosened(before: Config, after: Config) -> list[Finding]:
    """A finding for each thing that `after` accepts and `before` does not.

    A changed limit always counts, because only its validator knows which limit is looser.
    """
    tally, where = Tally(), Location(shard=CONFIG_NAME)
    for subject, message in (*_waivers(before, after), *_gates(before, after)):
        tally.add(REG013, message, where, subject=subject)
    return list(tally.findings(""))


def _waivers(before: Config, after: Config) -> Iterator[tuple[str, str]]:
    longest: dict[tuple[str, str], Waiver] = {}
    for each in sorted(before.waivers, key=lambda waiver: waiver.expires):
        longest[each.code, each.fingerprint] = each
    for each in after.waivers:
        what = " ".join(f"`{safe(glob)}`" for glob in (each.code, each.fingerprint) if glob != "*")
        subject = f"waivers.{each.code}.{each.fingerprint}"
        until = f"until {each.expires} ({safe(each.owner)}: {safe(each.reason)})"
        known = longest.get((each.code, each.fingerprint))
        if known is None:
            yield subject, f"a new waiver of {what} {until}"
        elif known.expires < each.expires:
            yield subject, f"the waiver of {what}, until {known.expires}, is extended {until}"
    then, now = before.policy.max_waiver_days, after.policy.max_waiver_days
    if then is not None and (now is None or now > then):
        yield "policy.max_waiver_days", f"`policy.max_waiver_days` was {then}, is {_text(now)}"
    more = sorted(set(after.plugins.disable) - set(before.plugins.disable))
    if more:
        yield "plugins.disable", f"`plugins.disable` now also has {listed(more)}"


def _gates(before: Config, after: Config) -> Iterator[tuple[str, str]]:
    told: set[tuple[str, str]] = set()
    # The default gate first, so that a change for all gates is reported once.
    for name in (_DEFAULT, *sorted({*before.gates, *after.gates} - {_DEFAULT})):
        for change in _gate(before.gate(name), after.gate(name)):
            if change not in told:
                told.add(change)
                key, message = change
                yield f"gates.{name}.{key}", f"`gates.{safe(name)}.{safe(key)}`: {message}"


def _gate(before: GateConfig, after: GateConfig) -> Iterator[tuple[str, str]]:
    """Yield two texts for each loosened setting: its key, and how the setting changed."""
    if _STRICT.index(after.fail_on) > _STRICT.index(before.fail_on):
        yield "fail_on", f"was {before.fail_on.value}, is {after.fail_on.value}"
    changed = {pattern for pattern, _ in before.severity.items() ^ after.severity.items()}
    codes = plugins().codes().values() if changed else ()
    for pattern in sorted(changed):
        glob, detail, _ = pattern.partition(" ")
        matched = [code for code in codes if fnmatchcase(code.code, glob)]
        changes = [
            (severity_of(code, before.severity), severity_of(code, after.severity))
            for code in matched
        ]
        if detail:  # no code has the detail, so the pattern's own severity counts
            worst = [max(each, key=lambda one: one.rank) for each in zip(*changes, strict=True)]
            then, now = worst or (Severity.INFO, Severity.INFO)
            own = before.severity.get(pattern, then), after.severity.get(pattern, now)
            changes = [own]
        lowered = [each for each in changes if each[1].rank < each[0].rank]
        if lowered:
            then, now = max(lowered, key=lambda each: (each[0].rank, -each[1].rank))
            yield "severity", f"was {then.value}, is {now.value} for `{safe(pattern)}`"
    if after.validators is not None:
        if before.validators is None:
            yield "validators", f"was all that apply, is now only {listed(after.validators)}"
        elif gone := sorted({*before.validators} - {*after.validators}):
            yield "validators", f"no longer has {listed(gone)}"
    for validator in sorted({*before.limits, *after.limits}):
        limits = [each.limits.get(validator, {}) for each in (before, after)]
        for option in sorted({*limits[0], *limits[1]}):
            was, is_ = (each.get(option) for each in limits)
            if was != is_:
                yield f"limits.{validator}.{option}", f"was {_text(was)}, is {_text(is_)}"
    for name, was in before.expect.items():
        if (now_is := after.expect.get(name)) != was:
            yield f"expect.{name}", "was changed" if now_is is not None else "was removed"


def _text(value: object) -> str:
    return "not set" if value is None else safe(str(value))


_FETCH = "`{}`; in CI, set `fetch-depth: 0` for actions/checkout or `GIT_DEPTH: 0` for GitLab"
_FETCH_ALL = "git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'"


def audit_releases(
    registry: Registry,
    names: Sequence[str] = (),
    *,
    base: str | None = None,
    fail_on: FailOn | str | None = None,
    today: datetime.date | None = None,
) -> Report:
    """Check manifests, schemas, versions and history of releases, and the current schemas."""
    for name in names:
        expect_dataset(registry.dataset(name))
    expect_policy(registry, *names, today=today)
    other = _Base.of(registry, base) if base is not None else None
    limit = None if fail_on is None else FailOn.parse(fail_on)
    judged: list[Verdict] = []
    errors: list[str] = []
    changes: list[str] = []
    releases, unseen = 0, ""

    def judge(issues: Iterable[Finding], config: Config, name: str = "") -> None:
        gate, waivers = config.gate(name), config.waivers
        judged.append(
            judge_findings(issues, gate, waivers, dataset=name, fail_on=limit, today=today)
        )

    if other is not None:
        # With the gate and the waivers of the base: a change cannot accept itself.
        looser = loosened(other.config, registry.config)
        judge(looser, other.config)
        changes += (f"{CONFIG_NAME}: {each.message}" for each in looser)
    for name in sorted(set(names) or _all_datasets(registry, other)):
        dataset = registry.dataset(name)
        found = audit(dataset)
        releases += len(dataset.versions)
        unseen = unseen or found.unseen
        issues = list(found.issues)
        if name in registry.config.broken:
            error = registry.config.broken[name]
            errors.append(f"{error.message}; hint: {error.hint}")
        else:
            issues += _schema_issues(dataset)
        if other is not None:
            changes += other.changes(dataset, found)
            issues += other.issues(dataset, found)
        tally = Tally()
        for issue in by_cause(issues):
            add_issue(tally, issue)
        judge(tally.findings(name), registry.config, name)
    if unseen == SHALLOW and not (other and other.meeting):
        errors.append(f"{unseen}; hint: {_FETCH.format('git fetch --unshallow')}")
    elif unseen and unseen != SHALLOW:
        errors.append(unseen)
    failed = any(each.status == "fail" for each in judged)
    findings = (finding for each in judged for finding in each.findings)
    return Report(
        target="the releases" + (f", with those of {safe(base)}" if base is not None else ""),
        status="error" if errors else "fail" if failed else "pass",
        shards=0,
        records=0,
        bytes=0,
        payload_bytes=0,
        releases=releases,
        findings=tuple(sorted(findings, key=severity_order)),
        waived=tuple(finding for each in judged for finding in each.waived),
        waivers=tuple(waiver for each in judged for waiver in each.waivers),
        lowered=tuple(lowered for each in judged for lowered in each.lowered),
        measures=(Measure(HISTORY, unseen, unseen),) if unseen else (),
        validators=("registry",),  # the one that checks single releases
        errors=tuple(errors),
        changes=tuple(changes),
    )


def _all_datasets(registry: Registry, other: _Base | None) -> set[str]:
    """Datasets of the registry, including those whose releases are missing here or exist only on
    the other branch.
    """
    found = {*registry.dataset_names(), *(other.datasets() if other is not None else ())}
    with suppress(FailureError):  # the audit of each dataset reports why git failed
        found |= ever_released(registry)
    return found


def _schema_issues(dataset: Dataset) -> Iterator[Issue]:
    """Yield an issue if the next build cannot be checked against the dataset's schema."""
    path, text, message = dataset.schema_path, dataset.schema_text(), ""
    if text is not None:
        try:
            parse_schema(text, path)
        except SchemaError as error:
            message = error.message
    elif expects_schema(dataset):
        message = f"it is missing; {schema_hint(dataset)}"
    if message:
        yield Issue(code=REG010, versions=frozenset(), path=path, message=message)


@dataclass(frozen=True)
class _Base:
    """The releases of another branch."""

    root: str
    revision: str
    """Git revision as the user named it."""
    commit: str
    meeting: str
    """The last common commit, as hex; empty if the clone lacks it. A shallow clone with the commits
    since then is enough to judge this branch."""
    config: Config
    """The configuration in the last common commit, or else in the commit of the revision."""
    manifests: Mapping[str, str]
    """Paths and object names of the manifests of its releases."""
    common: Mapping[str, str]
    """Paths and object names of the manifests in the last common commit."""

    @classmethod
    def of(cls, registry: Registry, revision: str) -> _Base:
        """Resolve the revision and read its releases and configuration."""
        root = registry.storage.root
        if git.work_tree(root) is None:
            raise UsageError(f"`--base {revision}`: the registry is not in a git work tree")
        try:
            commit = git.find_commit(root, revision)
        except UsageError as error:
            if not git.is_shallow(root):
                raise
            message = error.message.removesuffix(" here")
            raise FailureError(
                f"{message} in this shallow clone", hint=_FETCH.format(_FETCH_ALL)
            ) from None
        head = git.head_commit(root)
        meeting = git.merge_base(root, head, commit) if head else ""
        common = _manifests(root, meeting) if meeting else {}
        try:
            config = parse_config(git.read_blob(root, meeting or commit, CONFIG_NAME) or b"")
        except ConfigError:
            config = Config()  # the built-in gate
        return cls(root, revision, commit, meeting, config, _manifests(root, commit), common)

    def datasets(self) -> list[str]:
        """Datasets with releases on that branch."""
        return sorted({path.split("/")[1] for path in self.manifests})

    def changes(self, dataset: Dataset, here: Audit) -> Iterator[str]:
        """Yield lines about an unreleased build, and about releases that the branch lacks."""
        # Needs NumPy, which other audits do not.
        from tfrecreg.builtin.releases.diff.verdict import changes_of

        if missing := missing_build(dataset):
            yield missing
        with suppress(TfrecregError):  # findings say why
            build, released = dataset.build_manifest(), {each.build for each in here.links.values()}
            if build is not None and build.digest not in released:
                yield changes_of(resolve(dataset.registry, dataset.name))
        for version in reversed(dataset.versions):
            path = f"{layout.release_folder(dataset.name, version)}/{MANIFEST_NAME}"
            blob = self.manifests.get(path)
            with suppress(TfrecregError):
                data = dataset.registry.storage.read(path)
                if blob is None or git.blob_id(data, blob) != blob:
                    yield changes_of(resolve(dataset.registry, f"{dataset}@{version}"))

    def issues(self, dataset: Dataset, here: Audit) -> Iterator[Issue]:
        """The issues that show only if the releases of both branches are combined."""
        name, shown = dataset.name, safe(self.revision)
        links: dict[Version, Link] = dict(here.links)
        theirs: dict[Version, Link] = {}
        for path in sorted(self.manifests):
            version = version_in(path)
            if version is None or path.split("/")[1] != name:
                continue
            there, alone = self._link(path), frozenset({version})
            if there is not None:
                theirs[version] = there
            if version in dataset.versions:
                ours = here.links.get(version)
                if ours is not None and there is not None and there.digest != ours.digest:
                    message = (
                        f"`{name}@{version}` is a different release on {shown}: expected digest "
                        f"{there.digest[:16]}…, found {ours.digest[:16]}…"
                    )
                    yield Issue(code=REG006, versions=alone, path=path, message=message)
            elif path in self.common:
                yield Issue(
                    code=REG002,
                    versions=alone,
                    path=path,
                    message=f"`{name}@{version}` is missing here, but {shown} has it",
                    command=f"git checkout {shlex.quote(shown)} -- {posixpath.dirname(path)}",
                )
            elif there is not None:
                links[version] = there
        known = set(forks(here.links))
        for pair in forks(links):
            if pair not in known:
                others = [str(each.version) for each in pair if each.version not in here.links]
                be = "is" if len(others) == 1 else "are"
                yield fork_issue(name, *pair, where=f"; {' and '.join(others)} {be} on {shown}")
        yield from self._left_out(name, here.links, theirs)

    def _left_out(
        self, name: str, mine: Mapping[Version, Link], theirs: Mapping[Version, Link]
    ) -> Iterator[Issue]:
        """Yield an issue if a new release of this branch lacks changes that the other branch
        released.
        """
        shown = safe(self.revision)
        for version in sorted(mine.keys() - theirs.keys()):
            for link, other in forks({**theirs, version: mine[version]}, across=True):
                if link.version == version:
                    yield left_out_issue(name, link, other, other.version, shown)
                # A correction of an older line is made when the newer line already exists.
                elif other.version == version and link.version not in mine:
                    yield left_out_issue(name, link, other, link.version, shown)

    def _link(self, path: str) -> Link | None:
        """The link of a release. None if the release is damaged: the check of its branch reports
        this.
        """
        data = git.read_blob(self.root, self.commit, path)
        if data is None:
            return None
        try:
            return link_of(parse_manifest(data, f"{self.revision}:{path}"))
        except (ManifestError, UsageError, ValueError):
            return None


def _manifests(root: str, commit: str) -> Mapping[str, str]:
    return {
        path: blob
        for path, blob in git.list_blobs(root, commit, layout.RELEASES).items()
        if path.endswith(f"/{MANIFEST_NAME}") and version_in(path) is not None
    }
