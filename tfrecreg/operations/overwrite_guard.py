"""What a new build may not replace: files that are no build, and builds nobody could make again."""

from __future__ import annotations

from tfrecreg.errors import UsageError
from tfrecreg.manifest import Manifest
from tfrecreg.manifest.adopted import is_adopted
from tfrecreg.registry import Registry, layout


def expect_no_strangers(registry: Registry, dataset: str) -> None:
    """Refuse to replace a folder of files that are no build.

    Raises:
        UsageError: `data/<name>` holds something, and no manifest.
    """
    folder = layout.build_folder(dataset)
    entry = registry.storage.stat(folder)
    if entry is None or registry.is_built(dataset):
        return
    if entry.kind != "dir" or next(registry.storage.list(folder, recursive=False), None):
        raise UsageError(
            f"`{folder}` holds files that do not belong to a build and would be replaced",
            hint=f"move them away, or `tfrecreg adopt {dataset} --in-place` makes a build of "
            "TFRecords",
        )


def expect_kept(registry: Registry, before: Manifest | None, content: str) -> None:
    """Refuse to replace an adopted build that nobody could make again.

    Args:
        registry: where releases are.
        before: the build that there is.
        content: digest of what would come in its place.

    Raises:
        UsageError: it holds other records, and no release has them.
    """
    if before is None or not is_adopted(before) or before.content == content:
        return
    name = before.dataset
    for version in registry.versions(name):
        release = registry.release_manifest(name, version).release
        if release is not None and release.build == before.digest:
            return
    raise UsageError(
        f"`{layout.build_folder(name)}` was adopted, holds other records and was never released: "
        "they would be lost",
        hint=f"`tfrecreg release {name}` keeps them; or remove that folder",
    )
