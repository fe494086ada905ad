"""The files of a build or release as they are: a copy that every command reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tfrecreg.api import ExportedShard, Exporter, Folder
from tfrecreg.manifest.file import render_manifest
from tfrecreg.manifest.model import MANIFEST_NAME
from tfrecreg.registry.verify import copy_verified


class FilesExporter(Exporter):
    """All files under their own names, with the manifest."""

    payloads = "any"
    keeps_files = True

    def file_name(self, split: str, number: int, of: int) -> str:
        """The path of the shard in its build."""
        del of
        return [each.path for each in self.dataset.manifest.shards if each.split == split][number]

    def finish(self, folder: Folder, shards: Sequence[ExportedShard]) -> Iterator[str]:
        """The files beside the shards, the manifest last."""
        del shards
        source, manifest = self.dataset.resolved.storage(), self.dataset.manifest
        for entry in manifest.files:
            copy_verified(source, folder, entry)
        with folder.create(MANIFEST_NAME) as writer:
            writer.write(render_manifest(manifest))
        return iter(())

    def how_to_read(self, folder: str) -> str:
        """The command that verifies it."""
        return f"verify it with `tfrecreg check {folder}`"
