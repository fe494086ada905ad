"""Builds whose shards go to a store, over fsspec's file system in memory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from python_data_support import Notes

import tfrecreg
from tfrecreg.cli.main import main
from tfrecreg.errors import (
    ConflictError,
    RefusedError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.operations.builds.data import build
from tfrecreg.operations.builds.settings import BuildRequest
from tfrecreg.operations.check.run import check
from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.operations.diff.run import diff
from tfrecreg.operations.digest import digest
from tfrecreg.operations.export.run import export
from tfrecreg.operations.head import head
from tfrecreg.operations.init import init
from tfrecreg.operations.pipeline.run import pipeline
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.operations.remote.sending import push
from tfrecreg.operations.remote.transfer import pull
from tfrecreg.registry.locations import location_of, parse_location
from tfrecreg.registry.lookup import resolve
from tfrecreg.registry.registry import Registry, open_registry
from tfrecreg.shards import ShardPolicy
from tfrecreg.storage.local import LocalStorage

CONFIG = """\
source = "mnist"
raw = "raw"
shards = 2
data = "{url}"
"""


def registry_at(root: Path, url: str = "memory://lake/data") -> Registry:
    """A registry with the dataset `digits`, which is not built yet."""
    write_digits(LocalStorage(root / "raw"), train=30, test=20, seed=1)
    init(root, with_dvc=False)
    (root / "datasets").mkdir(exist_ok=True)
    (root / "datasets/digits.toml").write_text(CONFIG.format(url=url))
    return open_registry(root)


@pytest.fixture
def registry(memory: Any, tmp_path: Path) -> Registry:
    del memory
    return registry_at(tmp_path / "registry")


def made(registry: Registry, **settings: Any) -> Any:
    return build(registry, BuildRequest(name="digits", **settings))


def in_store(memory: Any) -> dict[str, bytes]:
    """Content of each file, by its path below the folder of the dataset."""
    start = "/lake/data/digits/"
    return {path.removeprefix(start): memory.cat_file(path) for path in memory.find("/lake")}


def without_build(registry: Registry) -> Registry:
    """The registry as on another machine, which has the releases only."""
    root = Path(registry.storage.root)
    for name in ("data/digits", ".tfrecreg"):
        shutil.rmtree(root / name)
    return open_registry(root)


def test_the_shards_are_in_the_store_alone(registry: Registry, memory: Any, tmp_path: Path) -> None:
    result = made(registry)
    folder = tmp_path / "registry/data/digits"
    local = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    shards = {entry.path for entry in result.manifest.shards}
    files = {entry.path for entry in result.manifest.files}
    assert local == files | {"manifest.json", "location.json"}
    url = location_of(registry, "data/digits")
    assert url is not None
    plan = url.removeprefix("memory://lake/data/digits/")
    receipts = {f"{plan}.receipts/{path}.json" for path in shards}
    found = in_store(memory)
    notes = {path for path in found if path.startswith(f"{plan}.receipts/used-")}
    assert len(notes) == 1
    assert set(found) == receipts | notes | {
        f"{plan}/{path}" for path in {*shards, *files, "manifest.json"}
    }
    for path in files | {"manifest.json"}:
        assert found[f"{plan}/{path}"] == (folder / path).read_bytes()


def test_the_manifest_and_the_bytes_are_those_of_a_local_build(
    registry: Registry, memory: Any, tmp_path: Path
) -> None:
    result = made(registry)
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "registry/raw", other / "raw")
    init(other, with_dvc=False)
    request = BuildRequest(
        name="digits", source="mnist", raw=str(other / "raw"), policy=ShardPolicy(shards=2)
    )
    local = build(open_registry(other), request)
    assert local.manifest == result.manifest
    url = location_of(registry, "data/digits")
    assert url is not None
    for entry in local.manifest.shards:
        data = memory.cat_file(f"{url.removeprefix('memory:/')}/{entry.path}")
        assert data == (other / "data/digits" / entry.path).read_bytes()


def test_a_build_in_a_store_is_used_as_any(registry: Registry) -> None:
    result = made(registry)
    (report,) = check(["digits"], registry=registry)
    assert (report.status, report.records) == ("pass", 50)
    assert report.folder == location_of(registry, "data/digits")
    source = tfrecreg.data_source("digits", "train", registry=registry)
    assert len(source) == 30
    assert len({bytes(each["image/encoded"]) for each in source}) > 20
    assert len(list(head("digits", 2, registry=registry))) == 2
    (found,) = digest("digits", registry=registry)
    assert found.content == result.manifest.content


@pytest.mark.slow
def test_tensorflow_reads_a_verified_copy(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorflow")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made(registry)
    found = tfrecreg.load("digits", "train", registry=registry)
    assert sum(1 for _ in found) == found.cardinality().numpy() == 30
    (copy,) = (tmp_path / "cache/tfrecreg/remote").iterdir()
    assert len(list(copy.glob("digits-train*"))) == 2


def test_a_second_build_makes_and_changes_nothing(registry: Registry, memory: Any) -> None:
    made(registry)
    before = {path: memory.info(path)["created"] for path in memory.find("/lake")}
    notes = Notes()
    again = build(registry, BuildRequest(name="digits"), progress=notes)
    assert (again.unchanged, again.resumed) == (True, 4)
    assert notes.notes == [f"the shards are in {location_of(registry, 'data/digits')}"]
    assert {path: memory.info(path)["created"] for path in memory.find("/lake")} == before


def test_another_machine_goes_on_from_the_receipts(registry: Registry, memory: Any) -> None:
    first = made(registry).manifest
    url = location_of(registry, "data/digits")
    assert url is not None
    folder = url.removeprefix("memory:/")
    # As a kill leaves it: two shards are finished, one has no receipt yet, one is missing.
    shards = sorted(entry.path for entry in first.shards)
    for path in ("manifest.json", "labels.json", shards[3], f"index/{shards[3]}.index"):
        memory.rm_file(f"{folder}/{path}")
    for path in shards[2:]:
        memory.rm_file(f"{folder}.receipts/{path}.json")
    again = made(without_build(registry))
    assert (again.resumed, again.manifest) == (2, first)
    assert memory.exists(f"{folder}/manifest.json")


def test_what_is_damaged_in_the_store_is_never_published(registry: Registry, memory: Any) -> None:
    first = made(registry).manifest
    url = location_of(registry, "data/digits")
    assert url is not None
    path = f"{url.removeprefix('memory:/')}/{first.shards[0].path}"
    data = bytearray(memory.cat_file(path))
    data[-20] ^= 1
    memory.pipe_file(path, bytes(data))
    with pytest.raises(RefusedError, match="nothing was released"):
        release(registry, ReleaseRequest(name="digits"))
    (report,) = check(["digits"], registry=registry)
    assert {each.code for each in report.findings} >= {"CRC002"}
    with pytest.raises(RefusedError, match="the new build does not pass its own check"):
        made(without_build(registry))
    # Without a receipt it would be made again, and not put in the place of the other one.
    memory.rm(f"{url.removeprefix('memory:/')}.receipts", recursive=True)
    with pytest.raises(StorageError, match="exists with other bytes than those of this build"):
        made(open_registry(registry.storage.root))


def test_an_index_that_changed_in_the_store_is_never_published(
    registry: Registry, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the killed build has the one that was made."""

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tfrecreg.operations.builds.bucket.BucketSink.complete", killed)
        with pytest.raises(KeyboardInterrupt):
            made(registry)
    before = in_store(memory)
    (path,) = memory.glob("/lake/data/digits/*/index/digits-train.tfrecord-00001-of-00002.index")
    data = memory.cat_file(path)
    memory.pipe_file(path, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(StorageError, match=r"00001-of-00002.index` exists with other bytes"):
        made(registry)
    assert not any(name.endswith("manifest.json") for name in in_store(memory))
    memory.rm_file(path)
    made(registry)
    assert before.items() < in_store(memory).items()
    (report,) = check(["digits"], registry=registry)
    assert report.status == "pass"


def test_another_build_of_the_same_plan_is_told(registry: Registry, memory: Any) -> None:
    made(registry)
    url = location_of(registry, "data/digits")
    assert url is not None
    path = f"{url.removeprefix('memory:/')}/manifest.json"
    memory.pipe_file(path, memory.cat_file(path) + b"\n")
    with pytest.raises(ConflictError, match="has another build of the same plan"):
        made(registry)


def test_a_release_names_the_place(registry: Registry, memory: Any, tmp_path: Path) -> None:
    made(registry)
    result = release(registry, ReleaseRequest(name="digits", version="1.0.0"))
    folder = tmp_path / "registry/registry/digits/1.0.0"
    assert json.loads((folder / "location.json").read_text()) == {
        "format_version": 1,
        "url": location_of(registry, "data/digits"),
    }
    assert result.manifest.release is not None
    assert result.manifest.release.dvc is None
    assert not list((tmp_path / "registry/versions").glob("d*"))
    again = release(registry, ReleaseRequest(name="digits", version="1.0.0"))
    assert (again.created, again.manifest) == (False, result.manifest)

    elsewhere = without_build(registry)
    (report,) = check(["digits@1.0.0"], registry=elsewhere)
    assert (report.status, report.records) == ("pass", 50)
    assert len(tfrecreg.data_source("digits@1.0.0", "test", registry=elsewhere)) == 20
    assert diff("digits@1.0.0", "digits@1.0.0", registry=elsewhere).same


@pytest.mark.medium
def test_the_store_decides_whose_a_number_is(
    registry: Registry, memory: Any, tmp_path: Path
) -> None:
    """Two clones give one number to two builds, and neither sees the other's registry."""
    other = registry_at(tmp_path / "other")
    write_digits(LocalStorage(tmp_path / "other/raw"), train=31, test=20, seed=2)
    first, second = made(registry).manifest, made(other).manifest
    request = ReleaseRequest(name="digits", version="1.0.0")
    release(registry, request)
    claim = "/lake/data/digits/releases/1.0.0.json"
    assert json.loads(memory.cat_file(claim)) == {
        "format_version": 1,
        "build": first.digest,
        "content": first.content,
    }
    with pytest.raises(ConflictError) as raised:
        release(other, request)
    assert raised.value.message == (
        "another clone released `digits@1.0.0` with other content, or is about to: "
        f"`memory:/{claim}` has content {first.content[:16]}…, the build has "
        f"{second.content[:16]}…"
    )
    assert raised.value.hint is not None
    assert not (tmp_path / "other/registry/digits/1.0.0").exists()
    assert main(["-C", other.storage.root, "release", "digits", "--version", "1.0.0"]) == 2
    assert release(other, ReleaseRequest(name="digits", version="1.0.1")).created
    # The same build in another clone, and a release that was killed after its claim.
    shutil.rmtree(tmp_path / "registry/registry/digits/1.0.0")
    assert release(open_registry(registry.storage.root), request).created
    for data, message in (
        (b"{}", "does not say which build has this number"),
        (b'{"format_version": 2}', "has format 2, this tfrecreg reads 1"),
    ):
        memory.pipe_file("/lake/data/digits/releases/1.0.2.json", data)
        with pytest.raises(TfrecregError, match=message):
            release(other, ReleaseRequest(name="digits", version="1.0.2"))


def test_pull_copies_a_release_to_this_machine(
    registry: Registry, memory: Any, tmp_path: Path
) -> None:
    manifest = made(registry).manifest
    release(registry, ReleaseRequest(name="digits", version="1.0.0"))
    notes = Notes()
    pushed = push(registry, progress=notes)
    assert (pushed.releases, pushed.objects, pushed.stored) == ((), 0, 1)
    assert notes.notes == [
        f"nothing to push of digits@1.0.0: its bytes are in {location_of(registry, 'data/digits')}"
    ]
    result = pull(registry, "digits")
    assert (result.folder, result.files) == ("versions/digits/1.0.0", 4 + 4 + 4)
    assert pull(registry, "digits@1.0.0").files == 0
    copy = tmp_path / "registry/versions/digits/1.0.0"
    for entry in manifest.shards:
        assert (copy / entry.path).stat().st_size == entry.bytes
    elsewhere = without_build(registry)
    memory.store.clear()
    (report,) = check(["digits@1.0.0"], registry=elsewhere)
    assert report.status == "pass"
    assert export(elsewhere, "digits@1.0.0", tmp_path / "out", to="index").splits


def test_show_says_where_the_bytes_are(
    registry: Registry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    made(registry)
    release(registry, ReleaseRequest(name="digits", version="1.0.0"))
    for reference in ("digits", "digits@1.0.0"):
        assert main(["-C", registry.storage.root, "show", reference]) == 0
        assert f"in {location_of(registry, 'data/digits')}" in capsys.readouterr().out
    pull(registry, "digits")
    assert main(["-C", registry.storage.root, "show", "digits@1.0.0"]) == 0
    assert "in versions/digits/1.0.0" in capsys.readouterr().out


def test_pull_needs_no_right_to_list(
    registry: Registry, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(registry)
    release(registry, ReleaseRequest(name="digits", version="1.0.0"))

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError

    for method in ("ls", "find", "glob"):
        monkeypatch.setattr(type(memory), method, refused)
    assert pull(registry, "digits").files > 4


def test_pull_takes_no_other_bytes(registry: Registry, memory: Any, tmp_path: Path) -> None:
    first = made(registry).manifest
    release(registry, ReleaseRequest(name="digits", version="1.0.0"))
    url = location_of(registry, "data/digits")
    assert url is not None
    path = f"{url.removeprefix('memory:/')}/{first.shards[0].path}"
    data = bytearray(memory.cat_file(path))
    data[-20] ^= 1
    memory.pipe_file(path, bytes(data))
    with pytest.raises(RefusedError, match="is not the file that the manifest names"):
        pull(registry, "digits")
    assert not (tmp_path / "registry/versions/digits").exists()


def test_what_needs_local_files_is_refused(registry: Registry, tmp_path: Path) -> None:
    made(registry)
    release(registry, ReleaseRequest(name="digits", version="1.0.0"))
    with pytest.raises(UsageError) as raised:
        export(registry, "digits@1.0.0", tmp_path / "out", to="index")
    assert raised.value.message.startswith(
        "an export needs local files, and the shards of `digits@1.0.0` are in `memory://lake/data/"
    )
    assert raised.value.hint == "tfrecreg pull digits@1.0.0"
    for names in ((), ("digits",)):
        with pytest.raises(UsageError, match="a pipeline is not supported for `digits`"):
            pipeline(registry, names)


ERRORS = {
    "data": "`datasets/digits.toml`: `data` should be a URL, found `data`",
    "https://example.org/x": "`datasets/digits.toml`: `data` should be a bucket, found "
    "`https://example.org/x`",
    "s3://key:secret@lake/x": "a URL of `s3://` holds a password or token, which others would see",
    "nonsense://lake/x": "`nonsense://lake/x` is not read: `nonsense://` is not known as a remote "
    "store",
}


@pytest.mark.parametrize("url", ERRORS)
def test_a_key_that_names_no_bucket(url: str, tmp_path: Path) -> None:
    registry = registry_at(tmp_path, url)
    with pytest.raises(TfrecregError) as raised:
        made(registry)
    assert raised.value.exit_code == 2
    assert raised.value.message == ERRORS[url]
    assert raised.value.hint
    assert not (tmp_path / "data/digits").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "`x` does not say where the bytes are: expected a URL"),
        (b"[]", "`x` does not say where the bytes are: expected a URL"),
        (b"[" * 100_000, "`x` does not say where the bytes are: expected a URL: nested too deeply"),
        (b'{"url": "\xff"}', "expected a URL: not UTF-8 at byte 9"),
        (b'{"format_version": 1}', "`x` does not say where the bytes are: expected a URL"),
        (b'{"format_version": 1, "url": "x"}', "`x` does not say where .*: found `x`"),
        (b'{"format_version": 1, "url": "s3://a:b@c/d"}', "`x` does not say where .*/c/d`"),
        (b'{"format_version": 2, "url": "s3://c/d"}', "`x` has format 2, this tfrecreg reads 1"),
    ],
)
def test_a_damaged_location_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(TfrecregError, match=message) as raised:
        parse_location(data, "x")
    assert "a:b" not in raised.value.message
    assert raised.value.hint


def test_a_build_comes_back_to_the_registry(registry: Registry, tmp_path: Path) -> None:
    first = made(registry).manifest
    path = tmp_path / "registry/datasets/digits.toml"
    path.write_text(path.read_text().partition("data =")[0])
    registry = open_registry(tmp_path / "registry")
    assert made(registry).manifest == first
    assert resolve(registry, "digits").location is None
    assert (tmp_path / "registry/data/digits" / first.shards[0].path).exists()
