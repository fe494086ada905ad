"""Releases, and the folders that DVC keeps of them."""

from __future__ import annotations

from tfrecreg.builtin.dvc.cloud import Folder
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.lookup import Release, resolve
from tfrecreg.core.registry.manifest.model import MANIFEST_NAME, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.reference import parse_version


def release_of(registry: Registry, reference: str) -> Release:
    """The release that a reference with a selector names."""
    found = resolve(registry, reference)
    assert isinstance(found, Release)  # a reference with a selector names no build
    return found


def dvc_folder(dataset: Dataset, manifest: Manifest) -> Folder:
    """The folder of a release as DVC keeps it."""
    release = manifest.release
    assert release is not None
    name = f"{dataset}@{release.version}"
    if not release.dvc:
        raise UsageError(
            f"DVC does not keep `{name}`: it was released outside a DVC repository",
            hint="`dvc init`, then release it under a new number",
        )
    sizes: dict[str, int | None] = {path: each.bytes for path, each in manifest.entries.items()}
    root = dataset.registry.storage.root
    copies = (
        layout.version_folder(dataset.name, parse_version(release.version)),
        layout.build_folder(dataset.name),
    )
    return Folder(
        name=name,
        value=release.dvc,
        sizes=sizes | {MANIFEST_NAME: None},
        copies=tuple(f"{root}/{folder}" for folder in copies),
    )
