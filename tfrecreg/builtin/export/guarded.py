"""The exporter of a plugin, called under guard, with answers that are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tfrecreg.core.plugins.exporters.interface import ExportedDataset, Exporter
from tfrecreg.core.plugins.exporters.shards import ExportedShard, ShardToExport
from tfrecreg.core.plugins.guard import PluginId, called, wrong_answer
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import PluginError
from tfrecreg.core.values.text import safe

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _GuardedShard:
    """The function of an exporter for a shard, in a worker. Picklable."""

    plugin_id: PluginId
    function: Callable[[ShardToExport], ExportedShard]

    def __call__(self, task: ShardToExport) -> ExportedShard:
        exported = called(self.plugin_id, "begin", self.function, task)
        if not isinstance(exported, ExportedShard):
            raise wrong_answer(self.plugin_id, "begin", exported, "an ExportedShard")
        return exported


def exporter_class(kind: type[Any], plugin_id: PluginId) -> type[Exporter]:
    """The exporter class of a plugin."""
    if not issubclass(kind, Exporter):
        message = f"{plugin_id} cannot be used: its class does not inherit from `Exporter`"
        raise PluginError(message, hint=plugin_id.hint)
    return kind


class GuardedExporter:
    """An exporter of a dataset. See :class:`tfrecreg.core.plugins.exporters.interface.Exporter`."""

    def __init__(
        self, kind: type[Exporter], plugin_id: PluginId, dataset: ExportedDataset, options: Any
    ) -> None:
        self._plugin_id = plugin_id
        self._inner = called(self._plugin_id, "__init__", kind, dataset, options)

    def expect(self) -> None:
        """Refuse what the format cannot express."""
        called(self._plugin_id, "expect", self._inner.expect)

    def file_names(self, shards: Sequence[tuple[str, int, int]]) -> list[str]:
        """The path of each shard's file, given its split, its number and the number of shards."""
        names: list[Any] = [
            called(self._plugin_id, "file_name", self._inner.file_name, *shard) for shard in shards
        ]
        for name in names:
            if not isinstance(name, str) or not name:
                raise wrong_answer(self._plugin_id, "file_name", name, "a path in the folder")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise wrong_answer(self._plugin_id, "file_name", twice, "another path for each shard")
        return names

    def begin(self) -> Callable[[ShardToExport], ExportedShard]:
        """What workers do with a shard."""
        return _GuardedShard(self._plugin_id, called(self._plugin_id, "begin", self._inner.begin))

    def verify(self, shards: Sequence[ExportedShard]) -> str | None:
        """The content digest of the written records; None if the shards were kept."""
        return called(self._plugin_id, "verify", self._inner.verify, shards)

    def finish(self, folder: Storage, shards: Sequence[ExportedShard]) -> tuple[str, ...]:
        """Write the files beside the shards; returns notes."""
        notes = called(self._plugin_id, "finish", lambda: tuple(self._inner.finish(folder, shards)))
        return tuple(note if note.isprintable() else safe(note, limit=1000) for note in notes)

    def how_to_read(self, folder: str) -> str:
        """The last line for the user."""
        said = called(self._plugin_id, "how_to_read", self._inner.how_to_read, folder)
        return said if said.isprintable() else safe(said, limit=1000)
