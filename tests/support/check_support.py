"""Streams of records, a build to damage, and `check --json`."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.records.framing import frame

Document = dict[str, Any]


def framed(*payloads: bytes) -> bytes:
    """The payloads as a TFRecord stream."""
    return b"".join(
        head + payload + foot for payload in payloads for head, foot in [frame(payload)]
    )


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
    (report,) = check(
        [str(target) for target in targets],
        registry=None if registry is None else str(registry),
        options=CheckOptions(**options),
    )
    found = json.loads(json.dumps(report.to_json()))
    assert isinstance(found, dict)
    return found


@dataclass(frozen=True)
class Digits:
    """The registry of one test: dataset `digits`, two shards in each of two splits, one release."""

    root: Path

    @property
    def folder(self) -> Path:
        """The build's folder."""
        return self.root / "data/digits"

    def path(self, split: str, number: int) -> Path:
        """One of its shards."""
        return self.folder / f"digits-{split}.tfrecord-{number:05d}-of-00002"

    def index(self, split: str, number: int) -> Path:
        """The index of one of its shards."""
        return self.folder / f"index/{self.path(split, number).name}.index"

    def check(self, *only: str, target: str = "digits", **options: Any) -> Document:
        """Check the build, or another reference, with some of the validators or all of them."""
        return document([target], self.root, only=only, **options)
