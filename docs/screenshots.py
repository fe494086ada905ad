"""Screenshots of pages about generated data, taken with Chromium: `make screenshots`.

They go to `screenshots`, and that of `shapes` to `docs/images/page.png`, which the guide shows.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

import tfrecreg

ROOT = Path(__file__).parents[1]
SHOWN = ROOT / "docs" / "images" / "page.png"
SIZES = {
    "shapes": (1200, 1330),
    "damaged": (1200, 1330),
    "digits": (1200, 2600),
    "folders": (1200, 2600),
}
"""Width and height of the window by page."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SHAPES = ("ellipse", "rectangle", "triangle")


def drawing(rng: random.Random, boxes: int) -> tuple[Image.Image, list[tuple[int, list[int]]]]:
    """An image of colored shapes, and the class and box of each."""
    width, height = rng.choice([(240, 160), (160, 200), (320, 180)])
    image = Image.new("RGB", (width, height), tuple(rng.randrange(200, 256) for _ in range(3)))
    draw = ImageDraw.Draw(image)
    found = []
    for _ in range(boxes):
        side = rng.randrange(24, 90)
        left, top = rng.randrange(width - side), rng.randrange(height - side)
        number = rng.randrange(len(SHAPES))
        color = tuple(rng.randrange(160) for _ in range(3))
        corners = (left, top, left + side, top + side)
        if SHAPES[number] == "triangle":
            draw.polygon(
                [(left, top + side), (left + side, top + side), (left + side / 2, top)], color
            )
        else:
            getattr(draw, SHAPES[number])(corners, color)
        found.append((number, [left, top, side, side]))
    return image, found


def write_shapes(raw: Path) -> None:
    """A COCO dataset of shapes."""
    rng = random.Random(1)
    (raw / "images").mkdir(parents=True)
    categories = [{"id": number + 1, "name": name} for number, name in enumerate(SHAPES)]
    for split, first, count in (("train", 0, 60), ("test", 60, 20)):
        images, annotations = [], []
        for number in range(first, first + count):
            image, found = drawing(rng, rng.randrange(1, 6))
            name = f"{number:04}.jpg"
            image.save(raw / "images" / name, quality=90)
            width, height = image.size
            images.append({"id": number, "file_name": name, "width": width, "height": height})
            for label, box in found:
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": number,
                        "category_id": label + 1,
                        "bbox": box,
                        "area": box[2] * box[3],
                        "iscrowd": 0,
                    }
                )
        document = {"images": images, "annotations": annotations, "categories": categories}
        (raw / f"instances_{split}.json").write_text(json.dumps(document), "utf-8")


def write_folders(raw: Path) -> None:
    """A folder of images for each shape."""
    rng = random.Random(2)
    for number in range(60):
        image, ((label, _),) = drawing(rng, 1)
        folder = raw / SHAPES[label]
        folder.mkdir(parents=True, exist_ok=True)
        image.save(folder / f"{number:04}.png")


def make_pages(folder: Path) -> None:
    """Write a page for each of `SIZES`."""
    shop = folder / "shop"
    demo = [sys.executable, "-m", "tfrecreg", "demo", str(shop)]
    subprocess.run(demo, check=True, capture_output=True)
    registry = tfrecreg.open(shop)
    for name, source, write in (
        ("shapes", "coco", write_shapes),
        ("folders", "imagefolder", write_folders),
    ):
        write(folder / name)
        registry[name].build(source=source, raw=folder / name)
    for name in SIZES:
        made = ("report", name, "--output", str(folder / f"{name}.html"))
        subprocess.run([sys.executable, "-m", "tfrecreg", *made], cwd=shop, check=True)


def photograph(browser: str, page: Path, size: Sequence[int], output: Path) -> None:
    """Take a screenshot of a page."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    command = [browser, *flags, f"--window-size={size[0]},{size[1]}", f"--screenshot={output}"]
    subprocess.run([*command, page.as_uri()], check=True, capture_output=True, timeout=120)


def main() -> None:
    """Make pages and take screenshots of them."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("error: there is no Chromium\nhint: apt-get install chromium")
    output = ROOT / "screenshots"
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        make_pages(Path(temporary))
        for name, size in SIZES.items():
            photograph(browser, Path(temporary) / f"{name}.html", size, output / f"{name}.png")
    with Image.open(output / "shapes.png") as image:
        image.convert("RGB").quantize(128).save(SHOWN, optimize=True)


if __name__ == "__main__":
    main()
