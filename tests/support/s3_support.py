"""A real S3 server on loopback, and a proxy that damages its responses."""

from __future__ import annotations

import contextlib
import http.client
import logging
import random
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from radosgw_support import KEY, SECRET, missing_programs, radosgw

__all__ = [
    "ENVIRONMENT",
    "KEY",
    "S3",
    "SECRET",
    "SERVERS",
    "SIGNATURE",
    "Faults",
    "faulty",
    "s3_server",
    "web_server",
]

SERVERS = ("moto", "radosgw")
"""The servers that tests of buckets run against: a library of tests, and Ceph's object gateway."""
SIGNATURE = "X-Amz-Signature=0123456789abcdefSignature"
"""The query that the web server wants for `/secret/`."""
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
}


class S3:
    """The server, and a client that writes to it."""

    def __init__(self, port: int) -> None:
        import boto3

        self.port = port
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """How a command reaches it."""
        return {**ENVIRONMENT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def put(self, bucket: str, folder: Path) -> None:
        """A bucket with the files below a folder."""
        self.client.create_bucket(Bucket=bucket)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = path.relative_to(folder).as_posix()
                self.client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())


@contextlib.contextmanager
def s3_server(kind: str = "moto") -> Iterator[S3]:
    """An empty S3 server, one of :data:`SERVERS`."""
    if kind == "radosgw":
        missing = missing_programs()
        if missing:
            pytest.skip(f"Ceph's object gateway: {missing}")
        with radosgw() as port:
            found = S3(port)
            with contextlib.closing(found.client):
                yield found
        return
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        found = S3(server.get_host_and_port()[1])
        with contextlib.closing(found.client):
            yield found
    finally:
        server.stop()


@contextlib.contextmanager
def web_server(files: Mapping[str, bytes], *, ranges: bool = True) -> Iterator[int]:
    """The port of a web server with these files, by path; those below `/secret/` are forbidden.

    Args:
        files: may be changed while it runs.
        ranges: whether it serves parts of files.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else a body waits for 40 ms, until the client has acknowledged its headers.
        disable_nagle_algorithm = True

        def log_message(self, *arguments: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path, _, query = self.path.partition("?")
            body = files.get(path)
            status, part = 200, body or b""
            if body is None:
                status = 404
            elif path.startswith("/secret/") and query != SIGNATURE:
                status, part = 403, b""
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if status == 200 and ranges and wanted:
                status, part = 206, part[int(wanted[1]) : int(wanted[2]) + 1]
            self.send_response(status)
            self.send_header("Content-Length", str(len(part)))
            self.send_header("ETag", f'"{zlib.crc32(body or b"")}"')
            self.end_headers()
            if self.command == "GET":
                with contextlib.suppress(OSError):
                    self.wfile.write(part)

    with _serving(Handler) as port:
        yield port


@contextlib.contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Faults:
    """What happens to requests for objects: a share of them fails, by a seed.

    Args:
        share: of the requests, from 0 to 1.
        kinds: ``cut``, ``503``, ``short``, ``slow``, ``flip``.
        seed: of the choice.
    """

    def __init__(self, share: float, *kinds: str, seed: int = 1) -> None:
        self.share, self.kinds = share, kinds
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.made: list[str] = []
        self.most = 1 << 30
        """Number of bodies that may still be altered by ``flip``."""
        self.gets = 0

    def next(self) -> str:
        """What happens to this request; empty for nothing."""
        with self._lock:
            self.gets += 1
            if self._random.random() >= self.share:
                return ""
            self.made.append(self._random.choice(self.kinds))
            return self.made[-1]


@contextlib.contextmanager
def faulty(
    port: int, faults: Faults, change: Callable[[bytes], bytes] = lambda body: body
) -> Iterator[int]:
    """The port of a server that passes requests on to another, with faults.

    Args:
        port: of the other server.
        faults: to inject.
        change: of the bytes of an answer, for the kind ``flip``.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else a body waits for 40 ms, until the client has acknowledged its headers.
        disable_nagle_algorithm = True

        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self._pass_on()

        def do_HEAD(self) -> None:
            self._pass_on()

        def do_PUT(self) -> None:
            self._pass_on()

        def do_POST(self) -> None:
            self._pass_on()

        def do_DELETE(self) -> None:
            self._pass_on()

        def _pass_on(self) -> None:
            kind = faults.next()
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if kind == "503":
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            other = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            with contextlib.closing(other):
                other.request(self.command, self.path, sent, dict(self.headers.items()))
                answer = other.getresponse()
                body = answer.read()
            if self.command not in ("GET", "HEAD") and kind in ("cut", "short"):
                self.close_connection = True  # it was done, and the response is lost
                return
            if kind == "flip" and body and faults.most > 0:
                faults.most -= 1
                body = change(body)
            stated = len(body)
            if kind == "short":
                body = body[: len(body) // 2]
                stated = len(body)
            elif kind == "cut":
                body = body[: len(body) // 2]
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            if self.command == "HEAD":
                self.send_header("Content-Length", answer.getheader("Content-Length") or "0")
                self.end_headers()
                return
            self.send_header("Content-Length", str(stated))
            self.end_headers()
            if kind == "slow":
                time.sleep(0.3)
            with contextlib.suppress(OSError):
                self.wfile.write(body)
            if kind == "cut":
                self.close_connection = True

    with _serving(Handler) as port_before:
        yield port_before
