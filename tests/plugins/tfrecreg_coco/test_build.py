"""The source through the front door: what the ledger, the manifest and the commands say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.registry.init import init
from tfrecreg.core.values.errors import install_command

Run = Callable[..., str]


@pytest.fixture
def run(cli: Callable[..., Any], tmp_path: Path, monkeypatch) -> Run:
    """Run a command in an empty registry, which is the current folder; give what it says."""
    init(tmp_path / "registry", with_dvc=False)
    monkeypatch.chdir(tmp_path / "registry")
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str, code: int = 0) -> str:
        done = cli(*arguments)
        assert done.code == code, done.out + done.err
        return done.out if code == 0 else done.err

    return call


def several(raw: Any) -> tuple[str, ...]:
    """Two splits, one box clipped, one dropped, one orphan, one image missing."""
    images = []
    for number in range(1, 9):
        split = "val2017" if number > 6 else "train2017"
        images.append((split, raw.image(number)))
        if number != 5:
            raw.image_file(f"{split}/{number}.png")
    raw.image_file("train2017/orphan.png")
    annotations = [raw.annotation(number, image=number) for number in range(1, 7)]
    annotations.append(raw.annotation(20, image=2, bbox=[90, 0, 10.5, 5]))
    annotations.append(raw.annotation(21, image=3, bbox=[1, 1, -1, 1]))
    for split, mine in (("train2017", annotations), ("val2017", [raw.annotation(1, image=7)])):
        here = [image for where, image in images if where == split]
        raw.put(f"annotations/instances_{split}.json", raw.dataset(here, mine))
    return (
        "build",
        "d",
        "--source",
        "coco",
        "--raw",
        str(raw.path),
        *("--max-dropped", "1", "--max-skipped", "1"),
    )


def test_ledger_and_manifest_account_for_images_boxes_and_orphans(raw: Any, run: Run) -> None:
    out = run(*several(raw), "--shards", "2")
    build = Path("data/d")
    lines = [json.loads(line) for line in (build / "ledger.jsonl").read_text().splitlines()]
    assert lines == [
        {
            "split": "train",
            "key": "train2017/2.png",
            "code": "SRC116",
            "detail": "the box of the annotation 20 sticks out and was clipped",
            "times": 1,
        },
        {
            "split": "train",
            "key": "train2017/3.png",
            "code": "SRC047",
            "detail": "1 of 2 objects: the annotation 21 has the box [1, 1, -1, 1], which has no "
            "area; it was dropped",
            "times": 1,
        },
        {
            "split": "train",
            "key": "train2017/3.png",
            "code": "SRC115",
            "detail": "the annotation 21 has the box [1, 1, -1, 1], which has no area; it was "
            "dropped",
            "times": 1,
        },
        {
            "split": "train",
            "key": "train2017/5.png",
            "code": "SRC112",
            "detail": "there is no file `train2017/5.png`",
        },
        {
            "split": "train",
            "key": "train2017/orphan.png",
            "code": "SRC117",
            "detail": "no annotation file that was read names them: `train2017/orphan.png`",
            "times": 1,
        },
    ]
    manifest = json.loads((build / "manifest.json").read_bytes())
    remarks = {"SRC047": 1, "SRC115": 1, "SRC116": 1, "SRC117": 1}
    assert manifest["ledger"] == {
        "train": {"items": 6, "written": 5, "skipped": {"SRC112": 1}, "remarks": remarks},
        "validation": {"items": 2, "written": 2, "skipped": {}},
    }
    labels = {"image/object/class/label": ["", "cat", "", "dog"]}
    assert manifest["labels"] == json.loads((build / "labels.json").read_bytes()) == labels
    for text in (out, run("show", "d")):
        assert "7 written, 1 skipped" in text
        assert "1 item or set of files is incomplete (SRC112, train)" in text
        assert "1 item or part was adapted (SRC116, train)" in text
    report = json.loads(run("check", "d", "--raw", str(raw.path), "--json"))
    # The only dog was the object that could not be used.
    assert [(each["code"], each["count"]) for each in report["findings"]] == [
        ("ANN005", 1),
        ("SRC047", 1),
    ]
    assert report["findings"][0]["locations"][0]["detail"] == "`dog`"
    assert report["measures"]["source.compared"] == 7
    assert run("release", "d", "--version", "1.0.0")


def test_a_remark_counts_images_that_nobody_annotated(raw: Any, run: Run) -> None:
    for number in (1, 2, 3):
        raw.image_file(f"val2017/{number}.png")
        raw.image_file(f"train2017/{number}.png")
        raw.image_file(f"images/more/deep/{number}.png")
    raw.image_file("val2017/below/1.png")
    raw.image_file("loose.png")
    for aside in (".cache/x.png", "annotations/panoptic_val2017/1.png"):
        raw.image_file(aside)
    raw.put("docs/readme.txt", "no image")
    annotations = [raw.annotation(number, image=number) for number in (1, 2)]
    images = [raw.image(number) for number in (1, 2)]
    raw.put("annotations/instances_val2017.json", raw.dataset(images, annotations))
    out = run("build", "d", "--source", "coco", "--raw", str(raw.path), "--shards", "1")
    ledger = Path("data/d/ledger.jsonl").read_text().splitlines()
    (found,) = map(json.loads, ledger)
    assert (found["code"], found["split"], found["times"]) == ("SRC117", "validation", 9)
    for text in (out, run("show", "d")):
        assert "2 written, 0 skipped" in text
        assert "9 files, columns or parts are left out (SRC117, validation)" in text


@pytest.mark.parametrize(
    "options",
    [("masks=polygons",), ("masks=png",), ("bad_boxes=keep",)],
    ids=str,
)
def test_tensorflow_reads_every_record_with_the_spec_that_is_printed(
    raw: Any, run: Run, options: tuple[str, ...]
) -> None:
    tf = pytest.importorskip("tensorflow")
    if "masks=png" in options:
        pytest.importorskip("pycocotools.mask")
    run(*several(raw), *(f"--option={each}" for each in options))
    scope: dict[str, Any] = {"tf": tf}
    exec(run("schema", "show", "d", "--format", "tf"), scope)
    shards = sorted(str(path) for path in Path("data/d").glob("*.tfrecord-*"))
    records = list(tf.data.TFRecordDataset(shards).as_numpy_iterator())
    parsed = tf.io.parse_example(records, scope["FEATURES"])
    boxes = 8 if options == ("bad_boxes=keep",) else 7
    assert len(records) == 7
    assert parsed["image/object/bbox/xmin"].values.shape == (boxes,)
    assert parsed["image/object/bbox/xmin"].dense_shape[0] == 7
    assert sorted(parsed["image/source_id"].numpy().tolist()) == [
        str(number).encode() for number in (1, 2, 3, 4, 6, 7, 8)
    ]
    if options == ("masks=png",):
        masks = parsed["image/object/mask"].values
        assert {tuple(tf.io.decode_png(each).shape) for each in masks} == {(80, 100, 1)}


def test_the_version_of_pycocotools_is_recorded_where_it_draws(raw: Any, run: Run) -> None:
    pytest.importorskip("pycocotools.mask")
    command, _, *rest = several(raw)
    for masks, recorded in (("rle", True), ("none", False)):
        run(command, f"with_{masks}", *rest, f"--option=masks={masks}")
        manifest = json.loads(Path(f"data/with_{masks}/manifest.json").read_bytes())
        assert ("pycocotools" in manifest["codecs"]) is recorded


def test_without_pycocotools_the_extra_is_named_before_anything_is_read(
    raw: Any, run: Run, monkeypatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pycocotools.mask", None)
    error = run(*several(raw), "--option=masks=rle", code=3)
    assert "needs the extra `coco`, which is not installed" in error
    assert install_command(extra="coco") in error
