"""Checking a file on an S3 server, against reading it with fsspec alone."""

from __future__ import annotations

import random
import sys
import tempfile
from argparse import Namespace
from functools import partial
from pathlib import Path

from benchmarks.pairs import alternate, row, run, served
from tfrecreg.core.records.framing import frame

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
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
begin = time.perf_counter()
(report,) = check([sys.argv[1]], options=CheckOptions(only=("crc",)))
assert report.status == "pass", report
print(f"seconds={time.perf_counter() - begin}")
"""
_SERVER = """
import http.server, os, re, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        if not self.path.partition("?")[0].endswith("/file.tfrecord"):
            self.send_error(404)  # such as the manifest of a build
            return
        size = os.path.getsize(sys.argv[1])
        start, stop, status = 0, size, 200
        wanted = re.fullmatch(r"bytes=([0-9]+)-([0-9]+)", self.headers.get("Range", ""))
        if wanted:
            start, stop, status = int(wanted[1]), min(size, int(wanted[2]) + 1), 206
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Sun, 01 Nov 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(stop - start))
        self.end_headers()
        if self.command == "GET":
            with open(sys.argv[1], "rb") as file:
                self.connection.sendfile(file, start, stop - start)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
"""A server of one object. moto would not do: it copies the whole object for each range."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        path = Path(work) / "file.tfrecord"
        _write(path, arguments.count)
        with served([sys.executable, "-c", _SERVER, str(path)]) as url:
            ours, theirs = (
                partial(
                    run,
                    [sys.executable, "-c", program, "s3://bench/file.tfrecord"],
                    AWS_ENDPOINT_URL=url,
                    AWS_ACCESS_KEY_ID="benchmark",
                    AWS_SECRET_ACCESS_KEY="benchmark",
                    AWS_DEFAULT_REGION="us-east-1",
                )
                for program in (_CHECK, _READ)
            )
            found = alternate(arguments.runs, ours, theirs)
        peak = max(each.peak for each in found[0]) / 1e6
        print(f"{path.stat().st_size / 1e6:,.0f} MB, checked in {peak:.0f} MB of memory")
    what = f"{arguments.count:,} records of {_SIZE:,} bytes: fsspec alone / `check --only crc`"
    return [row(what, *found, "at least 0.7", faster=True)]


def _write(path: Path, count: int) -> None:
    source = random.Random(1)
    with path.open("wb") as file:
        for _ in range(count):
            payload = source.randbytes(_SIZE)
            header, footer = frame(payload)
            file.writelines((header, payload, footer))
