"""The folder `versions/` as the keeper of releases: hard links, which outlive the next build.

Releases that were yanked: a file beside the folder of each, a line of JSON a yank.

Lines are appended and never changed, so that a file of two branches is the lines of both.
"""

from __future__ import annotations

from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.history import below, expect_intact, repair_hint
from tfrecreg.core.registry.keeper import ReleaseChange
from tfrecreg.core.registry.manifest import MANIFEST_NAME, Manifest, parse_manifest
from tfrecreg.core.registry.registry import Dataset
from tfrecreg.core.values.errors import ConflictError
from tfrecreg.core.values.reference import Version


def keep_in_versions(change: ReleaseChange, build: Manifest, version: Version) -> None:
    """Keep the bytes of a build, and never those of two releases of one number."""
    dataset = change.dataset
    storage = dataset.registry.storage
    folder = layout.build_folder(dataset.name)
    copy = layout.version_folder(dataset.name, version)
    _expect_leftover(dataset, copy, build, version)
    with change.stage("versions") as staged:
        for path in (*build.entries, MANIFEST_NAME):
            # A file that is missing is found below.
            if storage.stat(f"{folder}/{path}") is not None:
                staged.link(f"{folder}/{path}", path, origin=storage)
        expect_intact(
            build,
            below(staged),
            what=f"nothing was released: the bytes of `{dataset}`",
            hint=repair_hint(dataset.name),
            progress=change.progress,
        )
        change.undo(storage.remove, copy)
        change.replace(copy, staged, build, verified=True)


def _expect_leftover(dataset: Dataset, copy: str, build: Manifest, version: Version) -> None:
    """Refuse to replace the only bytes of a release that another branch has."""
    storage = dataset.registry.storage
    if storage.stat(f"{copy}/{MANIFEST_NAME}") is None:
        return
    folder = layout.release_folder(dataset.name, version)
    for data in git.blobs_of_refs(storage.root, folder, MANIFEST_NAME):
        other = parse_manifest(data, f"{folder}/{MANIFEST_NAME} in git").release
        if other is not None and other.build != build.digest:
            raise ConflictError(
                f"`{copy}` holds the bytes of another `{dataset}@{version}`, which a "
                "branch or tag names",
                hint=f"release under another number: tfrecreg release {dataset} --version X.Y.Z",
            )
