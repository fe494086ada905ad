"""Builds from raw data on a real S3 server over HTTP, with requests that fail at random."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from image_support import png
from radosgw_support import KEY, SECRET
from s3_command_support import command, ended, run
from s3_support import S3, Faults, faulty
from sources_support import SOURCES, digests, make_raw

from tfrecreg.core.registry.init import init

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def raw(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw data of each source; the same are in the bucket `raw`."""
    folder = tmp_path_factory.mktemp("raw")
    make_raw(folder)
    s3.put("raw", folder)
    return folder


def given(source: str, place: object, *more: str) -> tuple[str, ...]:
    """The arguments of a build."""
    sizing = ("--records-per-shard", str(SOURCES[source]))
    return ("build", source, "--source", source, "--raw", f"{place}/{source}", *sizing, *more)


def registry(folder: Path) -> Path:
    init(folder, with_dvc=False)
    return folder


@pytest.fixture(scope="module")
def local(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with a build of each source from local files."""
    root = registry(tmp_path_factory.mktemp("local") / "registry")
    for source in SOURCES:
        run(*given(source, raw), port=9, cwd=root)
    return root


@pytest.mark.parametrize("source", SOURCES)
def test_failing_requests_change_no_byte(
    source: str, s3: S3, raw: Path, local: Path, tmp_path: Path
) -> None:
    wanted = digests(local / "data" / source)
    root = registry(tmp_path / "registry")
    faults = Faults(0.2, "cut", "503", "short", "slow", seed=3)
    with faulty(s3.port, faults) as port:
        limits: dict[str, Any] = {"port": port, "TFRECREG_REMOTE_ATTEMPTS": "12"}
        run(*given(source, "s3://raw", "-j", "2"), cwd=root, **limits)
        assert faults.made
        assert digests(root / "data" / source) == wanted
        run("build", source, cwd=root, **limits)  # by `datasets/NAME.toml`
    assert digests(root / "data" / source) == wanted
    assert f'raw = "s3://raw/{source}"' in (root / f"datasets/{source}.toml").read_text()
    for path in root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert SECRET.encode() not in data
            assert KEY.encode() not in data


def test_an_image_costs_one_request(s3: S3, raw: Path, tmp_path: Path) -> None:
    root = registry(tmp_path / "registry")
    for source in ("imagefolder", "coco"):
        files = [path for path in (raw / source).rglob("*") if path.is_file()]
        annotations = [path for path in files if path.suffix == ".json"]
        folders = {path.parent for path in files} | {raw / source}
        faults = Faults(0.0)
        with faulty(s3.port, faults) as port:
            run(*given(source, "s3://raw"), port=port, cwd=root)
        # Folders are listed twice; annotations are opened once, by two requests. The first image
        # of each shard is looked at and read again, as its record is made twice.
        images = len(files) - len(annotations)
        shards = len(list((root / "data" / source).glob("*.tfrecord-*")))
        least = images + 2 * shards + 2 * len(folders) + 2 * len(annotations)
        assert least <= faults.gets <= least + 2


def test_what_cannot_be_read_in_the_end_is_no_skipped_item(
    s3: S3, raw: Path, tmp_path: Path
) -> None:
    """Every object fails from some request on: the build fails, and publishes nothing."""
    for kind in ("cut", "503", "short"):
        root = registry(tmp_path / kind)
        faults = Faults(0.0, kind)
        with faulty(s3.port, faults) as port:
            build = command(
                *given("imagefolder", "s3://raw", "--max-skipped", "100%"),
                port=port,
                cwd=root,
                TFRECREG_REMOTE_ATTEMPTS="2",
            )
            end = time.monotonic() + 60
            while faults.gets < 10:
                assert time.monotonic() < end
                time.sleep(0.001)
            faults.share = 1.0
            error = ended(build, 3).splitlines()[-1]
        assert "s3://raw/imagefolder" in error
        assert not (root / "data/imagefolder").exists()


def test_a_killed_build_goes_on(s3: S3, raw: Path, local: Path, tmp_path: Path) -> None:
    root = registry(tmp_path / "registry")
    with faulty(s3.port, Faults(1.0, "slow")) as port:
        build = command(*given("imagefolder", "s3://raw"), port=port, cwd=root)
        end = time.monotonic() + 60
        while not list(root.glob(".tfrecreg/**/journal/*.json")):
            assert time.monotonic() < end
            assert build.poll() is None
            time.sleep(0.01)
        build.send_signal(signal.SIGKILL)
        build.communicate()
    built = json.loads(run(*given("imagefolder", "s3://raw", "--json"), port=s3.port, cwd=root))
    assert built["resumed_shards"] >= 1
    assert digests(root / "data/imagefolder") == digests(local / "data/imagefolder")


def test_nothing_is_left_of_copied_annotations(s3: S3, raw: Path, tmp_path: Path) -> None:
    """A command that is killed while it has copies of the annotations open."""
    root = registry(tmp_path / "registry")
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    faults = Faults(1.0, "slow")
    with faulty(s3.port, faults) as port:
        build = command(*given("coco", "s3://raw"), port=port, cwd=root, TMPDIR=str(scratch))
        end = time.monotonic() + 60
        while not list(root.glob(".tfrecreg/**/build/*")):
            assert time.monotonic() < end
            assert build.poll() is None
            time.sleep(0.01)
        build.send_signal(signal.SIGKILL)
        build.communicate()
    assert list(scratch.iterdir()) == []
    shutil.rmtree(root)


def test_keys_of_a_bucket_that_no_disk_has(s3: S3, tmp_path: Path) -> None:
    """Empty objects for folders are no files. Other keys that are not paths are told."""
    s3.client.create_bucket(Bucket="odd-keys")
    root = registry(tmp_path / "registry")

    def put(key: str, body: bytes) -> None:
        s3.client.put_object(Bucket="odd-keys", Key=key, Body=body)

    for key in ("pets/", "pets/cat/", "pets/cat", "pets/empty/"):
        put(key, b"")
    for name in "abc":
        put(f"pets/cat/{name}.png", png(seed=ord(name)))
    build = ("build", "pets", "--source", "imagefolder", "--raw", "s3://odd-keys/pets")
    made = json.loads(run(*build, "--json", port=s3.port, cwd=root))
    assert made["splits"] == {"train": 3}
    for key, message in (
        ("pets/cat//d.png", "`s3://odd-keys/pets/cat` holds the key `/…`, which is not a path"),
        ("pets/cat", "`s3://odd-keys/pets/cat` is both an object and a folder"),
    ):
        put(key, b"x")
        said = run(*build, port=s3.port, cwd=root, code=2)
        s3.client.delete_object(Bucket="odd-keys", Key=key)
        assert message in said
