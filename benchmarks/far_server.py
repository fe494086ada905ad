"""A store of files on loopback: ranges of the files below a folder.

python -m benchmarks.far_server FOLDER

Its first line is its port.
"""

from __future__ import annotations

import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

_FOLDER = ""


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
            self.connection.sendfile(file, start, stop - start)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that goes away


if __name__ == "__main__":
    _FOLDER = sys.argv[1]
    _server = _Server(("127.0.0.1", 0), _Handler)
    print(_server.server_address[1], flush=True)
    _server.serve_forever()
