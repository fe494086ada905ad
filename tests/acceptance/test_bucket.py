"""Builds and releases in a bucket of a real S3 server over HTTP, with requests that fail at random,
commands that are killed, and two of them at once.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from memory_support import PRINT_PEAK, on_linux
from s3_command_support import command, ended, run
from s3_support import KEY, S3, SECRET, SERVERS, Faults, faulty, s3_server

from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.operations.init import init
from tfrecreg.storage.local import LocalStorage

pytestmark = pytest.mark.slow

DATASET = """\
source = "mnist"
raw = "raw"
shards = {shards}
data = "s3://{bucket}/data"
"""


@pytest.fixture(scope="module", params=SERVERS)
def s3(request: pytest.FixtureRequest) -> Iterator[S3]:
    with s3_server(request.param) as server:
        yield server


def registry_at(root: Path, bucket: str, shards: int = 3) -> Path:
    """A registry with the dataset `digits`, which is not built yet."""
    write_digits(LocalStorage(root / "raw"), train=300, test=100, seed=1)
    init(root, with_dvc=False)
    (root / "datasets").mkdir()
    (root / "datasets/digits.toml").write_text(DATASET.format(bucket=bucket, shards=shards))
    return root


def keys(s3: S3, bucket: str) -> dict[str, str]:
    """The ETag of each object."""
    pages = s3.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return {each["Key"]: each["ETag"] for page in pages for each in page.get("Contents", [])}


def elsewhere(root: Path, target: Path) -> Path:
    """Another clone: what git has, and the raw data."""
    for name in ("registry", "datasets", "schemas", "raw"):
        if (root / name).exists():
            shutil.copytree(root / name, target / name)
    shutil.copy(root / "tfrecreg.toml", target / "tfrecreg.toml")
    return target


def no_secret_below(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert SECRET.encode() not in data, path
            assert KEY.encode() not in data, path


SOURCE = """
import hashlib, tfrecreg
source = tfrecreg.data_source("digits@1.0.0", "train")
images = b"".join(bytes(each["image/encoded"]) for each in source)
print(len(source), hashlib.sha256(images).hexdigest())
"""


def test_failing_requests_change_no_result(s3: S3, tmp_path: Path) -> None:
    """Build, release, check, read and pull: as without failures, or a clear error."""
    results: list[list[Any]] = []
    for name, share in (("plain", 0.0), ("faulty", 0.1)):
        s3.client.create_bucket(Bucket=name)
        (tmp_path / name).mkdir()
        root = registry_at(tmp_path / name / "registry", name, shards=2)
        other = tmp_path / name / "other"
        other.mkdir()
        faults = Faults(share, "cut", "503", "short", "slow", seed=3)
        with faulty(s3.port, faults) as port:
            limits: dict[str, Any] = {"port": port, "TFRECREG_REMOTE_ATTEMPTS": "12"}
            built = json.loads(run("build", "digits", "--json", "-j", "2", cwd=root, **limits))
            run("release", "digits", "--version", "1.0.0", cwd=root, **limits)
            elsewhere(root, other)
            checked = json.loads(run("check", "digits@1.0.0", "--json", cwd=other, **limits))
            read = run("-c", SOURCE, cwd=other, **limits)
            run("pull", "digits@1.0.0", cwd=other, **limits)
        assert bool(faults.made) == bool(share)
        copy = other / "versions/digits/1.0.0"
        files = {
            path.relative_to(copy).as_posix(): path.read_bytes()
            for path in sorted(copy.rglob("*"))
            if path.is_file()
        }
        results.append([built["digest"], checked["status"], checked["summary"], read, files])
        no_secret_below(tmp_path / name)
        # Parts of an upload that failed are not left behind.
        assert not s3.client.list_multipart_uploads(Bucket=name).get("Uploads")
    assert results[0] == results[1]
    assert results[0][1] == "pass"


def test_bytes_that_change_on_their_way_are_not_released(s3: S3, tmp_path: Path) -> None:
    """A release is made of the bytes in the bucket, or there is none and no word of damage."""
    s3.client.create_bucket(Bucket="flipped")
    root = registry_at(tmp_path / "registry", "flipped", shards=2)
    digest = json.loads(run("build", "digits", "--json", port=s3.port, cwd=root))["digest"]
    chosen = random.Random(7)

    def change(body: bytes) -> bytes:
        at = chosen.randrange(len(body))
        return body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :] if len(body) > 5000 else body

    with faulty(s3.port, Faults(0.3, "flip", seed=4), change) as port:
        release = command("release", "digits", "--version", "1.0.0", port=port, cwd=root)
        said = "".join(release.communicate(timeout=200))
        pull = command("pull", "digits", port=s3.port, cwd=root)
        pull.communicate(timeout=200)
    assert release.returncode in (0, 3), said
    assert "not those of its manifest" not in said
    assert (release.returncode == 0) == (root / "registry/digits/1.0.0").exists()
    if release.returncode == 0:
        manifest = json.loads((root / "registry/digits/1.0.0/manifest.json").read_text())
        assert manifest["release"]["build"] == digest
        assert pull.returncode == 0


def test_a_killed_build_goes_on(s3: S3, tmp_path: Path) -> None:
    s3.client.create_bucket(Bucket="killed")
    root = registry_at(tmp_path / "registry", "killed", shards=4)
    with faulty(s3.port, Faults(1.0, "slow")) as port:
        for wanted in (1, 3):
            build = command("build", "digits", port=port, cwd=root)
            end = time.monotonic() + 60
            while sum(key.endswith(".json") for key in keys(s3, "killed")) < wanted:
                assert time.monotonic() < end
                assert build.poll() is None
                time.sleep(0.02)
            build.send_signal(signal.SIGKILL)
            build.communicate()
            assert not any(key.endswith("manifest.json") for key in keys(s3, "killed"))
            assert not (root / "data/digits").exists()
    before = keys(s3, "killed")
    built = json.loads(run("build", "digits", "--json", port=s3.port, cwd=root))
    assert built["resumed_shards"] >= 3
    after = keys(s3, "killed")
    assert {key: after[key] for key in before if "probe" not in key} == {
        key: tag for key, tag in before.items() if "probe" not in key
    }
    run("check", "digits", port=s3.port, cwd=root)


def test_two_at_once(s3: S3, tmp_path: Path) -> None:
    """Two clones build the same at once: both have it, and nothing was replaced. Two releases of
    one number with other data: one wins, the other is told.
    """
    s3.client.create_bucket(Bucket="twice")
    first = registry_at(tmp_path / "first", "twice")
    second = tmp_path / "second"
    second.mkdir()
    elsewhere(first, second)
    # The time of a raw file is part of the plan.
    for path in (first / "raw").iterdir():
        os.utime(second / "raw" / path.name, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    builds = [command("build", "digits", "--json", port=s3.port, cwd=at) for at in (first, second)]
    digests = {json.loads(ended(each))["digest"] for each in builds}
    assert len(digests) == 1
    assert len({key.split("/")[2].partition(".")[0] for key in keys(s3, "twice")}) == 1

    release = ("release", "digits", "--version", "1.0.0", "--json")
    both = [command(*release, port=s3.port, cwd=first) for _ in range(2)]
    made = sorted(json.loads(ended(each))["created"] for each in both)
    assert made == [False, True]
    # Other data under the same number.
    write_digits(LocalStorage(first / "raw"), train=301, test=100, seed=2)
    run("build", "digits", port=s3.port, cwd=first)
    told = run(*release, port=s3.port, cwd=first, code=2)
    assert "`digits@1.0.0` exists with other content" in told
    run("check", "digits@1.0.0", port=s3.port, cwd=first)


def test_two_clones_release_one_number_at_once(s3: S3, tmp_path: Path) -> None:
    """They have built different data. The store decides: one wins, and the other is told."""
    s3.client.create_bucket(Bucket="numbers")
    clones = [registry_at(tmp_path / name, "numbers") for name in ("first", "second")]
    write_digits(LocalStorage(clones[1] / "raw"), train=301, test=100, seed=2)
    for at in clones:
        run("build", "digits", port=s3.port, cwd=at)
    for major in range(1, 6):
        release = ("release", "digits", "--version", f"{major}.0.0")
        both = [command(*release, port=s3.port, cwd=at) for at in clones]
        told = [each.communicate(timeout=200)[1] for each in both]
        codes = [each.returncode for each in both]
        assert sorted(codes) == [0, 2], told
        loser = codes.index(2)
        assert f"another clone released `digits@{major}.0.0` with other content" in told[loser]
        assert not (clones[loser] / f"registry/digits/{major}.0.0").exists()
        run("check", f"digits@{major}.0.0", port=s3.port, cwd=clones[1 - loser])


def test_what_nothing_refers_to_is_removed(s3: S3, tmp_path: Path) -> None:
    s3.client.create_bucket(Bucket="garbage")
    root = registry_at(tmp_path / "registry", "garbage")
    run("build", "digits", port=s3.port, cwd=root)
    first = set(keys(s3, "garbage"))
    write_digits(LocalStorage(root / "raw"), train=301, test=100, seed=2)
    run("build", "digits", port=s3.port, cwd=root)
    second = set(keys(s3, "garbage")) - first
    assert second
    gc = ("gc", "--buckets", "--json")
    assert json.loads(run(*gc, port=s3.port, cwd=root))["items"] == []  # it is new
    found = json.loads(run(*gc, "--older-than", "0", "--apply", port=s3.port, cwd=root))
    (item,) = found["items"]
    assert item["kind"] == "bucket"
    assert item["path"].startswith("s3://garbage/data/digits/")
    assert set(keys(s3, "garbage")) == second
    run("check", "digits", port=s3.port, cwd=root)
    assert json.loads(run(*gc, "--older-than", "0", port=s3.port, cwd=root))["items"] == []


MEMORY = f"""
import sys, os, tempfile
from tfrecreg.storage.remote import RemoteStorage
with tempfile.NamedTemporaryFile() as file:
    for _ in range(int(sys.argv[1])):
        file.write(os.urandom(1 << 20))
    file.flush()
    RemoteStorage("s3://memory").upload(file.name, sys.argv[1])
{PRINT_PEAK}
"""


@on_linux
def test_memory_does_not_grow_with_the_shard(s3: S3, tmp_path: Path) -> None:
    s3.client.create_bucket(Bucket="memory")
    peaks = {}
    for megabytes in ("20", "160"):
        said = run("-c", MEMORY, megabytes, port=s3.port, cwd=tmp_path)
        peaks[megabytes] = int(said.split()[-1]) >> 10
    assert peaks["160"] < peaks["20"] + 60


def test_stores_that_do_not_take_it(s3: S3, tmp_path: Path) -> None:
    """One line and a hint, and nothing is published."""
    s3.client.create_bucket(Bucket="there")
    nothing = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    cases: Sequence[tuple[str, dict[str, str], str]] = (
        ("gone", {}, "error: `s3://gone/data/digits` cannot be written: there is no such bucket"),
        ("there", nothing, "no credentials were found"),
    )
    for number, (bucket, environment, message) in enumerate(cases):
        root = registry_at(tmp_path / str(number), bucket)
        more: dict[str, Any] = {**environment, "TFRECREG_REMOTE_ATTEMPTS": "2"}
        said = run("build", "digits", port=s3.port, cwd=root, code=3 if environment else 2, **more)
        error, hint = said.splitlines()[-2:]
        assert message in error
        assert error.startswith("error: ")
        assert hint.startswith("hint: ")
        assert not (root / "data/digits").exists()


def test_a_bucket_that_may_only_be_read(s3: S3, tmp_path: Path) -> None:
    """The server refuses every write, as a policy of a bucket does."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_PUT(self) -> None:
            body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    root = registry_at(tmp_path / "registry", "there")
    said = run("build", "digits", port=server.server_address[1], cwd=root, code=3)
    server.shutdown()
    server.server_close()
    error, hint = said.splitlines()[-2:]
    assert error.startswith("error: cannot write `s3://there/data/digits/.tfrecreg-probe-")
    assert error.endswith("`: permission denied")
    assert hint.startswith("hint: credentials come from the environment")
