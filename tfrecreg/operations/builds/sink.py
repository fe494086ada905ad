"""Sinks: the place of a build's shards, which knows the finished ones.

The stage of a plan is named after its digest, so another plan never sees the shards of a killed
build in it, nor the notes about them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tfrecreg.documents import read_note, render_note
from tfrecreg.errors import TfrecregError
from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.builds.plan import PlannedShard
from tfrecreg.operations.builds.shard import MadeShard, StageFolder, WorkFolder
from tfrecreg.progress import Progress
from tfrecreg.records.hashing import hash_file
from tfrecreg.storage.interface import Readable, Storage

BUILD = "build"
"""Folder of a stage: the unfinished build."""


class ShardSink(Protocol):
    """Takes the shards of a plan."""

    @property
    def work(self) -> WorkFolder:
        """The folder in which workers make them."""

    @property
    def indexed(self) -> bool:
        """Whether they get an index and a SHA-256 as they are made. Else publishing makes both."""

    def finished(self, shards: Sequence[PlannedShard]) -> dict[str, MadeShard]:
        """The finished shards among these, by path; the others have to be made."""

    def finish(self, shard: PlannedShard, made: MadeShard) -> None:
        """Note that a shard is finished; its bytes are durable by now."""


class BuildSink(ShardSink, Protocol):
    """Takes the shards of a build to publish."""

    @property
    def folder(self) -> Storage:
        """Rooted at the folder that takes the place of the old build."""

    @property
    def files(self) -> Readable:
        """Rooted at the folder of the build, with all its files, to read them back."""

    def complete(self, manifest: Manifest, progress: Progress) -> None:
        """Make the build whole, after it passed its check.

        Args:
            manifest: of the build, whose files are all there.
        """

    def forget(self, shards: Sequence[PlannedShard]) -> None:
        """Have shards made again: the build did not pass its check."""


SinkOfPlan: TypeAlias = Callable[[Storage, str], BuildSink]
"""Opens the sink of a build, by its stage and the digest of its plan."""


@dataclass(frozen=True, slots=True)
class StageSink:
    """A stage in the registry. See :class:`BuildSink` for the methods."""

    stage: Storage
    """Rooted at the stage, for the notes on finished shards."""
    folder: Storage
    """Rooted at the build's folder in it."""
    indexed: bool = True

    @property
    def work(self) -> StageFolder:
        return StageFolder(self.folder)

    @property
    def files(self) -> Storage:
        return self.folder

    def finish(self, shard: PlannedShard, made: MadeShard) -> None:
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

    def complete(self, manifest: Manifest, progress: Progress) -> None:
        pass

    def forget(self, shards: Sequence[PlannedShard]) -> None:
        """Nothing to do: the stage itself is removed."""


def _journal_path(shard: PlannedShard) -> str:
    return f"journal/{shard.path}.json"


def is_intact(build: Readable, made: MadeShard) -> bool:
    """Whether a shard, and its index if any, are in the folder with unchanged bytes."""
    files = (made.entry,) if made.index is None else (made.entry, made.index)
    return all(hash_file(build, entry.path)[1] == entry.blake3 for entry in files)
