"""Builds from raw data behind URLs, over fsspec's file system in memory."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from image_support import png
from media_support import wav
from object_sources_support import OBJECT_SOURCES, write_objects
from tests_support import tree

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.builtin.repair.run import repair
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError, StorageError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.shards import ShardPolicy

SOURCES = (
    *("imagefolder", "coco", "mnist", "yolo", "voc", "table", "folder", "webdataset"),
    "huggingface",
)
WITH_A_SKIPPED_ITEM = {*SOURCES} - {"mnist", "huggingface"}


def write_raw(folder: Path) -> None:
    """Small raw data of each source."""
    for first, split in ((0, "train"), (6, "test")):
        for number in range(6):
            file = folder / f"imagefolder/{split}/{('cat', 'dög')[number % 2]}/{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(seed=first + number))
    (folder / "imagefolder/train/cat/bad.png").write_bytes(b"no image")
    images = {f"{number}.png": [("cat", (1, 1, 5, 5))] for number in range(7)}
    for source in OBJECT_SOURCES:
        write_objects(source, folder / source, "val", images)
    (folder / "coco/val/6.png").unlink()
    for path in ("yolo/images/val/0.png", "voc/val/0.png"):
        (folder / path).write_bytes(b"no image")
    write_digits(LocalStorage(folder / "mnist"), train=6, test=4, seed=1)
    write_others(folder)


def write_others(folder: Path) -> None:
    """Raw data of `table`, `folder`, `webdataset` and `huggingface`."""
    for name in ("table/images", "folder/train", "webdataset", "huggingface/data"):
        (folder / name).mkdir(parents=True)
    rows = [f"{number},images/{number}.png" for number in range(7)]
    (folder / "table/train.csv").write_text("\n".join(["label,image", *rows]))
    for number in range(6):  # the last one is missing
        (folder / f"table/images/{number}.png").write_bytes(png(seed=number))
        (folder / f"folder/train/{number}.wav").write_bytes(wav((9 + number) / 8000))
    (folder / "folder/train/6.wav").write_bytes(b"no sound")
    for split, first in (("train", 0), ("test", 4)):
        with tarfile.open(folder / f"webdataset/{split}-000.tar", "w") as archive:
            for number in range(first, first + 4):
                data = png(seed=number) if number else b"no image"
                for suffix, content in (("png", data), ("cls", b"1")):
                    member = tarfile.TarInfo(f"{number}.{suffix}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        table = pa.table({"text": [f"text {first + n}" for n in range(4)], "n": [1, 2, 3, 4]})
        path = folder / f"huggingface/data/{split}-00000-of-00001.parquet"
        pq.write_table(table, path, row_group_size=3)


@pytest.fixture
def raw(memory: Any, tmp_path: Path) -> Path:
    """Raw data of each source; the same are in `memory://lake/raw/`."""
    folder = tmp_path / "raw"
    write_raw(folder)
    memory.put(str(folder), "/lake/raw", recursive=True)
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    init(tmp_path / "registry", with_dvc=False)
    return open_registry(tmp_path / "registry")


def requested(source: str, raw: object = "memory://lake/raw", **more: Any) -> BuildRequest:
    policy = ShardPolicy(records_per_shard=4)
    settings: dict[str, Any] = {"policy": policy, "max_skipped": 1, **more}
    if source == "table":
        settings["options"] = {"columns": "label:int64,image:image"}
    return BuildRequest(name=source, source=source, raw=f"{raw}/{source}", **settings)


def made(registry: Registry, source: str, raw: object = "memory://lake/raw") -> BuildResult:
    return build(registry, requested(source, raw))


def later(registry: Registry) -> Registry:
    """The registry as the next command opens it, with the settings that were saved."""
    return open_registry(registry.storage.root)


@pytest.mark.parametrize("source", SOURCES)
def test_a_build_is_that_of_a_local_copy(
    source: str, registry: Registry, raw: Path, tmp_path: Path
) -> None:
    first = made(registry, source)
    folder = tmp_path / "registry/data" / source
    files = tree(folder)
    other = build(later(registry), BuildRequest(name=source, raw=f"{raw}/{source}"))
    assert other.unchanged
    assert other.manifest == first.manifest
    assert tree(folder) == files
    assert list(other.settings.unsaved) == ["raw"]
    if source in WITH_A_SKIPPED_ITEM:
        assert sum(sum(each.skipped.values()) for each in first.manifest.ledger.values()) == 1


def test_the_url_is_kept_as_the_raw_of_the_dataset(
    registry: Registry, raw: Path, tmp_path: Path
) -> None:
    first = made(registry, "coco")
    text = (tmp_path / "registry/datasets/coco.toml").read_text()
    assert 'raw = "memory://lake/raw/coco"' in text
    again = build(later(registry), replace(requested("coco"), source=None))
    assert again.manifest == first.manifest
    assert again.settings.unsaved == {}


def test_a_source_of_local_files_refuses_a_url(
    registry: Registry, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins().load(SourceRecord, "coco"), "needs_local", True)
    with pytest.raises(UsageError, match="reads local files only, but the raw data are `memory:"):
        made(registry, "coco")


class Changing(Progress):
    """Calls a function when the shards are made."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def start(self, what: str, total: int, unit: str = "records") -> None:
        del total, unit
        if what.startswith("building"):
            self._function()


@pytest.mark.parametrize("change", ["bytes", "size", "gone"])
def test_an_object_that_changes_during_the_build_fails_it(
    change: str, registry: Registry, raw: Path, memory: Any, tmp_path: Path
) -> None:
    path = "/lake/raw/imagefolder/train/cat/2.png"

    def alter() -> None:
        if change == "gone":
            memory.rm_file(path)
        else:
            data = memory.cat_file(path)
            memory.pipe_file(path, data[:-1] + b"\0" + b"more" * (change == "size"))

    with pytest.raises((RawDataError, StorageError)) as raised:
        build(registry, requested("imagefolder"), progress=Changing(alter))
    assert "train/cat/2.png" in raised.value.message
    assert raised.value.exit_code == (3 if change == "gone" else 2)
    assert not (tmp_path / "registry/data/imagefolder").exists()


@pytest.mark.parametrize("source", ["imagefolder", "coco"])
def test_an_object_that_cannot_be_read_is_no_skipped_item(
    source: str,
    registry: Registry,
    raw: Path,
    memory: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """However many items may be skipped."""
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "2")
    read = type(memory).cat_file
    for kind in ("fails", "short", "forbidden"):

        def answer(system: Any, path: str, *given: Any, kind: str = kind, **options: Any) -> Any:
            if path.endswith(("train/cat/4.png", "val/4.png")):
                if kind == "fails":
                    raise ConnectionResetError("cut")
                if kind == "forbidden":
                    raise PermissionError("no")
                return read(system, path, *given, **options)[:10]
            return read(system, path, *given, **options)

        monkeypatch.setattr(type(memory), "cat_file", answer)
        with pytest.raises(StorageError) as raised:
            build(registry, requested(source, max_skipped="100%"))
        assert raised.value.exit_code == 3
        assert "cannot read `memory://lake/raw/" in raised.value.message
        assert not (tmp_path / f"registry/data/{source}").exists()


def test_a_listing_that_fails_is_not_an_empty_folder(
    registry: Registry, raw: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "2")
    listed = type(memory).ls

    def answer(system: Any, path: str, **options: Any) -> Any:
        if path.endswith("train/cat"):
            raise ConnectionResetError("cut")
        return listed(system, path, **options)

    monkeypatch.setattr(type(memory), "ls", answer)
    with pytest.raises(StorageError, match="cannot list `memory://lake/raw/imagefolder/train/cat`"):
        made(registry, "imagefolder")


def test_a_release_sees_raw_data_that_changed(registry: Registry, raw: Path, memory: Any) -> None:
    made(registry, "imagefolder")
    path = "/lake/raw/imagefolder/train/cat/2.png"
    data = memory.cat_file(path)
    memory.pipe_file(path, png(seed=99))
    with pytest.raises(UsageError, match=r"raw file `train/cat/2.png` changed after"):
        release(registry, ReleaseRequest(name="imagefolder"))
    memory.pipe_file(path, data)
    made(registry, "imagefolder")
    assert release(registry, ReleaseRequest(name="imagefolder")).created


def test_a_build_that_grows_keeps_shards(registry: Registry, raw: Path, memory: Any) -> None:
    made(registry, "imagefolder")
    release(registry, ReleaseRequest(name="imagefolder"))
    memory.pipe_file("/lake/raw/imagefolder/train/cat/new.png", png(seed=50))
    grown = build(later(registry), BuildRequest(name="imagefolder", max_skipped=1))
    assert grown.growth is not None
    assert grown.growth.kept > 0
    assert sum(split.records for split in grown.manifest.splits) == 13


@pytest.mark.medium
def test_checks_take_the_raw_data_from_the_url(
    registry: Registry, raw: Path, memory: Any, tmp_path: Path
) -> None:
    made(registry, "imagefolder")
    options = CheckOptions(only=("inflation", "source"))

    def measured(place: str) -> tuple[str, list[str], dict[str, Any]]:
        (report,) = check(["imagefolder"], options=replace(options, raw=place), registry=registry)
        found = [each.code for each in report.findings]
        return report.status, found, {each.name: each.value for each in report.measures}

    url = "memory://lake/raw/imagefolder"
    local = measured(str(raw / "imagefolder"))
    assert measured(url) == local
    assert local[2]["source.compared"] == 12
    memory.pipe_file("/lake/raw/imagefolder/train/cat/2.png", png(seed=99))
    assert "SRC017" in measured(url)[1]


def test_gzip_behind_a_url_is_decompressed_by_its_name(registry: Registry, raw: Path) -> None:
    result = made(registry, "mnist")
    options = CheckOptions(only=("inflation",), raw="memory://lake/raw/mnist")
    (report,) = check(["mnist"], options=options, registry=registry)
    (base,) = [each.value for each in report.measures if each.name == "inflation.raw_decoded"]
    assert base == result.manifest.raw.decoded


def test_lost_shards_are_repaired_from_the_url(
    registry: Registry, raw: Path, tmp_path: Path
) -> None:
    result = made(registry, "imagefolder")
    shard = tmp_path / "registry/data/imagefolder" / result.manifest.shards[0].path
    data = shard.read_bytes()
    shard.unlink()
    repair(later(registry), "imagefolder")
    assert shard.read_bytes() == data


def test_adopted_shards_are_measured_against_the_url(
    registry: Registry, raw: Path, tmp_path: Path
) -> None:
    result = made(registry, "imagefolder")
    shards = [str(tmp_path / "registry/data/imagefolder" / e.path) for e in result.manifest.shards]
    request = AdoptRequest(name="other", paths=shards, raw="memory://lake/raw/imagefolder")
    assert adopt(registry, request).manifest.raw.files == 13
