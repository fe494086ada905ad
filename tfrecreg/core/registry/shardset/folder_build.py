"""A build in a folder of no registry, such as a copy or one behind a URL, judged by the manifest
and the schema in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from blake3 import blake3

from tfrecreg.core.registry.manifest.file import is_own_manifest, parse_manifest
from tfrecreg.core.registry.manifest.model import LEDGER_NAME, MANIFEST_NAME, SCHEMA_NAME, Manifest
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import ManifestError, MissingFileError
from tfrecreg.core.values.text import safe


@dataclass(frozen=True)
class FolderBuild:
    """A build outside of a registry; see :class:`tfrecreg.core.registry.lookup.Resolved`."""

    name: str
    """Path or URL of the folder, escaped."""
    manifest: Manifest
    _storage: Readable

    kind: ClassVar[Literal["build"]] = "build"
    registry: ClassVar[None] = None
    folder: ClassVar[None] = None

    def storage(self, *, to_check: bool = False) -> Readable:  # noqa: ARG002 - releases use it
        """Rooted at the folder."""
        return self._storage

    @property
    def schema_path(self) -> str:
        """The place of its schema, for messages."""
        return f"{self._storage.root}/{SCHEMA_NAME}"

    @cached_property
    def schema(self) -> str | None:
        """The text of the schema in the folder.

        None if there is none: a build that was adopted in place, and those of earlier versions of
        tfrecreg have none.
        """
        try:
            data = self._storage.read(SCHEMA_NAME)
        except MissingFileError:
            return None
        if blake3(data).hexdigest() == self.manifest.schema.blake3:
            return data.decode("utf-8", "replace")
        if all(entry.path != SCHEMA_NAME for entry in self.manifest.files):
            return None  # a file of another tool
        raise ManifestError(
            f"`{safe(self.schema_path, limit=1000)}` is not the schema that the manifest beside "
            "it names",
            hint="fetch the folder again, or name a schema with `schema=`",
        )


def folder_build(name: str, storage: Readable, notes: list[str]) -> FolderBuild | None:
    """The build in a folder; None without a manifest."""
    where = f"{storage.root}/{MANIFEST_NAME}"
    shown = safe(where, limit=1000)
    try:
        data = storage.read(MANIFEST_NAME)
    except MissingFileError:
        if storage.is_local and storage.stat(LEDGER_NAME) is not None:
            notes.append(
                f"`{shown}` is missing beside a `{LEDGER_NAME}`: only the shards themselves are "
                "judged"
            )
        return None
    if not is_own_manifest(data) and storage.stat(LEDGER_NAME) is None:
        notes.append(f"`{shown}` is not used: it is not a manifest of tfrecreg")
        return None
    return FolderBuild(safe(name, limit=1000), parse_manifest(data, where), storage)
