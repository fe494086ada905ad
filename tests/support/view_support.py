"""A viewer of a target, served on a socket, and a client with its token."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from image_support import png
from media_support import wav

import tfrecreg
from tfrecreg.builtin.view.run import open_server
from tfrecreg.builtin.view.server import ViewServer

HOSTILE = '"><script>alert(1)</script>\u202e\x1b[31m'
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
_PATIENCE = 60


@dataclass
class Viewing:
    server: ViewServer
    client: httpx.Client
    """With the token, and the address as its base."""

    def ask(self, path: str, status: int = 200, **query: Any) -> Any:
        """The JSON of an answer, which has this status."""
        answer = self.client.get(path, params=query or None)
        assert answer.status_code == status, answer.text[:300]
        assert answer.headers["cache-control"] == "no-store"
        return answer.json()

    def error(self, path: str, status: int, **query: Any) -> str:
        """The text of an error, and its hint behind a bar."""
        found = self.ask(path, status, **query)["error"]
        return f"{found['message']} | {found['hint']}"

    def wait(self, path: str, name: str, state: str) -> Any:
        """The answer, once the object of that name in it has this state."""
        end = time.monotonic() + _PATIENCE
        while True:
            found = self.ask(path)
            inner = found[name] if name else found
            if inner["state"] == state:
                return found
            assert time.monotonic() < end, inner
            time.sleep(0.02)


@contextmanager
def serving(
    *targets: object, registry: Path | None = None, check: bool = False
) -> Iterator[Viewing]:
    server = open_server(list(map(str, targets)), registry=registry, check=check)
    thread = server.start()
    headers = {"authorization": f"Bearer {server.token}"}
    try:
        with httpx.Client(base_url=server.address, headers=headers, timeout=_PATIENCE) as client:
            yield Viewing(server, client)
    finally:
        server.stop()
        thread.join(_PATIENCE)
        assert not thread.is_alive()


def write_pets(folder: Path) -> Path:
    """Twelve records in three splits: images with boxes, a text, a sound, hostile values."""
    folder.mkdir(parents=True, exist_ok=True)
    pets = [
        {
            "image/encoded": png(width=8 + number, height=8),
            "image/class/label": number % 3,
            "image/class/text": ("cat", "dog", "owl")[number % 3],
            "image/object/bbox/xmin": 0.25,
            "image/object/bbox/xmax": 0.5,
            "image/object/bbox/ymin": 0.0,
            "image/object/bbox/ymax": 1.0,
            "image/object/class/label": number % 3,
            "score": number / 10,
        }
        for number in range(10)
    ]
    others = [{"text": HOSTILE, "image/svg": SVG}, {"sound": wav(0.1), "n": 2**60}]
    for split, records in {"test": pets[8:], "train": pets[:8], "zoo": others}.items():
        path = folder / f"pets-{split}.tfrecord-00000-of-00001"
        with tfrecreg.TFRecordWriter(path) as writer:
            for record in records:
                writer.write(record)
    return folder
