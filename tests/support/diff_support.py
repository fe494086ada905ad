"""Builds and releases of a few records each, to compare."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from blake3 import blake3
from image_support import png
from registry_support import write

from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.framing import frame
from tfrecreg.core.records.hashing import ContentHasher, record_digest
from tfrecreg.core.records.index import IndexBuilder
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.core.registry.manifest import (
    FORMAT_VERSION,
    MANIFEST_NAME,
    SCHEMA_NAME,
    Change,
    FileEntry,
    Manifest,
    Parent,
    RawTotals,
    ReleaseEntry,
    SchemaEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    render_manifest,
    seal,
)
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.registry.shardset.side import Side, side_of

SCHEMA = """\
feature {
  name: "image/encoded" type: BYTES
  image_domain {}
}
feature { name: "label" type: INT }
"""

Shard = Mapping[str, "Example | bytes"]
"""Key to record, in order; bytes are a payload as it is."""
Splits = Mapping[str, Sequence[Shard]]


def image(number: int) -> bytes:
    """An image like no other."""
    return png(4, 3, seed=number % 200) + number.to_bytes(4, "big")


def example(number: int, **more: Any) -> Example:
    """A record like no other: an image of its own, and a label."""
    features = {
        "image/encoded": bytes_feature(image(number)),
        "label": int64_feature(number % 3),
    }
    return {**features, **more}


def put_build(
    root: Path,
    splits: Splits,
    *,
    name: str = "d",
    schema: str = SCHEMA,
    labels: Mapping[str, Sequence[str]] | None = None,
    compressed: bool = False,
) -> Manifest:
    """Put a build at `data/<name>`, replacing an older one."""
    folder = root / layout.build_folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    write(root / "tfrecreg.toml", "")
    write(root / layout.schema_path(name), schema)
    shards: list[ShardEntry] = []
    files: list[FileEntry] = []
    entries: list[SplitEntry] = []
    everything = ContentHasher()
    features: dict[str, int] = {}
    for split in sorted(splits):
        alone = ContentHasher()
        alone.add(split, b"")
        records = size = 0
        for number, shard in enumerate(splits[split]):
            path = f"{name}-{split}.tfrecord-{number:05d}-of-{len(splits[split]):05d}"
            payloads = {
                key: each if isinstance(each, bytes) else encode(each)
                for key, each in shard.items()
            }
            stream = b"".join(
                head + payload + foot
                for payload in payloads.values()
                for head, foot in [frame(payload)]
            )
            data = gzip.compress(stream, mtime=0) if compressed else stream
            index = IndexBuilder()
            for key, payload in payloads.items():
                digest = record_digest(canonical(payload))
                index.add(digest, len(payload), key)
                alone.add(split, digest)
                everything.add(split, digest)
            for each in shard.values():
                for feature, value in {} if isinstance(each, bytes) else each.items():
                    features[feature] = features.get(feature, 0) + value.wire_bytes
            rendered = index.render([(0, 0)] if compressed else [])
            write(folder / path, data)
            write(folder / f"index/{path}.index", rendered)
            files.append(_entry(f"index/{path}.index", rendered))
            shards.append(
                ShardEntry(
                    path=path,
                    bytes=len(data),
                    blake3=blake3(data).hexdigest(),
                    sha256="",
                    split=split,
                    records=len(shard),
                    payload_bytes=sum(map(len, payloads.values())),
                    stream_blake3=blake3(stream).hexdigest(),
                    index=f"index/{path}.index",
                )
            )
            records += len(shard)
            size += shards[-1].payload_bytes
        entries.append(
            SplitEntry(name=split, records=records, payload_bytes=size, content=alone.hexdigest())
        )
    made = seal(
        Manifest(
            format_version=FORMAT_VERSION,
            dataset=name,
            content=everything.hexdigest(),
            splits=entries,
            shards=shards,
            files=sorted(files, key=lambda each: each.path),
            raw=RawTotals(files=0, stored=0, decoded=0),
            ledger={},
            features=features,
            labels={feature: list(names) for feature, names in (labels or {}).items()},
            source=SourceEntry(name="", distribution="", version=""),
            schema=SchemaEntry(blake3=blake3(schema.encode()).hexdigest(), bytes=len(schema)),
            compression="gzip" if compressed else "none",
            codecs={},
        )
    )
    write(folder / MANIFEST_NAME, render_manifest(made))
    return made


def _entry(path: str, data: bytes) -> FileEntry:
    return FileEntry(path=path, bytes=len(data), blake3=blake3(data).hexdigest(), sha256="")


def put_release(
    root: Path,
    version: str,
    *,
    name: str = "d",
    parent: Manifest | None = None,
    level: str = "major",
    keep_bytes: bool = True,
    keep_indexes: bool = True,
) -> Manifest:
    """Release the build; its bytes are in `versions/` too, unless they should be missing."""
    folder = root / layout.build_folder(name)
    registry = open_registry(root)
    build = registry.dataset(name).build_manifest()
    assert build is not None
    before = None
    if parent is not None and parent.release is not None:
        before = Parent(version=parent.release.version, digest=parent.digest)
    change = Change(level=level if before is not None else "initial")  # type: ignore[arg-type]
    made = seal(
        replace(
            build,
            release=ReleaseEntry(version=version, build=build.digest, parent=before, change=change),
        )
    )
    home = root / f"registry/{name}/{version}"
    write(home / MANIFEST_NAME, render_manifest(made))
    schema = (root / layout.schema_path(name)).read_bytes()
    write(home / SCHEMA_NAME, schema)
    if keep_bytes:
        shutil.copytree(folder, root / f"versions/{name}/{version}")
    if keep_indexes:
        for entry in build.files:
            write(root / layout.cached_index(entry.blake3), (folder / entry.path).read_bytes())
    return made


def side(root: Path, reference: str) -> Side:
    """One of two to compare."""
    return side_of(resolve(open_registry(root), reference))
