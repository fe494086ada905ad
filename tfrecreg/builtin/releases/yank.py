"""Yanking a release: it stays as it is, and `latest` skips it."""

from __future__ import annotations

from dataclasses import dataclass

from tfrecreg.builtin.releases.tag import TagResult, push_commands, released
from tfrecreg.core.build.conclude import now, user
from tfrecreg.core.registry import git, gto, layout
from tfrecreg.core.registry.lookup import Release
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.registry.yanks import Yank
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress


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
        name = gto.artifact(release.dataset.name, git.folder_in_tree(root))
    except UsageError:
        return (), (), ""  # so it has no tags of GTO's
    tags = {each.name: each for each in git.list_tags(root, name)}
    known = tags.get(gto.version_tag(name, str(release.version)))
    if known is None:
        return (), (), ""
    wanted = gto.withdrawal_tag(name, str(release.version))
    if wanted in tags:
        return (), (wanted,), known.commit
    git.create_tag(root, wanted, known.commit, f"Yank {release.name}: {reason}")
    return (wanted,), (), known.commit
