"""Dropped objects are accounted for as skipped items are: a limit, the ledger, and `check`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cases_support import count_cases
from image_support import png
from object_sources_support import OBJECT_SOURCES, write_objects

import tfrecreg
from tfrecreg.core.registry.init import init
from tfrecreg.core.values.errors import RefusedError

GOOD, BAD = (10, 10, 30, 20), (10, 10, -30, 20)


def told(tmp_path: Path) -> dict[str, int]:
    """How often each case is in the ledger of the build."""
    lines = (tmp_path / "reg/data/d/ledger.jsonl").read_text("utf-8").splitlines()
    return count_cases(map(json.loads, lines))


def put(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def write(source: str, raw: Path, split: str, images: list[list[Any]]) -> None:
    """An image for each list of boxes."""
    named = {f"{split}{n}.png": [("a", box) for box in boxes] for n, boxes in enumerate(images)}
    write_objects(source, raw, split, named)


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    init(tmp_path / "reg", with_dvc=False)
    return tfrecreg.open(tmp_path / "reg")["d"]


class TestLimit:
    @pytest.mark.parametrize("source", OBJECT_SOURCES)
    def test_more_than_a_hundredth_of_a_split_refuses_the_build(
        self, tmp_path: Path, dataset: Any, source: str
    ) -> None:
        write(source, tmp_path / "raw", "train", [[GOOD] * 10] * 30)
        write(source, tmp_path / "raw", "val", [[GOOD, GOOD, BAD], [BAD]])
        with pytest.raises(RefusedError) as caught:
            dataset.build(source=source, raw=tmp_path / "raw", progress=False)
        assert "2 of 4 objects of `validation`" in caught.value.message
        assert "--max-dropped 2" in str(caught.value.hint)
        assert not (tmp_path / "reg/data/d").exists()

    @pytest.mark.parametrize("limit", [2, "50%"])
    def test_an_option_accepts_more_and_check_repeats_it(
        self, tmp_path: Path, dataset: Any, limit: Any
    ) -> None:
        write("yolo", tmp_path / "raw", "train", [[GOOD] * 10] * 3)
        write("yolo", tmp_path / "raw", "val", [[GOOD, GOOD, BAD], [BAD]])
        raw = tmp_path / "raw"
        built = dataset.build(
            source="yolo", raw=raw, max_dropped=limit, save_options=True, progress=False
        )
        ledger = built.manifest.ledger
        assert "SRC047" not in ledger["train"].remarks
        assert {code: ledger["validation"].remarks[code] for code in ("SRC047", "SRC048")} == {
            "SRC047": 2,
            "SRC048": 1,
        }
        (found,) = (each for each in built.check().findings if each.code == "SRC047")
        assert found.severity.value == "warning"
        assert [each.split for each in found.locations] == ["validation"]
        assert "2 objects" in found.message
        assert "1 image" in found.message
        assert str(limit) in (tmp_path / "reg/datasets/d.toml").read_text("utf-8")
        dataset.build(anew=True, progress=False)

    def test_a_hundredth_is_no_reason(self, tmp_path: Path, dataset: Any) -> None:
        write("voc", tmp_path / "raw", "train", [[GOOD] * 99 + [BAD]])
        built = dataset.build(source="voc", raw=tmp_path / "raw", progress=False)
        assert built.manifest.ledger["train"].remarks["SRC047"] == 1
        assert "SRC048" not in built.manifest.ledger["train"].remarks


def test_an_object_of_no_listed_image_or_category_counts(tmp_path: Path, dataset: Any) -> None:
    write("coco", tmp_path / "raw", "train", [[GOOD], [GOOD, GOOD]])
    path = tmp_path / "raw/annotations/instances_train.json"
    data = json.loads(path.read_text("utf-8"))
    data["annotations"][0]["category_id"] = 9
    data["annotations"][1]["image_id"] = 9
    path.write_text(json.dumps(data), "utf-8")
    arguments = {"source": "coco", "raw": tmp_path / "raw", "options": {"dangling": "drop"}}
    with pytest.raises(RefusedError):
        dataset.build(**arguments, max_dropped=1, progress=False)
    built = dataset.build(**arguments, max_dropped=2, progress=False)
    remarks = built.manifest.ledger["train"].remarks
    assert remarks == {"SRC047": 2, "SRC048": 1, "SRC115": 2}
    assert told(tmp_path) == {"SRC047": 2, "SRC048": 1, "SRC115 category": 2}


@pytest.mark.parametrize("source", OBJECT_SOURCES)
def test_classes_that_are_one_but_for_case_are_remarked(
    tmp_path: Path, dataset: Any, source: str
) -> None:
    raw = tmp_path / "raw"
    write(source, raw, "train", [[GOOD, GOOD]])
    for path in raw.rglob("*"):
        if path.suffix in (".json", ".xml", ".yaml"):
            text = path.read_text("utf-8").replace("[a]", '[a, "A "]')
            text = text.replace(
                '{"id": 1, "name": "a"}', '{"id": 1, "name": "a"}, {"id": 2, "name": "a"}'
            )
            path.write_text(text.replace("<name>a<", "<name>A<", 1), "utf-8")
    built = dataset.build(source=source, raw=raw, progress=False)
    assert built.manifest.ledger["train"].remarks["SRC119"] == 1
    assert told(tmp_path)["SRC119"] == 1


@pytest.mark.parametrize(
    ("source", "times"), [("folder", 1), ("imagefolder", 1), ("coco", 1), ("yolo", 2), ("voc", 2)]
)
def test_files_that_are_one_but_for_case_are_remarked(
    tmp_path: Path, dataset: Any, source: str, times: int
) -> None:
    raw = tmp_path / "raw"
    if source in OBJECT_SOURCES:
        write(source, raw, "train", [[GOOD], [GOOD]])
        for path in [*raw.rglob("*0.*"), *raw.rglob("*1.*")]:
            path.rename(path.with_stem(path.stem.replace("0", "o").replace("1", "O")))
        for path in raw.rglob("*.json"):
            path.write_text(
                re.sub(r"(?<=train)[01]", lambda at: "oO"[int(at[0])], path.read_text())
            )
    else:
        put(raw / "a/cafe\u0301.png", png(9, 9, seed=2))
        put(raw / "a/caf\xc9.png", png(9, 9, seed=3))
    built = dataset.build(source=source, raw=raw, progress=False)
    assert built.manifest.ledger["train"].remarks["SRC119"] == times
    assert told(tmp_path)["SRC119"] == times
    assert built.manifest.splits[0].records == 2
