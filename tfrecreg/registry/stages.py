"""Which release is in a stage, as the tags of GTO in git say that `tfrecreg tag --stage` makes."""

from __future__ import annotations

from tfrecreg.errors import UsageError
from tfrecreg.reference import Version, parse_version
from tfrecreg.registry.registry import Registry
from tfrecreg.tracking import git, gto

__all__ = ["version_in_stage"]


def version_in_stage(registry: Registry, dataset: str, stage: str) -> Version:
    """The version of the release that is in a stage.

    Raises:
        UsageError: the registry lies outside git, or no release is in that stage.
        FailureError: git refused, or is not there.
    """
    root = registry.storage.root
    if git.work_tree(root) is None:
        raise UsageError(
            f"`{dataset}#{stage}` is a stage, which git's tags name, and the registry lies in no "
            "git work tree",
            hint=f"name a version: `tfrecreg log {dataset}` shows them",
        )
    name = gto.artifact(dataset, git.folder_in_tree(root))
    tags = git.list_tags(root, name)
    commit = gto.in_stage(name, stage, tags)
    versions = {
        each.name.removeprefix(f"{name}@v").partition("#")[0]
        for each in tags
        if each.commit == commit and gto.is_version(name, each.name)
    }
    if commit is None or not versions:
        raise UsageError(
            f"no release of `{dataset}` is in the stage `{stage}`",
            hint=f"`tfrecreg tag {dataset}@latest --stage {stage}` assigns one; `git fetch --tags` "
            "brings the tags of others",
        )
    return max(map(parse_version, versions))
