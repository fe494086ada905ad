"""Datasets with planted duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from check_support import Document, document, framed
from diff_support import image as image

from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.registry.init import init


def record(data: bytes, label: int = 0, **more: Feature) -> bytes:
    features = {"image/encoded": bytes_feature(data), "image/class/label": int64_feature(label)}
    return encode({**features, **{f"more/{name}": value for name, value in more.items()}})


def write(folder: Path, split: str, payloads: Sequence[bytes], shards: int = 1) -> list[Path]:
    """The records of a split, dealt to its shards."""
    paths = []
    for number in range(shards):
        path = folder / f"x-{split}.tfrecord-{number:05d}-of-{shards:05d}"
        path.write_bytes(framed(*payloads[number::shards]))
        paths.append(path)
    return paths


def look(folder: Path, **options: Any) -> Document:
    """Check all files of a folder, with options of the validator."""
    if options:
        init(folder / "registry", with_dvc=False)
        values = ", ".join(
            f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
            for name, value in options.items()
        )
        with (folder / "registry/tfrecreg.toml").open("a", encoding="utf-8") as config:
            config.write(f"\n[gates.default]\nlimits.duplicates = {{ {values} }}\n")
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    return document(paths, folder / "registry" if options else None, only=("duplicates",))


def codes(found: Document) -> list[tuple[str, str, int]]:
    """Code, fingerprint's split and subject, and count of each finding."""
    assert found["errors"] == []
    return sorted(
        (each["code"], each["fingerprint"].partition(":")[2].strip(":"), each["count"])
        for each in found["findings"]
    )
