"""Checking a file on an S3 server, against reading it with fsspec alone."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import urllib.request
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.pairs import Measured, alternate, row, run
from tfrecreg.records import frame

__all__ = ["main"]

_SIZE = 100_000
"""Bytes of a payload."""
_READ = """
import sys, time, fsspec
begin = time.perf_counter()
with fsspec.open(sys.argv[1], "rb") as file:
    while file.read(4 << 20):
        pass
print(f"seconds={time.perf_counter() - begin}")
"""
_CHECK = """
import sys, time
from tfrecreg.operations.check import CheckOptions, check
begin = time.perf_counter()
(report,) = check([sys.argv[1]], options=CheckOptions(only=("crc",)))
assert report.status == "pass", report
print(f"seconds={time.perf_counter() - begin}")
"""
_SERVER = """
import sys, time, logging
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
time.sleep(1 << 20)
"""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with _server() as url:
        environment = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "benchmark",
            "AWS_SECRET_ACCESS_KEY": "benchmark",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        os.environ.update(environment)
        size = _put(url, arguments.count)
        ours, theirs = (
            partial(run, [sys.executable, "-c", program, "s3://bench/file.tfrecord"])
            for program in (_CHECK, _READ)
        )
        found: tuple[list[Measured], list[Measured]] = alternate(arguments.runs, ours, theirs)
    peak = max(each.peak for each in found[0]) / 1e6
    print(f"{size / 1e6:,.0f} MB, checked in {peak:.0f} MB of memory")
    what = f"{arguments.count:,} records of {_SIZE:,} bytes: fsspec alone / `check --only crc`"
    return [row(what, *found, "at least 0.7", faster=True)]


@contextmanager
def _server() -> Iterator[str]:
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        for _ in range(100):
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        server.kill()
        server.wait()


def _put(url: str, count: int) -> int:
    """Upload the file in parts, so that it is never in this process as a whole."""
    import boto3

    source = random.Random(1)
    payloads = [source.randbytes(_SIZE) for _ in range(100)]
    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket="bench")
    place = {"Bucket": "bench", "Key": "file.tfrecord"}
    upload = client.create_multipart_upload(**place)["UploadId"]
    parts, size, left = [], 0, count
    while left:
        records = min(left, 200)
        left -= records
        body = b"".join(
            piece
            for number in range(records)
            for payload in (payloads[number % 100],)
            for head, foot in (frame(payload),)
            for piece in (head, payload, foot)
        )
        size += len(body)
        number = len(parts) + 1
        done = client.upload_part(**place, UploadId=upload, PartNumber=number, Body=body)
        parts.append({"ETag": done["ETag"], "PartNumber": number})
    client.complete_multipart_upload(**place, UploadId=upload, MultipartUpload={"Parts": parts})
    return size
