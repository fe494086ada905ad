"""Releases with parents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from registry_support import SCHEMA, put_build, write

from tfrecreg.core.registry.manifest import (
    Change,
    Manifest,
    Parent,
    ReleaseEntry,
    render_manifest,
    seal,
)


def put_next(
    root: Path,
    version: str,
    parent: Manifest | None = None,
    level: str = "minor",
    *,
    content: str = "",
    name: str = "m",
    dvc: str | None = None,
) -> Manifest:
    """A release after another one, without bytes, with content of its own unless it is given.

    Its build stays the dataset's build.
    """
    build = put_build(root, name, content=content or f"{version:0<64}")
    before = None
    if parent is not None and parent.release is not None:
        before = Parent(version=parent.release.version, digest=parent.digest)
    change = Change(level=level if before is not None else "initial")  # type: ignore[arg-type]
    made = seal(
        replace(
            build,
            release=ReleaseEntry(
                version=version, build=build.digest, parent=before, change=change, dvc=dvc
            ),
        )
    )
    write(root / f"registry/{name}/{version}/manifest.json", render_manifest(made))
    write(root / f"registry/{name}/{version}/schema.pbtxt", SCHEMA)
    return made
