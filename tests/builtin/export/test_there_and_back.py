"""Exported, and built again from the export: the same records, class names and keys."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from image_support import png

from tfrecreg.builtin.export.run import export
from tfrecreg.builtin.python_data.build import build
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.example.model import encode
from tfrecreg.core.records.index import load_index
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.manifest import Manifest
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.values.typed_values import parse_options
from tfrecreg_webdataset.source import WebDatasetSource

from .conftest import run_python
from .converted.conftest import NASTY, SCHEMA

PlaceBuild = Callable[..., Registry]
SOURCES = {"webdataset": "webdataset", "parquet": "huggingface"}


@pytest.fixture(params=SOURCES)
def to(request: pytest.FixtureRequest) -> str:
    if request.param == "parquet":
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    return str(request.param)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """With builds of images in class folders, and of images with objects."""
    raw = tmp_path / "raw"
    for number in range(8):
        split, name = ("train", "test")[number % 2], ("cat", "dög.x")[number // 4]
        file = raw / f"folders/{split}/{name}/{number}.b.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(seed=number))
        plain = raw / f"folders/{split}/cat/{number}.PNG"
        plain.parent.mkdir(parents=True, exist_ok=True)
        plain.write_bytes(png(seed=20 + number))
        (raw / "coco/val2017").mkdir(parents=True, exist_ok=True)
        (raw / f"coco/val2017/{number}.png").write_bytes(png(seed=40 + number))
    document = {
        "images": [{"id": each, "file_name": f"{each}.png"} for each in range(8)],
        "annotations": [
            {"id": each, "image_id": each % 5, "category_id": 7, "bbox": [0, 0, 1 + each % 3, 2]}
            for each in range(12)
        ],
        "categories": [{"id": 7, "name": "cat"}],
    }
    (raw / "coco/annotations").mkdir()
    (raw / "coco/annotations/instances_val2017.json").write_text(json.dumps(document))
    init(tmp_path / "registry", with_dvc=False)
    found = open_registry(tmp_path / "registry")
    for name, source in (("folders", "imagefolder"), ("coco", "coco")):
        policy = ShardPolicy(shards=2)
        build(found, BuildRequest(name=name, source=source, raw=str(raw / name), policy=policy))
    return open_registry(tmp_path / "registry")


@pytest.mark.parametrize("name", ["folders", "coco"])
def test_the_content_is_the_same(registry: Registry, tmp_path: Path, to: str, name: str) -> None:
    export(registry, name, tmp_path / "out", to=to)
    again = f"{name}_again"
    build(registry, BuildRequest(name=again, source=SOURCES[to], raw=str(tmp_path / "out")))
    found = open_registry(tmp_path / "registry")
    first, second = (manifest_of(found, each) for each in (name, again))
    assert second.content == first.content
    assert [each.content for each in second.splits] == [each.content for each in first.splits]
    assert second.labels == first.labels
    assert second.schema.blake3 == first.schema.blake3
    assert keys(found, again) == keys(found, name)


def manifest_of(registry: Registry, name: str) -> Manifest:
    manifest = registry.dataset(name).build_manifest()
    assert manifest is not None
    return manifest


def keys(registry: Registry, name: str) -> dict[str, list[str]]:
    storage = LocalStorage(Path(registry.storage.root, "data", name))
    found: dict[str, list[str]] = {}
    for shard in manifest_of(registry, name).shards:
        index = load_index(storage, shard.index)
        found.setdefault(shard.split, []).extend(index.key(each) for each in range(len(index)))
    return {split: sorted(each) for split, each in found.items()}


def test_every_form_of_a_record_is_restored(
    place_build: PlaceBuild, tmp_path: Path, to: str
) -> None:
    registry = place_build({"train": [list(NASTY)]}, SCHEMA)
    export(registry, "things", tmp_path / "out", to=to)
    if to == "parquet":
        from tfrecreg_huggingface.source import HuggingFaceSource

        kind: Any = HuggingFaceSource
    else:
        kind = WebDatasetSource
    source = kind(LocalStorage(tmp_path / "out"), parse_options(kind.Options, [], of="source"))
    worker = pickle.loads(pickle.dumps(source))
    made = [worker.example(item) for item in source.items() if isinstance(item, Item)]
    assert [encode(each) for each in made] == [encode(each) for each in NASTY]
    assert source.schema() == SCHEMA


def test_with_restore_off_the_samples_are_like_any_others(
    registry: Registry, tmp_path: Path, to: str
) -> None:
    export(registry, "folders", tmp_path / "out", to=to)
    options = {"restore": False}
    request = BuildRequest(
        name="plain", source=SOURCES[to], raw=str(tmp_path / "out"), options=options
    )
    build(registry, request)
    found = manifest_of(open_registry(tmp_path / "registry"), "plain")
    assert sum(each.records for each in found.splits) == 16
    assert found.content != manifest_of(open_registry(tmp_path / "registry"), "folders").content


@pytest.mark.parametrize(
    "change",
    [
        lambda out: (out / "tfrecreg.json").write_text("{"),
        lambda out: (out / "schema.pbtxt").write_bytes(b"\xff"),
        lambda out: (out / "folders-train-000001.tar").unlink(),
        lambda out: (out / "folders-train-000001.tar").write_bytes(bytes(1024)),
    ],
)
def test_an_export_of_which_a_part_is_missing_is_refused(
    registry: Registry, tmp_path: Path, change: Any
) -> None:
    export(registry, "folders", tmp_path / "out", to="webdataset")
    change(tmp_path / "out")
    request = BuildRequest(name="again", source="webdataset", raw=str(tmp_path / "out"))
    with pytest.raises(RawDataError) as caught:
        build(registry, request)
    assert caught.value.exit_code == 2
    assert "--option restore=no" in (caught.value.hint or "")


WRITE = """
import sys
from pathlib import Path
import datasets
from datasets import Array2D, ClassLabel, Dataset, Features, Image, Sequence, Value

out = Path(sys.argv[1], "data")
images = [Path(each).read_bytes() for each in sys.argv[2:]]
features = Features({
    "picture": Image(),
    "label": ClassLabel(names=["cat", "dog"]),
    "caption": Value("string"),
    "score": Value("float32"),
    "objects": Sequence({"bbox": Sequence(Value("float32"), length=4), "kind": Value("int64")}),
    "depth": Array2D((2, 2), "int32"),
})
rows = [
    {
        "picture": {"bytes": data, "path": f"p{number}.png"},
        "label": number % 2,
        "caption": f"picture {number}",
        "score": number / 2,
        "objects": {"bbox": [[0, 0, 1, 1]] * number, "kind": [7] * number},
        "depth": [[number, 1], [2, 3]],
    }
    for number, data in enumerate(images)
]
out.mkdir(parents=True)
for split, part in (("train", rows[:3]), ("validation", rows[3:])):
    made = Dataset.from_list(part, features=features)
    made.to_parquet(out / f"{split}-00000-of-00001.parquet")
"""


@pytest.mark.slow
def test_what_hugging_faces_library_writes_comes_in(
    tmp_path: Path, huggingface_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    from tfrecreg_huggingface.source import HuggingFaceSource

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    images = [png(9, 6, seed=number) for number in range(5)]
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for path, data in zip(paths, images, strict=True):
        path.write_bytes(data)
    arguments = [str(tmp_path / "hub"), *map(str, paths)]
    done = run_python(huggingface_python, "-c", WRITE, *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    options = parse_options(HuggingFaceSource.Options, [], of="source")
    source = HuggingFaceSource(LocalStorage(tmp_path / "hub"), options)
    made = {each.key: source.example(each) for each in source.items() if isinstance(each, Item)}
    assert not [each for each in made.values() if isinstance(each, Skipped)]
    found = {
        key: {name: each.values for name, each in example.items()}  # type: ignore[union-attr]
        for key, example in made.items()
    }
    assert found["data/train-00000-of-00001/00000002"] == {
        "image/encoded": (images[2],),
        "image/format": (b"png",),
        "image/height": (6,),
        "image/width": (9,),
        "image/filename": (b"p2.png",),
        "image/class/label": (0,),
        "image/class/text": (b"cat",),
        "caption": (b"picture 2",),
        "score": (1.0,),
        "objects/bbox": (0, 0, 1, 1, 0, 0, 1, 1),
        "objects/kind": (7, 7),
        "depth": (2, 1, 2, 3),
    }
    assert len(found) == 5
    assert source.labels() == {"image/class/label": ("cat", "dog")}
