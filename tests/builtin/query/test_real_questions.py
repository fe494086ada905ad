"""Questions about real data, against programs that read the raw files."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tfrecreg as tr

pytest.importorskip("duckdb", reason="the extra `query` is not installed")


def answers(build: tr.Build, *sqls: str) -> list[Any]:
    return [
        [tuple(row.values()) for row in build.query(sql, progress=False).rows()] for sql in sqls
    ]


def test_coco(realdata: Path, tmp_path: Path) -> None:
    raw = realdata / "coco/dali"
    told = json.loads((raw / "instances.json").read_text())
    build = tr.init(tmp_path / "registry", with_dvc=False)["dali"].build(
        source="coco", raw=raw, progress=False
    )
    names = {each["id"]: each["name"] for each in told["categories"]}
    boxes = told["annotations"]
    per_image = Counter(each["image_id"] for each in boxes)
    sizes = {each["id"]: (each["width"], each["height"]) for each in told["images"]}
    found = answers(
        build,
        "SELECT count(*) FROM records",
        "SELECT count(*) FROM objects",
        "SELECT label, count(*) FROM objects GROUP BY label ORDER BY label",
        "SELECT boxes, count(*) FROM records WHERE boxes > 0 GROUP BY boxes ORDER BY boxes",
        "SELECT count(*) FROM objects WHERE is_crowd = 1",
        "SELECT count(*) FROM records WHERE width >= height",
        "SELECT max(width), min(height) FROM records",
        "SELECT max(boxes) FROM records",
        "SELECT round(sum(area)) FROM objects",
        "SELECT count(DISTINCT record || shard) FROM objects",
    )
    assert found == [
        [(len(told["images"]),)],
        [(len(boxes),)],
        sorted(Counter(names[each["category_id"]] for each in boxes).items()),
        sorted(Counter(per_image.values()).items()),
        [(sum(each["iscrowd"] for each in boxes),)],
        [(sum(width >= height for width, height in sizes.values()),)],
        [(max(w for w, _ in sizes.values()), min(h for _, h in sizes.values()))],
        [(max(per_image.values()),)],
        [(pytest.approx(sum(each["area"] for each in boxes), rel=1e-6),)],
        [(len(per_image),)],
    ]


def test_image_folder(realdata: Path, tmp_path: Path) -> None:
    raw = realdata / "imagefolder/tfrecorder/images"
    files = sorted(path for path in raw.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    assert files
    build = tr.init(tmp_path / "registry", with_dvc=False)["pets"].build(
        source="imagefolder", raw=raw, progress=False
    )
    found = answers(
        build,
        "SELECT count(*) FROM records",
        "SELECT label, count(*) FROM records GROUP BY label ORDER BY label",
        'SELECT sum("image/encoded.size")::BIGINT FROM records',
        'SELECT max("image/encoded.size") FROM records',
        "SELECT split, count(*) FROM records GROUP BY split ORDER BY split",
        "SELECT DISTINCT format FROM records",
    )
    assert found == [
        [(len(files),)],
        sorted(Counter(path.parent.name for path in files).items()),
        [(sum(path.stat().st_size for path in files),)],
        [(max(path.stat().st_size for path in files),)],
        sorted(Counter(path.parent.parent.name.lower() for path in files).items()),
        [("jpeg",)],
    ]


def test_mnist(realdata: Path, tmp_path: Path) -> None:
    raw = realdata / "mnist/two-class"
    labels = {}
    for path in raw.rglob("*labels*"):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        labels["train" if "train" in path.name else "test"] = list(data[8:])
    build = tr.init(tmp_path / "registry", with_dvc=False)["two"].build(
        source="mnist", raw=raw, progress=False
    )
    found = answers(
        build,
        "SELECT split, count(*) FROM records GROUP BY split ORDER BY split",
        'SELECT "image/class/label", count(*) FROM records GROUP BY ALL ORDER BY 1',
        "SELECT split, records FROM splits ORDER BY split",
        "SELECT sum(\"image/class/label\")::BIGINT FROM records WHERE split = 'train'",
    )
    counts = sorted((split, len(each)) for split, each in labels.items())
    assert found == [
        counts,
        sorted(Counter(labels["train"] + labels["test"]).items()),
        counts,
        [(sum(labels["train"]),)],
    ]
