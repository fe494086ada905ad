"""Tags releases in git, in GTO's format. Yanks releases, so that `latest` skips them.

A tag points to a commit that holds the release and the pointer to its bytes, so that `dvc pull` at
that commit fetches exactly these bytes.
"""

from __future__ import annotations

import datetime
import getpass
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.data import Release, resolve
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.manifest import MANIFEST_NAME, parse_manifest
from tfrecreg.core.registry.registry import Registry, Yank
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.values.errors import ConflictError, FailureError, ManifestError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True, kw_only=True)
class TagResult:
    """Result of tagging."""

    reference: str
    """The release: ``mnist@1.2.0``."""
    commit: str = ""
    """Tagged commit as hex; empty if there are no tags."""
    made: tuple[str, ...] = ()
    """Tags that this call made."""
    there: tuple[str, ...] = ()
    """Tags that already existed with the same meaning."""
    commands: tuple[str, ...] = field(default=(), repr=False)
    """The next commands to run. They publish the tags."""


def tag(
    registry: Registry,
    reference: str,
    *,
    stage: str | None = None,
    commit: str | None = None,
    progress: Progress = SILENT,
) -> TagResult:
    """Tag a release, and assign it to a stage if one is given. Repeating this changes nothing.

    Without a commit, the first commit that holds the release and its bytes is tagged.
    """
    if stage is not None:
        git.check_stage(stage)
    found = _released(registry, reference, "tagged")
    with transaction(found.dataset, progress):
        return _tag(found, stage, commit)


def _released(registry: Registry, reference: str, what: str) -> Release:
    found = resolve(registry, reference)
    if isinstance(found, Release):
        return found
    raise UsageError(f"`{found.name}` is a build, which may change: only releases can be {what}")


def _tag(release: Release, stage: str | None, revision: str | None) -> TagResult:
    root = release.registry.storage.root
    if release.yanks:
        raise UsageError(f"`{release.name}` was yanked: {release.yanks[-1].reason}")
    if git.work_tree(root) is None:
        raise UsageError("the registry is not in a git work tree, so there is nothing to tag")
    if revision is None and git.is_shallow(root):
        raise FailureError(
            f"this is a shallow clone, which does not have the commit that added `{release.name}`",
            hint="run `git fetch --unshallow`, or name the commit with `--commit REV`",
        )
    name = git.artifact(release.dataset.name, git.folder_in_tree(root))
    commit = _commit_of(release, revision)
    tags = git.list_tags(root, name)
    wanted = git.version_tag(name, str(release.version))
    made: list[str] = []
    there: list[str] = []
    if _is_there(tags, wanted, commit, name):
        there.append(wanted)
    else:
        assert release.manifest.release is not None
        reasons = "\n".join(f"- {safe(each)}" for each in release.manifest.release.change.reasons)
        git.create_tag(root, wanted, commit, f"Release {release.name}\n\n{reasons}\n")
        made.append(wanted)
    if stage is not None:
        if git.in_stage(name, stage, tags) == commit:
            there.append(f"{name}#{stage}")
        else:
            staged = git.stage_tag(name, stage, tags)
            git.create_tag(root, staged, commit, f"{release.name} goes to {stage}")
            made.append(staged)
    return TagResult(
        reference=release.name,
        commit=commit,
        made=tuple(made),
        there=tuple(there),
        commands=_push_commands(made),
    )


def _is_there(tags: list[git.GitTag], wanted: str, commit: str, name: str) -> bool:
    """Whether the version is tagged at this commit."""
    for each in tags:
        if each.name == wanted and each.commit == commit and each.annotated:
            return True
        if each.name == wanted:
            what = f"at commit {each.commit[:12]}" if each.annotated else "and is not annotated"
            raise ConflictError(
                f"the tag `{wanted}` exists {what}: expected an annotated tag at {commit[:12]}"
            )
        if each.commit == commit and git.is_version(name, each.name):
            raise ConflictError(
                f"commit {commit[:12]} is tagged `{each.name}`, but GTO allows one version per "
                "commit: name another commit with --commit"
            )
    return False


def _push_commands(tags: Iterable[str]) -> tuple[str, ...]:
    """The commands that publish the tags, one for each tag."""
    return tuple(f"git push origin '{each}'" for each in tags)


def _commit_of(release: Release, revision: str | None) -> str:
    """The commit to tag: the given one, or the oldest with the release and its pointer."""
    root, name = release.registry.storage.root, release.dataset.name
    frozen = release.manifest.release
    pointers = tracker().pointers(layout.build_folder(name))
    if frozen is None or frozen.dvc is None:
        raise UsageError(
            f"DVC does not keep the bytes of `{release.name}`, so no commit points to them"
        )
    if revision is not None:
        commit = git.find_commit(root, revision)
        missing = _lacks(release, commit, frozen.dvc)
        if missing:
            raise UsageError(f"commit {commit[:12]} does not hold `{release.name}`: {missing}")
        return commit
    folder = layout.release_folder(name, release.version)
    commits = [each.commit for each in git.touches(root, folder, *pointers)]
    missing = "it is in no commit yet"
    for commit in dict.fromkeys(reversed(commits)):
        missing = _lacks(release, commit, frozen.dvc)
        if not missing:
            return commit
    raise UsageError(
        f"no commit here holds both `{release.name}` and the pointer to its bytes: {missing}",
        hint=f"run `git add {folder} {pointers[0]}` and `git commit`, then tag again",
    )


def _lacks(release: Release, commit: str, expected: str) -> str:
    """What is missing or different in a commit; empty if it has everything."""
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
    folder = layout.build_folder(release.dataset.name)
    pointers = tracker().pointers(folder)
    for place in pointers:
        pointer = git.read_blob(root, commit, place)
        if pointer is not None and tracker().named(pointer, place, folder) == expected:
            return ""
    neither = " nor ".join(f"`{each}`" for each in pointers)
    return f"neither {neither} points to {expected[:16]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class YankResult(TagResult):
    """The result of yanking a release. The GTO tag in `made` or `there`, if any, deregisters the
    version.
    """

    yank: Yank
    """The yank of the release, which may have existed before."""
    yanked_now: bool


def yank(
    registry: Registry, reference: str, reason: str, *, progress: Progress = SILENT
) -> YankResult:
    """Mark a release as wrong, with a reason.

    Repeating this with the same reason changes nothing.
    """
    release = _released(registry, reference, "yanked")
    reason = reason.strip()
    if not reason:
        raise UsageError(f"`{release.name}` cannot be yanked without a reason")
    with transaction(release.dataset, progress) as change:
        same = next((each for each in release.yanks if each.reason == reason), None)
        found = same or Yank(created=now(), by=user(), reason=reason)
        if same is None:
            change.yank(release.version, found)
        else:  # an earlier yank may have been killed before it was durable
            change.sync_releases()
        in_git = git.work_tree(registry.storage.root) is not None
        done = YankResult(reference=release.name, yank=found, yanked_now=same is None)
        if in_git:
            done = _deregister(release, done)
    if not in_git or same is not None:
        return done
    path = layout.yanks_path(release.dataset.name, release.version)
    added = f"git add {path} {layout.ATTRIBUTES}", f"git commit -m 'Yank {release.name}'"
    return replace(done, commands=(*added, *done.commands))


def _deregister(release: Release, done: YankResult) -> YankResult:
    """Add the tag that deregisters a version in GTO. Tags are never moved or removed."""
    root = release.registry.storage.root
    try:
        name = git.artifact(release.dataset.name, git.folder_in_tree(root))
    except UsageError:
        return done  # the name cannot have tags of GTO
    tags = {each.name: each for each in git.list_tags(root, name)}
    known = tags.get(git.version_tag(name, str(release.version)))
    if known is None:
        return done
    wanted = git.withdrawal_tag(name, str(release.version))
    if wanted in tags:
        return replace(done, commit=known.commit, there=(wanted,))
    git.create_tag(root, wanted, known.commit, f"Yank {release.name}: {done.yank.reason}")
    pushed = _push_commands((wanted,))
    return replace(done, commit=known.commit, made=(wanted,), commands=pushed)


def now() -> str:
    """UTC, ISO 8601 to the second: ``2026-01-31T12:00:00Z``."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def user() -> str:
    """The user's name; empty for a user id without a name, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
