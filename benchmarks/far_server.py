"""A store of files on loopback, as far away as it is told: a latency, and one bandwidth for all.

python -m benchmarks.far_server FOLDER LATENCY BYTES_A_SECOND

It serves ranges of the files below a folder. Its first line is its port. `/stats` says how many
requests it has answered, and how many bytes of bodies it has sent since it was asked last.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

_PIECE = 1 << 18
_FOLDER, _LATENCY, _BANDWIDTH = "", 0.0, 1e18


class _Link:
    """The wire that all answers share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = 0.0
        self.bytes = self.requests = 0

    def send(self, size: int) -> None:
        """Wait until so many bytes went through."""
        with self._lock:
            self.bytes += size
            self._free = max(self._free, time.monotonic()) + size / _BANDWIDTH
            until = self._free
        time.sleep(max(0.0, until - time.monotonic()))


_LINK = _Link()


class _Handler(BaseHTTPRequestHandler):
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
        name = unquote(self.path.partition("?")[0])
        if name == "/stats":
            body = json.dumps({"bytes": _LINK.bytes, "requests": _LINK.requests}).encode()
            _LINK.bytes = _LINK.requests = 0
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        _LINK.requests += 1
        time.sleep(_LATENCY)
        path = Path(_FOLDER) / name.lstrip("/")
        if not path.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = path.stat().st_size
        start, stop, status = 0, size, 200
        wanted = re.fullmatch(r"bytes=([0-9]+)-([0-9]*)", self.headers.get("Range", ""))
        if wanted:
            start, status = int(wanted[1]), 206
            stop = min(size, int(wanted[2]) + 1) if wanted[2] else size
        self.send_response(status)
        self.send_header("ETag", f'"{size:x}-1"')
        self.send_header("Last-Modified", "Sun, 01 Nov 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        if self.command == "HEAD":
            return
        with path.open("rb") as file:
            for at in range(start, stop, _PIECE):
                count = min(_PIECE, stop - at)
                _LINK.send(count)
                self.connection.sendfile(file, at, count)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that goes away


if __name__ == "__main__":
    _FOLDER, _LATENCY, _BANDWIDTH = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    _server = _Server(("127.0.0.1", 0), _Handler)
    print(_server.server_address[1], flush=True)
    _server.serve_forever()
