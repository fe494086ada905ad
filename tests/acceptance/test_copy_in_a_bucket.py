"""A release that is sent to a bucket of a real S3 server, with requests that fail at random."""

from __future__ import annotations

import glob
import json
import random
from ast import literal_eval
from pathlib import Path

import pytest
from s3_command_support import run
from s3_support import S3, Faults, faulty

import tfrecreg

pytestmark = pytest.mark.slow

URL = "s3://copies/numbers"
READ = f"""
import tfrecreg
source = tfrecreg.data_source("{URL}", "train", decode=False)
print(len(source), sum(int(each["n"]) for each in source))
"""
GLOBS = ("*/*-train*", "numbers/num*", "n*/index/*", "**/num*1-*", "numbers/**", "numbers/?")
FIND = f"""
from tfrecreg.core.storage.remote import RemoteStorage
storage = RemoteStorage("s3://copies")
print([[entry.path for entry in storage.glob(each)] for each in {GLOBS}])
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A registry with a release, of which a shard is sent in several parts."""
    registry = tfrecreg.init(tmp_path / "r", with_dvc=False)
    noise = random.Random(1)
    rows = [{"n": number, "x": noise.randbytes(120_000 * number)} for number in range(25)]
    registry["numbers"].build(data={"train": rows}, shards=2, progress=False)
    registry["numbers"].release("1.0.0", progress=False)
    return tmp_path / "r"


def objects(s3: S3) -> dict[str, str]:
    """The ETag of each object."""
    pages = s3.client.get_paginator("list_objects_v2").paginate(Bucket="copies")
    return {each["Key"]: each["ETag"] for page in pages for each in page.get("Contents", [])}


def test_a_copy_is_sent_and_read(s3: S3, root: Path, tmp_path: Path) -> None:
    s3.client.create_bucket(Bucket="copies")
    send = ("export", "numbers@1.0.0", "--to", "files", URL)
    faults = Faults(0.2, "cut", "503", "slow", seed=3)
    with faulty(s3.port, faults) as port:
        run(*send, port=port, cwd=root, TFRECREG_REMOTE_ATTEMPTS="12")
    assert faults.made
    release = tfrecreg.open(root)["numbers@1.0.0"]
    wanted = [*release.manifest.shards, *release.manifest.files]
    found = objects(s3)
    assert found.keys() == {f"numbers/{each.path}" for each in wanted} | {"numbers/manifest.json"}
    assert any("-" in each for each in found.values())  # sent in parts
    here = root / "data"
    globbed = (glob.glob(each, root_dir=here, recursive=True) for each in GLOBS)
    files = [sorted(each for each in paths if (here / each).is_file()) for paths in globbed]
    assert literal_eval(run("-c", FIND, port=s3.port, cwd=tmp_path)) == files

    report = json.loads(run("check", URL, "--json", port=s3.port, cwd=tmp_path))
    assert (report["status"], report["findings"]) == ("pass", [])
    assert run("-c", READ, port=s3.port, cwd=tmp_path).split() == ["25", "300"]
    head = json.loads(run("head", URL, "-n", "1", "--json", port=s3.port, cwd=tmp_path))
    assert len(head["records"]) == 1
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    asked = run("query", URL, "SELECT count(*) AS c FROM records", port=s3.port, cwd=tmp_path)
    assert asked.split() == ["c", "25"]

    run(*send, port=s3.port, cwd=root)
    s3.client.delete_object(Bucket="copies", Key="numbers/manifest.json")
    run(*send, port=s3.port, cwd=root)
    assert objects(s3) == found

    shard = release.manifest.shards[0]
    s3.client.put_object(Bucket="copies", Key=f"numbers/{shard.path}", Body=bytes(shard.bytes))
    changed = objects(s3)
    said = run(*send, port=s3.port, cwd=root, code=2)
    assert f"`{URL}/{shard.path}` exists, but does not belong to `numbers@1.0.0`" in said
    assert objects(s3) == changed


class Planned(Faults):
    """Faults of the first shard's upload, each with the method of the request that it befalls."""

    def __init__(self, *plan: tuple[str, str]) -> None:
        super().__init__(0)
        self.plan = [*plan]

    def next(self, request: str) -> str:
        is_due = self.plan and request.startswith(self.plan[0][0])
        return self.plan.pop(0)[1] if is_due and "00000-of-00002?" in request else ""


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param([("PUT", "503"), ("DELETE", "cut")], id="aborted"),
        pytest.param([("POST", ""), ("POST", "cut"), ("POST", "503")], id="completed"),
    ],
)
def test_an_upload_that_ended_unseen_is_repeated(
    s3: S3, root: Path, plan: list[tuple[str, str]]
) -> None:
    """The store says that there is no such upload, which is not to say that a file is missing."""
    bucket = f"unseen{len(plan)}"
    s3.client.create_bucket(Bucket=bucket)
    faults = Planned(*plan)
    with faulty(s3.port, faults) as port:
        run("export", "numbers@1.0.0", "--to", "files", f"s3://{bucket}", port=port, cwd=root)
    assert not faults.plan
    report = json.loads(run("check", f"s3://{bucket}", "--json", port=s3.port, cwd=root))
    assert (report["status"], report["findings"]) == ("pass", [])
