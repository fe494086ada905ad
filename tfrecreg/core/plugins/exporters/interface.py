"""The base class of exporters.

The core finds the dataset, makes a hidden folder, puts every shard there in worker processes, and
renames the folder when it is complete. An exporter names the files, converts the shards, and writes
the files beside them. One that writes the records to files of another format is a
:class:`tfrecreg.core.plugins.exporters.convert.RecordExporter`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from tfrecreg.core.plugins.exporters.shards import ExportedShard, ShardToExport, export_unchanged
from tfrecreg.core.registry.lookup import Build, Resolved, expect_schema
from tfrecreg.core.registry.manifest.model import Manifest
from tfrecreg.core.registry.schemas import built_schema
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.config import DatasetConfig
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.shards import shard_name
from tfrecreg.core.values.suggest import ExtensionPoint
from tfrecreg.core.values.typed_values import NoOptions
from tfrecreg.core.workers.interface import Engine

BUILD_VERSION = "0.0.0"
"""The version of an exported build: some tools require one, and a build has none."""
SCHEMA_FILE = "schema.pbtxt"


@dataclass(frozen=True)
class ExportedDataset:
    """The build or release that is exported."""

    to: str
    """Name of the exporter, as ``--to`` names it."""
    resolved: Resolved
    engine: Engine
    """Where to work."""
    progress: Progress
    where: str | None = None
    """The condition for records to be exported; None for all."""

    @property
    def reference(self) -> str:
        """With its selector resolved: ``mnist@1.0.0``."""
        return self.resolved.name

    @property
    def manifest(self) -> Manifest:
        """Of the build or release."""
        return self.resolved.manifest

    @property
    def config(self) -> DatasetConfig:
        """Owner, license, description and citation, from ``datasets/NAME.toml``."""
        return self.resolved.dataset.config

    @property
    def version(self) -> str:
        """``0.0.0`` for a build."""
        release = self.manifest.release
        return release.version if release is not None else BUILD_VERSION

    @property
    def has_schema(self) -> bool:
        """Whether there is a schema."""
        return self.resolved.schema is not None

    @cached_property
    def schema(self) -> Schema:
        """The schema of the records.

        Raises:
            UsageError: there is no schema, or it changed since the build.
        """
        resolved = self.resolved
        text = (built_schema if isinstance(resolved, Build) else expect_schema)(resolved)
        return parse_schema(text, resolved.schema_path)

    def write_schema(self, folder: Storage, path: str = SCHEMA_FILE) -> None:
        """Write the schema's own text into the folder of the export.

        Raises:
            UsageError: as :attr:`schema`.
        """
        with folder.create(path) as writer:
            writer.write(self.schema.text.encode("utf-8", "surrogateescape"))


class Exporter(ExtensionPoint, ABC):
    """One export of one dataset, in the parent process. All methods are optional.

    By default an export has the shards as they are, under their own names.
    """

    Options: ClassVar[type[Any]] = NoOptions
    """A frozen dataclass of its options."""
    reader: ClassVar[str] = ""
    """The tool or the format, for messages: ``TFDS``."""
    payloads: ClassVar[Literal["examples", "any"]] = "examples"
    """The payloads that it takes. With ``examples`` the dataset has a schema, too."""
    takes_shards: ClassVar[bool] = True
    """Whether the folder has files of the shards. Otherwise their bytes need not be here."""
    keeps_files: ClassVar[bool] = False
    """Whether the folder has the files of the build or release, and no others: the core copies
    them, to a folder or to a URL, and the manifest last."""
    takes_some_records: ClassVar[bool] = False
    """Whether it exports those records that a condition chooses, not only whole shards."""

    def __init__(self, dataset: ExportedDataset, options: Any) -> None:
        """Keep both.

        Args:
            dataset: to export.
            options: an object of :attr:`Options`.
        """
        self.dataset = dataset
        self.options = options

    def expect(self) -> None:
        """Refuse what the format cannot express, before anything is made.

        Raises:
            UsageError: the schema, a name or an option is one that the format does not have.
        """

    def file_name(self, split: str, number: int, of: int) -> str:
        """Path of a shard's file in the folder. By default the name of the shard.

        Args:
            number: of the shard in its split, from 0.
        """
        return shard_name(self.dataset.manifest.dataset, split, number, of)

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """A picklable function that puts one shard into the folder, in a worker.

        By default it links or copies the shard, and verifies it.
        """
        return export_unchanged

    def verify(self, shards: Sequence[ExportedShard]) -> str | None:  # noqa: ARG002 - a default
        """The content digest of the written records; None if the shards were kept.

        Raises:
            FailureError: it is not that of the dataset.
        """
        return None

    def finish(
        self,
        folder: Storage,  # noqa: ARG002 - a default
        shards: Sequence[ExportedShard],  # noqa: ARG002 - a default
    ) -> Iterator[str]:
        """Write the files beside the shards, and yield notes for the user, one line each.

        Args:
            folder: the folder of the export.
            shards: all that are in it, in the order of the manifest.
        """
        return iter(())

    def how_to_read(self, folder: str) -> str:
        """The last line for the user: what to open.

        Args:
            folder: the absolute path.
        """
        return f"read it from {folder!a}"
