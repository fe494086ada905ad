"""Building images with label files, against the same images without: `yolo` and `imagefolder`."""

from __future__ import annotations

import random
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import images

__all__ = ["main"]

_EACH = 7
"""Objects an image, as in COCO."""
_CLASSES = 80
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        folder, out = Path(work), Path(work) / "out"
        images(folder / "imagefolder", arguments.count)
        weight = _annotate(folder)
        name = f"{arguments.count:,} JPEGs, {weight / 1e6:,.0f} MB"

        def build(source: str) -> Measured:
            command = [sys.executable, "-m", "benchmarks.build", source]
            return run([*command, str(folder / source), str(out)], BENCH_JOBS="1")

        rows = []
        for source in ("yolo", "voc"):
            ours, theirs = alternate(
                arguments.runs,
                lambda source=source: build(source),  # type: ignore[misc]
                lambda: build("imagefolder"),
            )
            print(ours[-1].output.strip())
            what = f"{name}, {_EACH} objects each: `{source}` / `imagefolder`"
            target = "at most 1.1" if source == "yolo" else ""
            rows.append(row(what, ours, theirs, target))
            rows.append(row(f"{what}, processor", ours, theirs, target, work=True))
        return rows


def _annotate(folder: Path) -> int:
    """The same images, as links, with the files of both formats; their size in bytes."""
    rng = random.Random(0)
    for name in ("yolo/images", "yolo/labels", "voc/JPEGImages", "voc/Annotations"):
        (folder / name).mkdir(parents=True)
    weight = 0
    for path in sorted((folder / "imagefolder").rglob("*.jpg")):
        weight += path.stat().st_size
        (folder / "yolo/images" / path.name).hardlink_to(path)
        (folder / "voc/JPEGImages" / path.name).hardlink_to(path)
        rows, objects = [], []
        for _ in range(_EACH):
            category = rng.randrange(_CLASSES)
            left, top = rng.randrange(1, 500), rng.randrange(1, 400)
            right, bottom = left + rng.randrange(4, 140), top + rng.randrange(4, 80)
            center = ((left + right) / 1280, (top + bottom) / 960)
            box = (*center, (right - left) / 640, (bottom - top) / 480)
            rows.append(" ".join([str(category), *(f"{side:.6f}" for side in box)]))
            sides = zip(_SIDES, (left + 1, top + 1, right, bottom), strict=True)
            text = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
            objects.append(
                f"<object><name>class {category}</name><pose>Left</pose><truncated>0</truncated>"
                f"<difficult>0</difficult><bndbox>{text}</bndbox></object>"
            )
        (folder / f"yolo/labels/{path.stem}.txt").write_text("\n".join(rows))
        (folder / f"voc/Annotations/{path.stem}.xml").write_text(
            f"<annotation><filename>{path.name}</filename><size><width>640</width><height>480"
            f"</height></size>{''.join(objects)}</annotation>"
        )
    names = "".join(f"class {number}\n" for number in range(_CLASSES))
    (folder / "yolo/classes.txt").write_text(names)
    return weight
