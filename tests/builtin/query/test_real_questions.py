"""Questions about real data, against programs that read the raw files."""

from __future__ import annotations

import csv
import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tfrecreg as tr
from tfrecreg.builtin.query.ask import ask

pytest.importorskip("duckdb", reason="the extra `query` is not installed")


def answers(build: tr.Build, *sqls: str) -> list[Any]:
    return [
        [tuple(row.values()) for row in build.query(sql, progress=False).rows()] for sql in sqls
    ]


@pytest.mark.medium
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


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Answers about TFRecords of other tools, which belong to no registry."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def answered(pattern: Path, *sqls: str) -> list[Any]:
        with ask(str(pattern)) as questions:
            assert questions.notes == ()
            return [[tuple(row.values()) for row in questions.answer(sql).rows()] for sql in sqls]

    return answered


def test_foreign_boxes(realdata: Path, foreign: Any) -> None:
    """Written with the features of TensorFlow's object detection, from a CSV with a row a box."""
    folder = realdata / "tfrecord/raccoon/data"
    boxes = list(csv.DictReader((folder / "test_labels.csv").read_text().splitlines()))
    images = {each["filename"]: each for each in boxes}
    sizes = {name: (int(each["width"]), int(each["height"])) for name, each in images.items()}
    per_image = Counter(each["filename"] for each in boxes)
    areas = [
        (int(each["xmax"]) - int(each["xmin"]))
        * (int(each["ymax"]) - int(each["ymin"]))
        / (int(each["width"]) * int(each["height"]))
        for each in boxes
    ]
    found = foreign(
        folder / "test.record",
        "SELECT count(*) FROM records",
        "SELECT label, count(*) FROM objects GROUP BY label",
        'SELECT "image/filename", boxes FROM records WHERE boxes > 1 ORDER BY ALL',
        'SELECT "image/filename" FROM records WHERE width < height ORDER BY ALL',
        "SELECT round(sum((xmax - xmin) * (ymax - ymin)), 3) FROM objects",
        "SELECT median(width) FROM records",
        'SELECT sum("image/encoded.size")::BIGINT FROM records',
    )
    assert found == [
        [(len(images),)],
        [("raccoon", len(boxes))],
        sorted((name, number) for name, number in per_image.items() if number > 1),
        sorted(
            (name,) for name, each in images.items() if int(each["width"]) < int(each["height"])
        ),
        [(pytest.approx(sum(areas), abs=0.001),)],
        [(statistics.median(width for width, _ in sizes.values()),)],
        [(sum((folder.parent / "images" / name).stat().st_size for name in images),)],
    ]


@pytest.mark.medium
def test_foreign_rows(realdata: Path, foreign: Any) -> None:
    """Rows of a table as TFX wrote them: gzip, values of many kinds, many of them missing. They are
    counted by TensorFlow."""
    tf = pytest.importorskip("tensorflow", reason="it is the program to compare with")
    pattern = realdata / "tfrecord/tfx/components/testdata/csv_example_gen/Split-*/data*"
    rows: list[dict[str, Any]] = []
    paths = sorted(str(path) for path in pattern.parent.parent.glob("Split-*/data*"))
    for batch in tf.data.TFRecordDataset(paths, "GZIP").batch(1000):
        for record in batch.numpy():
            row: dict[str, Any] = {}
            for name, feature in tf.train.Example.FromString(record).features.feature.items():
                kind = feature.WhichOneof("kind")
                values = getattr(feature, kind).value if kind else ()
                if values:
                    (row[name],) = values
            rows.append(row)
    assert len(rows) == 15000

    def count(name: str) -> int:
        return sum(name in row for row in rows)

    payments = Counter(row["payment_type"].decode() for row in rows)
    long = [row for row in rows if row.get("trip_miles", 0) > 10]
    companies = Counter(row["company"].decode() for row in long if "company" in row)
    found = foreign(
        pattern,
        "SELECT count(*), count(company), count(trip_seconds) FROM records",
        "SELECT payment_type, count(*) FROM records GROUP BY ALL ORDER BY ALL",
        "SELECT max(fare), sum(trip_start_hour)::BIGINT FROM records",
        "SELECT count(*) FROM records WHERE trip_miles > 10",
        "SELECT company, count(*) FROM records WHERE trip_miles > 10 AND company IS NOT NULL "
        "GROUP BY company ORDER BY company",
        "SELECT count(*) FROM records WHERE pickup_census_tract IS NULL AND tips > 0",
        "SELECT DISTINCT payload FROM records",
    )
    tipped = sum("pickup_census_tract" not in row and row.get("tips", 0) > 0 for row in rows)
    assert found == [
        [(len(rows), count("company"), count("trip_seconds"))],
        sorted(payments.items()),
        [(max(row["fare"] for row in rows), sum(row["trip_start_hour"] for row in rows))],
        [(len(long),)],
        sorted(companies.items()),
        [(tipped,)],
        [("example",)],
    ]


def test_foreign_payloads(realdata: Path, foreign: Any) -> None:
    """Some are no `tf.train.Example`, and one is gzip beside its plain twin."""
    with (realdata / "tfrecord/census.tsv").open() as file:
        census = {row["path"]: int(row["records"]) for row in csv.DictReader(file, delimiter="\t")}
    for name in (
        "nucleus/test_sites.vcf.golden.tfrecord",
        "ranking/tensorflow_ranking/examples/data/eval_elwc.tfrecord",
        "nucleus/test_reads.fastq.tfrecord.gz",
    ):
        path = f"tfrecord/{name}"
        ((counted,), columns) = foreign(
            realdata / path,
            "SELECT count(*) FROM records WHERE payload <> 'example'",
            "SELECT column_name FROM (DESCRIBE SELECT * EXCLUDE (payload) FROM records)",
        )
        assert counted == (census[path],)
        names = ["split", "shard", "record", "offset", "bytes", "key", "digest"]
        assert [each for (each,) in columns] == names
    both = [
        foreign(
            realdata / f"tfrecord/ydf/toy.{kind}-00000-of-00002",
            "SELECT * EXCLUDE (shard) FROM records ORDER BY record",
        )
        for kind in ("tfe-tfrecord", "nocompress-tfe-tfrecord")
    ]
    assert both[0] == both[1]
    assert len(both[0][0]) == census["tfrecord/ydf/toy.tfe-tfrecord-00000-of-00002"]
