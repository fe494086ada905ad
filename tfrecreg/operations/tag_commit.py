"""The commit that tags go to: one that holds the release and the pointer to its bytes."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.errors import ManifestError, UsageError
from tfrecreg.manifest import MANIFEST_NAME, parse_manifest
from tfrecreg.reference import Version
from tfrecreg.registry import Resolved, layout
from tfrecreg.text import safe
from tfrecreg.tracking import dvc, git

__all__ = ["commit_of"]


def commit_of(resolved: Resolved, version: Version, revision: str | None) -> str:
    """The commit to tag.

    Args:
        resolved: the release.
        version: its number.
        revision: the commit that the user names; None for the first one that holds all of it.

    Raises:
        UsageError: the one that was named does not hold what it should, or none does.
        MissingExtraError: DVC is not installed, whose files are to be read.
        FailureError: git refused.
    """
    root = resolved.registry.storage.root
    release = resolved.manifest.release
    pointer = dvc.pointer(layout.build_folder(resolved.dataset))
    if release is None or release.dvc is None:
        raise UsageError(
            f"DVC does not keep the bytes of `{resolved.name}`, so no commit points to them",
            hint="`tfrecreg init` makes the registry a DVC repository; then release and tag",
        )
    if revision is not None:
        commit = git.find_commit(root, revision)
        missing = _lacks(resolved, version, commit)
        if missing:
            raise UsageError(
                f"commit {commit[:12]} does not hold `{resolved.name}`: {missing}",
                hint=f"leave out `--commit`, and the commit that added {pointer} is found",
            )
        return commit
    missing = "no commit has it yet"
    for commit in _candidates(resolved, version):
        missing = _lacks(resolved, version, commit)
        if not missing:
            return commit
    folder = layout.release_folder(resolved.dataset, version)
    raise UsageError(
        f"no commit here holds `{resolved.name}` and the pointer to its bytes: {missing}",
        hint=f"git add {folder} {pointer}, git commit, and tag again",
    )


def _candidates(resolved: Resolved, version: Version) -> Iterator[str]:
    """Commits that may have begun to hold it, the oldest first."""
    root = resolved.registry.storage.root
    folder = layout.release_folder(resolved.dataset, version)
    paths = (folder, dvc.pointer(layout.build_folder(resolved.dataset)), dvc.LOCK_NAME)
    commits = [each.commit for each in git.touches(root, *paths)]
    yield from dict.fromkeys(reversed(commits))


def _lacks(resolved: Resolved, version: Version, commit: str) -> str:
    """What a commit does not hold, or holds otherwise; empty where all is there."""
    root = resolved.registry.storage.root
    path = f"{layout.release_folder(resolved.dataset, version)}/{MANIFEST_NAME}"
    data = git.read_blob(root, commit, path)
    if data is None:
        return f"it has no `{path}`"
    try:
        found = parse_manifest(data, path).digest
    except ManifestError as error:
        return error.message
    if found != resolved.manifest.digest:
        return f"`{path}` is another one there"
    release = resolved.manifest.release
    expected = release.dvc if release is not None else None
    folder = layout.build_folder(resolved.dataset)
    seen = []
    for place in (dvc.pointer(folder), dvc.LOCK_NAME):
        pointer = git.read_blob(root, commit, place)
        value = dvc.tracked_hash(pointer, place, folder) if pointer is not None else None
        if value is not None and value == expected:
            return ""
        if value is not None:
            seen.append(f"`{place}` points to {safe(value[:16])}…")
    pointed = " and ".join(seen) or f"neither `{dvc.pointer(folder)}` nor `dvc.lock` points to it"
    return f"expected a pointer to {(expected or '')[:16]}…, {pointed}"
