"""Tagging a release in git as GTO does, and yanking one, which `latest` skips.

A tag goes to a commit that holds the release and the pointer to its bytes, so that `dvc pull` at
that commit gives exactly these bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tfrecreg.core.build.conclude import now, user
from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.lookup import Release, resolve
from tfrecreg.core.registry.manifest import MANIFEST_NAME, parse_manifest
from tfrecreg.core.registry.registry import Registry, Yank
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.values.errors import ConflictError, FailureError, ManifestError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRequest:
    """Request to tag a release."""

    reference: str
    stage: str | None = None
    """The stage to assign it to; None to register the version alone."""
    commit: str | None = None
    """The git revision to tag; None for the first commit that holds the release and its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagResult:
    """Result of tagging."""

    reference: str
    """The release: ``mnist@1.2.0``."""
    commit: str = ""
    """Tagged commit as hex; empty if there are no tags."""
    made: tuple[str, ...] = ()
    """Tags that were made now."""
    there: tuple[str, ...] = ()
    """Tags that were there, and mean the same."""
    commands: tuple[str, ...] = field(default=(), repr=False)
    """Commands to run next to publish the tags."""


def tag(registry: Registry, request: TagRequest, *, progress: Progress = SILENT) -> TagResult:
    """Tag a release.

    Doing it again does nothing more.
    """
    if request.stage is not None:
        git.check_stage(request.stage)
    found = released(registry, request.reference, "tagged")
    with transaction(found.dataset, progress):
        return _tag(found, request)


def released(registry: Registry, reference: str, what: str) -> Release:
    """The release to tag or yank."""
    found = resolve(registry, reference)
    if isinstance(found, Release):
        return found
    raise UsageError(
        f"`{found.name}` is a build, which changes: only releases are {what}",
        hint=f"name one: `tfrecreg log {found.name}` lists them",
    )


def _tag(release: Release, request: TagRequest) -> TagResult:
    root = release.registry.storage.root
    yanks = release.yanks
    if yanks:
        raise UsageError(
            f"`{release.name}` was yanked: {safe(yanks[-1].reason)}",
            hint=f"tag another release: tfrecreg log {release.dataset}",
        )
    if git.work_tree(root) is None:
        raise UsageError(
            "the registry is not in a git work tree, so there is nothing to tag",
            hint="git init, git add and git commit; then tag",
        )
    if request.commit is None and git.is_shallow(root):
        raise FailureError(
            f"this is a shallow clone, which does not have the commit that added `{release.name}`",
            hint="git fetch --unshallow, or name the commit: --commit REV",
        )
    name = git.artifact(release.dataset.name, git.folder_in_tree(root))
    commit = commit_of(release, request.commit)
    tags = git.list_tags(root, name)
    wanted = git.version_tag(name, str(release.version))
    made: list[str] = []
    there: list[str] = []
    if _is_there(tags, wanted, commit, name):
        there.append(wanted)
    else:
        git.create_tag(root, wanted, commit, _message(release))
        made.append(wanted)
    if request.stage is not None:
        if git.in_stage(name, request.stage, tags) == commit:
            there.append(f"{name}#{request.stage}")
        else:
            staged = git.stage_tag(name, request.stage, tags)
            git.create_tag(root, staged, commit, f"{release.name} goes to {request.stage}")
            made.append(staged)
    return TagResult(
        reference=release.name,
        commit=commit,
        made=tuple(made),
        there=tuple(there),
        commands=push_commands(tuple(made)),
    )


def _is_there(tags: list[git.GitTag], wanted: str, commit: str, name: str) -> bool:
    """Whether the version is tagged at this commit."""
    for each in tags:
        if each.name == wanted and each.commit == commit and each.annotated:
            return True
        if each.name == wanted:
            what = f"at commit {each.commit[:12]}" if each.annotated else "and is not annotated"
            raise ConflictError(
                f"the tag `{wanted}` is there {what}: expected an annotated one at {commit[:12]}",
                hint=f"tags that others may have must not move: inspect it with git show {wanted}",
            )
        if each.commit == commit and git.is_version(name, each.name):
            raise ConflictError(
                f"commit {commit[:12]} is tagged `{each.name}`, and GTO allows one version "
                "per commit",
                hint="commit the releases one by one, or name another commit that holds this one: "
                "--commit REV",
            )
    return False


def _message(release: Release) -> str:
    frozen = release.manifest.release
    change = frozen.change if frozen is not None else None
    reasons = "\n".join(f"- {safe(each)}" for each in change.reasons) if change is not None else ""
    return f"Release {release.name}\n\n{reasons}\n"


def push_commands(tags: tuple[str, ...]) -> tuple[str, ...]:
    """What publishes the tags, one command each."""
    return tuple(f"git push origin '{each}'" for each in tags)


def commit_of(release: Release, revision: str | None) -> str:
    """The commit to tag."""
    root = release.registry.storage.root
    frozen = release.manifest.release
    pointer, *_ = tracker().pointers(layout.build_folder(release.dataset.name))
    if frozen is None or frozen.dvc is None:
        raise UsageError(
            f"DVC does not keep the bytes of `{release.name}`, so no commit points to them",
            hint="`tfrecreg init` makes the registry a DVC repository; then release and tag",
        )
    if revision is not None:
        commit = git.find_commit(root, revision)
        missing = _lacks(release, commit)
        if missing:
            raise UsageError(
                f"commit {commit[:12]} does not hold `{release.name}`: {missing}",
                hint=f"leave out `--commit`, and the commit that added {pointer} is found",
            )
        return commit
    missing = "no commit has it yet"
    for commit in _candidates(release):
        missing = _lacks(release, commit)
        if not missing:
            return commit
    folder = layout.release_folder(release.dataset.name, release.version)
    raise UsageError(
        f"no commit here holds `{release.name}` and the pointer to its bytes: {missing}",
        hint=f"git add {folder} {pointer}, git commit, and tag again",
    )


def _candidates(release: Release) -> Iterator[str]:
    """Commits that may have begun to hold it, the oldest first."""
    root = release.registry.storage.root
    folder = layout.release_folder(release.dataset.name, release.version)
    pointers = tracker().pointers(layout.build_folder(release.dataset.name))
    commits = [each.commit for each in git.touches(root, folder, *pointers)]
    yield from dict.fromkeys(reversed(commits))


def _lacks(release: Release, commit: str) -> str:
    """What a commit does not hold, or holds otherwise; empty where all is there."""
    root = release.registry.storage.root
    path = f"{layout.release_folder(release.dataset.name, release.version)}/{MANIFEST_NAME}"
    data = git.read_blob(root, commit, path)
    if data is None:
        return f"it has no `{path}`"
    try:
        found = parse_manifest(data, path).digest
    except ManifestError as error:
        return error.message
    if found != release.manifest.digest:
        return f"`{path}` differs there"
    frozen = release.manifest.release
    expected = frozen.dvc if frozen is not None else None
    folder = layout.build_folder(release.dataset.name)
    pointers = tracker().pointers(folder)
    seen = []
    for place in pointers:
        pointer = git.read_blob(root, commit, place)
        value = tracker().named(pointer, place, folder) if pointer is not None else None
        if value is not None and value == expected:
            return ""
        if value is not None:
            seen.append(f"`{place}` points to {safe(value[:16])}…")
    neither = " nor ".join(f"`{each}`" for each in pointers)
    pointed = " and ".join(seen) or f"neither {neither} points to it"
    return f"expected a pointer to {(expected or '')[:16]}…, {pointed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class YankResult(TagResult):
    """The result of yanking a release, and the tag that deregisters it in GTO, if it has one."""

    yank: Yank
    """Yank of the release, new or existing."""
    yanked_now: bool


def yank(
    registry: Registry, reference: str, reason: str, *, progress: Progress = SILENT
) -> YankResult:
    """Mark a release as wrong, with a reason.

    Doing it again for the same reason does nothing more.
    """
    release = released(registry, reference, "yanked")
    reason = reason.strip()
    if not reason:
        raise UsageError(
            f"`{release.name}` cannot be yanked without a reason",
            hint=f"tfrecreg yank {release.name} --reason 'why nobody should use it'",
        )
    with transaction(release.dataset, progress) as change:
        same = next((each for each in release.yanks if each.reason == reason), None)
        found = same or Yank(created=now(), by=user(), reason=reason)
        if same is None:
            change.yank(release.version, found)
        else:  # an earlier yank may have been killed before it was durable
            change.sync_releases()
        made: tuple[str, ...] = ()
        there: tuple[str, ...] = ()
        commit = ""
        commands: tuple[str, ...] = ()
        if git.work_tree(registry.storage.root) is not None:
            path = layout.yanks_path(release.dataset.name, release.version)
            if same is None:
                added = f"git add {path} {layout.ATTRIBUTES}"
                commands = (added, f"git commit -m 'Yank {release.name}'")
            made, there, commit = _deregister(release, reason)
    return YankResult(
        reference=release.name,
        commit=commit,
        made=made,
        there=there,
        yank=found,
        yanked_now=same is None,
        commands=(*commands, *push_commands(made)),
    )


def _deregister(release: Release, reason: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Deregister a registered version in GTO, by a tag: tags are never moved or removed."""
    root = release.registry.storage.root
    try:
        name = git.artifact(release.dataset.name, git.folder_in_tree(root))
    except UsageError:
        return (), (), ""  # so it has no tags of GTO's
    tags = {each.name: each for each in git.list_tags(root, name)}
    known = tags.get(git.version_tag(name, str(release.version)))
    if known is None:
        return (), (), ""
    wanted = git.withdrawal_tag(name, str(release.version))
    if wanted in tags:
        return (), (wanted,), known.commit
    git.create_tag(root, wanted, known.commit, f"Yank {release.name}: {reason}")
    return (wanted,), (), known.commit
