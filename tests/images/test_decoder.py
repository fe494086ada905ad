"""The process that decodes has limits, and whatever happens in it costs one image."""

from __future__ import annotations

import io
import os
import signal
import struct
import sys
import time
import zlib
from pathlib import Path

import pytest
from image_support import chunk, jpeg, png

from tfrecreg.errors import MissingExtraError
from tfrecreg.images import decoder as module
from tfrecreg.images.decoder import Conversion, Decoder, Undecodable, shared_decoder
from tfrecreg.images.read import read_header

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


@pytest.fixture
def decoder():
    made = Decoder(memory=1 << 30, seconds=20)
    yield made
    made.close()


def verify(decoder: Decoder, data: bytes) -> tuple[str, str]:
    """Code and detail; both empty where it decodes."""
    try:
        decoder.verify(data, read_header(data))
    except Undecodable as error:
        return error.code, error.detail
    return "", ""


def bomb(width: int, height: int) -> bytes:
    """A grey PNG of a few kB that decodes to that many pixels, all black."""
    squeeze = zlib.compressobj(9)
    row = bytes(width + 1)
    body = b"".join(squeeze.compress(row) for _ in range(height)) + squeeze.flush()
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def pid(decoder: Decoder) -> int:
    assert decoder._process is not None
    return decoder._process.pid


def test_one_process_decodes_many(decoder) -> None:
    assert verify(decoder, png()) == ("", "")
    first = pid(decoder)
    for number in range(20):
        assert verify(decoder, png(30, 20, seed=number)) == ("", "")
    assert verify(decoder, png()[:-20])[0] == "SRC008"
    assert pid(decoder) == first


def test_images_larger_than_a_pipe_go_through_and_come_back(decoder) -> None:
    noise = Image.frombytes("RGB", (700, 700), os.urandom(700 * 700 * 3))
    data = io.BytesIO()
    noise.save(data, "PNG")
    assert len(data.getvalue()) > 1_000_000
    assert verify(decoder, data.getvalue()) == ("", "")
    made = decoder.convert(
        data.getvalue(), read_header(data.getvalue()), Conversion(0, 0, 0, "png", 0)
    )
    assert Image.open(io.BytesIO(made)).tobytes() == noise.tobytes()


@pytest.mark.medium
def test_a_bomb_of_pixels_is_refused(decoder) -> None:
    code, detail = verify(decoder, bomb(20_000, 20_000))
    assert code == "SRC009"
    assert detail.startswith("Pillow: Image size (400000000 pixels) exceeds limit")
    assert verify(decoder, png()) == ("", "")


@pytest.mark.slow
def test_memory_is_limited(decoder) -> None:
    small = Decoder(memory=300 << 20, pixels=1 << 40)
    try:
        assert verify(small, png()) == ("", "")
        assert verify(small, bomb(20_000, 20_000)) == (
            "SRC009",
            "it takes more than 300 MiB of memory to decode",
        )
        assert verify(small, png()) == ("", "")
    finally:
        small.close()


@pytest.mark.slow
def test_time_is_limited_and_nothing_hangs() -> None:
    slow = Decoder(seconds=1, pixels=1 << 40)
    try:
        assert verify(slow, png()) == ("", "")
        first = pid(slow)
        os.kill(first, signal.SIGSTOP)  # as a decoder that never comes back
        start = time.monotonic()
        assert verify(slow, png(30, 20)) == ("SRC009", "it took too long to decode")
        assert time.monotonic() - start < 10
        assert verify(slow, png()) == ("", "")
        assert pid(slow) != first
    finally:
        slow.close()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_crash_costs_one_image(decoder, number) -> None:
    assert verify(decoder, png()) == ("", "")
    os.kill(pid(decoder), number)
    assert verify(decoder, png()) == (
        "SRC009",
        f"the decoder was ended by {number.name} over it",
    )
    assert verify(decoder, png()) == ("", "")


def test_an_animation_is_decoded_to_its_last_frame(decoder) -> None:
    frames = [Image.effect_noise((64, 64), 90).convert("RGB") for _ in range(3)]
    data = io.BytesIO()
    frames[0].save(data, "GIF", save_all=True, append_images=frames[1:])
    whole = data.getvalue()
    assert verify(decoder, whole) == ("", "")
    assert verify(decoder, whole[: len(whole) - 1500])[0] == "SRC008"


def test_a_header_that_is_not_what_decodes_is_said(decoder) -> None:
    header = read_header(png(30, 20))._replace(height=21)
    with pytest.raises(Undecodable) as caught:
        decoder.verify(png(30, 20), header)
    assert caught.value.code == "SRC008"
    assert caught.value.detail == "it decodes to 30 × 20 pixels, and its header says 30 × 21"


def test_only_the_decoder_of_the_format_is_asked(decoder) -> None:
    header = read_header(png(30, 20))._replace(format="gif")
    with pytest.raises(Undecodable) as caught:
        decoder.verify(png(30, 20), header)
    assert caught.value.detail == "Pillow reads no gif of this kind"


def test_checksums_of_all_chunks_are_looked_at(decoder) -> None:
    whole = bytearray(png(30, 20))
    whole[-14] ^= 1  # the CRC of the pixels, which inflate does not know
    code, detail = verify(decoder, bytes(whole))
    assert code == "SRC008"
    assert "checksum" in detail


def test_what_it_says_is_the_same_in_every_run() -> None:
    said = set()
    for _ in range(2):
        made = Decoder()
        said.add(str([verify(made, data) for data in (jpeg(), jpeg(marker=0xC3), png()[:-20])]))
        made.close()
    assert len(said) == 1


def test_it_ends_when_it_is_closed_and_starts_again(decoder) -> None:
    assert verify(decoder, png()) == ("", "")
    first = pid(decoder)
    decoder.close()
    decoder.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert verify(decoder, png()) == ("", "")


def test_it_ends_when_its_parent_does(tmp_path) -> None:
    code = (
        "import os, sys; sys.path[:] = eval(sys.argv[1])\n"
        "from image_support import png\n"
        "from tfrecreg.images.read import read_header\n"
        "from tfrecreg.images.decoder import Decoder\n"
        "decoder = Decoder(); decoder.verify(png(), read_header(png()))\n"
        "print(decoder._process.pid, flush=True); os._exit(0)"
    )
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", code, repr(sys.path)], capture_output=True, text=True, check=True
    )
    child = int(done.stdout)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{child}").exists()


def test_one_is_shared_in_a_process() -> None:
    assert shared_decoder() is shared_decoder()


def test_a_process_that_does_not_start_is_said_to_need_the_extra(monkeypatch, tmp_path) -> None:
    child = tmp_path / "child.py"
    child.write_text("import no_such_module_anywhere\n")
    monkeypatch.setattr(module, "_CHILD", child)
    with pytest.raises(MissingExtraError) as caught:
        verify(Decoder(), png())
    assert caught.value.message == (
        "decoding images (its process does not start: the decoder ended over it, with exit code "
        "1) needs the extra `images`, which is not installed"
    )
