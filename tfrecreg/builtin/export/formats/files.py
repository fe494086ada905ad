"""The files of a build or release as they are: a copy that every command reads."""

from __future__ import annotations

from tfrecreg.api import Exporter


class FilesExporter(Exporter):
    """All files under their own names, with the manifest."""

    payloads = "any"
    keeps_files = True

    def file_name(self, split: str, number: int, of: int) -> str:
        """The path of the shard in its build."""
        del of
        return [each.path for each in self.dataset.manifest.shards if each.split == split][number]

    def how_to_read(self, folder: str) -> str:
        """The command that verifies it."""
        return f"verify it with `tfrecreg check {folder}`"
