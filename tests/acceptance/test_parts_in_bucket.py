"""Builds in parts whose raw data, plan and shards are in a bucket of a real S3 server over HTTP: no
process sees a folder of another. Requests fail at random, parts run at once, and are killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from s3_command_support import command, ended, run
from s3_support import S3, SERVERS, Faults, faulty, s3_server
from sources_support import SOURCES, make_raw
from warm_support import Warm

from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.operations.init import init
from tfrecreg.storage.local import LocalStorage

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=SERVERS)
def s3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """With the raw data of each source in the bucket `raw`."""
    raw = tmp_path_factory.mktemp("raw")
    make_raw(raw)
    with s3_server(request.param) as server:
        server.put("raw", raw)
        yield server


def stored(s3: S3, bucket: str, prefix: str = "") -> dict[str, str]:
    """The ETag of each object."""
    pages = s3.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {each["Key"]: each["ETag"] for page in pages for each in page.get("Contents", [])}


def builds(s3: S3, bucket: str) -> dict[str, str]:
    """The objects of builds, without what a build notes beside them."""
    found = stored(s3, bucket, "data/").items()
    return {key: tag for key, tag in found if ".receipts/" not in key}


def registry_at(folder: Path, bucket: str, data: bool = True) -> Path:
    """A registry whose raw data are in a bucket, and whose builds go to one."""
    init(folder, with_dvc=False)
    (folder / "datasets").mkdir()
    for source, records in SOURCES.items():
        (folder / f"datasets/{source}.toml").write_text(
            f'source = "{source}"\nraw = "s3://raw/{source}"\nrecords_per_shard = {records}\n'
            + (f'data = "s3://{bucket}/data"\n' if data else "")
        )
    return folder


class Machines:
    """Each runs a part in a folder of its own, which is empty before and after."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def start(self, port: int, *arguments: str) -> Warm | subprocess.Popen[str]:
        self._count += 1
        own = self._folder / str(self._count)
        for name in ("work", "tmp"):
            (own / name).mkdir(parents=True)
        more = {"TMPDIR": str(own / "tmp"), "HOME": str(own), "XDG_CACHE_HOME": str(own / "cache")}
        return command("parts", "build", *arguments, port=port, cwd=own / "work", **more)

    def run(self, port: int, *arguments: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(ended(self.start(port, *arguments, "--json")))
        return document

    def left(self) -> list[Path]:
        """Files on all machines."""
        return [path for path in self._folder.rglob("*") if path.is_file()]


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path / "machines")


@contextlib.contextmanager
def away(folder: Path) -> Iterator[None]:
    """A folder that nobody finds for a while."""
    hidden = folder.rename(folder.with_name(".away"))
    try:
        yield
    finally:
        hidden.rename(folder)


@pytest.mark.parametrize("source", SOURCES)
def test_the_build_is_that_of_one_command(
    s3: S3, machines: Machines, tmp_path: Path, source: str
) -> None:
    for bucket in (f"one-{source}", f"parts-{source}"):
        s3.client.create_bucket(Bucket=bucket)
    one = registry_at(tmp_path / "one", f"one-{source}")
    root = registry_at(tmp_path / "registry", f"parts-{source}")
    run("build", source, port=s3.port, cwd=one)
    plan = f"s3://parts-{source}/plans/{source}"
    run("parts", "plan", source, plan, port=s3.port, cwd=root)
    made = 0
    with away(root):
        for part in ("3/3", "1/3", "2/3"):
            made += machines.run(s3.port, plan, "--part", part, "-j", "2")["made"]
        again = machines.run(s3.port, plan, "--part", "1/1")
        assert (again["made"], again["finished_before"]) == (0, made)
    assert made == len(list(again["shards"]))
    assert not machines.left()
    publish = ("parts", "publish", plan, "--parts-only", "--verify", "1%", "--json")
    done = json.loads(run(*publish, port=s3.port, cwd=root))
    assert (done["parts"]["from_parts"], len(done["parts"]["verified"])) == (made, 1)
    manifests = [(each / f"data/{source}/manifest.json").read_bytes() for each in (one, root)]
    assert manifests[0] == manifests[1]
    assert builds(s3, f"parts-{source}") == builds(s3, f"one-{source}")
    run("check", source, port=s3.port, cwd=root)
    run("release", source, "--version", "1.0.0", port=s3.port, cwd=root)
    run("pull", source, port=s3.port, cwd=root)
    # The shards of a registry's folder go to the folder of the plan, and are copied from there.
    local = registry_at(tmp_path / "local", "", data=False)
    plan = f"s3://parts-{source}/plans/local"
    run("parts", "plan", source, plan, port=s3.port, cwd=local)
    for part in ("1/2", "2/2"):
        machines.run(s3.port, plan, "--part", part)
    run("parts", "publish", plan, "--parts-only", port=s3.port, cwd=local)
    assert (local / f"data/{source}/manifest.json").read_bytes() == manifests[0]
    run("check", source, port=s3.port, cwd=local)


def test_parts_at_once(s3: S3, machines: Machines, tmp_path: Path) -> None:
    """Each part of two divisions of the plan runs twice, all at the same time."""
    s3.client.create_bucket(Bucket="at-once")
    root = registry_at(tmp_path / "registry", "at-once")
    plan = "s3://at-once/plan"
    run("parts", "plan", "mnist", plan, port=s3.port, cwd=root)
    parts = [part for part in ("1/2", "2/2", "1/3", "2/3", "3/3") for _ in range(2)]
    started = [machines.start(s3.port, plan, "--part", part) for part in parts]
    for each in started:
        assert ended(each).startswith("part ")
    before = stored(s3, "at-once")
    run("parts", "publish", plan, "--parts-only", port=s3.port, cwd=root)
    after = stored(s3, "at-once")
    assert {key: after[key] for key in before} == before
    run("check", "mnist", port=s3.port, cwd=root)
    one = registry_at(tmp_path / "one", "at-once")
    assert (
        json.loads(run("build", "mnist", "--json", port=s3.port, cwd=one))["digest"]
        == (json.loads((root / "data/mnist/manifest.json").read_text())["digest"])
    )


@pytest.mark.parametrize("shards", [1, 8])
def test_parts_and_publishing_with_several_jobs(
    s3: S3, machines: Machines, tmp_path: Path, shards: int
) -> None:
    """Items enough for worker processes: segments of one shard, and whole shards."""
    bucket = f"jobs-{shards}"
    write_digits(LocalStorage(tmp_path / "raw"), train=20_000, test=100, seed=1)
    s3.put(bucket, tmp_path / "raw")
    root = registry_at(tmp_path / "registry", bucket)
    plan = f"s3://{bucket}/plan"
    given = ("mnist", "--raw", f"s3://{bucket}", "--shards", str(shards))
    run("parts", "plan", *given, plan, port=s3.port, cwd=root)
    part = machines.run(s3.port, plan, "--part", "1/1", "-j", "2")
    assert part["made"] == 2 * shards
    publish = ("parts", "publish", plan, "--verify", "1", "-j", "2", "--json")
    done = json.loads(run(*publish, port=s3.port, cwd=root))
    before = builds(s3, bucket)
    one = json.loads(run("build", *given, "-j", "2", "--json", port=s3.port, cwd=root))
    assert (one["digest"], one["unchanged"]) == (done["digest"], True)
    assert builds(s3, bucket) == before
    assert not machines.left()


class Killer(Faults):
    """Kills a process at one of its requests. That is served if its number is even."""

    def __init__(self, at: int) -> None:
        super().__init__(0)
        self.at = at
        self.process: Warm | subprocess.Popen[str] | None = None

    def next(self) -> str:
        with self._lock:
            self.gets += 1
            if self.gets != self.at:
                return ""
        while self.process is None:
            pass
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return "" if self.at % 2 == 0 else "503"


@pytest.mark.parametrize("work", ["part", "publish"])
def test_killed_at_any_request(s3: S3, machines: Machines, tmp_path: Path, work: str) -> None:
    """What is finished is not made again, nothing is half published, and the end is the same."""
    bucket = f"killed-{work}"
    s3.client.create_bucket(Bucket=bucket)
    root = registry_at(tmp_path / "registry", bucket)
    plan = f"s3://{bucket}/plan"
    run("parts", "plan", "coco", plan, port=s3.port, cwd=root)
    arguments = [plan, "--part", "1/1"]
    if work == "publish":
        machines.run(s3.port, plan, "--part", "1/2")
        arguments = ["-C", str(root), "parts", "publish", plan, "--verify", "1"]
    start = stored(s3, bucket)
    empty = Path(shutil.copytree(root, tmp_path / "start"))

    def trial(at: int) -> tuple[int, bool]:
        """How many requests were made, and whether it lived to its end."""
        killer = Killer(at)
        with faulty(s3.port, killer) as port:
            if work == "part":
                killer.process = machines.start(port, *arguments)
            else:
                killer.process = command(*arguments, port=port, cwd=tmp_path)
            killer.process.communicate(timeout=200)
        return killer.gets, killer.process.returncode == 0

    def reset() -> None:
        for key in stored(s3, bucket).keys() - start.keys():
            s3.client.delete_object(Bucket=bucket, Key=key)
        shutil.rmtree(root)
        shutil.copytree(empty, root)

    def without_notes() -> dict[str, str]:
        found = stored(s3, bucket).items()
        return {key: tag for key, tag in found if "receipts" not in key and "probe" not in key}

    total, lived = trial(0)
    assert lived
    assert total > 40
    end = without_notes()
    chosen = random.Random(int(os.environ.get("TFRECREG_TEST_SEED", "5")))
    for at in chosen.sample(range(1, total + 1), int(os.environ.get("TFRECREG_TEST_KILLS", "8"))):
        reset()
        trial(at)
        killed = stored(s3, bucket)
        receipts = {key for key in killed if key.startswith("plan/receipts/")}
        names = {key.rpartition("/")[2] for key in killed}
        for key in receipts:
            assert key.rpartition("/")[2].removesuffix(".json") in names, at
        manifest = root / "data/coco/manifest.json"
        assert not manifest.exists() or "manifest.json" in names, at
        if work == "part":
            again = machines.run(s3.port, *arguments)
            assert again["finished_before"] >= len(receipts), at
        else:
            run(*arguments, port=s3.port, cwd=tmp_path)
            assert manifest.exists()
        after = stored(s3, bucket)
        assert {key: after[key] for key in killed if "probe" not in key} == {
            key: tag for key, tag in killed.items() if "probe" not in key
        }, at
        assert without_notes() == end, at
    if work == "part":
        run("parts", "publish", plan, "--parts-only", port=s3.port, cwd=root)
    run("check", "coco", port=s3.port, cwd=root)


def test_failing_requests_change_no_result(s3: S3, machines: Machines, tmp_path: Path) -> None:
    results = []
    for name, share in (("plain-parts", 0.0), ("faulty-parts", 0.1)):
        s3.client.create_bucket(Bucket=name)
        root = registry_at(tmp_path / name, name)
        plan = f"s3://{name}/plan"
        faults = Faults(share, "cut", "503", "short", "slow", seed=3)
        with faulty(s3.port, faults) as port:
            limits: dict[str, Any] = {"port": port, "TFRECREG_REMOTE_ATTEMPTS": "12"}
            run("parts", "plan", "imagefolder", plan, cwd=root, **limits)
            for part in ("1/2", "2/2"):
                run("parts", "build", plan, "--part", part, cwd=tmp_path, **limits)
            publish = ("parts", "publish", plan, "--parts-only", "--verify", "1", "--json")
            done = json.loads(run(*publish, cwd=root, **limits))
        assert bool(faults.made) == bool(share)
        results.append([done["digest"], done["parts"]["from_parts"], builds(s3, name)])
        assert not s3.client.list_multipart_uploads(Bucket=name).get("Uploads")
    assert results[0] == results[1]
