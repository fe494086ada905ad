"""`list` over many datasets of many releases, as a whole process."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from blake3 import blake3

from benchmarks.pairs import run
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.manifest import (
    FORMAT_VERSION,
    SCHEMA_NAME,
    Change,
    FileEntry,
    Ledger,
    Manifest,
    Parent,
    Provenance,
    RawTotals,
    ReleaseEntry,
    SchemaEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    render_manifest,
    seal,
)
from tfrecreg.core.values.reference import Version
from tfrecreg.core.values.shards import shard_name

_RELEASES = 10
_SHARDS = 4
"""Number of shards of a dataset in the benchmark: as many as MNIST has, each with an index."""


def main(arguments: argparse.Namespace) -> list[str]:
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        root = Path(folder) / "registry-root"
        init(root, with_dvc=False)
        for number in range(arguments.count):
            _dataset(root, f"dataset{number:04d}")
        rows = []
        command = [sys.executable, "-m", "tfrecreg", "-C", str(root), "list"]
        runs = [run(command) for _ in range(arguments.runs + 1)][1:]
        if runs[0].output.count("dataset") < arguments.count:
            raise RuntimeError(f"not all are listed:\n{runs[0].output[:1000]}")
        none = Path(folder) / "empty"
        init(none, with_dvc=False)
        bare = [
            run([sys.executable, "-m", "tfrecreg", "-C", str(none), "list"])
            for _ in range(arguments.runs)
        ]
        walls, floors = [each.wall for each in runs], [each.wall for each in bare]
        what = f"{arguments.count:,} datasets of {_RELEASES} releases: `list`"
        rows.append(
            f"| {what}, the best run | {min(walls):.2f} s | | | under 0.7 s |\n"
            f"| {what}, the median | {statistics.median(walls):.2f} s | | | |\n"
            f"| of it for an empty registry, the best run | {min(floors):.2f} s | | | |"
        )
        return rows


def _dataset(root: Path, name: str) -> None:
    parent: Manifest | None = None
    for number in range(_RELEASES):
        parent = _release(root, name, Version(1, number, 0), parent)


def _release(root: Path, name: str, version: Version, parent: Manifest | None) -> Manifest:
    schema = b'feature { name: "image/encoded" type: BYTES }\n'
    digest = blake3(f"{name} {version}".encode()).hexdigest()
    shards = [
        ShardEntry(
            path=shard_name(name, "train", number, _SHARDS),
            bytes=1_000_000,
            blake3=digest,
            sha256=digest,
            split="train",
            records=10_000,
            payload_bytes=900_000,
            stream_blake3=digest,
            index=f"index/{number}",
        )
        for number in range(_SHARDS)
    ]
    build = seal(
        Manifest(
            format_version=FORMAT_VERSION,
            dataset=name,
            content=digest,
            splits=[
                SplitEntry(name="train", records=40_000, payload_bytes=3_600_000, content=digest)
            ],
            shards=shards,
            files=[
                FileEntry(path=shard.index, bytes=400_000, blake3=digest, sha256=digest)
                for shard in shards
            ],
            raw=RawTotals(files=2, stored=3_000_000, decoded=4_000_000),
            ledger={"train": Ledger(items=40_000, written=40_000)},
            features={"image/encoded": 3_000_000, "image/class/label": 40_000},
            labels={"image/class/label": [str(number) for number in range(10)]},
            source=SourceEntry(name="mnist", distribution="tfrecreg", version="1.0.0"),
            schema=SchemaEntry(blake3=blake3(schema).hexdigest(), bytes=len(schema)),
            compression="none",
            codecs={},
        )
    )
    before = None
    if parent is not None and parent.release is not None:
        before = Parent(version=parent.release.version, digest=parent.digest)
    first = Change(level="initial")
    made = seal(
        replace(
            build,
            release=ReleaseEntry(
                version=str(version),
                build=build.digest,
                parent=before,
                change=Change(level="minor", reasons=["more examples"]) if before else first,
            ),
            provenance=Provenance(
                created="2026-01-01T00:00:00Z",
                by="ada",
                host="here",
                tfrecreg="1.0.0",
                python="3.11",
                note="",
                commit="",
            ),
        )
    )
    folder = root / layout.release_folder(name, version)
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(render_manifest(made))
    (folder / SCHEMA_NAME).write_bytes(schema)
    return made
