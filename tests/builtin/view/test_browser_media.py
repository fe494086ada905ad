"""Sounds, videos, and files that change, in a real browser; with hostile names."""

from __future__ import annotations

import base64
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_support import Browser
from image_support import png
from media_support import wav
from view_support import serving

import tfrecreg

NAME = '"><img src=x onerror=alert(1)>'
"""Of everything that has one."""
SOUND, VIDEO, OBJECTS = range(3)
DRAWN = """
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [64, 48];
    const pen = canvas.getContext('2d');
    const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: 'video/mp4' });
    const parts = [];
    recorder.ondataavailable = ({ data }) => parts.push(data);
    recorder.onstop = async () => {
      const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
      window.recorded = btoa(String.fromCharCode(...bytes));
    };
    recorder.start();
    let frames = 0;
    const timer = setInterval(() => {
      pen.fillStyle = `hsl(${30 * frames}, 100%, 50%)`;
      pen.fillRect(0, 0, 64, 48);
      if (++frames > 9) { clearInterval(timer); recorder.stop(); }
    }, 30);
"""


@pytest.fixture(scope="module")
def video(chromium: Browser) -> bytes:
    """A video that the browser records of a canvas."""
    chromium.open("data:text/html,")
    chromium.run(DRAWN)
    return base64.b64decode(chromium.until("window.recorded"))


@pytest.fixture(scope="module")
def address(video: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("media")
    path = folder / f"{NAME}-{NAME}.tfrecord-00000-of-00001"
    sides = {f"image/object/bbox/{side}": [0.2] for side in ("xmin", "ymin")}
    sides |= {f"image/object/bbox/{side}": [0.8] for side in ("xmax", "ymax")}
    with tfrecreg.TFRecordWriter(path, index=True) as writer:
        writer.write({NAME: wav(0.2)}, key=NAME)
        writer.write({NAME: video}, key=f"{NAME} 2")
        names = {"image/object/class/text": [NAME], NAME: NAME}
        writer.write({"image/encoded": png(32, 32), **sides, **names}, key=f"{NAME} 3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        with serving(path, check=True) as viewing:
            yield viewing.server.url


def photo(turned: int) -> bytes:
    """A JPEG of 500 × 250 pixels, red on the left and blue on the right, with EXIF orientation."""
    image_module = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    image = image_module.new("RGB", (500, 250), "blue")
    image.paste("red", (0, 0, 250, 250))
    exif = image.getexif()
    exif[0x0112] = turned
    made = io.BytesIO()
    image.save(made, "jpeg", exif=exif)
    return made.getvalue()


@pytest.fixture
def browser(chromium: Browser, address: str) -> Iterator[Browser]:
    """The window, after which nothing of a name was run: an alert stops the driver."""
    chromium.open(address)
    chromium.console()
    yield chromium
    assert chromium.run("return document.querySelectorAll('img[src=x]').length") == 0
    assert chromium.console() == []


def show(browser: Browser, address: str, record: int) -> None:
    browser.open(f"{address.partition('?')[0]}?t=0&open=0.{record}")
    browser.until("document.querySelector('.facts h3')")
    assert NAME in browser.text("#record")


@pytest.mark.medium
def test_a_sound_is_played(browser: Browser, address: str) -> None:
    browser.until("document.querySelector('.tile.is-audio audio')")
    show(browser, address, SOUND)
    browser.until("document.querySelector('#record audio')?.duration > 0.19")
    browser.run("const a = document.querySelector('#record audio'); a.muted = true; a.play()")
    browser.until("document.querySelector('#record audio').ended")
    assert browser.run("return document.querySelector('#record video')") is None


@pytest.mark.medium
def test_a_video_is_played(browser: Browser, address: str) -> None:
    show(browser, address, VIDEO)
    browser.until("document.querySelector('#record video')?.videoWidth === 64")
    browser.run("const v = document.querySelector('#record video'); v.muted = true; v.play()")
    browser.until("document.querySelector('#record video').currentTime > 0.1")


@pytest.mark.medium
def test_hostile_names_of_objects_are_text(browser: Browser, address: str) -> None:
    browser.until("document.querySelector('#facets [data-keep^=\"objects \"]')")
    assert NAME in browser.text("#facets")
    browser.click("#facets [data-keep^='objects ']")
    browser.until("document.querySelector('#count').innerText === '1 of 3 records'")
    browser.until("document.querySelector('.tile img.here')?.naturalWidth")
    show(browser, address, OBJECTS)
    browser.until("document.querySelector('#record img')?.naturalWidth === 32")
    assert NAME in browser.run("return document.querySelector('.zoomed').textContent")


@pytest.mark.medium
def test_a_shard_that_changes_or_vanishes_is_told_on_its_records(
    chromium: Browser, tmp_path: Path
) -> None:
    paths = [tmp_path / f"{name}.tfrecord" for name in ("changed", "gone")]
    for path in paths:
        with tfrecreg.TFRecordWriter(path) as writer:
            for number in range(3):
                writer.write({"n": number, "image/encoded": png(32, 32, seed=number)})
    with serving(*paths) as viewing:
        chromium.open(viewing.server.url)
        chromium.until("document.querySelector('.tile img.here')")
        kept = paths[0].stat()
        shutil.copy(paths[1], paths[0])
        os.utime(paths[0], ns=(kept.st_atime_ns, kept.st_mtime_ns + 1))
        paths[1].unlink()
        for target, said in ((0, "was changed since it was opened"), (1, "is not there any more")):
            chromium.open(f"{viewing.server.address}?t={target}")
            chromium.until("document.querySelectorAll('.tile.is-problem').length === 3")
            assert said in chromium.text(".tile.is-problem")
            chromium.click("[data-at='1'] .picture")
            chromium.until(f"document.querySelector('#record').innerText.includes('{said}')")
            chromium.press("Escape")
        assert all("409" in each for each in chromium.console())


def test_an_image_is_drawn_as_it_is_stored_under_its_boxes(
    chromium: Browser, tmp_path: Path
) -> None:
    """Decoders do not turn it by its EXIF orientation; browsers would."""
    image_module = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    sides = {f"image/object/bbox/{side}": [0.2] for side in ("xmin", "ymin")}
    sides |= {f"image/object/bbox/{side}": [0.4] for side in ("xmax", "ymax")}
    with tfrecreg.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write({"image/encoded": photo(turned=6), **sides})
    place = "const { x, y, width, height } = document.querySelector(arguments[0])"
    place += ".getBoundingClientRect(); return [x, y, width, height];"
    with serving(tmp_path / "a.tfrecord") as viewing:
        for more, selector in (("", ".tile img.here"), ("&open=0.0", ".zoomed img")):
            chromium.open(f"{viewing.server.url}{more}")
            chromium.until(f"document.querySelector('{selector}')?.complete")
            x, y, width, height = chromium.run(place, selector)
            assert width == pytest.approx(2 * height, rel=0.02)
            with image_module.open(io.BytesIO(chromium.picture())) as shown:
                pixels = shown.convert("RGB")
                at = [(across, down) for across in (0.1, 0.9) for down in (0.1, 0.9)]
                reds = [pixels.getpixel((x + width * i, y + height * j))[0] for i, j in at]
            assert [red > 200 for red in reds] == [True, True, False, False]
