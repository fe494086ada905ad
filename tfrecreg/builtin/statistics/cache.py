"""Cache of statistics, keyed by content digest: derived data, never part of a release.

A file is a line of JSON and the serialized proto. What does not hold is made again.
"""

from __future__ import annotations

import json
from contextlib import suppress

from blake3 import blake3

from tfrecreg.builtin.statistics.collect import SplitStatistics
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.part import LeftOut
from tfrecreg.builtin.statistics.summary import parse_proto
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.registry import layout
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.documents import strict_json
from tfrecreg.core.values.errors import StorageError

_FORMAT = 4
"""Version of the file format and of the computation: a new number discards old files."""


class StatisticsCache:
    """The cache of a registry."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def recall(
        self, split: str, content: str, options: StatisticsOptions
    ) -> SplitStatistics | None:
        """The statistics of a split; None where they are not known."""
        path = _path(content, options)
        if self._storage.stat(path) is None:
            return None
        try:
            data = self._storage.read(path)
        except StorageError:
            return None
        head, _, body = data.partition(b"\n")
        try:
            told = strict_json(head)
            if told["blake3"] != blake3(body).hexdigest():
                return None
            kinds = {PayloadKind(kind): int(count) for kind, count in told["kinds"].items()}
            return SplitStatistics(
                split=split,
                examples=int(told["examples"]),
                left_out=LeftOut(large=int(told["large"]), kinds=kinds),
                sketched=tuple(map(str, told["sketched"])),
                proto=parse_proto(body),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None  # an incomplete or foreign file

    def remember(
        self, statistics: SplitStatistics, content: str, options: StatisticsOptions
    ) -> None:
        """Keep the statistics of a split, unless damage left some of it out."""
        left_out = statistics.left_out
        if left_out.damaged:
            return
        body = statistics.proto.SerializeToString(deterministic=True)
        head = {
            "blake3": blake3(body).hexdigest(),
            "examples": statistics.examples,
            "kinds": {kind.value: count for kind, count in left_out.kinds.items()},
            "large": left_out.large,
            "sketched": list(statistics.sketched),
        }
        # They are made again where a registry cannot be written.
        with (
            suppress(StorageError),
            self._storage.create(_path(content, options), durable=False) as writer,
        ):
            writer.write(json.dumps(head).encode() + b"\n" + body)


def _path(content: str, options: StatisticsOptions) -> str:
    made_by = f"{_FORMAT} {options.digest}"
    return layout.cached_statistics(content, blake3(made_by.encode()).hexdigest()[:16])
