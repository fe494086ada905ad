"""Registries of small datasets, and their records as an independent program reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from salvage_support import payloads_in
from tests_support import tree

import tfrecreg

STREET = ("cat", "dog", "truck")
NIGHT = ("fox", "dog", "kitten")

Rows = dict[tuple[str, str], dict[str, Any]]


def pictures(
    prefix: str, names: Sequence[str], train: int = 40, test: int = 12
) -> dict[str, list[dict[str, Any]]]:
    """Splits of rows with a key, a class and a width."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for split, count, start in (("train", train, 0), ("test", test, 500)):
        rows[split] = []
        for at in range(count):
            name, number = f"{prefix}{start + at:03}", (at * 7 + len(prefix)) % len(names)
            labels = {"image/class/label": number, "image/class/text": names[number]}
            data = f"{prefix}{start + at}".encode() * 40
            rows[split].append(
                {"name": name, "width": 100 + 10 * (at % 17), "raw/data": data, **labels}
            )
    return rows


def scenes() -> dict[str, list[dict[str, Any]]]:
    """Rows with lists of objects: boxes, keypoints, polygons."""
    rows = []
    for at in range(12):
        labels = [(at + place) % len(STREET) for place in range(at % 4)]
        parts = [1 + place % 2 for place in range(len(labels))]
        points = [3 + place for place in range(sum(parts))]
        sides = np.arange(len(labels), dtype=np.float32) / 8
        rows.append(
            {
                "name": f"scene{at:03}",
                "image/object/class/label": np.array(labels, np.int64),
                "image/object/class/text": np.array(
                    [STREET[each].encode() for each in labels], np.bytes_
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


class Derived:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = tfrecreg.init(folder, with_dvc=False)

    def parent(
        self, name: str, rows: Mapping[str, Any], version: str = "1.0.0", **settings: Any
    ) -> None:
        """Build and release a dataset."""
        dataset = self.registry[name]
        dataset.build(data=rows, key="name", progress=False, **settings)
        dataset.release(version, progress=False)

    def build(
        self,
        name: str,
        *inputs: str,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        given = {"source": "tfrecreg", "progress": False, **(settings or {})}
        return self.registry[name].build(options={"inputs": list(inputs), **options}, **given)

    def rows(self, name: str) -> Rows:
        """Every record of a build, by split and its feature `name`: the values of its features, and
        the payload under an empty name.
        """
        rows: Rows = {}
        for path in sorted((self.folder / "data" / name).glob("*.tfrecord*")):
            split = path.name.split("-")[1].partition(".")[0]
            for payload in payloads_in(path):
                example = tfrecreg.decode(payload)
                values = {each: feature.values for each, feature in example.items()}
                rows[split, values["name"][0].decode()] = {"": payload, **values}
        return rows

    def files(self, name: str) -> dict[str, bytes]:
        return tree(self.folder / "data" / name)
