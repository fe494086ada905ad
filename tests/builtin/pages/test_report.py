"""Pages of real records: what they show, and that the same data give the same page."""

from __future__ import annotations

import gzip
import math
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from diff_support import example, put_build, put_release
from hostile_support import hostile_report
from image_support import png
from memory_support import PRINT_PEAK, on_linux
from page_support import hostile_records, read_page
from PIL import Image
from statistics_support import needs_tfdv

import tfrecreg
from tfrecreg.builtin.pages.collect import Surveys, make_page
from tfrecreg.builtin.pages.make import diff_page, render_page
from tfrecreg.core.images.svg import Bars
from tfrecreg.core.registry.find import find_target
from tfrecreg.core.schema.labels import OBJECT_LABEL
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Location
from tfrecreg.core.workers.local import LocalEngine


def bars(page: tfrecreg.builtin.pages.Page, heading: str) -> Bars:
    (target,) = page.targets
    (found,) = [each for each in target.charts if each.heading == heading]
    assert isinstance(found, Bars)
    return found


@pytest.mark.medium
def test_the_page_of_a_release(digits_original: Path) -> None:
    made = tfrecreg.report("digits@1.0.0", registry=digits_original)
    page = read_page(made.html)
    assert page.headings[:6] == [
        "digits@1.0.0",
        "Verdict",
        "Classes: image/class/label",
        "Sample",
        "Sample of train",
        "Sample of test",
    ]
    features = page.headings.index("Features")
    assert page.headings[features + 1] == "image/class/label int64"
    assert features < page.headings.index("Provenance")
    assert page.headings[-4:] == ["Ledger", "Releases", "Code that loads it", "Schema"]
    assert 118 < page.images <= 138
    assert "Pass" in page.text
    assert "Records 260 train 200, test 60 Size" in page.text
    assert "4 shards Findings 0 Classes 10" in page.text
    assert "Image size 28 × 28 all images" in page.text


def test_classes_are_counted_and_all_are_in_the_sample(digits_original: Path) -> None:
    page = make_page("digits", registry=digits_original)
    chart = bars(page, "Classes: image/class/label")
    counts = {name: dict(zip(chart.labels, each, strict=True)) for name, each in chart.series}
    expected: dict[str, Counter[str]] = {"train": Counter(), "test": Counter()}
    for split, counter in expected.items():
        source = tfrecreg.data_source("digits", split, registry=digits_original)
        counter.update(str(int(each["image/class/label"])) for each in source)
    assert counts == {split: dict(counter) for split, counter in expected.items()}
    (target,) = page.targets
    for gallery in target.galleries[:2]:
        assert {record.label for record in gallery.records} == set(map(str, range(10)))


def keys(page: tfrecreg.builtin.pages.Page) -> list[list[str | None]]:
    (target,) = page.targets
    return [[record.key for record in gallery.records] for gallery in target.galleries]


@pytest.mark.medium
def test_the_sample_depends_on_the_records_only(digits_original: Path, tmp_path: Path) -> None:
    first = make_page("digits", registry=digits_original)
    second = make_page("digits", registry=digits_original, engine=LocalEngine(2))
    assert keys(first) == keys(second)
    root = shutil.copytree(digits_original, tmp_path / "again")
    tfrecreg.open(root)["digits"].build(shards=5, compression="gzip", base="none")
    assert keys(make_page("digits", registry=root)) == keys(first)


def test_a_damaged_record_shows_what_its_bytes_show(digits_original: Path, tmp_path: Path) -> None:
    shard = next((digits_original / "data" / "digits").glob("digits-train*00000*"))
    copy = tmp_path / "train.tfrecord"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    page = make_page(str(copy))
    (target,) = page.targets
    (finding,) = target.findings
    (record,) = finding.records
    assert "CRC002" in record.problem
    assert "its bytes are shown as they are" in record.problem
    assert {each.name for each in record.features} > {"image/class/label"}
    assert finding.command == f"tfrecreg head {copy} --at {record.record}"
    assert finding.explanation


def test_a_damaged_record_in_gzip_shows_nothing(digits_original: Path, tmp_path: Path) -> None:
    """Its offset is one of the decompressed stream: other bytes are there in the file."""
    shard = next((digits_original / "data" / "digits").glob("digits-train*00000*"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "train.tfrecord").write_bytes(gzip.compress(data))
    (target,) = make_page(str(tmp_path / "train.tfrecord")).targets
    (finding,) = target.findings
    (record,) = finding.records
    assert "CRC002" in record.problem
    assert record.features == ()


def test_a_damaged_record_that_shows_nothing_is_named_by_its_key(tmp_path: Path) -> None:
    records = {"a": example(1), "b\x1b[31m": example(2), "c": example(3)}
    put_build(tmp_path, {"train": [records]})
    shard = tmp_path / "data/d/d-train.tfrecord-00000-of-00001"
    data = bytearray(shard.read_bytes())
    second = 16 + int.from_bytes(data[:8], "little")
    data[second + 12] = 0xFF  # the first byte of the payload, which is no Example then
    shard.write_bytes(data)
    (target,) = make_page("d", registry=tmp_path).targets
    (finding,) = [each for each in target.findings if each.finding.code == "CRC002"]
    (record,) = finding.records
    assert (record.split, record.shard) == ("train", shard.name)
    assert (record.record, record.offset, record.length) == (1, second, None)
    assert record.key == "b\\x1b[31m"
    assert (record.features, record.image, record.label) == ((), None, "")
    assert "CRC002" in record.problem


@pytest.mark.medium
def test_the_difference_shows_the_records(digits_original: Path, tmp_path: Path) -> None:
    root = shutil.copytree(digits_original, tmp_path / "changed")
    labels = root / "raw" / "train-labels-idx1-ubyte.gz"
    data = bytearray(gzip.decompress(labels.read_bytes()))
    data[8] = (data[8] + 1) % 10
    labels.write_bytes(gzip.compress(data))
    build = tfrecreg.open(root)["digits"].build(raw=root / "raw")
    made = build.report(against="digits@1.0.0")
    text = read_page(made.html).text
    assert "Difference from digits@1.0.0" in text
    assert "Changed: 1 example" in text
    assert text.index("train 200 200 0 0 1") < text.index("test 60 60 0 0 0")
    assert "Changed labels feature before after examples image/class/label" in text
    assert "a major number" in text
    assert re.search(r"Classes: image/class/label before after", text)
    page = make_page("digits", registry=root, against="digits@1.0.0")
    (target,) = page.targets
    assert target.difference is not None
    (change,) = target.difference.changes
    assert change.before is not None
    assert change.after is not None
    assert change.before.key == change.after.key == "00000"
    assert change.before.label != change.after.label
    html, result = diff_page("digits@1.0.0", "digits", registry=root)
    alone = read_page(html)
    assert not result.same
    assert alone.images == 2
    assert "Classes: image/class/label before after" in alone.text
    (root / "versions" / "digits" / "1.0.0").rename(tmp_path / "elsewhere")
    assert read_page(diff_page("digits@1.0.0", "digits", registry=root)[0]).images == 1


def test_the_difference_shows_every_record_of_a_repeated_key(tmp_path: Path) -> None:
    put_build(tmp_path, {"train": [{"a": example(1), "b": example(5)}, {"a": example(2)}]})
    put_release(tmp_path, "1.0.0")
    put_build(tmp_path, {"train": [{"a": example(3)}, {"a": example(4)}]})
    (target,) = make_page("d", registry=tmp_path, against="d@1.0.0").targets
    assert target.difference is not None
    removed, *changed = target.difference.changes
    assert removed.before is not None
    assert (removed.before.key, removed.after) == ("b", None)
    for side in ("before", "after"):
        shown = [getattr(change, side).shard for change in changed]
        assert sorted(shown) == [f"d-train.tfrecord-0000{number}-of-00002" for number in (0, 1)]


def write(path: Path, records: list[dict[str, object]]) -> str:
    with tfrecreg.TFRecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    return str(path)


@pytest.mark.parametrize("count", [1, 300])
def test_records_without_images(tmp_path: Path, count: int) -> None:
    path = write(tmp_path / "plain.tfrecord", [{"x": [1.5, 2.0]} for _ in range(count)])
    page = read_page(tfrecreg.report(path).html)
    assert page.images == 0
    assert f"Records {count} Size" in page.text
    assert "1.5, 2" in page.text


def objects(image: bytes, widths: list[float], labels: list[int]) -> dict[str, object]:
    zeros, ones = np.zeros(len(widths), np.float32), np.ones(len(widths), np.float32)
    sides = {"xmin": zeros, "xmax": np.array(widths, np.float32), "ymin": zeros, "ymax": ones}
    boxes: dict[str, object] = {f"image/object/bbox/{name}": each for name, each in sides.items()}
    return {"image/encoded": image, OBJECT_LABEL: np.array(labels, np.int64), **boxes}


def test_objects_and_sizes_of_images_are_counted(tmp_path: Path) -> None:
    records = [
        objects(png(8, 4), [1e-9, 0.5, math.inf, math.nan], [3, 3, 4, 5]),
        objects(png(8, 4), [0.0011], [4]),
        objects(png(2, 9), [], []),
        *({"image/encoded": png(1 + number % 2, 6)} for number in range(100)),
    ]
    (target,) = make_page(write(tmp_path / "x.tfrecord", records)).targets
    assert target.figures[3:] == (
        ("Classes", "3", "most frequent: 3, 40\N{NO-BREAK SPACE}%"),
        ("Image size", "2 × 6", "median, 4 sizes"),
        ("Objects", "5", "1.7 for each image"),
    )
    assert target.charts[1].points == ((1, 6, 50), (2, 6, 50), (8, 4, 2), (2, 9, 1))
    per_image, shares = target.more_charts
    assert (per_image.labels, per_image.series) == (tuple("01234"), (("", (1, 1, 0, 0, 1)),))
    assert shares.labels[::11] == ("from 2.2e-05 %", "from 0.1 %")
    assert shares.series == (("", (1, *[0] * 10, 1, *[0] * 7, 2)),)
    sample, extremes = target.galleries
    assert [each.label for each in sample.records[:2]] == ["3 × 2, 4, 5", "4"]
    assert [each.record for each in extremes.records] == [0, 1, 2]
    assert extremes.tags == (*["largest, widest, most objects"] * 2, "largest")


def test_a_page_of_nothing_and_one_of_many_findings(tmp_path: Path) -> None:
    empty = read_page(tfrecreg.report(write(tmp_path / "empty.tfrecord", [])).html)
    assert empty.headings[1:] == ["Verdict", "Findings"]
    report = hostile_report("name")
    findings = tuple(
        replace(each, message=f"message {at}") for at in range(110) for each in report.findings
    )
    (many,) = Surveys().page([replace(report, findings=findings)]).targets
    assert (len(many.findings), many.more_findings) == (200, len(findings) + 1 - 200)
    html = render_page(Surveys().page([replace(report, findings=findings)]))
    assert len(html) < 400_000
    assert html.count('<details class="finding') == 200
    assert re.search(r"\d+ more findings not on this page", read_page(html).text)


def test_hostile_records_stay_in_their_cells(tmp_path: Path) -> None:
    made = tfrecreg.report(write(tmp_path / "names.tfrecord", hostile_records(png(80, 40))))
    page = read_page(made.html)
    assert page.images > 50
    assert "alert(1)" in page.text


def test_a_thumbnail_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (200, 8000, 3), np.uint8)
    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    made = tfrecreg.report(write(tmp_path / "long.tfrecord", [{"image/encoded": out.getvalue()}]))
    page = read_page(made.html)
    assert page.images == 0
    assert "the image, 8,000 × 200, is too large for a page" in page.text


def test_a_page_of_many_findings_shows_some_records(tmp_path: Path) -> None:
    path = write(tmp_path / "many.tfrecord", [{"x": number} for number in range(300)])
    target = find_target(path)
    surveys = Surveys()
    surveys.look(target)
    report = hostile_report("name", target=target.name)
    places = tuple(Location(shard=target.shards[0].name, record=at) for at in range(300))
    found = tuple(
        replace(report.findings[0], locations=places[at : at + 3]) for at in range(0, 300, 3)
    )
    (page,) = surveys.page([replace(report, findings=found)]).targets
    assert sum(len(each.records) for each in page.findings) == 100


def test_what_cannot_be_compared_is_refused(digits_original: Path) -> None:
    both = ["digits", "digits@1.0.0"]
    with pytest.raises(UsageError, match="compares one build or release with another"):
        tfrecreg.report(both, registry=digits_original, against="digits@1.0.0")
    with pytest.raises(UsageError, match="no release"):
        tfrecreg.report("digits", registry=digits_original, against="digits@7.0.0")


@pytest.mark.medium
def test_a_page_is_written_at_once(digits_original: Path, tmp_path: Path) -> None:
    made = tfrecreg.report("digits", tmp_path / "page.html", registry=digits_original)
    assert (tmp_path / "page.html").read_text("utf-8") == made.html
    with pytest.raises(UsageError, match="cannot be written"):
        tfrecreg.report("digits", tmp_path / "no" / "page.html", registry=digits_original)


@pytest.mark.medium
def test_a_site_has_a_page_for_each_state(digits_original: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(digits_original, tmp_path / "shop"))
    (root / "datasets" / "other.toml").write_text('source = "mnist"\nraw = "raw"\n')
    made = tfrecreg.open(root).site(tmp_path / "public")
    files = sorted(str(each.relative_to(made.folder)) for each in Path(made.folder).rglob("*.html"))
    assert files == ["digits/1.0.0.html", "digits/build.html", "index.html"]
    assert made.pages == 3
    assert [(each.target, each.status) for each in made.reports] == [
        ("digits", "pass"),
        ("digits@1.0.0", "pass"),
    ]
    index = read_page((Path(made.folder) / "index.html").read_text("utf-8"))
    assert index.links == ["digits/1.0.0.html", "digits/1.0.0.html"]
    assert "other never built No release." in index.text
    release = read_page((Path(made.folder) / "digits" / "1.0.0.html").read_text("utf-8"))
    assert release.links == ["../index.html", "1.0.0.html"]
    again = tfrecreg.open(root).site(tmp_path / "again")
    for name in files:
        one, other = (Path(each.folder) / name for each in (made, again))
        assert one.read_bytes() == other.read_bytes()
    with pytest.raises(UsageError, match="is not empty"):
        tfrecreg.open(root).site(made.folder)


def test_a_release_that_is_elsewhere_has_a_page_that_says_so(
    digits_original: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(digits_original, tmp_path / "shop"))
    shutil.rmtree(root / "versions" / "digits")
    shutil.rmtree(root / "data" / "digits")
    made = tfrecreg.open(root).site(tmp_path / "public")
    (report,) = made.reports
    assert report.status == "error"
    page = read_page((Path(made.folder) / "digits" / "1.0.0.html").read_text("utf-8"))
    assert "Incomplete" in page.text
    assert "content digest" in page.text
    assert page.images == 0
    (root / "registry/digits/1.0.0/manifest.json").write_text("{}")
    damaged = tfrecreg.open(root).site(tmp_path / "damaged")
    assert [(each.target, each.status) for each in damaged.reports] == [("digits", "error")]


@on_linux
@pytest.mark.slow
def test_a_page_takes_little_more_memory_than_its_check(tmp_path: Path) -> None:
    path = str(tmp_path / "many.tfrecord")
    with tfrecreg.TFRecordWriter(path) as writer:
        for number in range(500_000):
            writer.write({"image/class/label": number % 1000, "x": float(number)})

    def peak(call: str) -> int:
        """The most memory of a process, in MB."""
        program = f"import tfrecreg\n{call}\n{PRINT_PEAK}"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        return int(done.stdout) * 1024 // 1_000_000

    page = peak(f"assert len(tfrecreg.report({path!r}).html) < 8_000_000")
    assert page < 400
    assert page - peak(f"tfrecreg.check({path!r})") < 30


@pytest.mark.slow
def test_statistics_anomalies_and_drift(digits_original: Path, tmp_path: Path) -> None:
    needs_tfdv()
    root = Path(shutil.copytree(digits_original, tmp_path / "other"))
    labels = root / "raw" / "train-labels-idx1-ubyte.gz"
    data = bytearray(gzip.decompress(labels.read_bytes()))
    data[8:158] = bytes(150)
    labels.write_bytes(gzip.compress(data))
    build = tfrecreg.open(root)["digits"].build(raw=root / "raw", base="none")
    made = build.report(against="digits@1.0.0", statistics=True)
    page = read_page(made.html)
    assert "Statistics of train: 200 examples" in page.headings
    assert "image/class/label int64 100 % 1" in page.text
    (report,) = made.reports
    assert {"statistics", "drift"} <= set(report.validators)
