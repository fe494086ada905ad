"""Workers that share no folder with the command: raw data and shards are in a bucket."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from beam_support import job_server
from dask_support import Cluster, cluster
from s3_command_support import command, run
from s3_support import S3, SERVERS, s3_server
from sources_support import SOURCES, make_raw

from tfrecreg.operations.init import init

pytestmark = pytest.mark.slow

HIDDEN = 'mount -t tmpfs none "$0" && exec "$@"'
"""Hides the content of the folder `$0` from the program `$@`."""


def hiding(folder: Path) -> list[str]:
    """A command that runs a program which does not see what is in a folder."""
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--mount", *own, "sh", "-c", HIDDEN, str(folder)]


@pytest.fixture(scope="module", params=SERVERS)
def s3(request: pytest.FixtureRequest) -> Iterator[S3]:
    with s3_server(request.param) as server:
        yield server


@pytest.fixture(scope="module")
def unseen(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the workers do not see: one for each server."""
    folder = tmp_path_factory.mktemp("unseen")
    try:
        done = subprocess.run([*hiding(folder), "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("this system has no `unshare`")
    if done.returncode:
        pytest.skip(f"folders cannot be hidden here: {done.stderr.decode().strip()}")
    return folder


@pytest.fixture(scope="module")
def workers(s3: S3, unseen: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers, which reach the bucket."""
    folder = tmp_path_factory.mktemp("dask")
    env: Mapping[str, str] = {**s3.environment, "TMPDIR": str(folder)}
    with cluster(folder / "cluster", env=env, through=hiding(unseen)) as made:
        yield made


@pytest.fixture(scope="module")
def beam(s3: S3, unseen: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Options for a job server of Beam, whose workers reach the bucket. So do tasks."""
    s3.client.create_bucket(Bucket="tasks")
    folder = tmp_path_factory.mktemp("beam")
    env = {**s3.environment, "TMPDIR": str(folder)}
    with job_server(folder, "s3://tasks/beam", env, hiding(unseen)) as options:
        yield list(options)


def registry_at(folder: Path, bucket: str, raw: str = "raw") -> Path:
    """A registry whose builds go to a bucket, where their raw data are, too."""
    init(folder, with_dvc=False)
    (folder / "datasets").mkdir()
    for source, records in SOURCES.items():
        (folder / f"datasets/{source}.toml").write_text(
            f'source = "{source}"\nraw = "s3://{raw}/{source}"\nrecords_per_shard = {records}\n'
            f'data = "s3://{bucket}"\n'
        )
    return folder


def stored(s3: S3, bucket: str) -> dict[str, str]:
    """ETag of every object of a bucket."""
    found = s3.client.list_objects_v2(Bucket=bucket)["Contents"]
    return {each["Key"]: each["ETag"] for each in found}


def test_the_bytes_are_those_of_one_process(
    s3: S3, unseen: Path, workers: Cluster, tmp_path: Path
) -> None:
    make_raw(tmp_path)
    s3.put("raw", tmp_path)
    for bucket in ("one", "many"):
        s3.client.create_bucket(Bucket=bucket)
    engine = ("--engine", "dask", "--engine-option", f"address={workers.address}")
    one, many = registry_at(tmp_path / "r", "one"), registry_at(unseen / "r", "many")
    for source in SOURCES:
        for root, more in ((one, ()), (many, engine)):
            run("build", source, *more, port=s3.port, cwd=root)
        manifests = [(root / f"data/{source}/manifest.json").read_text() for root in (one, many)]
        assert manifests[0] == manifests[1]
    assert stored(s3, "one") == stored(s3, "many")
    # Again: nothing is made.
    before = s3.client.list_objects_v2(Bucket="many")["Contents"]
    said = json.loads(run("build", "mnist", "--json", *engine, port=s3.port, cwd=many))
    assert said["unchanged"]
    assert s3.client.list_objects_v2(Bucket="many")["Contents"] == before
    left = [path for path in workers.folder.parent.iterdir() if path.name.startswith("tfrecreg")]
    assert left == []

    shards = (key for key in sorted(stored(s3, "many")) if key.count("/") == 2)
    key = next(key for key in shards if ".tfrecord-" in key and not key.endswith(".json"))
    for bucket in ("one", "many"):
        body = s3.client.get_object(Bucket=bucket, Key=key)["Body"].read()
        damaged = body[:-9] + bytes([body[-9] ^ 1]) + body[-8:]
        s3.client.put_object(Bucket=bucket, Key=key, Body=damaged)
    source = key.split("/")[0]
    documents = []
    for root, more in ((one, ()), (many, engine)):
        check = command("check", source, "--json", *more, port=s3.port, cwd=root)
        out, err = check.communicate(timeout=200)
        assert check.returncode == 1, err
        documents.append(out.replace("s3://many/", "s3://one/"))
    assert documents[0] == documents[1]


def test_beam_hands_tasks_on_in_a_bucket(
    s3: S3, unseen: Path, beam: list[str], tmp_path: Path
) -> None:
    """As on Dataflow: the workers share a bucket with the command, and nothing else."""
    make_raw(tmp_path)
    s3.put("raw2", tmp_path)
    built: list[dict[str, str]] = []
    for root, bucket, more in ((tmp_path, "one-beam", ()), (unseen, "many-beam", beam)):
        s3.client.create_bucket(Bucket=bucket)
        home = registry_at(root / bucket, bucket, raw="raw2")
        run("build", "mnist", *more, port=s3.port, cwd=home)
        run("check", "mnist", *more, port=s3.port, cwd=home)
        built.append(stored(s3, bucket))
    assert built[0] == built[1]
    assert "Contents" not in s3.client.list_objects_v2(Bucket="tasks")


def test_workers_that_need_the_folder_are_told(
    s3: S3, unseen: Path, workers: Cluster, tmp_path: Path
) -> None:
    """Without a bucket the shards go to a folder, which has to be seen."""
    make_raw(tmp_path)
    root = unseen / "local"
    init(root, with_dvc=False)
    engine = ("--engine", "dask", "--engine-option", f"address={workers.address}")
    place = str(tmp_path / "mnist")
    build = ("build", "mnist", "--source", "mnist", "--raw", place)
    said = run(*build, *engine, port=s3.port, cwd=root, code=3)
    assert "does not see the folder" in said
    assert not (root / "data/mnist").exists()
