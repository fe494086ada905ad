"""A file of annotations is read in memory that its size does not decide."""

from __future__ import annotations

import json
import random
import tracemalloc
from typing import Any

import pytest

from tfrecreg.storage.local import LocalStorage
from tfrecreg_coco.annotation_table import read_annotation_table


def test_every_annotation_is_found_under_its_image(raw: Any) -> None:
    dice = random.Random(3)
    ids = dice.sample(range(-1000, 1 << 40), 50)
    images = [raw.image(number) for number in ids]
    annotations = [
        raw.annotation(number, image=dice.choice(ids), note="}, {" * dice.randrange(3))
        for number in range(400)
    ]
    data = json.dumps(raw.dataset(images, annotations), indent=dice.choice((None, 1)))
    raw.put("a.json", data)
    table = read_annotation_table(
        LocalStorage(raw.path), "a.json", "instances", drop_dangling=False
    )
    assert table.ids.tolist() == ids
    for row, number in enumerate(ids):
        places = range(int(table.bounds[row]), int(table.bounds[row + 1]))
        found = [json.loads(data[int(table.starts[at]) : int(table.ends[at])]) for at in places]
        assert found == [each for each in annotations if each["image_id"] == number]


@pytest.mark.medium
def test_memory_is_a_few_bytes_an_annotation_however_long_it_is(raw: Any, monkeypatch) -> None:
    monkeypatch.setattr(
        "tfrecreg_coco.annotation_table.ListScan.__init__.__kwdefaults__", {"block": 1 << 16}
    )
    polygon = [[number + 0.25 for number in range(400)]]
    many = [raw.annotation(number, segmentation=polygon) for number in range(5000)]
    path = raw.put("a.json", raw.dataset([raw.image(1)], many))
    assert path.stat().st_size > 10_000_000
    tracemalloc.start()
    table = read_annotation_table(
        LocalStorage(raw.path), "a.json", "instances", drop_dangling=False
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(table.starts) == 5000
    assert peak < 3_000_000


@pytest.mark.parametrize(
    ("declared", "given", "expected"), [(["a", "b"], [1, 2, 2], 2), ([], [1, 2, 2] * 3, 3)]
)
def test_keypoints_are_as_many_as_declared_or_found(raw: Any, declared, given, expected) -> None:
    categories = [{"id": 1, "name": "cat", "keypoints": declared}]
    one = raw.annotation(1, keypoints=given)
    raw.put("a.json", raw.dataset([raw.image(1)], [one], categories=categories))
    table = read_annotation_table(
        LocalStorage(raw.path), "a.json", "keypoints", drop_dangling=False
    )
    assert table.keypoints == expected


def test_annotations_of_an_image_that_is_not_listed_are_dropped(raw: Any) -> None:
    known, lost = raw.annotation(7), raw.annotation(8, image=2)
    data = json.dumps(raw.dataset([raw.image(1)], [lost, known]))
    raw.put("a.json", data)
    table = read_annotation_table(LocalStorage(raw.path), "a.json", "instances", drop_dangling=True)
    assert [each.code for each in table.remarks] == ["SRC025", "SRC047"]
    places = zip(table.starts.tolist(), table.ends.tolist(), strict=True)
    assert [json.loads(data[start:end]) for start, end in places] == [known]
    assert table.bounds.tolist() == [0, 1]
