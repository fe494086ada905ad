"""Streams of records, a build to damage, and `check --json`."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tfrecreg as tr
from tfrecreg.core.records.framing import frame
from tfrecreg.core.records.gzip_writer import GzipEncoder

Document = dict[str, Any]


def framed(*payloads: bytes) -> bytes:
    return b"".join(
        head + payload + foot for payload in payloads for head, foot in [frame(payload)]
    )


PAYLOADS = [bytes([number]) * (number * 7 % 90) for number in range(60)]
STREAM = b"".join(map(framed, PAYLOADS))


def members(payloads: Sequence[bytes], size: int = 500) -> bytes:
    """As this package compresses, with small members."""
    encoder = GzipEncoder(size)
    return b"".join(map(encoder.write, map(framed, payloads))) + encoder.close()


def blocks(stream: bytes) -> bytes:
    """Members that end anywhere, inside records too, as bgzip makes them, and an empty one last."""
    parts = [stream[at : at + 77] for at in range(0, len(stream), 77)]
    return b"".join(map(gzip.compress, [*parts, b""]))


def places(data: bytes) -> list[tuple[int, int]]:
    """Offset and payload length of every record of a sound stream."""
    found = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        found.append((at, length))
        at += length + 16
    assert at == len(data)
    return found


def document(
    targets: Sequence[str | Path], registry: Path | None = None, **options: Any
) -> Document:
    """The document that `tfrecreg check --json` prints of one target or set of files."""
    (report,) = tr.check([*map(str, targets)], registry=registry, **options)
    found: Document = json.loads(json.dumps(report.to_json()))
    return found


@dataclass(frozen=True)
class Digits:
    """The registry of one test: dataset `digits`, two shards in each of two splits, one release."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "data/digits"

    def path(self, split: str, number: int) -> Path:
        return self.folder / f"digits-{split}.tfrecord-{number:05d}-of-00002"

    def index(self, split: str, number: int) -> Path:
        return self.folder / f"index/{self.path(split, number).name}.index"

    def check(self, *only: str, target: str = "digits", **options: Any) -> Document:
        """Check the build, or another reference, with some of the validators or all of them."""
        return document([target], self.root, only=only, **options)
