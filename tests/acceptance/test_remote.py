"""Commands on a real S3 server over HTTP, with requests that fail at random."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from memory_support import PRINT_PEAK, on_linux
from s3_command_support import command
from s3_support import (
    S3,
    SECRET,
    SIGNATURE,
    Faults,
    faulty,
    web_server,
)
from tests_support import flip

from tfrecreg.core.records.writer import TFRecordWriter

pytestmark = pytest.mark.slow

SAME = "a second read of the store gave the same bytes"


@pytest.fixture(scope="module")
def lake(s3: S3, digits_original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`build`, `damaged` with one flipped bit, and `large`, four shards of 12 MB; all of them are
    in the bucket `lake`, too.
    """
    here = tmp_path_factory.mktemp("lake")
    for name in ("build", "damaged", "large"):
        (here / name).mkdir()
    for path in sorted((digits_original / "data/digits").rglob("*")):
        target = here / "build" / path.relative_to(digits_original / "data/digits")
        target.parent.mkdir(exist_ok=True)
        if path.is_file():
            target.write_bytes(path.read_bytes())
    for path in sorted((here / "build").glob("digits-test*")):
        (here / "damaged" / path.name).write_bytes(path.read_bytes())
    flip(here / "damaged/digits-test.tfrecord-00001-of-00002", 1000)
    chosen = random.Random(1)
    for number in range(4):
        payloads = [chosen.randbytes(chosen.randrange(1, 200_000)) for _ in range(120)]
        (here / f"large/train-{number:05d}-of-00004").write_bytes(framed(*payloads))
    s3.put("lake", here)
    return here


class Done:
    """A command that ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in err, err
        assert SECRET not in out + err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: str, port: int, home: Path, cwd: Path | None = None, **more: str) -> Done:
    """A command, which reaches the S3 server at a port."""
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    process = command(*arguments, port=port, cwd=cwd or home, **own, **more)
    out, err = process.communicate(timeout=300)
    assert process.returncode is not None
    return Done(process.returncode, out, err)


def alike(said: str, folder: Path) -> str:
    """The output about the bucket, with the folder in the place of the URL."""
    return said.replace("s3://lake", str(folder)).replace(f"; {SAME}", "")


COMMANDS: Mapping[str, tuple[str, ...]] = {
    "check": ("check", "--json", "@/damaged", "@/large/train-*"),
    "check in two processes": ("check", "--json", "-j", "2", "--only", "crc", "@/large"),
    "digest": ("digest", "@/large/train@4", "@/build/digits-*-of-00002"),
    "head": ("head", "--json", "-n", "4", "@/large/train-00002-of-00004", "--at", "117"),
    "stats": ("stats", "--json", "@/build/digits-train*"),
    "salvage": ("salvage", "--json", "@/damaged", "--output", "out"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.sweep
def test_failing_requests_change_no_result(name: str, s3: S3, lake: Path, tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    (tmp_path / "remote").mkdir()
    local_arguments = [each.replace("@/", f"{lake}/") for each in COMMANDS[name]]
    local = run(*local_arguments, port=s3.port, home=tmp_path, cwd=tmp_path / "local")
    faults = Faults(0.25, "cut", "503", "short", "slow", seed=1)
    with faulty(s3.port, faults) as port:
        remote = run(
            *[each.replace("@/", "s3://lake/") for each in COMMANDS[name]],
            port=port,
            home=tmp_path,
            cwd=tmp_path / "remote",
            TFRECREG_REMOTE_ATTEMPTS="12",
        )
    assert faults.made
    assert remote.code == local.code, remote.err
    assert alike(remote.out, lake).replace(f"{tmp_path}/remote", f"{tmp_path}/local") == local.out
    for path in (tmp_path / "local/out").glob("digits*"):
        assert (tmp_path / "remote/out" / path.name).read_bytes() == path.read_bytes()


def test_a_build_is_checked_and_compared_in_the_bucket(s3: S3, lake: Path, tmp_path: Path) -> None:
    done = run("check", "--json", "s3://lake/build", port=s3.port, home=tmp_path)
    assert (done.code, done.json["status"]) == (0, "pass"), done.err
    assert "manifest" in done.json["validators"]
    done = run(
        "diff", "s3://lake/build", "s3://lake/build/", "--exit-code", port=s3.port, home=tmp_path
    )
    assert done.code == 0, done.err
    manifest = json.loads((lake / "build/manifest.json").read_text())
    done = run("digest", "s3://lake/build", port=s3.port, home=tmp_path)
    assert done.out.splitlines()[-1].split()[0] == manifest["content"]


DATA_SOURCE = """
import pickle, sys
import tfrecreg
source = tfrecreg.data_source(sys.argv[1], raw=True)
numbers = [int(each) for each in sys.argv[3].split(",")]
pickled = pickle.dumps(source)
found = pickle.loads(pickled).__getitems__(numbers)
with open(sys.argv[2], "wb") as file:
    pickle.dump((pickled, found, list(source)), file)
"""


def test_a_data_source_over_failing_requests(s3: S3, lake: Path, tmp_path: Path) -> None:
    chosen = random.Random(3)
    numbers = [chosen.randrange(480) for _ in range(40)]
    found = {}
    for place in ("s3://lake/large/*", f"{lake}/large/*"):
        faults = Faults(0.2, "cut", "503", "short", seed=5)
        with faulty(s3.port, faults) as port:
            listed = ",".join(map(str, numbers))
            done = run(
                *("-c", DATA_SOURCE, place, str(tmp_path / "found"), listed),
                port=port,
                home=tmp_path,
                TFRECREG_REMOTE_ATTEMPTS="12",
            )
        assert done.code == 0, done.err
        pickled, *found[place] = pickle.loads((tmp_path / "found").read_bytes())
        assert SECRET.encode() not in pickled
    first, second = found.values()
    assert first == second


OPENED = """
import sys
import tfrecreg
from tfrecreg.core.storage.remote import RemoteStorage
names = [f"s3://lake/large/train-{number:05d}-of-00004" for number in range(4)]
cache = dict(cache=sys.argv[1], cache_limit="1GiB")
if sys.argv[2] == "build":
    print(len(tfrecreg.data_source("s3://lake/build", "train", **cache)))
elif sys.argv[2] == "files":
    print(len(tfrecreg.data_source(names, raw=True, **cache)))
else:
    storage = RemoteStorage("s3://lake")
    print([storage.stat(entry.path) for entry in storage.list()] == [*storage.list()])
"""


@pytest.mark.parametrize(("what", "most"), [("files", 4), ("build", 10)])
def test_opening_asks_a_bucket_about_all_shards_together(
    s3: S3, lake: Path, tmp_path: Path, what: str, most: int
) -> None:
    def requests() -> int:
        counted = Faults(0)
        with faulty(s3.port, counted) as port:
            done = run("-c", OPENED, str(tmp_path / "cache"), what, port=port, home=tmp_path)
        assert done.code == 0, done.err
        assert done.out.split() == [{"files": "480", "build": "200"}[what]]
        return counted.gets

    requests()
    assert requests() <= most


@pytest.mark.parametrize("index", [True, False])
def test_a_bucket_that_may_not_be_listed_is_read_all_the_same(
    s3: S3, tmp_path: Path, index: bool
) -> None:
    """Who may not list it is forbidden to learn that an index is missing."""
    bucket = "closed" if index else "closed-without"
    (tmp_path / "closed").mkdir()
    for number in range(4):
        name = f"train-{number:05d}-of-00004"
        with TFRecordWriter(tmp_path / "closed" / name, index=index) as out:
            for _ in range(120):
                out.write(b"a payload")
    s3.put(bucket, tmp_path / "closed")
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:ListBucket"}
    policy = {
        "Version": "2012-10-17",
        "Statement": [{**deny, "Resource": f"arn:aws:s3:::{bucket}"}],
    }
    s3.client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    try:
        s3.client.list_objects_v2(Bucket=bucket)
    except s3.client.exceptions.ClientError:
        pass
    else:
        pytest.skip("this server does not heed the policy of a bucket")
    program = OPENED.replace("lake/large", bucket)
    done = run("-c", program, str(tmp_path), "files", port=s3.port, home=tmp_path)
    assert done.out.split() == ["480"], done.err
    one = f"s3://{bucket}/train-00002-of-00004"
    for words in (("check", "--only", "crc"), ("head", "-n", "1"), ("digest",)):
        done = run(*words, one, port=s3.port, home=tmp_path)
        assert done.code == 0, done.err


def test_a_listing_and_a_question_give_the_same_state(s3: S3, lake: Path, tmp_path: Path) -> None:
    done = run("-c", OPENED, str(tmp_path), "states", port=s3.port, home=tmp_path)
    assert done.out.split() == ["True"], done.err


LOAD = """
import sys
import tfrecreg
found = tfrecreg.load(sys.argv[1], "train", batch_size=50)
print(sum(len(batch["image/class/label"]) for batch in found), found.cardinality().numpy())
"""


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
def test_load_copies_a_build_into_the_cache(s3: S3, lake: Path, tmp_path: Path) -> None:
    done = run("-c", LOAD, "s3://lake/build", port=s3.port, home=tmp_path)
    assert (done.code, done.out) == (0, "200 4\n"), done.err
    (folder,) = (tmp_path / "cache/tfrecreg/remote").iterdir()
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "index",
        "schema.pbtxt",
        *(f"digits-train.tfrecord-0000{n}-of-00002" for n in (0, 1)),
    }


def flipping(seed: int) -> tuple[Faults, Callable[[bytes], bytes]]:
    """One answer of five has a flipped bit, at a place of its own."""
    chosen = random.Random(seed)

    def change(body: bytes) -> bytes:
        at = chosen.randrange(len(body))
        return body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :] if len(body) > 1000 else body

    return Faults(0.2, "flip", seed=seed), change


def test_bytes_that_change_on_their_way_are_not_damage(s3: S3, lake: Path, tmp_path: Path) -> None:
    """Every result is that of the bytes in the store, or none."""
    arguments = ("check", "--json", "--only", "crc", "s3://lake/large")
    codes = []
    for seed in range(3):
        faults, change = flipping(seed)
        with faulty(s3.port, faults, change) as port:
            done = run(*arguments, port=port, home=tmp_path)
        assert done.json["findings"] == [], done.out
        codes.append(done.code)
        if done.code:
            assert (done.code, done.json["status"]) == (3, "error")
            assert "had different bytes on a second read" in done.out
    assert 0 in codes


def test_bytes_that_change_on_their_way_are_not_salvaged(
    s3: S3, lake: Path, tmp_path: Path
) -> None:
    made = 0
    expected = run("digest", f"{lake}/large", port=s3.port, home=tmp_path).out
    for seed in range(2):
        faults, change = flipping(seed)
        output = tmp_path / f"out{seed}"
        with faulty(s3.port, faults, change) as port:
            done = run(
                "salvage", "s3://lake/large", "--output", str(output), port=port, home=tmp_path
            )
            digest = run("digest", "s3://lake/large", port=port, home=tmp_path)
        assert (digest.code, digest.out) in ((0, expected), (3, "")), digest.err
        assert done.code in (0, 3), done.err
        for path in output.glob("train-*"):
            made += 1
            assert path.read_bytes() == (lake / "large" / path.name).read_bytes()
    assert made


MEMORY = f"""
from tfrecreg.cli.main import main
import sys
assert main(sys.argv[1:]) == 0
{PRINT_PEAK}
"""


@on_linux
def test_memory_does_not_grow_with_the_file(s3: S3, lake: Path, tmp_path: Path) -> None:
    # Both have more blocks than are held at once, and than are on their way: with a smaller file,
    # how many of them are in memory would be a matter of time.
    chosen = random.Random(1)
    payloads = [chosen.randbytes(1 << 20) for _ in range(8)]
    for megabytes in (80, 200):
        body = framed(*(payloads * (megabytes // 8)))
        s3.client.put_object(Bucket="lake", Key=f"memory/{megabytes}.tfrecord", Body=body)
        del body
    peaks = {}
    for megabytes in (80, 200):
        url = f"s3://lake/memory/{megabytes}.tfrecord"
        done = run("-c", MEMORY, "check", "--only", "crc", url, port=s3.port, home=tmp_path)
        peaks[megabytes] = int(done.out.split()[-1]) >> 10
    assert peaks[200] < peaks[80] + 40
    assert peaks[200] < 250


@pytest.mark.parametrize("url", ["s3://no-such-bucket/x", "s3://lake/none-*", "s3://lake/none"])
def test_what_is_not_in_the_store(url: str, s3: S3, lake: Path, tmp_path: Path) -> None:
    done = run("check", url, port=s3.port, home=tmp_path)
    assert (done.code, done.err.splitlines()[0]) == (2, f"error: no file matches `{url}`")


def test_a_store_that_does_not_answer(s3: S3, lake: Path, tmp_path: Path) -> None:
    with faulty(s3.port, Faults(0)) as port:
        pass
    url = "s3://lake/large/train-00000-of-00004"
    done = run("check", url, port=port, home=tmp_path, TFRECREG_REMOTE_ATTEMPTS="2")
    (error,) = done.err.splitlines()
    assert done.code == 3
    assert error.startswith(f"error: cannot look at `{url}` after 2 attempts: ")


def test_without_credentials(s3: S3, lake: Path, tmp_path: Path) -> None:
    url = "s3://lake/large/train-00000-of-00004"
    nothing = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "")
    done = run("check", url, port=s3.port, home=tmp_path, TFRECREG_REMOTE_ATTEMPTS="2", **nothing)
    error, hint = done.err.splitlines()
    assert (done.code, error) == (3, f"error: cannot look at `{url}`: no credentials were found")
    assert hint.startswith("hint: credentials come from the environment")


def test_no_secret_is_kept_or_shown(s3: S3, lake: Path, tmp_path: Path) -> None:
    """Neither the key of the environment nor the query of a presigned URL is in any output, cache
    or file.
    """
    shard = (lake / "damaged/digits-test.tfrecord-00001-of-00002").read_bytes()
    files = {
        "/secret/digits-test.tfrecord-00001-of-00002": shard,
        "/secret/sound.tfrecord": framed(b"one", b"two"),
    }
    with web_server(files) as port:
        url = f"http://127.0.0.1:{port}/secret/digits-test.tfrecord-00001-of-00002?{SIGNATURE}"
        sound = f"http://127.0.0.1:{port}/secret/sound.tfrecord?{SIGNATURE}"
        codes = []
        for arguments in (
            ("check", "--json", url),
            ("check", "--format", "sarif", url),
            ("check", url, "s3://lake/damaged", "-j", "2"),
            ("check", f"{url}wrong"),
            ("check", url.replace("digits", "nothing")),
            ("head", url),
            ("digest", url),
            ("salvage", url, "--output", "salvaged"),
            ("report", url, "--output", "page.html"),
            ("show", url),
            ("check", "s3://lake/damaged", "--cached"),
            ("-c", DATA_SOURCE, sound, str(tmp_path / "found"), "1"),
        ):
            done = run(*arguments, port=s3.port, home=tmp_path, TFRECREG_REMOTE_ATTEMPTS="1")
            codes.append(done.code)
            secret = SIGNATURE.partition("=")[2]
            assert secret not in done.out + done.err, arguments
    assert codes == [1, 1, 1, 3, 2, 1, 1, 0, 0, 2, 1, 0]
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) >= 4
    for path in kept:
        data = path.read_bytes()
        assert SIGNATURE.partition("=")[2].encode() not in data, path
        assert SECRET.encode() not in data, path
