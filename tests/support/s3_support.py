"""A real S3 server on loopback, and a proxy that damages its responses."""

from __future__ import annotations

import contextlib
import http.client
import logging
import random
import re
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from radosgw_support import KEY, SECRET, radosgw

_INSTALLED = all(map(shutil.which, ("ceph", "ceph-mon", "ceph-osd", "radosgw")))
SERVER = "radosgw" if _INSTALLED else "moto"
"""The server that tests of buckets run against: Ceph's object gateway, else a library of tests."""
SIGNATURE = "X-Amz-Signature=0123456789abcdefSignature"
"""The query that the web server wants for `/secret/`."""


class S3:
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

    def put(self, bucket: str, folder: Path) -> None:
        """A bucket with the files below a folder."""
        self.client.create_bucket(Bucket=bucket)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = path.relative_to(folder).as_posix()
                self.client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())


@contextlib.contextmanager
def s3_server(kind: str = "moto") -> Iterator[S3]:
    """An empty S3 server: `radosgw` or `moto`."""
    with contextlib.ExitStack() as stack:
        if kind == "radosgw":
            if not _INSTALLED:
                pytest.skip("Ceph's object gateway is not installed")
            port = stack.enter_context(radosgw())
        else:
            from moto.server import ThreadedMotoServer

            logging.getLogger("werkzeug").setLevel(logging.ERROR)
            server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
            server.start()
            stack.callback(server.stop)
            port = server.get_host_and_port()[1]
        found = S3(port)
        stack.callback(found.client.close)
        yield found


@contextlib.contextmanager
def web_server(
    files: Mapping[str, bytes], *, ranges: bool = True, sizes: bool = True
) -> Iterator[int]:
    """The port of a web server with files by path. `/secret/` needs a signature. The files may be
    changed while it runs. Unless `sizes` is set, it states no sizes.
    """

    def answer(request: BaseHTTPRequestHandler) -> None:
        path, _, query = request.path.partition("?")
        body = files.get(path)
        status, part = 200, body or b""
        if body is None:
            status = 404
        elif path.startswith("/secret/") and query != SIGNATURE:
            status, part = 403, b""
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        if status == 200 and ranges and wanted:
            status, part = 206, part[int(wanted[1]) : int(wanted[2]) + 1]
        request.send_response(status)
        size = ("Content-Length", str(len(part))) if sizes else ("Connection", "close")
        request.send_header(*size)
        request.send_header("ETag", f'"{zlib.crc32(body or b"")}"')
        request.end_headers()
        if request.command == "GET":
            with contextlib.suppress(OSError):
                request.wfile.write(part)

    with _serving(answer) as port:
        yield port


@contextlib.contextmanager
def _serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else a body waits for 40 ms, until the client has acknowledged its headers.
        disable_nagle_algorithm = True

        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            answer(self)

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


class Faults:
    """Faults for a share of all requests: ``cut``, ``503``, ``short``, ``slow`` or ``flip``."""

    def __init__(self, share: float, *kinds: str, seed: int = 1) -> None:
        self.share, self.kinds = share, kinds
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.made: list[str] = []
        self.most = 1 << 30
        """Number of bodies that may still be altered by ``flip``."""
        self.gets = 0

    def next(self, request: str) -> str:
        """What happens to this request, such as ``GET /bucket/key``; empty for nothing."""
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
    """The port of a server that passes requests on to the server at `port`, with faults. For
    ``flip``, `change` alters the bytes of an response.
    """

    def answer(request: BaseHTTPRequestHandler) -> None:
        kind = faults.next(f"{request.command} {request.path}")
        sent = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        if kind == "503":
            request.send_response(503)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        other = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.closing(other):
            other.request(request.command, request.path, sent, dict(request.headers.items()))
            response = other.getresponse()
            body = response.read()
        if request.command not in ("GET", "HEAD") and kind in ("cut", "short"):
            request.close_connection = True  # it was done, and the response is lost
            return
        if kind == "flip" and body and faults.most > 0:
            faults.most -= 1
            body = change(body)
        stated = len(body) or response.getheader("Content-Length") or 0  # a HEAD has no body
        if kind in ("short", "cut") and body:
            body = body[: len(body) // 2]
            stated = len(body) if kind == "short" else stated
        request.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                request.send_header(name, value)
        request.send_header("Content-Length", str(stated))
        request.end_headers()
        if kind == "slow" and body:
            time.sleep(0.3)
        with contextlib.suppress(OSError):
            request.wfile.write(body)
        if kind == "cut" and body:
            request.close_connection = True

    with _serving(answer) as before:
        yield before
