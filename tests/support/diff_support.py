"""Builds and releases of a few records each, to compare."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import registry_support
from blake3 import blake3
from image_support import png
from registry_support import write

from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.hashing import content_digest, record_digest
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.manifest import (
    MANIFEST_NAME,
    SCHEMA_NAME,
    Change,
    FileEntry,
    Manifest,
    Parent,
    RawTotals,
    SchemaEntry,
    ShardEntry,
    SplitEntry,
    render_manifest,
)
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.registry.side import Side, side_of
from tfrecreg.core.storage.local import LocalStorage

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
    compression: Compression = "none",
    indexed: bool = True,
    raw: int = 0,
) -> Manifest:
    """Put a build at `data/<name>`, replacing an older one; `raw` is the size of its raw data."""
    folder = root / layout.build_folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    if not (root / "tfrecreg.toml").exists():
        write(root / "tfrecreg.toml", "")
    write(root / layout.schema_path(name), schema)
    storage = LocalStorage(folder)
    shards: list[ShardEntry] = []
    files: list[FileEntry] = []
    digests = dict.fromkeys(sorted(splits), b"")
    features: Counter[str] = Counter()
    for split in digests:
        for number, shard in enumerate(splits[split]):
            path = f"{name}-{split}.tfrecord-{number:05d}-of-{len(splits[split]):05d}"
            index = f"index/{path}.index" if indexed else ""
            with ShardWriter(
                storage, path, compression=compression, index_path=index or None
            ) as writer:
                for key, each in shard.items():
                    payload = each if isinstance(each, bytes) else encode(each)
                    digest = record_digest(canonical(payload))
                    digests[split] += digest
                    writer.write(payload, digest=digest, key=key)
                    for feature, value in {} if isinstance(each, bytes) else each.items():
                        features[feature] += value.wire_bytes
            written = writer.written
            shards.append(ShardEntry.of(path, written, split=split, index=index))
            if written.index is not None:
                files.append(FileEntry.of(index, written.index))
    made = registry_support.manifest(
        name,
        content=content_digest(digests.items()),
        splits=[
            SplitEntry(
                name=split,
                records=sum(each.records for each in shards if each.split == split),
                payload_bytes=sum(each.payload_bytes for each in shards if each.split == split),
                content=content_digest([(split, digest)]),
            )
            for split, digest in digests.items()
        ],
        shards=shards,
        files=sorted(files, key=lambda each: each.path),
        raw=RawTotals(files=min(raw, 1), stored=raw, decoded=raw),
        features=dict(features),
        labels={feature: list(names) for feature, names in (labels or {}).items()},
        schema=SchemaEntry(blake3=blake3(schema.encode()).hexdigest(), bytes=len(schema.encode())),
        compression=compression,
    )
    write(folder / MANIFEST_NAME, render_manifest(made))
    return made


def put_release(
    root: Path,
    version: str,
    *,
    parent: Manifest | None = None,
    keep_bytes: bool = True,
    keep_indexes: bool = True,
) -> Manifest:
    """Release the build `d`; its bytes are in `versions/` too, unless they should be missing."""
    folder = root / layout.build_folder("d")
    build = open_registry(root).dataset("d").build_manifest()
    assert build is not None
    before = None
    if parent is not None and parent.release is not None:
        before = Parent(version=parent.release.version, digest=parent.digest)
    change = Change(level="major" if before is not None else "initial")
    made = registry_support.put_release(root, build, version, parent=before, change=change)
    schema = (root / layout.schema_path("d")).read_bytes()
    write(root / f"registry/d/{version}" / SCHEMA_NAME, schema)
    if keep_bytes:
        shutil.copytree(folder, root / f"versions/d/{version}")
    if keep_indexes:
        for entry in build.files:
            write(root / layout.cached_index(entry.blake3), (folder / entry.path).read_bytes())
    return made


def side(root: Path, reference: str) -> Side:
    return side_of(resolve(open_registry(root), reference))
