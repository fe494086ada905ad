"""Examples written as a shard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.storage.local import LocalStorage


def write_examples(path: Path, examples: Iterable[dict[str, Feature]]) -> Path:
    """Write a plain shard, and return its path."""
    with ShardWriter(LocalStorage(path.parent), path.name) as writer:
        for number, example in enumerate(examples):
            payload = encode(example)
            writer.write(payload, digest=record_digest(payload), key=str(number))
    return path
