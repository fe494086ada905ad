"""Values and structures that nobody meant: refused, skipped, remarked, and never a crash."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from image_support import png

from tfrecreg.core.build.sources.interface import Skipped, Written
from tfrecreg.core.example.model import encode
from tfrecreg.core.values.errors import TfrecregError

TASKS = ("instances", "keypoints", "captions", "panoptic")
WEIRD: list[Any] = [None, True, 0, -1, 1.5, math.nan, math.inf, 1e308, 10**30, 1 << 63, "", "x"]
WEIRD += ["1", [], {}, [1], [[]], {"a": 1}, [None], "\udc80", "../x", [math.nan] * 4, [1, 2, 3, 4]]
WEIRD += [[[1, 2, 3, 4, 5, 6]], {"size": [80, 100], "counts": "x"}]
WEIRD += [{"size": [10**9, 10**9], "counts": [10**18]}]


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is something in a tree of objects and lists."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (*above, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*above, key))


def spoilt(data: Any, dice: random.Random) -> Any:
    """A copy of which one value is another one, or is missing."""
    data = copy.deepcopy(data)
    *path, last = dice.choice(list(places(data)))
    inner = data
    for key in path:
        inner = inner[key]
    if dice.random() < 0.15:
        del inner[last]
    else:
        inner[last] = copy.deepcopy(dice.choice(WEIRD))
    return data


def rich(raw: Any) -> dict[str, Any]:
    """Files of all kinds about two images, and what they hold."""
    raw.several()
    path = raw.path / "annotations/instances_train2017.json"
    data = json.loads(path.read_text())
    forms: list[Any] = [[[1, 2, 30, 4, 5, 60]]]
    forms += [{"size": [80, 100], "counts": [10, 20, 7970]}, {"size": [80, 100], "counts": "PP1"}]
    for annotation, form in zip(data["annotations"], forms, strict=True):
        annotation["segmentation"] = form
    path.write_text(json.dumps(data))
    raw.put("annotations/panoptic_train2017/1.png", png(100, 80, pixels=b"\5\1\0" * 8000, colour=2))
    segment = {"id": 261, "category_id": 3, "bbox": raw.box, "area": 8000, "iscrowd": 0}
    annotation = {"image_id": 1, "file_name": "1.png", "segments_info": [segment]}
    raw.put("annotations/panoptic_train2017.json", raw.dataset([raw.image(1)], [annotation]))
    files = sorted((raw.path / "annotations").glob("*.json"))
    return {f"annotations/{file.name}": json.loads(file.read_text()) for file in files}


@pytest.mark.parametrize("rounds", [250, pytest.param(5000, marks=pytest.mark.slow)])
def test_any_value_in_any_place_is_dealt_with(raw: Any, rounds: int) -> None:
    pytest.importorskip("pycocotools.mask")
    dice = random.Random(rounds)
    files = rich(raw)
    outcomes = set()
    for _ in range(rounds):
        name = dice.choice(list(files))
        raw.put(name, spoilt(files[name], dice))
        options = {
            "masks": dice.choice(("none", "polygons", "rle", "png")),
            "bad_boxes": dice.choice(("drop", "keep", "skip-image")),
            "categories": dice.choice(("as-is", "contiguous")),
        }
        try:
            made = raw.made(tasks=TASKS, dangling="drop", **options)
        except TfrecregError as error:
            outcomes.add((error.exit_code, error.message.isprintable()))
        else:
            for each in made.values():
                outcomes.add(type(each))
                if isinstance(each, Written):
                    encode(each.example)
        raw.put(name, files[name])
    assert outcomes == {(2, True), Written, Skipped}
