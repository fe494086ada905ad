"""Published datasets: each builds, checks clean and is released, or is refused in one line."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from cases_support import count_cases
from salvage_support import payloads_in

from tfrecreg.cli.main import main
from tfrecreg.core.build.sources.interface import Item, Remark, Written
from tfrecreg.core.example.decode import decode
from tfrecreg.core.registry.init import init
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg_coco.dataset import CocoOptions
from tfrecreg_coco.source import CocoSource

pytestmark = pytest.mark.realdata


class Counts(NamedTuple):
    images: dict[str, int]
    """By split."""
    objects: int = 0
    crowds: int = 0
    categories: int = 0
    """Those that have a name."""
    segments: int = 0
    captions: int = 0
    keypoints: int = 0
    """Labelled ones."""
    skipped: int = 0
    remarks: dict[str, int] | None = None


BOTH = {"train": 1, "validation": 1}
PANOPTIC = ("train:panoptic_examples.json", "train:panoptic_coco_detection_format.json")
EVERY = "instances,stuff,keypoints,captions,panoptic"

UNNAMED = {"SRC117 image": 6}
"""The folder of reference masks beside the images: no annotation file names what lies there."""

# Folder, options, what is built of it.
BUILT: list[tuple[str, dict[str, str], Counts]] = [
    ("dali", {}, Counts({"train": 61}, 91, 4, 17)),
    (
        "dali",
        {"masks": "polygons", "categories": "contiguous"},
        Counts({"train": 61}, 91, 4, 17, remarks={"SRC115 mask": 3}),
    ),
    ("dali-pixelwise", {"masks": "rle"}, Counts({"train": 6}, 12, 0, 3, remarks=UNNAMED)),
    ("dali-pixelwise", {"masks": "png"}, Counts({"train": 6}, 12, 0, 3, remarks=UNNAMED)),
    (
        "panoptic/sample_data",
        {"images": "input_images"},
        Counts({"train": 2}, 50, 3, 133, remarks={"SRC117 image": 4}),
    ),
    (
        "panoptic/sample_data",
        {"images": "input_images", "annotations": ",".join(PANOPTIC), "masks": "rle"},
        Counts({"train": 2}, 50, 3, 133, segments=50),
    ),
    ("retinanet/coco", {}, Counts(BOTH, 23, 0, 80)),
    (
        "mmpose/coco",
        {"annotations": "test_coco.json"},
        Counts({"test": 4}, 14, 0, 1, keypoints=181),
    ),
    (
        "mmpose/coco",
        {"annotations": "test_coco_wholebody.json", "tasks": "instances", "masks": "polygons"},
        Counts({"test": 4}, 14, 0, 1),
    ),
    (
        "mmpose/crowdpose",
        {},
        Counts({"test": 2}, 5, 0, 1, keypoints=47, remarks={"SRC015": 1}),
    ),
    ("mmpose/ochuman", {"masks": "png"}, Counts({"test": 3}, 5, 0, 1, keypoints=73)),
    ("mmpose/animalpose", {}, Counts({"test": 2}, 2, 0, 1, keypoints=32)),
    ("datumaro/coco", {}, Counts(BOTH, 3, 1, 3)),
    (
        "datumaro/coco",
        {"tasks": EVERY, "masks": "rle"},
        Counts(BOTH, 5, 3, 3, segments=3, captions=3, keypoints=8, remarks={"SRC115 mask": 1}),
    ),
    ("datumaro/coco_captions", {}, Counts(BOTH, captions=3)),
    ("datumaro/coco_image_info", {}, Counts(BOTH)),
    ("datumaro/coco_instances", {}, Counts(BOTH, 3, 1, 3)),
    ("datumaro/coco_panoptic", {}, Counts(BOTH, categories=2, segments=2, skipped=1)),
    ("datumaro/coco_person_keypoints", {}, Counts(BOTH, 3, 1, 2, keypoints=8)),
    ("datumaro/coco_roboflow", {}, Counts(BOTH, 3, 1, 3)),
    ("datumaro/coco_stuff", {"masks": "png"}, Counts(BOTH, 2, 2, 2)),
    ("datumaro/mmdet_coco", {}, Counts(BOTH, 3, 1, 3)),
]

# Folder, options: these are refused.
REFUSED: list[tuple[str, dict[str, str]]] = [
    ("results-not-datasets", {}),
    ("results-not-datasets", {"annotations": "instances_val2014_fakebbox100_results.json"}),
    ("panoptic", {}),
    ("panoptic/sample_data", {}),
    ("mmpose/coco", {}),
    ("datumaro/coco_labels", {}),
]


def called(folder: str, options: dict[str, str]) -> str:
    """A short name for a test."""
    return "-".join([folder, *options.values()])[:60]


built = pytest.mark.parametrize(
    ("folder", "options", "counts"), BUILT, ids=[called(*each[:2]) for each in BUILT]
)
refused = pytest.mark.parametrize(
    ("folder", "options"), REFUSED, ids=[called(*each) for each in REFUSED]
)


def test_every_folder_is_built_or_refused(realdata: Path) -> None:
    seen = {folder.split("/")[0] for folder, *_ in [*BUILT, *REFUSED]}
    assert seen == {path.name for path in (realdata / "coco").iterdir() if path.is_dir()}
    deeper = {"mmpose", "datumaro"}
    for name in deeper:
        mine = {f.split("/")[1] for f, *_ in [*BUILT, *REFUSED] if f.startswith(f"{name}/")}
        folders = (path for path in (realdata / "coco" / name).iterdir() if path.is_dir())
        assert mine == {path.name for path in folders}


class Registry:
    """A registry, and the command line in it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys

    def run(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        found = main(["-C", str(self.root), *arguments])
        captured = self._capsys.readouterr()
        assert found == code, captured.out + captured.err
        return captured.out if code == 0 else captured.err

    def build(self, raw: Path, options: dict[str, str], *more: str, code: int = 0) -> str:
        given = [f"--option={name}={value}" for name, value in options.items()]
        arguments = ["build", "d", "--source", "coco", "--raw", str(raw), *given, *more]
        return self.run(*arguments, code=code)

    @property
    def ledger(self) -> list[dict[str, Any]]:
        path = self.root / "data/d/ledger.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.root / "data/d/manifest.json").read_bytes())

    def examples(self) -> list[dict[str, tuple[Any, ...]]]:
        """Every record of the build, in order of shards."""
        return [
            {name: feature.values for name, feature in decode(payload).items()}
            for shard in self.manifest["shards"]
            for payload in payloads_in(self.root / "data/d" / shard["path"])
        ]


@pytest.fixture
def registry(tmp_path: Path, capsys, monkeypatch) -> Registry:
    monkeypatch.setenv("TFRECREG_JOBS", "1")
    monkeypatch.setenv("COLUMNS", "200")
    init(tmp_path / "registry", with_dvc=False)
    return Registry(tmp_path / "registry", capsys)


@pytest.mark.medium
@built
def test_a_folder_builds_checks_clean_and_is_released(
    realdata: Path, registry: Registry, folder: str, options: dict[str, str], counts: Counts
) -> None:
    if {"rle", "png"} & {options.get("masks")}:
        pytest.importorskip("pycocotools.mask")
    raw = realdata / "coco" / folder
    registry.build(raw, options, "--max-skipped", str(counts.skipped))
    examples = registry.examples()
    assert count(examples, registry.manifest, registry.ledger) == counts
    for each in examples:
        digest = hashlib.sha256(each["image/encoded"][0]).hexdigest()
        assert each["image/key/sha256"] == (digest.encode(),)
    # A split that lost all its images has an empty shard, which is a warning.
    level = "error" if counts.skipped else "warning"
    report = json.loads(
        registry.run(
            "check", "d", f"--raw={raw}", f"--fail-on={level}", "--skip=annotations", "--json"
        )
    )
    assert report["status"] == "pass"
    # So few images have not all classes: no more than that may be found.
    found = json.loads(registry.run("check", "d", "--only=annotations,crc", "--json"))
    assert {each["code"] for each in found["findings"]} <= {"ANN005"}
    assert report["measures"]["source.compared"] == len(examples)
    registry.run("release", "d", "--version", "1.0.0")
    tensorflow_reads_the_same(registry, examples)


def count(
    examples: list[dict[str, tuple[Any, ...]]],
    manifest: dict[str, Any],
    lines: list[dict[str, Any]],
) -> Counts:
    """The same as what is expected, counted in the records, the manifest and the ledger."""

    def all_of(name: str) -> list[Any]:
        return [value for each in examples for value in each.get(name, ())]

    ledger = manifest["ledger"]
    remarks = Counter[str]()
    for split in ledger.values():
        remarks.update(split.get("remarks", {}))
    found = count_cases(line for line in lines if "times" in line)
    assert Counter(each.split(" ")[0] for each in Counter(found).elements()) == remarks
    names = {
        name
        for feature, names in manifest["labels"].items()
        if feature.endswith("/label")
        for name in names
    }
    assert {
        split["name"]: split["records"] for split in manifest["splits"] if split["records"]
    } == {name: split["written"] for name, split in ledger.items() if split["written"]}
    return Counts(
        images={name: split["items"] for name, split in ledger.items()},
        objects=len(all_of("image/object/class/label")),
        crowds=sum(all_of("image/object/is_crowd")),
        categories=len(names - {""}),
        segments=len(all_of("image/panoptic/segment/id")),
        captions=len(all_of("image/caption")),
        keypoints=sum(all_of("image/object/keypoint/num")),
        skipped=sum(sum(split["skipped"].values()) for split in ledger.values()),
        remarks=found or None,
    )


def tensorflow_reads_the_same(
    registry: Registry, examples: list[dict[str, tuple[Any, ...]]]
) -> None:
    """With the very text that `schema show --format tf` prints."""
    tf = pytest.importorskip("tensorflow")
    scope: dict[str, Any] = {"tf": tf}
    exec(registry.run("schema", "show", "d@1.0.0", "--format", "tf"), scope)
    paths = [str(registry.root / "data/d" / each["path"]) for each in registry.manifest["shards"]]
    records = list(tf.data.TFRecordDataset(paths).as_numpy_iterator())
    assert len(records) == len(examples)
    parsed = tf.io.parse_example(records, scope["FEATURES"])
    assert parsed.keys() == examples[0].keys()
    for name, tensor in parsed.items():
        if isinstance(tensor, tf.SparseTensor):
            rows = tf.RaggedTensor.from_sparse(tensor).to_list()
        else:
            rows = [[value] for value in tensor.numpy().tolist()]
        assert [tuple(row) for row in rows] == [each[name] for each in examples], name
    for each in examples:
        if each["image/format"] != (b"webp",):
            image = tf.io.decode_image(each["image/encoded"][0], expand_animations=False)
            assert tuple(image.shape[:2]) == (each["image/height"][0], each["image/width"][0])


@refused
def test_a_folder_is_refused_in_one_line(
    realdata: Path, registry: Registry, folder: str, options: dict[str, str]
) -> None:
    error = registry.build(realdata / "coco" / folder, options, code=2)
    message, *hint = error.splitlines()
    assert message.startswith("error: ")
    assert len(hint) < 2
    assert not (registry.root / "data/d").exists()


@pytest.mark.parametrize("form", ["rle", "png"])
def test_masks_equal_the_reference_to_the_pixel(realdata: Path, form: Any) -> None:
    """The reference paints the masks in their order, each category in a colour of its own."""
    image, coder = pytest.importorskip("PIL.Image"), pytest.importorskip("pycocotools.mask")
    colours = {1: 0, 2: 1, 3: 2}
    folder = realdata / "coco/dali-pixelwise"
    seen = 0
    for key, example in made(folder, masks=form).items():
        reference = np.asarray(
            image.open(folder / "pixelwise_masks" / f"{Path(key).stem}.png").convert("RGB")
        )
        painted = np.zeros_like(reference)
        for number, label in enumerate(example["image/object/class/label"]):
            if form == "png":
                png = image.open(io.BytesIO(example["image/object/mask"][number]))
                drawn = np.asarray(png).astype(bool)
            else:
                size = example["image/object/rle/size"][2 * number : 2 * number + 2]
                counts = example["image/object/rle/counts"][number]
                drawn = coder.decode({"size": list(size), "counts": counts}).astype(bool)
            painted[drawn] = 0
            painted[drawn, colours[label]] = 255
            seen += 1
        assert np.array_equal(painted, reference), key
    assert seen == 12


@pytest.mark.parametrize(
    ("folder", "file", "options", "annotations"),
    [
        ("dali", "instances.json", {}, 91),
        (
            "panoptic/sample_data",
            "panoptic_coco_detection_format.json",
            {"images": ("input_images",)},
            50,
        ),
    ],
)
def test_boxes_areas_and_labels_come_back_for_every_annotation(
    realdata: Path, folder: str, file: str, options: dict[str, Any], annotations: int
) -> None:
    data = json.loads((realdata / "coco" / folder / file).read_text())
    examples = {
        int(example["image/source_id"][0]): example
        for example in made(realdata / "coco" / folder, **options).values()
    }
    names = {each["id"]: each["name"].encode() for each in data["categories"]}
    sizes = {each["id"]: (each["width"], each["height"]) for each in data["images"]}
    position = Counter[int]()
    for each in data["annotations"]:
        example, at = examples[each["image_id"]], position[each["image_id"]]
        position[each["image_id"]] += 1
        width, height = sizes[each["image_id"]]
        left, top, right, bottom = (
            example[f"image/object/bbox/{side}"][at] for side in ("xmin", "ymin", "xmax", "ymax")
        )
        box = [left * width, top * height, (right - left) * width, (bottom - top) * height]
        assert box == pytest.approx(each["bbox"], abs=3e-4)
        assert example["image/object/area"][at] == np.float32(each["area"])
        assert example["image/object/class/label"][at] == each["category_id"]
        assert example["image/object/class/text"][at] == names[each["category_id"]]
        assert example["image/object/is_crowd"][at] == each["iscrowd"]
    assert sum(position.values()) == annotations
    for number, example in examples.items():
        assert len(example["image/object/area"]) == position[number]


def test_panoptic_segments_come_back_and_every_id_is_painted(realdata: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    folder = realdata / "coco/panoptic/sample_data"
    data = json.loads((folder / "panoptic_examples.json").read_text())
    options = {"annotations": ("panoptic_examples.json",), "images": ("input_images",)}
    examples = {int(each["image/source_id"][0]): each for each in made(folder, **options).values()}
    for annotation in data["annotations"]:
        example = examples[annotation["image_id"]]
        png = (folder / "panoptic_examples" / annotation["file_name"]).read_bytes()
        assert example["image/panoptic/encoded"] == (png,)
        pixels = np.asarray(image.open(io.BytesIO(png))).astype(np.int64)
        painted = set(np.unique(pixels @ [1, 256, 65536]).tolist()) - {0}
        infos = annotation["segments_info"]
        prefix = "image/panoptic/segment"
        assert set(example[f"{prefix}/id"]) == painted
        assert list(example[f"{prefix}/id"]) == [info["id"] for info in infos]
        assert list(example[f"{prefix}/class/label"]) == [info["category_id"] for info in infos]
        assert list(example[f"{prefix}/is_crowd"]) == [info["iscrowd"] for info in infos]
        assert list(example[f"{prefix}/area"]) == [info["area"] for info in infos]


def test_polygons_come_back_for_every_annotation(realdata: Path) -> None:
    folder = realdata / "coco/retinanet/coco"
    examples = made(folder, masks="polygons")
    for split in ("train", "val"):
        data = json.loads((folder / f"annotations/instances_{split}2017.json").read_text())
        (image,) = data["images"]
        example = examples[f"images/{split}2017/{image['file_name']}"]
        x, y = (np.array(example[f"image/object/polygon/{axis}"]) for axis in "xy")
        points = np.stack((x * image["width"], y * image["height"]), 1)
        pieces = np.split(points, np.cumsum(example["image/object/polygon/points"])[:-1])
        parts = iter(pieces)
        for each, number in zip(
            data["annotations"], example["image/object/polygon/parts"], strict=True
        ):
            found = [next(parts).ravel() for _ in range(number)]
            expected = [] if each["iscrowd"] else each["segmentation"]
            assert len(found) == len(expected)
            for ours, theirs in zip(found, expected, strict=True):
                assert ours == pytest.approx(theirs, abs=3e-4)
        assert next(parts, None) is None


def made(folder: Path, **options: Any) -> dict[str, dict[str, tuple[Any, ...]]]:
    """The features of every image by its key."""
    source = CocoSource(LocalStorage(folder), CocoOptions(**options))
    found = {}
    for item in source.items():
        if isinstance(item, Remark):  # images that no annotation file names
            assert item.code == "SRC117", item
            continue
        assert isinstance(item, Item), item
        each = source.example(item)
        assert isinstance(each, Written), each
        found[item.key] = {name: feature.values for name, feature in each.example.items()}
    return found
