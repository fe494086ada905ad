"""Decoding in a process of its own, with limits: a bomb or a crash affects one image, not the job.

One process per worker, started on first use and again after it was lost. `decoder_child` is its
program.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrecreg.errors import MissingExtraError
from tfrecreg.images.model import ImageHeader
from tfrecreg.text import safe

if TYPE_CHECKING:
    import subprocess

_MEMORY = 2 << 30
"""Limit of the address space for decoding in bytes, including Python and Pillow."""
_PIXELS = 1 << 28
"""Maximum number of pixels of an image."""
_SECONDS = 60
"""For one image."""
_START_SECONDS = 120
"""Seconds for Python and Pillow to start, on a busy machine."""
_CHILD = Path(__file__).with_name("decoder_child.py")
_BLOCK = 1 << 16


class Conversion(NamedTuple):
    """Options for re-encoding images."""

    shorter: int
    """Maximum number of pixels of the shorter side; 0 for any."""
    width: int
    """In pixels; 0 if the other fields decide it."""
    height: int
    """In pixels; 0 if the other fields decide it."""
    format: str
    """``jpeg``, ``png``, or ``ppm`` for plain pixels."""
    quality: int
    """Quality of a JPEG, 1 to 100; 0 for that of the JPEG it was, and for others."""
    upright: bool = True
    """Whether to rotate it by its EXIF orientation."""


class Undecodable(Exception):
    """The image cannot be decoded.

    Args:
        code: ``SRC008`` if the image is damaged, ``SRC009`` if it exceeds a limit.
        detail: one line, escaped.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


class _ProcessLost(Exception):
    """The process ended, or was killed."""


def require_pillow(what: str) -> None:
    """Check that images can be decoded, without importing anything.

    Raises:
        MissingExtraError: Pillow is not installed.
    """
    if find_spec("PIL") is None:
        raise MissingExtraError(what, "images")


class Decoder:
    """The process and the requests to it. For one thread.

    Args:
        memory: bytes of address space that it may use.
        pixels: maximum number of pixels of an image.
        seconds: time limit for an image.
    """

    def __init__(
        self, *, memory: int = _MEMORY, pixels: int = _PIXELS, seconds: int = _SECONDS
    ) -> None:
        self._limits = {"memory": memory, "pixels": pixels, "seconds": seconds}
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def verify(self, data: bytes, header: ImageHeader) -> None:
        """Decode every pixel of every frame.

        Raises:
            Undecodable: decoding failed, or the result has another size than the header.
        """
        self._ask(data, header)

    def digest(self, data: bytes, header: ImageHeader) -> bytes:
        """A digest of 16 bytes of the pixels, independent of the format: of the first frame, as
        RGBA of 8 bits if that is lossless, and without EXIF rotation.

        Raises:
            Undecodable: the image does not decode.
        """
        return self._ask(data, header, digest=True)

    def convert(self, data: bytes, header: ImageHeader, conversion: Conversion) -> bytes:
        """The first frame, rotated and resized as requested, and encoded again.

        Raises:
            Undecodable: the image does not decode.
        """
        return self._ask(data, header, conversion=conversion)

    def close(self) -> None:
        """End the process. It starts again on the next request."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _ask(
        self,
        data: bytes,
        header: ImageHeader,
        *,
        conversion: Conversion | None = None,
        digest: bool = False,
    ) -> bytes:
        head = {
            "format": header.format,
            "width": header.width,
            "height": header.height,
            "conversion": conversion,
            "digest": digest,
            "bytes": len(data),
        }
        process = self._process or self._start()
        try:
            deadline = time.monotonic() + self._seconds
            answer, made = _exchange(process, _line(head), data, deadline)
        except _ProcessLost as error:
            self.close()
            raise Undecodable("SRC009", str(error)) from None
        code = answer.get("code")
        if code:
            if code == "SRC009":
                self.close()  # after a failed allocation the memory may be fragmented
            raise Undecodable(code, safe(answer["detail"]))
        return made

    def _start(self) -> subprocess.Popen[bytes]:
        import subprocess  # few commands decode images

        require_pillow("decoding images")
        setup = json.dumps({**self._limits, "path": [each for each in sys.path if each]})
        process = self._process = subprocess.Popen(
            [sys.executable, "-I", str(_CHILD), setup],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        try:
            _exchange(process, b"", b"", time.monotonic() + _START_SECONDS)
        except _ProcessLost as error:
            self.close()
            raise MissingExtraError(
                f"decoding images (its process does not start: {error})", "images"
            ) from None
        return process


@functools.cache
def shared_decoder() -> Decoder:
    """The decoder of this process; it ends with the process."""
    decoder = Decoder()
    atexit.register(decoder.close)
    return decoder


def _line(head: Mapping[str, Any]) -> bytes:
    return json.dumps(head).encode() + b"\n"


def _exchange(
    process: subprocess.Popen[bytes], line: bytes, data: bytes, deadline: float
) -> tuple[dict[str, Any], bytes]:
    """Send a request and read its answer at the same time, until the deadline."""
    assert process.stdin is not None
    assert process.stdout is not None
    pieces = [memoryview(each) for each in (line, data) if each]
    taken = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if pieces:
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while (answer := _whole(taken)) is None:
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready:
                raise _ProcessLost("it took too long to decode")
            for key, _ in ready:
                if key.fileobj is process.stdout:
                    block = os.read(key.fd, _BLOCK)
                    if not block:
                        raise _ProcessLost(_ending(process))
                    taken += block
                elif not _send(key.fd, pieces):
                    selector.unregister(process.stdin)
    return answer


def _send(handle: int, pieces: list[memoryview]) -> bool:
    """Write as much as the pipe accepts; return whether there is more."""
    try:
        written = os.write(handle, pieces[0])
    except BlockingIOError:
        return True
    except BrokenPipeError:
        return False  # the process ended: the other pipe reports it
    pieces[0] = pieces[0][written:]
    if not pieces[0]:
        pieces.pop(0)
    return bool(pieces)


def _whole(taken: bytearray) -> tuple[dict[str, Any], bytes] | None:
    """The answer; None until it is complete."""
    end = taken.find(b"\n") + 1
    if not end:
        return None
    head = json.loads(taken[:end])
    if len(taken) < end + head["bytes"]:
        return None
    return head, bytes(taken[end:])


def _ending(process: subprocess.Popen[bytes]) -> str:
    code = process.wait()
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"the decoder was ended by {name} over it"
    return f"the decoder ended over it, with exit code {code}"
