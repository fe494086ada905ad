"""The operation: the gate passes, the number is legal, the bytes are kept, one rename commits."""

from __future__ import annotations

import platform
import secrets
from dataclasses import dataclass, replace
from typing import Literal

from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.engines import Engine, LocalEngine
from tfrecreg.errors import ConflictError, FailureError, RefusedError, UsageError
from tfrecreg.manifest import (
    MANIFEST_NAME,
    Change,
    Manifest,
    Parent,
    Provenance,
    Release,
    render_manifest,
    seal,
)
from tfrecreg.manifest.adopted import remake_command
from tfrecreg.operations.builds.remember import raw_changed, recall
from tfrecreg.operations.check import (
    CheckOptions,
    Report,
    check_target,
    reference_target,
    scan_cache,
)
from tfrecreg.operations.diff import classify
from tfrecreg.operations.people import now, user
from tfrecreg.operations.progress import SILENT, Progress
from tfrecreg.operations.release.number import choose_number
from tfrecreg.reference import Version, parse_version
from tfrecreg.registry import Registry, Resolved, layout, resolve
from tfrecreg.registry.lock import locked
from tfrecreg.tracking import dvc, git

__all__ = ["ReleaseRequest", "ReleaseResult", "release"]

Level = Literal["auto", "patch", "minor", "major"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """What to release, under which number."""

    name: str
    version: str | None = None
    """MAJOR.MINOR.PATCH; None to count from the parent."""
    bump: Level = "auto"
    """Which part to count up where no version is given; ``auto`` takes the smallest legal."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseResult:
    """A release, made now or found to be there already."""

    manifest: Manifest
    version: Version
    created: bool
    """False where the same content was released under this number before."""
    report: Report | None
    """Of the gate; None where nothing was created."""
    commands: tuple[str, ...]
    """What to run next so that git has it; empty outside git."""

    @property
    def change(self) -> Change:
        """What it is against its parent."""
        assert self.manifest.release is not None
        return self.manifest.release.change


def release(
    registry: Registry,
    request: ReleaseRequest,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> ReleaseResult:
    """Freeze the build of a dataset under a number.

    Raises:
        UsageError: no such build, a bad number, or raw data that changed since the build.
        ConflictError: the number exists with other content.
        RefusedError: the gate fails, the number understates the change (REG001), or a release
            above it was made without it (REG005).
        FailureError: DVC, a plugin or the disk failed.
    """
    with locked(registry, request.name, lambda: progress.note("waiting for another command")):
        resolved = resolve(registry, request.name)
        build, schema = resolved.manifest, resolved.schema
        if schema is None or blake3(schema.encode("utf-8")).hexdigest() != build.schema.blake3:
            raise UsageError(
                f"`{resolved.schema_path}` is not the schema that `{request.name}` was built with",
                hint=remake_command(build),
            )
        version = parse_version(request.version) if request.version is not None else None
        versions = registry.versions(request.name)
        if version is not None and version in versions:
            return _exists(registry, request.name, version, build)
        parent = _parent(registry, request.name, versions, version)
        before = parent.manifest if parent is not None else None
        change, hint = classify(parent, resolved, progress)
        if version is None and before is not None and change.level == "patch":
            same = _same_as(registry, request, before, build)
            if same is not None:
                return same
        version = choose_number(request.name, version, request.bump, before, change, versions, hint)
        if hint:
            progress.note(f"the number might be smaller if more were known: {hint}")
        _raw_is_unchanged(registry, request.name, build)
        report = _judge(registry, request.name, engine or LocalEngine(1), progress)
        kept = _keep_bytes(registry, request.name, version, build, progress)
        _keep_indexes(registry, request.name, build)
        manifest = _released(registry, request, version, before, change, build, kept)
        if not _commit(registry, manifest, version, schema):
            return _exists(registry, request.name, version, build)
        return ReleaseResult(
            manifest=manifest,
            version=version,
            created=True,
            report=report,
            commands=_commands(registry, request.name, version),
        )


def _exists(registry: Registry, name: str, version: Version, build: Manifest) -> ReleaseResult:
    """The number is taken: by the same content, which is well, or by other content."""
    there = registry.release_manifest(name, version)
    if (there.content, there.schema) == (build.content, build.schema):
        # Whoever made it may have been killed, or told of an error, before it was durable.
        for folder in (f"{layout.RELEASES}/{name}", layout.RELEASES, ""):
            registry.storage.sync_dir(folder)
        return ReleaseResult(
            manifest=there, version=version, created=False, report=None, commands=()
        )
    what = "schema" if there.content == build.content else "content"
    raise ConflictError(
        f"`{name}@{version}` exists with other {what}: it has content {there.content[:16]}…, "
        f"the build has {build.content[:16]}…",
        hint=f"releases never change: tfrecreg release {name} --bump auto takes the next number",
    )


def _same_as(
    registry: Registry, request: ReleaseRequest, parent: Manifest, build: Manifest
) -> ReleaseResult | None:
    """Without a number asked for, a build that is its parent to the byte needs no new one."""
    released = parent.release
    if request.bump != "auto" or released is None or released.build != build.digest:
        return None
    return _exists(registry, request.name, parse_version(released.version), build)


def _parent(
    registry: Registry, name: str, versions: list[Version], version: Version | None
) -> Resolved | None:
    """The release that comes before: the newest, or the newest below the number asked for.

    Raises:
        UsageError: there are releases, and none below.
    """
    below = [each for each in versions if version is None or each < version]
    if versions and not below:
        raise UsageError(
            f"`{version}` is below the first release of `{name}`, which is {versions[0]}",
            hint=f"tfrecreg release {name} --bump auto takes the next number",
        )
    return resolve(registry, f"{name}@{below[-1]}") if below else None


def _raw_is_unchanged(registry: Registry, name: str, build: Manifest) -> None:
    record = recall(registry, name, build.digest)
    changed = raw_changed(record) if record is not None else None
    if changed is not None:
        raise UsageError(
            f"the raw file `{changed}` changed after `{name}` was built from it",
            hint=f"tfrecreg build {name}",
        )


def _judge(registry: Registry, name: str, engine: Engine, progress: Progress) -> Report:
    target = reference_target(resolve(registry, name), schema=None, raw=None)
    report = check_target(
        target,
        registry.config,
        CheckOptions(),
        engine=engine,
        progress=progress,
        # What it sees is the last word: nothing that was remembered may contradict it.
        cache=scan_cache(registry, reuse=False),
    )
    if report.errors:
        raise FailureError(
            f"the gate could not judge `{name}`, nothing was released: {report.errors[0]}",
            hint=f"`tfrecreg check {name}` says more",
        )
    if report.status != "pass":
        raise RefusedError(
            f"the gate does not pass, nothing was released: {report.findings[0].message}",
            hint=f"tfrecreg check {name}",
            findings=report.findings,
        )
    return report


def _keep_bytes(
    registry: Registry, name: str, version: Version, build: Manifest, progress: Progress
) -> str | None:
    """Make sure that the bytes outlive the next build; DVC's hash where DVC keeps them."""
    folder = layout.build_folder(name)
    root = registry.storage.root
    if dvc.initialised(root) and dvc.available():
        made = dvc.out_hash(root, folder)
        if made is not None:
            return made  # a stage of a pipeline makes it, and DVC has it
        progress.note(f"dvc add {folder}")
        return dvc.track(root, folder, lambda: progress.note("waiting for another command"))
    copy = layout.version_folder(name, version)
    stage = f"{layout.STAGE}/versions-{name}-{version}-{secrets.token_hex(4)}"
    shards, files = [each.path for each in build.shards], [each.path for each in build.files]
    for path in (*shards, *files, MANIFEST_NAME):
        registry.storage.link(f"{folder}/{path}", f"{stage}/{path}")
    registry.storage.replace_dir(stage, copy)
    registry.storage.remove(stage)
    return None


def _keep_indexes(registry: Registry, name: str, build: Manifest) -> None:
    """Indexes are small and say what a release held: the next one is compared with them."""
    wanted = {shard.index for shard in build.shards}
    for entry in build.files:
        if entry.path in wanted:
            target = layout.cached_index(entry.blake3)
            if registry.storage.stat(target) is None:
                source = f"{layout.build_folder(name)}/{entry.path}"
                registry.storage.link(source, target)


def _released(
    registry: Registry,
    request: ReleaseRequest,
    version: Version,
    parent: Manifest | None,
    change: Change,
    build: Manifest,
    dvc_hash: str | None,
) -> Manifest:
    before = (
        Parent(version=parent.release.version, digest=parent.digest)
        if parent is not None and parent.release is not None
        else None
    )
    return seal(
        replace(
            build,
            release=Release(
                version=str(version),
                build=build.digest,
                parent=before,
                change=change,
                dvc=dvc_hash,
            ),
            provenance=Provenance(
                created=now(),
                by=user(),
                host=platform.node(),
                tfrecreg=__version__,
                python=platform.python_version(),
                note=request.note,
                commit=git.head_commit(registry.storage.root),
            ),
        )
    )


def _commit(registry: Registry, manifest: Manifest, version: Version, schema: str) -> bool:
    """One rename makes the release; False where the number was taken meanwhile."""
    storage = registry.storage
    stage = f"{layout.STAGE}/release-{manifest.dataset}-{version}-{secrets.token_hex(4)}"
    files = {MANIFEST_NAME: render_manifest(manifest), layout.SCHEMA_NAME: schema.encode("utf-8")}
    for name, data in files.items():
        with storage.create(f"{stage}/{name}") as writer:
            writer.write(data)
    if storage.rename_dir(stage, layout.release_folder(manifest.dataset, version)):
        return True
    storage.remove(stage)
    return False


def _commands(registry: Registry, name: str, version: Version) -> tuple[str, ...]:
    root = registry.storage.root
    if git.work_tree(root) is None:
        return ()
    paths = [layout.release_folder(name, version), registry.schema_path(name), "tfrecreg.toml"]
    pointer = dvc.pointer(layout.build_folder(name))
    # Where no stage of a pipeline makes the build, a pointer of its own names the bytes.
    known = (each for each in (pointer, dvc.LOCK_NAME) if registry.storage.stat(each) is not None)
    paths += list(known)[:1]
    return (f"git add {' '.join(paths)}", f"git commit -m 'Release {name}@{version}'")
