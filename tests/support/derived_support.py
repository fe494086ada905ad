"""Registries of small datasets, and what is in them as an independent program reads it."""

from __future__ import annotations

import gzip
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tfrecreg

STREET = ("cat", "dog", "truck")
NIGHT = ("fox", "dog", "kitten")

Rows = dict[tuple[str, str], dict[str, Any]]


def pictures(
    prefix: str, names: Sequence[str], train: int = 40, test: int = 12
) -> dict[str, list[dict[str, Any]]]:
    """Splits of rows with a key, a class and a width."""
    rows = {}
    for split, count, start in (("train", train, 0), ("test", test, 500)):
        rows[split] = [
            {
                "name": f"{prefix}{start + at:03}",
                "image/class/label": (at * 7 + len(prefix)) % len(names),
                "image/class/text": names[(at * 7 + len(prefix)) % len(names)],
                "width": 100 + 10 * (at % 17),
                "raw/data": f"{prefix}{start + at}".encode() * 40,
            }
            for at in range(count)
        ]
    return rows


def scenes(count: int = 12, names: Sequence[str] = STREET) -> dict[str, list[dict[str, Any]]]:
    """Rows with lists of objects: boxes, keypoints, polygons."""
    rows = []
    for at in range(count):
        labels = [(at + place) % len(names) for place in range(at % 4)]
        parts = [1 + place % 2 for place in range(len(labels))]
        points = [3 + place for place in range(sum(parts))]
        sides = np.arange(len(labels), dtype=np.float32) / 8
        rows.append(
            {
                "name": f"scene{at:03}",
                "image/object/class/label": np.array(labels, np.int64),
                "image/object/class/text": np.array(
                    [names[each].encode() for each in labels], np.bytes_
                ),
                **{f"image/object/bbox/{axis}min": sides for axis in "xy"},
                **{f"image/object/bbox/{axis}max": sides + np.float32(0.5) for axis in "xy"},
                "image/object/keypoint/x": np.arange(2 * len(labels), dtype=np.float32),
                "image/object/polygon/parts": np.array(parts, np.int64),
                "image/object/polygon/points": np.array(points, np.int64),
                "image/object/polygon/x": np.arange(sum(points), dtype=np.float32),
                "image/object/polygon/y": np.arange(sum(points), dtype=np.float32) / 2,
            }
        )
    return {"train": rows}


def records_of(folder: Path) -> Rows:
    """Every record below a folder of a build, by split and its feature `name`: the values of its
    features, and the payload under an empty name.
    """
    rows: Rows = {}
    for path in sorted(folder.glob("*.tfrecord*")):
        split = re.fullmatch(r".*-([a-z0-9]+)\.tfrecord-\d+-of-\d+(?:\.gz)?", path.name)[1]
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        at = 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            payload = data[at + 12 : at + 12 + length]
            at += 16 + length
            values = {each: feature.values for each, feature in tfrecreg.decode(payload).items()}
            rows[split, values["name"][0].decode()] = {"": payload, **values}
    return rows


class Derived:
    """A registry, and builds in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = tfrecreg.init(folder, with_dvc=False)

    def parent(
        self,
        name: str,
        rows: Mapping[str, Any],
        version: str = "1.0.0",
        *,
        labels: Mapping[str, Sequence[str]] | None = None,
        **settings: Any,
    ) -> None:
        """Build and release a dataset."""
        dataset = self.registry[name]
        dataset.build(data=rows, key="name", labels=labels, progress=False, **settings)
        dataset.release(version, progress=False)

    def build(
        self,
        name: str,
        *inputs: str,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """A derived build."""
        given = {"inputs": list(inputs), **options}
        return self.registry[name].build(
            source="tfrecreg", options=given, progress=False, **(settings or {})
        )

    def rows(self, name: str) -> Rows:
        """The records of a build."""
        return records_of(self.folder / "data" / name)

    def files(self, name: str) -> dict[str, bytes]:
        """The files of a build."""
        root = self.folder / "data" / name
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }
