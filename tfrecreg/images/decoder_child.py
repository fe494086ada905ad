"""The process that decodes, with limits on memory and time; a crash affects only one image.

It is run as a program, by its path. It does not import other modules of the project, and of Pillow
only those for one format. It reads requests from stdin and answers on stdout until stdin ends; both
are a line of JSON, whose number `bytes` is the number of bytes that follow.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import signal
import sys
import warnings
from typing import Any, BinaryIO

_ANIMATED = ("GIF", "PNG", "WEBP")


def serve() -> None:
    """Set the limits, import Pillow, then answer requests. The argument is JSON."""
    setup = json.loads(sys.argv[1])
    sys.path[:] = setup["path"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    answers = sys.stdout.buffer
    _limit_memory(setup["memory"])
    from PIL import Image

    # Pillow raises an error at twice this number.
    Image.MAX_IMAGE_PIXELS = setup["pixels"] // 2
    _write(answers, {})
    while request := _read(sys.stdin.buffer):
        head, data = request
        _limit_time(setup["seconds"])
        try:
            answer, made = _answer(head, data)
        except MemoryError:
            answer, made = {"code": "SRC009", "detail": _memory(setup["memory"])}, b""
        except Image.DecompressionBombError as error:
            answer, made = {"code": "SRC009", "detail": f"Pillow: {error}"}, b""
        except Exception as error:
            # Decoders raise many types of errors: OSError, SyntaxError, struct.error, KeyError …
            answer, made = {"code": "SRC008", "detail": _reason(error, head["format"])}, b""
        _write(answers, answer, made)


def _answer(head: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    from PIL import Image

    kind = head["format"].upper()
    if kind == "PNG":
        with Image.open(io.BytesIO(data), formats=[kind]) as image:
            image.verify()  # the checksums of all chunks, which decoding does not check
    with Image.open(io.BytesIO(data), formats=[kind]) as image:
        image.load()
        if head["conversion"] is not None:
            return {}, _converted(image, *head["conversion"])
        if head["digest"]:
            return {}, _digest(image)
        size = list(image.size)
        if kind in _ANIMATED:
            _load_frames(image)
    if size != [head["width"], head["height"]]:
        detail = (
            f"it decodes to {size[0]} × {size[1]} pixels, and its header says "
            f"{head['width']} × {head['height']}"
        )
        return {"code": "SRC008", "detail": detail}, b""
    return {}, b""


def _load_frames(image: Any) -> None:
    """Decode all frames after the first one."""
    while True:
        try:
            image.seek(image.tell() + 1)
        except EOFError:
            return
        image.load()


def _converted(
    image: Any, shorter: int, width: int, height: int, kind: str, quality: int, upright: bool
) -> bytes:
    from PIL import ImageOps

    options = {"quality": quality} if quality else _jpeg_tables(image) if kind == "jpeg" else {}
    image = _plain(ImageOps.exif_transpose(image) if upright else image, kind)
    if shorter and min(image.size) > shorter:
        scale = shorter / min(image.size)
        width, height = (max(1, round(side * scale)) for side in image.size)
    if width and height and image.size != (width, height):
        image = image.resize((width, height), resample=3)  # bicubic
    made = io.BytesIO()
    image.save(made, kind, **options)
    return made.getvalue()


def _jpeg_tables(image: Any) -> dict[str, Any]:
    """The tables and the sampling with which a JPEG was encoded."""
    from PIL import JpegImagePlugin

    return {"qtables": image.quantization, "subsampling": JpegImagePlugin.get_sampling(image)}


def _digest(image: Any) -> bytes:
    """A digest of the size and the pixels: pixels of more than 8 bits in their own mode, others as
    RGBA.
    """
    wide = image.mode[0] in "IF"
    mode = image.mode if wide else "RGBA"
    pixels = image if image.mode == mode else image.convert(mode)
    hasher = hashlib.blake2b(json.dumps([mode, *image.size]).encode(), digest_size=16)
    hasher.update(pixels.tobytes())
    return hasher.digest()


def _plain(image: Any, kind: str) -> Any:
    """Gray or RGB; for PNG with alpha, if there is any. For JPEG, alpha is blended over white."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits, which a conversion would clip
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode in ("1", "L"):
        return image.convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    image = image.convert("RGBA")
    if kind == "jpeg":
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image).convert("RGB")
    return image


def _limit_memory(most: int) -> None:
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (OSError, ValueError):
        pass  # macOS has the limit and does not set it: pixels and time are still limited


def _limit_time(seconds: int) -> None:
    """Let the system end this process if the parent, which measures the time, has ended by then."""
    import resource

    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    try:
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 2 * seconds, hard))
    except (OSError, ValueError):
        pass  # a lower limit is already set


def _reason(error: Exception, kind: str) -> str:
    """Why decoding failed, in words that are the same in every run."""
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return f"Pillow reads no {kind} of this kind"
    return re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}")


def _memory(most: int) -> str:
    return f"it takes more than {most >> 20} MiB of memory to decode"


def _read(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    line = stream.readline()
    if not line:
        return None
    head = json.loads(line)
    data = stream.read(head["bytes"])
    return (head, data) if len(data) == head["bytes"] else None


def _write(stream: BinaryIO, head: dict[str, Any], data: bytes = b"") -> None:
    stream.write(json.dumps({**head, "bytes": len(data)}).encode() + b"\n" + data)
    stream.flush()


if __name__ == "__main__":
    serve()
