"""Items of raw data without a record, and records without an item, of anybody's TFRecords."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_support import put
from image_support import png

from tfrecreg.builtin.validators.items import (
    BY_BYTES,
    BY_NAME,
    BY_NAME_ALONE,
    NOT,
    Matching,
    RowBuilder,
)
from tfrecreg.cli.main import main
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.reader import HOLD_LIMIT
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.text import json_data

Looked = Callable[..., dict[str, Any]]


def image(number: int) -> bytes:
    return png(4 + number % 7, 3, seed=number)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Twelve images in two class folders."""
    folder = tmp_path / "raw"
    for number in range(12):
        path = folder / f"class{number % 2}" / f"i{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image(number))
    return folder


def record(number: int, name: str = "", **more: Feature) -> bytes:
    named = {"image/filename": bytes_feature(name)} if name else {}
    return encode({"image/encoded": bytes_feature(image(number)), **named, **more})


def look(folder: Path, raw: Path, **more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The findings of the validator, and its counts."""
    options = CheckOptions(raw=str(raw), source="imagefolder", only=("items",), **more)
    (report,) = check(str(folder), options=options)
    assert report.status != "error", report.errors
    found = json.loads(json.dumps(json_data(report)))
    return found["findings"], found["measures"]["items.matched"]


def test_records_of_all_items_pass(tmp_path: Path, raw: Path) -> None:
    put(tmp_path / "x/a.tfrecord", *map(record, range(12)))
    findings, counts = look(tmp_path / "x", raw)
    assert findings == []
    assert (counts["items"], counts["by_bytes"], counts["records"]) == (12, 12, 12)


def test_a_missing_item_and_a_strange_record_are_named(tmp_path: Path, raw: Path) -> None:
    put(tmp_path / "x/a.tfrecord", *map(record, range(6)))
    put(tmp_path / "x/b.tfrecord", *map(record, (*range(7, 12), 50)))
    findings, counts = look(tmp_path / "x", raw)
    found = {each["code"]: each for each in findings}
    assert found.keys() == {"SRC090", "SRC091"}
    assert found["SRC090"]["message"] == "an item of `imagefolder` has no record"
    assert [each["key"] for each in found["SRC090"]["locations"]] == ["class0/i6.png"]
    (place,) = found["SRC091"]["locations"]
    assert (place["shard"].rpartition("/")[2], place["record"]) == ("b.tfrecord", 5)
    assert (counts["without_record"], counts["records_without_item"]) == (1, 1)


@pytest.mark.parametrize(
    "more",
    [
        {"image/filename": bytes_feature("class1/i3.png")},
        {"image/filename": bytes_feature("C:\\data\\class1\\i3.png")},
        {"filename": bytes_feature("/elsewhere/i3.png")},
        {"image/source_id": bytes_feature("class1/i3.png")},
    ],
)
def test_an_image_that_was_encoded_again_is_found_by_its_name(
    tmp_path: Path, raw: Path, more: dict[str, Feature]
) -> None:
    payloads = [record(number) for number in range(12) if number != 3]
    put(tmp_path / "x/a.tfrecord", *payloads, record(77, **more))
    findings, counts = look(tmp_path / "x", raw)
    assert [each["code"] for each in findings] == ["SRC017"]
    assert (counts["by_name"], counts["other_bytes"]) == (1, 1)
    message = "its image differs from the image of the item with the same name in `imagefolder`"
    assert findings[0]["message"] == message
    assert findings[0]["locations"][0]["record"] == 11


def test_a_name_of_two_items_or_two_records_tells_nothing(tmp_path: Path, raw: Path) -> None:
    (raw / "class0/i3.png").write_bytes(image(40))
    payloads = [record(number) for number in range(12) if number != 3]
    strange = record(77, "i3.png")
    put(tmp_path / "x/a.tfrecord", *payloads, strange)
    assert {each["code"]: each["count"] for each in look(tmp_path / "x", raw)[0]} == {
        "SRC090": 2,
        "SRC091": 1,
    }
    (raw / "class0/i3.png").unlink()
    put(tmp_path / "x/a.tfrecord", *payloads, strange, record(78, "i3.png"))
    assert {each["code"]: each["count"] for each in look(tmp_path / "x", raw)[0]} == {
        "SRC090": 1,
        "SRC091": 2,
    }


def test_records_without_images_are_found_by_their_names(tmp_path: Path, raw: Path) -> None:
    payloads = [
        encode({"image/filename": bytes_feature(f"i{number}.png"), "x": int64_feature(number)})
        for number in range(12)
    ]
    put(tmp_path / "x/a.tfrecord", *payloads)
    findings, counts = look(tmp_path / "x", raw)
    assert findings == []
    assert (counts["by_bytes"], counts["by_name"], counts["other_bytes"]) == (0, 12, 0)


def test_what_the_source_skips_is_counted_apart(tmp_path: Path, raw: Path) -> None:
    (raw / "class0/broken.png").write_bytes(b"")
    (raw / "notes.txt").write_bytes(b"a stray file, so a remark")
    put(tmp_path / "x/a.tfrecord", *map(record, range(12)))
    findings, counts = look(tmp_path / "x", raw)
    assert findings == []
    assert (counts["items"], counts["skipped_by_source"]) == (12, 1)


def test_lost_and_large_records_are_left_out_and_shift_no_other(tmp_path: Path, raw: Path) -> None:
    path = tmp_path / "x/a.tfrecord"
    put(path, *map(record, (0, 1, 2, 3, 50, 5)), bytes(HOLD_LIMIT + 1))
    path.write_bytes(path.read_bytes().replace(image(3), image(3)[:-1] + b"x"))
    put(tmp_path / "x/b.tfrecord", *map(record, (4, *range(6, 12))))
    findings, counts = look(tmp_path / "x", raw)
    missing, strange = sorted(findings, key=lambda each: each["code"])
    assert (missing["code"], missing["count"]) == ("SRC090", 1)
    assert missing["locations"][0]["key"] == "class1/i3.png"
    assert (strange["code"], strange["count"]) == ("SRC091", 1)
    assert strange["locations"][0]["shard"] == str(path)
    assert strange["locations"][0]["record"] == 4
    assert (counts["records"], counts["records_without_item"], counts["unheld"]) == (13, 1, 1)


def test_copies_of_an_image_all_hold_its_item(tmp_path: Path, raw: Path) -> None:
    put(tmp_path / "x/a.tfrecord", *map(record, (*range(12), 3, 3)))
    assert look(tmp_path / "x", raw)[0] == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"raw": None}, "`--source imagefolder` needs the raw data"),
        ({"source": None, "source_options": ("split=a",)}, "`--option` needs a source"),
        ({"source": "imagefoldr"}, "no source named `imagefoldr`; did you mean `imagefolder`?"),
        ({"raw": "/nowhere"}, "the raw data `/nowhere` does not exist"),
        ({"source_options": ("layot=class",)}, "did you mean `layout`?"),
    ],
)
def test_a_source_that_cannot_list_items_is_refused(
    tmp_path: Path, raw: Path, more: dict[str, Any], message: str
) -> None:
    put(tmp_path / "x/a.tfrecord", record(1))
    options = CheckOptions(**{"raw": str(raw), "source": "imagefolder", **more})
    with pytest.raises(TfrecregError) as refused:
        check(str(tmp_path / "x"), options=options)
    assert refused.value.exit_code == 2
    assert message in refused.value.message


def test_the_command_sums_it_up(
    tmp_path: Path, raw: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "x/a.tfrecord", *map(record, range(11)))
    arguments = ["check", str(tmp_path / "x"), "--source", "imagefolder", "--raw", str(raw)]
    assert main([*arguments, "--option", "layout=class"]) == 1
    shown = capsys.readouterr().out
    assert (
        "items: 12 of `imagefolder`: 11 found by bytes, 1 without a record; 0 of 11 records hold "
        "no item\n"
    ) in shown
    assert "split train, key class1/i11.png" in shown


def _slow(
    records: Sequence[tuple[bytes | None, str]], items: Sequence[tuple[bytes | None, str]]
) -> tuple[list[int], list[int]]:
    """The rule of SRC090, one record after the other."""
    ours, theirs = [NOT] * len(records), [NOT] * len(items)
    for at, (data, _) in enumerate(records):
        same = [n for n, item in enumerate(items) if data is not None and item[0] == data]
        for number in same:
            ours[at] = theirs[number] = BY_BYTES
    for part in (lambda name: name, lambda name: name.rpartition("/")[2]):
        left = [part(records[at][1]) for at, how in enumerate(ours) if how == NOT]
        known = [part(name) for _, name in items]
        for at, how in enumerate(list(ours)):
            name = part(records[at][1])
            if how == NOT and left.count(name) == 1 and known.count(name) == 1:
                number = known.index(name)
                if theirs[number] == NOT:
                    both = records[at][0] is not None and items[number][0] is not None
                    ours[at] = theirs[number] = BY_NAME if both else BY_NAME_ALONE
    return ours, theirs


@pytest.mark.parametrize("seed", range(20))
def test_ranges_and_runs_match_as_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("tfrecreg.builtin.validators.duplicate_matches._MOST_ROWS", 5)
    rng = random.Random(seed)
    storage = LocalStorage(tmp_path)

    def some(count: int) -> list[tuple[bytes | None, str]]:
        return [
            (
                image(rng.randrange(12)) if rng.random() < 0.8 else None,
                f"{rng.choice('ab')}/{rng.randrange(12)}",
            )
            for _ in range(count)
        ]

    def rows(entries: Sequence[tuple[bytes | None, str]], *, keys: bool) -> Any:
        builder = RowBuilder(storage)
        for number, (data, name) in enumerate(entries):
            example = {"image/encoded": bytes_feature(data)} if data is not None else {}
            if not keys:
                example["image/filename"] = bytes_feature(name)
            builder.add(example, name if keys else None, number, 0)
        return builder.close()

    shards, items = [some(rng.randrange(9)) for _ in range(3)], some(10)
    parts = [rows(entries, keys=False) for entries in shards]
    matching = Matching(storage, parts, rows(items, keys=True))
    matching.run()
    ours, theirs = _slow([each for shard in shards for each in shard], items)
    assert matching.records.tolist() == ours
    assert matching.items.tolist() == theirs
    flat = [(at, number) for at, shard in enumerate(shards) for number in range(len(shard))]
    assert [matching.place(number) for number in range(len(flat))] == flat
    assert np.count_nonzero(matching.items) <= len(items)


@pytest.mark.realdata
def test_records_that_another_tool_made_are_held_against_the_images(
    tmp_path: Path, realdata: Path
) -> None:
    images = realdata / "tfrecord/raccoon/images"
    folder = tmp_path / "raw/raccoon"
    folder.mkdir(parents=True)
    for path in images.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    findings, counts = look(realdata / "tfrecord/raccoon/data", tmp_path / "raw")
    assert counts["records_without_item"] == 0
    assert counts["by_bytes"] == 40
    assert sum(each["count"] for each in findings) == counts["without_record"]
