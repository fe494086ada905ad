"""Minimal manifests of builds and releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from blake3 import blake3
from check_support import framed

from tfrecreg.core.registry.manifest import (
    FORMAT_VERSION,
    MANIFEST_NAME,
    Change,
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
from tfrecreg.core.registry.registry import Registry, open_registry

SCHEMA = 'feature { name: "text" type: BYTES presence { min_fraction: 1 } shape {} }\n'


def manifest(name: str, **changes: Any) -> Manifest:
    """A sealed manifest of a build without splits."""
    made = Manifest(
        format_version=FORMAT_VERSION,
        dataset=name,
        content="c0" * 32,
        splits=[],
        shards=[],
        files=[],
        raw=RawTotals(files=0, stored=0, decoded=0),
        ledger={},
        features={},
        labels={},
        source=SourceEntry(name="", distribution="", version=""),
        schema=SchemaEntry(blake3=blake3(SCHEMA.encode()).hexdigest(), bytes=len(SCHEMA)),
        compression="none",
        codecs={},
    )
    return seal(replace(made, **changes))


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def put_build(root: Path, name: str, folder: str = "", **changes: Any) -> Manifest:
    """A build with its schema; `folder` for another place than `data/<name>`."""
    made = manifest(name, **changes)
    write(root / (folder or f"data/{name}") / MANIFEST_NAME, render_manifest(made))
    write(root / f"schemas/{name}.pbtxt", SCHEMA)
    return made


def put_odd(root: Path, schema: str, payloads: Sequence[bytes]) -> None:
    """A registry whose build `odd` has one shard."""
    empty_registry(root)
    name, data = "odd-train.tfrecord-00000-of-00001", framed(*payloads)
    write(root / "data/odd" / name, data)
    shard = ShardEntry(
        path=name,
        bytes=len(data),
        blake3=blake3(data).hexdigest(),
        sha256="",
        split="train",
        records=len(payloads),
        payload_bytes=sum(map(len, payloads)),
        stream_blake3="",
        index="",
    )
    split = SplitEntry(name="train", records=len(payloads), payload_bytes=0, content="")
    put_build(root, "odd", splits=[split], shards=[shard])
    write(root / "schemas/odd.pbtxt", schema)


def put_release(
    root: Path, build: Manifest, version: str, dvc: str | None = None, **entry: Any
) -> Manifest:
    release = ReleaseEntry(version=version, build=build.digest, dvc=dvc, **entry)
    made = seal(replace(build, release=release))
    folder = root / f"registry/{build.dataset}/{version}"
    write(folder / MANIFEST_NAME, render_manifest(made))
    write(folder / "schema.pbtxt", SCHEMA)
    return made


def put_next(
    root: Path,
    version: str,
    parent: Manifest | None = None,
    level: Any = "minor",
    *,
    content: str = "",
    name: str = "m",
    dvc: str | None = None,
) -> Manifest:
    """A release after `parent`, without bytes. Its build becomes the dataset's build."""
    build = put_build(root, name, content=content or f"{version:0<64}")
    before = None
    if parent is not None and parent.release is not None:
        before = Parent(version=parent.release.version, digest=parent.digest)
    change = Change(level=level if before is not None else "initial")
    return put_release(root, build, version, dvc, parent=before, change=change)


def empty_registry(root: Path, config: str = "", **datasets: str) -> Registry:
    """A registry with this `tfrecreg.toml`, and with the files of these datasets."""
    write(root / "tfrecreg.toml", config)
    for name, text in datasets.items():
        write(root / f"datasets/{name}.toml", text)
    return open_registry(root)
