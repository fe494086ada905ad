"""Pictures of the viewer for `docs/view.md`, taken with Chromium: part of `make screenshots`.

It needs the folder `tests` in `PYTHONPATH`, for the browser.
"""

from __future__ import annotations

import io
import os
import tempfile
import threading
from pathlib import Path

from browser_support import Browser
from PIL import Image, ImageEnhance
from screenshots import ROOT, write_shapes

import tfrecreg
from tfrecreg.builtin.view.run import open_server

SHOWN = ROOT / "docs" / "images"
WINDOW = (1280, 800)
VIEWS = {
    "view": "t=0",
    "view-record": "t=0&open=0.13&position=13",
    "view-compare": "t=0&tab=compare&compare=0,1",
}
"""The question of the address by picture."""


def make_registry(folder: Path) -> list[str]:
    """Two versions of a dataset of shapes: what the viewer is to show."""
    registry = tfrecreg.init(folder / "registry", with_dvc=False)
    raw = folder / "shapes"
    write_shapes(raw)
    registry["shapes"].build(source="coco", raw=raw)
    registry["shapes"].release(bump="auto")
    for number in range(0, 60, 7):
        path = raw / "images" / f"{number:04}.jpg"
        with Image.open(path) as image:
            darker = ImageEnhance.Brightness(image).enhance(0.5)
        darker.save(path, quality=90)
    registry["shapes"].build(source="coco", raw=raw)
    registry["shapes"].release(bump="auto")
    return [f"shapes@{version}" for version in registry["shapes"].versions]


READY = """
    !document.querySelector('progress') && !document.querySelector('#catalog').innerText
    && document.querySelector(".tile .caption")
    && [...document.images].every((each) => each.complete)
    && (document.querySelector('.bars') || document.querySelector('#grid-view').hidden)
"""
"""True when a view is complete: no catalog and no check is under way."""


def main() -> None:
    """Serve the data and take the pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        targets = make_registry(Path(temporary))
        os.chdir(Path(temporary) / "registry")  # so that no picture shows where it is
        server = open_server(targets)
        thread = threading.Thread(target=server.run)
        thread.start()
        browser = Browser(*WINDOW)
        try:
            browser.open(server.url)
            for name, question in VIEWS.items():
                browser.open(f"{server.address}?{question}")
                browser.until(READY)
                with Image.open(io.BytesIO(browser.picture())) as image:
                    small = image.convert("RGB").quantize(160)
                    small.save(SHOWN / f"{name}.png", optimize=True)
        finally:
            browser.close()
            server.stop()
            thread.join()


if __name__ == "__main__":
    main()
