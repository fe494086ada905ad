"""Protection of files that do not belong to a build, and of builds that cannot be rebuilt."""

from __future__ import annotations

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest.adopted import is_adopted
from tfrecreg.core.registry.manifest.model import Manifest
from tfrecreg.core.registry.registry import Dataset
from tfrecreg.core.values.errors import UsageError


def expect_no_foreign_files(dataset: Dataset) -> None:
    """Refuse to replace a folder of files that are not a build."""
    folder, storage = layout.build_folder(dataset.name), dataset.registry.storage
    entry = storage.stat(folder)
    if entry is None or dataset.is_built():
        return
    if entry.kind != "dir" or next(storage.list(folder, recursive=False), None):
        raise UsageError(
            f"`{folder}` holds files that do not belong to a build and would be replaced",
            hint=f"move them away, or `tfrecreg adopt {dataset} --in-place` makes a build of "
            "TFRecords",
        )


def expect_no_loss(dataset: Dataset, before: Manifest | None, content: str) -> None:
    """Refuse to replace an adopted build that cannot be rebuilt."""
    if before is None or not is_adopted(before) or before.content == content:
        return
    name = dataset.name
    for version in dataset.versions:
        release = dataset.release_manifest(version).release
        if release is not None and release.build == before.digest:
            return
    raise UsageError(
        f"`{layout.build_folder(name)}` was adopted, holds other records and was never released: "
        "they would be lost",
        hint=f"`tfrecreg release {name}` keeps them; or remove that folder",
    )
