"""The place of a build's shards, which knows the finished ones.

The stage of a plan is named after its digest, so another plan never sees the shards of a killed
build in it, nor the notes about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tfrecreg.core.build.planning.plan import PlannedShard
from tfrecreg.core.build.shard import MadeShard
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import TfrecregError

BUILD = "build"
"""Folder of a stage: the unfinished build."""


@dataclass(frozen=True, slots=True)
class StageSink:
    """The shards of a build, and which of them are finished."""

    stage: Storage
    """Rooted at the stage, for the notes on finished shards."""
    folder: Storage
    """Rooted at the build's folder in it, which takes the place of the old build."""
    indexed: bool = True
    """Whether shards get an index and a SHA-256 as they are made. Else publishing makes both."""

    def finish(self, shard: PlannedShard, made: MadeShard) -> None:
        """Note that a shard is finished; its bytes are durable by now."""
        with self.stage.create(_journal_path(shard)) as writer:
            writer.write(render_note(made))

    def finished(self, shards: Sequence[PlannedShard]) -> dict[str, MadeShard]:
        """The finished ones of these shards, by path, hashed again."""
        found = ((shard.path, self._finished(shard)) for shard in shards)
        return {path: made for path, made in found if made is not None}

    def _finished(self, shard: PlannedShard) -> MadeShard | None:
        if self.stage.stat(_journal_path(shard)) is None:
            return None
        try:
            made = read_note(self.stage.read(_journal_path(shard)), MadeShard)
            is_whole = is_intact(self.folder, made)
        except (TfrecregError, ValueError):
            # An invalid journal costs only the work of making the shard again.
            return None
        return made if is_whole else None


def _journal_path(shard: PlannedShard) -> str:
    return f"journal/{shard.path}.json"


def is_intact(build: Readable, made: MadeShard) -> bool:
    """Whether a shard, and its index if any, are in the folder with unchanged bytes."""
    files = (made.entry,) if made.index is None else (made.entry, made.index)
    return all(hash_file(build, entry.path)[1] == entry.blake3 for entry in files)
