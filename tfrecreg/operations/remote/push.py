"""The bytes of releases to a DVC remote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tfrecreg.errors import UsageError
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry import Registry, Resolved, expect_dataset, resolve
from tfrecreg.tracking import cloud

__all__ = ["PushResult", "expect_kept", "push"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PushResult:
    """What is in the remote now."""

    releases: tuple[str, ...]
    """``mnist@1.0.0``, in order."""
    objects: int
    """How many objects of DVC went there; those that were there already are not counted."""


def push(
    registry: Registry,
    names: Sequence[str] = (),
    *,
    remote: str | None = None,
    progress: Progress = SILENT,
) -> PushResult:
    """Send releases to a remote.

    Args:
        registry: where they are.
        names: references to releases, or datasets, which stand for all their releases; empty for
            all there are.
        remote: DVC's name of it; None for its default one.
        progress: told what is sent.

    Raises:
        UsageError: no such release, none that DVC keeps, or no such remote.
        FailureError: DVC refused.
    """
    found = {each.name: each for each in _releases(registry, names)}
    hashes = [expect_kept(each) for each in found.values()]
    progress.note(f"dvc push: {', '.join(found)}")
    sent = cloud.send(registry.storage.root, hashes, remote)
    return PushResult(releases=tuple(found), objects=sent)


def _releases(registry: Registry, names: Sequence[str]) -> list[Resolved]:
    if not names:
        every = [each for name in registry.datasets() for each in _all_of(registry, name)]
        kept = [each for each in every if each.manifest.release and each.manifest.release.dvc]
        if not kept:
            raise UsageError(
                "there is no release that DVC keeps",
                hint="tfrecreg release NAME, in a DVC repository",
            )
        return kept
    found = []
    for name in names:
        if "@" in name or "#" in name:
            found.append(resolve(registry, name))
            continue
        expect_dataset(registry, name)
        releases = _all_of(registry, name)
        if not releases:
            raise UsageError(f"`{name}` has no release", hint=f"tfrecreg release {name}")
        found += releases
    return found


def _all_of(registry: Registry, name: str) -> list[Resolved]:
    return [resolve(registry, f"{name}@{version}") for version in registry.versions(name)]


def expect_kept(resolved: Resolved) -> str:
    """DVC's hash of a release's folder.

    Raises:
        UsageError: DVC does not keep it.
    """
    release = resolved.manifest.release
    if release is None or not release.dvc:
        raise UsageError(
            f"DVC does not keep `{resolved.name}`: it was released outside a DVC repository",
            hint="`dvc init`, then release it under a new number",
        )
    return release.dvc
