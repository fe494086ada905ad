"""Release a build: check the gate and the number, keep the bytes, and commit with one rename."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from tfrecreg._version import __version__
from tfrecreg.builtin.releases.diff.verdict import classify
from tfrecreg.builtin.releases.tag import now, user
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.run import build_from_source
from tfrecreg.core.build.state import raw_changed, recall
from tfrecreg.core.check.gate import expect_policy
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import scan_cache
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.check.target import check_target
from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.data import Resolved, resolve
from tfrecreg.core.registry.find import target_of
from tfrecreg.core.registry.history import RANK, expect_intact, links_of, repair_hint, step
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.lock import dataset_lock
from tfrecreg.core.registry.manifest import Change, Manifest, Parent, Provenance, ReleaseEntry, seal
from tfrecreg.core.registry.registry import Registry, read_yanks
from tfrecreg.core.registry.schemas import built_schema
from tfrecreg.core.registry.transaction import Transaction, transaction
from tfrecreg.core.values.codes import REG001, REG005
from tfrecreg.core.values.errors import ConflictError, FailureError, RefusedError, UsageError
from tfrecreg.core.values.findings import Code
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import Version, parse_version
from tfrecreg.core.values.text import ShortRepr, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

Level = Literal["auto", "patch", "minor", "major"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """The build to release, and the wanted number."""

    name: str
    version: str | None = None
    """MAJOR.MINOR.PATCH. If it is None or ``auto``, the parent's number is increased."""
    bump: Level = "auto"
    """Which part of the number to increase if no version is given. ``auto`` takes the smallest
    legal step. If the newest release is of the same build, it keeps its number."""
    note: str = ""
    raw: str | None = None
    """The shards are compared with the size of the raw data in this folder. If this is None, the
    size comes from the manifest, or else from the dataset's `raw` folder."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReleaseResult(ShortRepr):
    """A release. Either it is new, or it already existed."""

    manifest: Manifest = field(repr=False)
    version: Version
    created: bool
    """Whether the release is new; False if this number already had the same content."""
    report: Report | None
    """The report to which the gate was applied; None if no release was created."""
    commands: tuple[str, ...]
    """Git commands to run next; empty outside git."""

    @property
    def change(self) -> Change:
        """The change since the parent."""
        assert self.manifest.release is not None
        return self.manifest.release.change


def release(
    registry: Registry,
    request: ReleaseRequest,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> ReleaseResult:
    """Freeze the build of a dataset under a number."""
    with transaction(registry.dataset(request.name), progress) as change:
        expect_policy(registry, request.name)
        resolved = resolve(registry, request.name)
        build, schema = resolved.manifest, built_schema(resolved)
        if schema != resolved.schema:
            path = resolved.schema_path
            progress.note(
                f"`{path}` was edited, but its meaning did not change: the release keeps the old "
                "text"
            )
        asked = request.version if request.version != "auto" else None
        version = parse_version(asked) if asked is not None else None
        versions = registry.dataset(request.name).versions
        if version is not None and version in versions:
            return _exists(change, version, build, progress)
        parent = _parent(registry, request.name, versions, version)
        before = parent.manifest if parent is not None else None
        step, hint = classify(parent, resolved, progress)
        was = before.release if before is not None else None
        if version is None and step.level == "patch" and was and was.build == build.digest:
            return _exists(change, parse_version(was.version), build, progress)
        version = choose_number(request.name, version, request.bump, before, step, versions, hint)
        if hint:
            progress.note(
                "a smaller number might be legal, but the bytes to prove this are missing here: "
                f"{hint}"
            )
        record = recall(registry, request.name, build.digest)
        if record is not None and (changed := raw_changed(record)) is not None:
            raise UsageError(
                f"the raw file `{changed}` changed after `{request.name}` was built: build the "
                "dataset again"
            )
        report = _judge(registry, request, build, engine or LocalEngine(1), progress)
        sealed = partial(_released, registry, request, version, before, step, build)
        manifest = change.release(build, version, schema, sealed)
        if manifest is None:
            return _exists(change, version, build, progress)
        return ReleaseResult(
            manifest=manifest,
            version=version,
            created=True,
            report=report,
            commands=_commands(registry, request.name, version),
        )


def _exists(
    change: Transaction, version: Version, build: Manifest, progress: Progress
) -> ReleaseResult:
    """Handle a number that exists. The same content is fine, but other content is a conflict."""
    dataset = change.dataset
    registry, name = dataset.registry, dataset.name
    there = dataset.release_manifest(version)
    same = there.content == build.content, there.labels == build.labels
    if all(same) and there.schema == build.schema:
        yanks = read_yanks(dataset, version)
        if yanks:
            raise ConflictError(
                f"`{name}@{version}` has this content, but was yanked: {yanks[-1].reason}"
            )
        expect_intact(
            build,
            resolve(registry, name).storage(),
            what=f"`{name}@{version}` exists, but the files in `{layout.build_folder(name)}`",
            hint=repair_hint(name),
            progress=progress,
        )
        wrong = tracker().pointer_issue(dataset, links_of(dataset))
        if wrong is not None:
            raise RefusedError(
                f"`{name}@{version}` exists, but `{wrong.path}` is not its pointer: "
                f"{wrong.message}",
                hint=f"`dvc add {layout.build_folder(name)}` writes it again",
            )
        # The process that made it may have been killed, or failed, before the release was durable.
        change.sync_releases()
        return ReleaseResult(
            manifest=there, version=version, created=False, report=None, commands=()
        )
    digests = f"it has content {there.content[:16]}…, but the build has {build.content[:16]}…"
    what = "another schema" if all(same) else "other class names"
    what = what if same[0] else f"other content: {digests}"
    raise ConflictError(
        f"`{name}@{version}` exists with {what}",
        hint="releases never change: take the next number with "
        f"`tfrecreg release {name} --bump auto`",
    )


def _parent(
    registry: Registry, name: str, versions: list[Version], version: Version | None
) -> Resolved | None:
    """The parent: the newest release, or the newest one below the requested number."""
    below = [each for each in versions if version is None or each < version]
    if versions and not below:
        raise UsageError(
            f"`{version}` is below the first release of `{name}`, which is {versions[0]}",
            hint=f"`tfrecreg release {name} --bump auto` takes the next number",
        )
    return resolve(registry, f"{name}@{below[-1]}") if below else None


def _judge(
    registry: Registry, request: ReleaseRequest, build: Manifest, engine: Engine, progress: Progress
) -> Report:
    name, raw = request.name, request.raw
    if raw is None and not build.raw.files:
        raw = registry.dataset(name).raw_folder
    resolved = resolve(registry, name)
    target = target_of(resolved, raw=raw, progress=progress)
    if target.raw is None:
        progress.note(
            "inflation is not judged, because the size of the raw data is unknown: see --raw"
        )
    report = check_target(
        target,
        registry.config,
        CheckOptions(raw=raw),
        engine=engine,
        progress=progress,
        # This check decides, so no cached result may replace it.
        cache=scan_cache(registry, reuse=False),
    )
    if report.errors:
        raise FailureError(
            f"the gate could not judge `{name}`, so nothing was released: {report.errors[0]}",
            hint=f"tfrecreg check {name}",
        )
    if report.status != "pass":
        raise RefusedError(
            f"the gate failed, so nothing was released: {report.findings[0].message}",
            hint=f"tfrecreg check {name}" + (f" --raw {request.raw}" if request.raw else ""),
            findings=report.findings,
        )
    return report


def _released(
    registry: Registry,
    request: ReleaseRequest,
    version: Version,
    parent: Manifest | None,
    change: Change,
    build: Manifest,
    dvc_hash: str | None,
) -> Manifest:
    before = None
    if parent is not None and parent.release is not None:
        before = Parent(version=parent.release.version, digest=parent.digest)
    release = ReleaseEntry(
        version=str(version), build=build.digest, parent=before, change=change, dvc=dvc_hash
    )
    provenance = Provenance(
        created=now(),
        by=user(),
        host=platform.node(),
        tfrecreg=__version__,
        python=platform.python_version(),
        note=request.note,
        commit=git.head_commit(registry.storage.root),
    )
    return seal(replace(build, release=release, provenance=provenance))


def _commands(registry: Registry, name: str, version: Version) -> tuple[str, ...]:
    root = registry.storage.root
    if git.work_tree(root) is None:
        return ()
    release = layout.release_folder(name, version)
    paths = [release, layout.ATTRIBUTES, registry.dataset(name).schema_path]
    file = registry.dataset(name).config_file
    if registry.storage.stat(file) is not None:  # this command may have written it
        paths.append(file)
    # If no stage of a pipeline makes the build, its own pointer names the bytes.
    pointers = tracker().pointers(layout.build_folder(name))
    paths += [each for each in pointers if registry.storage.stat(each) is not None][:1]
    return (shlex.join(["git", "add", *paths]), f"git commit -m 'Release {name}@{version}'")


def choose_number(
    name: str,
    version: Version | None,
    bump: Level,
    parent: Manifest | None,
    change: Change,
    versions: Sequence[Version],
    hint: str = "",
) -> Version:
    """The requested number, or the next number if none is requested."""
    if parent is None or parent.release is None or change.level == "initial":
        return version or Version(1, 0, 0)
    before = parse_version(parent.release.version)
    smallest = before.bump(change.level)
    legal = f"the smallest legal number is {smallest}"
    next_one = f"`tfrecreg release {name} --bump auto` takes the next number"
    if version is None:
        version = before.bump(change.level if bump == "auto" else bump)
    if smallest in versions:
        legal = next_one
    said = step(before, version)
    if RANK[said] < RANK[change.level]:
        message = (
            f"`{version}` understates the change since {before}: it is {change.level}, "
            f"not {said}: {safe('; '.join(change.reasons), limit=2000)}"
        )
        unsure = (
            ". A smaller number might be legal, but the bytes to prove this are missing here: "
            f"{hint}"
        )
        advice = f"{legal}{unsure if hint else ''}"
        raise _refused(REG001, name, version, message, advice)
    above = [each for each in versions if each > version and each.major == version.major]
    if above and change.level != "patch":
        message = (
            f"`{version}` would come before {above[0]}, but {above[0]} lacks the changes since "
            f"{before}"
        )
        raise _refused(REG005, name, version, message, next_one)
    return version


def _refused(code: Code, name: str, version: Version, message: str, hint: str) -> RefusedError:
    tally = Tally()
    tally.add(replace(code, hint=hint), message, None, subject=str(version))
    return RefusedError(message, hint=hint, findings=tuple(tally.findings(name)))


def publish(
    registry: Registry,
    request: BuildRequest,
    version: str | None,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> tuple[BuildResult, ReleaseResult]:
    """Build a dataset and release the result, even if other processes do so at the same time."""
    with dataset_lock(
        registry, request.name, partial(progress.note, "waiting for another command")
    ):
        built = build_from_source(registry, request, engine=engine, progress=progress)
        wanted = ReleaseRequest(name=request.name, version=version)
        return built, release(registry, wanted, engine=engine, progress=progress)
