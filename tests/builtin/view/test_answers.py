"""Answers about targets, records and selections."""

from __future__ import annotations

import csv
import io
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_support import framed
from image_support import png
from media_support import wav
from tests_support import flip
from view_support import HOSTILE, SVG, Viewing, serving, write_pets

import tfrecreg as tr
from tfrecreg.builtin.view.record import thumbnail, whole
from tfrecreg.core.example.format_payload import ShownImage
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.images.decoder import PixelsDecoder

SIDES = ("xmin", "xmax", "ymin", "ymax")
pytest.importorskip("duckdb", reason="the extra `query` is not installed")


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def viewing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewing]:
    with serving(write_pets(tmp_path_factory.mktemp("pets"))) as found:
        found.wait("/api/t/0", "catalog", "ready")
        yield found


def places(viewing: Viewing, selection: str = "", **more: Any) -> list[tuple[int, int]]:
    found = viewing.ask("/api/t/0/records", selection=selection, **more)
    return [(each["shard"], each["record"]) for each in found["records"]]


def test_a_target_is_told_with_its_splits_in_order(viewing: Viewing) -> None:
    told = viewing.ask("/api/t/0")
    assert told["kind"] == "files"
    assert told["records"] == 12
    assert [(each["name"], each["records"]) for each in told["splits"]] == [
        ("train", 8),
        ("test", 2),
        ("zoo", 2),
    ]
    assert {each["state"] for each in told["shards"]} == {"ok"}
    assert {"name": "label", "type": "VARCHAR"} in told["columns"]
    assert told["catalog"] == {"state": "ready", "done": 12, "of": 12, "why": ""}


def test_a_record_is_drawn_with_its_image_and_boxes(viewing: Viewing) -> None:
    first = viewing.ask("/api/t/0/records", count=1)["records"][0]
    assert (first["split"], first["shard"], first["record"]) == ("train", 0, 0)
    assert (first["kind"], first["width"], first["height"]) == ("image", 8, 8)
    assert (first["label"], first["caption"], first["problem"]) == ("cat", "cat", None)
    (box,) = first["boxes"]
    assert (box["x0"], box["y0"], box["x1"], box["y1"]) == (0.25, 0.0, 0.5, 1.0)
    assert box["number"] == 0
    assert box["color"].startswith("#")
    assert first["thumb"].startswith("api/t/0/thumb/0/0?v=")


def test_a_record_has_its_place_and_all_features(viewing: Viewing) -> None:
    whole = viewing.ask("/api/t/0/record/1/0")
    assert whole["shard_name"].endswith("pets-test.tfrecord-00000-of-00001")
    assert (whole["offset"], len(whole["digest"])) == (0, 32)
    assert whole["previous"] == {"shard": 0, "record": 7}
    kinds = {each["name"]: each["kind"] for each in whole["features"]}
    assert kinds["image/encoded"] == "image"
    assert kinds["image/class/text"] == "text"
    assert kinds["score"] == "numbers"
    assert whole["next"] == {"shard": 1, "record": 1}
    image = next(each for each in whole["features"] if each["name"] == "image/encoded")
    assert image["hex"].startswith("89 50 4e 47")
    assert image["note"].startswith("PNG image, 16x8")
    assert (image["count"], image["text"], len(image["hex"])) == (1, None, 3 * 256 - 1)
    label = next(each for each in whole["features"] if each["name"] == "image/class/text")
    assert (label["text"], label["hex"]) == (label["values"][0].strip('"'), "")
    assert viewing.ask("/api/t/0/record/0/0")["previous"] is None
    assert viewing.ask("/api/t/0/record/2/1")["next"] is None


def test_thumbnails_keep_under_an_address_of_their_shard(viewing: Viewing) -> None:
    first = viewing.ask("/api/t/0/records", count=1)["records"][0]
    answer = viewing.client.get(first["thumb"])
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "image/png"
    assert answer.content == png(width=8, height=8)  # a small image is sent as it is
    assert viewing.client.get("/api/t/0/thumb/0/0").headers["cache-control"] == "no-store"
    said = viewing.error("/api/t/0/thumb/0/0", 409, v="0123456789abcdef")
    assert said.startswith("the shard has changed since this address was made")


@pytest.mark.medium
def test_large_images_become_thumbnails_of_bounded_size(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    jpeg = io.BytesIO()
    image_module.new("RGB", (900, 300), "red").save(jpeg, "jpeg")
    payloads = (jpeg.getvalue(), png(width=700, height=80), b"\xff\xd8\xff\xe0 no image")
    payloads = (*payloads, png(width=700, height=80)[:-40])
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(*(encode({"i": bytes_feature(each)}) for each in payloads)))
    with serving(path) as viewing:
        for record in (0, 1):
            answer = viewing.client.get(f"/api/t/0/thumb/0/{record}", params={"size": 100})
            with image_module.open(io.BytesIO(answer.content)) as made:
                assert max(made.size) <= 100
                assert max(made.size) >= 96
        whole = viewing.client.get("/api/t/0/image/0/0")
        assert whole.content == jpeg.getvalue()
        said = viewing.error("/api/t/0/thumb/0/3", 400)
        assert said.startswith("the image does not decode: ")
        assert viewing.error("/api/t/0/thumb/0/2", 404) == "the record has no such image | "


def test_images_are_decoded_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turn, decoder, locked = threading.Lock(), PixelsDecoder((1, 1, 1)), []

    def array(data: bytes) -> np.ndarray:
        locked.append(turn.locked())
        return np.frombuffer(data, np.uint8).reshape(1, 1, 1)

    monkeypatch.setattr(decoder, "array", array)
    monkeypatch.setattr("tfrecreg.builtin.view.record._DECODING", turn)
    about = {"feature": "", "value": 0, "format": "pixels", "header": decoder.header(b"x")}
    image = ShownImage(**about, data=b"x", decoder=decoder)
    thumbnail(image, 32)
    whole(image)
    assert locked == [True, True]


def test_no_svg_and_no_html_is_ever_sent_as_such(viewing: Viewing) -> None:
    for path in ("/image/2/0", "/thumb/2/0", "/media/2/0"):
        assert viewing.client.get(f"/api/t/0{path}?feature=image/svg").status_code == 404
    for path in ("/records?from=10", "/record/2/0"):
        answer = viewing.client.get(f"/api/t/0{path}")
        assert answer.headers["content-type"] == "application/json"
    whole = viewing.ask("/api/t/0/record/2/0")
    values = {each["name"]: each["values"] for each in whole["features"]}
    assert values["image/svg"] == [SVG.decode()]
    assert HOSTILE not in viewing.client.get("/").text


def test_sounds_have_ranges(viewing: Viewing) -> None:
    data = wav(0.1)
    path = "/api/t/0/media/2/1"
    answer = viewing.client.get(path, params={"feature": "sound"})
    assert (answer.status_code, answer.content) == (200, data)
    assert answer.headers["content-type"] == "audio/wav"
    for asked, part in (("0-9", data[:10]), ("10-", data[10:]), ("-5", data[-5:])):
        answer = viewing.client.get(path, headers={"range": f"bytes={asked}"})
        assert (answer.status_code, answer.content) == (206, part)
    assert answer.headers["content-range"] == f"bytes {len(data) - 5}-{len(data) - 1}/{len(data)}"
    answer = viewing.client.get(path, headers={"range": f"bytes={len(data)}-"})
    assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{len(data)}")


def test_selections_are_by_split_condition_and_order(viewing: Viewing) -> None:
    found = viewing.ask("/api/t/0/select", split="test")
    assert (found["count"], found["of"]) == (2, 12)
    assert places(viewing, found["selection"]) == [(1, 0), (1, 1)]
    found = viewing.ask("/api/t/0/select", where=["label = 'dog'", "width > 9"], split="train")
    assert places(viewing, found["selection"]) == [(0, 4), (0, 7)]
    assert "--split train --where" in found["cli"]
    assert "where=\"(label = 'dog') AND (width > 9)\"" in found["python"]
    assert found["toml"] is False
    assert viewing.ask("/api/t/0/select", where="width > 9")["cli"].endswith(" 'width > 9'")
    found = viewing.ask("/api/t/0/select", sort="width", desc=1)
    numbers = places(viewing, found["selection"])
    assert numbers[:3] == [(1, 1), (1, 0), (0, 7)]
    assert len(numbers) == 12
    assert viewing.ask("/api/t/0/select")["selection"] == ""
    assert viewing.ask("/api/t/0/select", where="false")["count"] == 0


def test_the_oldest_of_many_selections_is_forgotten(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.builtin.view.selections._CHOICES", 2)

    def select(number: int) -> str:
        return viewing.ask("/api/t/0/select", where=f"record = {number}")["selection"]

    names = [select(1), select(2)]
    assert places(viewing, names[0]) == [(0, 1), (1, 1), (2, 1)]
    names.append(select(3))
    assert "there is no selection" in viewing.error("/api/t/0/records", 400, selection=names[1])
    assert places(viewing, names[0]) == [(0, 1), (1, 1), (2, 1)]
    assert places(viewing, names[2]) == [(0, 3)]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"where": "label"}, 400),
        ({"where": "lable = 'a'"}, 400),
        ({"where": "random() < 0.5"}, 400),
        ({"where": "true) UNION SELECT shard, record FROM records WHERE (true"}, 400),
        ({"where": "1 = 1; DROP TABLE records"}, 400),
        ({"where": "(SELECT count(*) FROM read_csv('/etc/passwd')) > 0"}, 400),
        ({"split": "trian"}, 400),
        ({"sort": "widht"}, 400),
        ({"sort": 'width" DESC; --'}, 400),
        ({"changed_since": "pets@1.0.0"}, 404),
    ],
)
def test_wrong_questions_have_one_line(
    viewing: Viewing, query: dict[str, str], status: int
) -> None:
    assert "\n" not in viewing.error("/api/t/0/select", status, **query)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/t/1", 404, "there is no target 1"),
        ("/api/t/x", 400, "`target` should be a number, found `x`"),
        ("/api/t/0/record/7/0", 404, "there is no shard 7"),
        ("/api/t/0/record/0/8", 404, "the shard has 8 records"),
        ("/api/t/0/record/-1/0", 400, "`shard` should be a number, found `-1`"),
        ("/api/t/0/records?selection=abc", 400, "there is no selection `abc`"),
        (
            "/api/t/0/save?as=exe",
            400,
            "a selection cannot be saved as `exe`",
        ),
        ("/api/t/0/save?as=toml", 400, "no dataset can be derived from this selection"),
        ("/api/open?name=pets@1.0.0", 400, ""),
        ("/api/compare?a=0&b=0", 400, "is not a build or a release"),
        ("/nothing", 404, "there is nothing at this address | "),
    ],
)
def test_errors_have_their_status(viewing: Viewing, path: str, status: int, said: str) -> None:
    assert said in viewing.error(path, status)


def test_facets_count_in_the_selection_and_in_all(viewing: Viewing) -> None:
    name = viewing.ask("/api/t/0/select", where="split = 'train' AND width < 12")["selection"]
    facets = {
        each["column"]: each for each in viewing.ask("/api/t/0/facets", selection=name)["facets"]
    }
    assert list(facets)[:2] == ["split", "label"]
    assert "image/class/label" not in facets  # the same once more
    assert [(each["text"], each["count"], each["of"]) for each in facets["split"]["values"]] == [
        ("train", 4, 8),
        ("test", 0, 2),
        ("zoo", 0, 2),
    ]
    label = {each["text"]: each for each in facets["label"]["values"]}
    assert {text: (each["count"], each["of"]) for text, each in label.items()} == {
        "cat": (2, 4),
        "dog": (1, 3),
        "owl": (1, 3),
        "none": (0, 2),
    }
    for each in label.values():
        assert viewing.ask("/api/t/0/select", where=each["where"])["count"] == each["of"]


def counts(facet: dict[str, Any]) -> dict[str, int]:
    return {each["text"]: each["count"] for each in facet["values"]}


@pytest.mark.medium
def test_a_facet_counts_without_its_own_choice(viewing: Viewing) -> None:
    narrow, cat = "width < 12", "label = 'cat'"
    name = viewing.ask("/api/t/0/select", split="train", where=[narrow, cat])["selection"]
    own = [f"label~{cat}", "width~no such condition"]
    facets = {
        each["column"]: each
        for each in viewing.ask("/api/t/0/facets", selection=name, own=own)["facets"]
    }
    assert counts(facets["label"]) == {"cat": 2, "dog": 1, "owl": 1, "none": 0}
    assert counts(facets["split"]) == {"train": 2, "test": 0, "zoo": 0}
    assert sum(counts(facets["width"]).values()) == 2
    both = f"({cat}) OR (label = 'dog')"
    name = viewing.ask("/api/t/0/select", split="train", where=[narrow, both])["selection"]
    again = viewing.ask("/api/t/0/facets", selection=name, own=f"label~{both}")["facets"]
    assert counts(next(each for each in again if each["column"] == "label")) == counts(
        facets["label"]
    )


@pytest.mark.medium
def test_classes_of_objects_are_a_facet(tmp_path: Path) -> None:
    # With more objects than a list in a catalog has values.
    found = [["cat"], ["cat", "dog", "cat"], ["d'og"], [], ["cat"] * 20]
    with tr.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        for names in found:
            sides = {f"image/object/bbox/{side}": [0.0] * len(names) for side in SIDES}
            writer.write({"image/object/class/text": names, **sides} if names else {"n": 1})
    with serving(tmp_path / "a.tfrecord") as viewing:
        viewing.wait("/api/t/0", "catalog", "ready")
        facets = viewing.ask("/api/t/0/facets")["facets"]
        [objects] = [each for each in facets if each["column"] == "objects"]
        assert counts(objects) == {"cat": 3, "dog": 1, "d'og": 1}
        for each in objects["values"]:
            assert viewing.ask("/api/t/0/select", where=each["where"])["count"] == each["of"]
        dog = objects["values"][2]["where"]
        name = viewing.ask("/api/t/0/select", where=dog)["selection"]
        inside = viewing.ask("/api/t/0/facets", selection=name)["facets"]
        assert counts(next(each for each in inside if each["column"] == "objects")) == {
            "cat": 1,
            "dog": 1,
            "d'og": 0,
        }


def test_a_facet_of_many_classes_counts_and_finds_them(tmp_path: Path) -> None:
    with tr.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(80):
            sides = {f"image/object/bbox/{side}": [0.0] for side in SIDES}
            writer.write({"image/object/class/text": [f"Class {number}'%_"], **sides})
    with serving(tmp_path / "a.tfrecord") as viewing:
        viewing.wait("/api/t/0", "catalog", "ready")
        facets = {each["column"]: each for each in viewing.ask("/api/t/0/facets")["facets"]}
        for column in ("objects", "label"):
            if column not in facets:
                continue
            assert (facets[column]["different"], len(facets[column]["values"])) == (80, 50)
            for find, texts in (
                ("CLASS 79", {"Class 79'%_"}),
                ("9'%_", {f"Class {number}9'%_" for number in ("", *range(1, 8))}),
                ("nothing", set()),
            ):
                (found,) = viewing.ask("/api/t/0/facets", column=column, find=find)["facets"]
                assert {each["text"] for each in found["values"]} == texts
                assert found["different"] == len(texts)
        assert "no facet" in viewing.error("/api/t/0/facets", 400, column='x" --')


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("values", [3, 40])
def test_facets_of_numbers_that_are_not_finite(tmp_path: Path, odd: float, values: int) -> None:
    with tr.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(values):
            writer.write({"score": number / 2})
        writer.write({"score": odd})
    with serving(tmp_path / "a.tfrecord") as viewing:
        viewing.wait("/api/t/0", "catalog", "ready")
        (facet,) = (
            each for each in viewing.ask("/api/t/0/facets")["facets"] if each["column"] == "score"
        )
        assert facet["kind"] == ("values" if values == 3 else "histogram")
        if values == 40:
            assert sum(facet["of"]) == 40
            assert (facet["edges"][0], facet["edges"][-1]) == (0, 19.5)
        odd_ones = [each for each in facet["values"] if each["text"] == str(odd)]
        assert [each["of"] for each in odd_ones] == [1]
        condition = 'isnan("score")' if math.isnan(odd) else f"\"score\" = '{odd}'::FLOAT"
        assert odd_ones[0]["where"] == condition
        viewing.ask("/api/t/0/select", where=condition)


@pytest.mark.medium
def test_numbers_of_many_values_are_a_histogram(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.integers(-1000, 1000, 200).tolist()
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(*(encode({"n": int64_feature(each)}) for each in numbers)))
    with serving(path) as viewing:
        viewing.wait("/api/t/0", "catalog", "ready")
        name = viewing.ask("/api/t/0/select", where="n >= 0")["selection"]
        facets = viewing.ask("/api/t/0/facets", selection=name)["facets"]
        found = next(each for each in facets if each["column"] == "n")
    assert found["kind"] == "histogram"
    edges = found["edges"]
    assert len(edges) == len(found["counts"]) + 1 == len(found["of"]) + 1
    expected = np.histogram(numbers, edges)[0].tolist()
    assert found["of"] == expected
    assert (
        found["counts"] == np.histogram([each for each in numbers if each >= 0], edges)[0].tolist()
    )
    assert found["column_sql"] == '"n"'


def test_keys_are_saved_as_csv(viewing: Viewing) -> None:
    name = viewing.ask("/api/t/0/select", split="test")["selection"]
    answer = viewing.client.get("/api/t/0/save", params={"selection": name, "as": "keys"})
    assert answer.headers["content-disposition"] == 'attachment; filename="keys.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(each["split"], each["record"]) for each in rows] == [("test", "0"), ("test", "1")]


def test_a_shard_that_changes_or_vanishes_is_told_on_its_records(tmp_path: Path) -> None:
    folder = write_pets(tmp_path / "pets")
    with serving(folder) as viewing:
        thumbs = [each["thumb"] for each in viewing.ask("/api/t/0/records")["records"]]
        test = folder / "pets-test.tfrecord-00000-of-00001"
        other = tmp_path / "other"
        other.write_bytes(test.read_bytes()[::-1])
        other.replace(test)  # of the same size, under the same name
        (folder / "pets-zoo.tfrecord-00000-of-00001").unlink()
        for path in ("record/1/0", "image/1/0", "thumb/1/0"):
            assert "was changed since it was opened" in viewing.error(f"/api/t/0/{path}", 409)
        assert viewing.client.get(thumbs[8]).status_code == 409
        assert "is not there any more" in viewing.error("/api/t/0/record/2/1", 409)
        records = viewing.ask("/api/t/0/records")["records"]
    assert [each["problem"] is None for each in records] == [True] * 8 + [False] * 4
    assert "was changed" in records[8]["problem"]


def test_damaged_records_say_so_and_hide_no_other(tmp_path: Path) -> None:
    folder = write_pets(tmp_path / "pets")
    flip(folder / "pets-train.tfrecord-00000-of-00001", 100)
    with serving(folder) as viewing:
        records = viewing.ask("/api/t/0/records")["records"]
        whole = viewing.ask("/api/t/0/record/0/0")
        said = viewing.error("/api/t/0/image/0/0", 400)
    assert "CRC002" in records[0]["problem"]
    assert whole["problem"] == records[0]["problem"]
    assert whole["features"] == []
    assert "CRC002" in said
    assert [each["problem"] for each in records[1:]] == [None] * 11


def test_payloads_that_are_no_example_have_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    number = encode({"label": int64_feature(7)})
    path.write_bytes(framed(b"some text", bytes(range(200, 256)), number))
    with serving(path) as viewing:
        text, others, labeled = viewing.ask("/api/t/0/records")["records"]
        whole = viewing.ask("/api/t/0/record/0/1")
        said = viewing.error("/api/t/0/image/0/1", 400)
    assert (text["kind"], text["text"]) == ("bytes", '"some text"')
    assert others["text"].startswith("56 B, c8 c9 ca")
    assert whole["hex"].startswith("c8 c9 ca")
    assert whole["features"] == []
    assert said == "the record is not a tf.train.Example | "
    assert labeled["label"] == "7"


@pytest.mark.medium
def test_a_file_that_is_no_tfrecord_is_a_damaged_shard(tmp_path: Path) -> None:
    folder = write_pets(tmp_path / "pets")
    (folder / "pets-train.tfrecord-00000-of-00001").write_bytes(b"PK\3\4" + bytes(100))
    with serving(folder) as viewing:
        told = viewing.wait("/api/t/0", "catalog", "unavailable")
        assert viewing.ask("/api/t/0/records")["of"] == 4
        said = viewing.error("/api/t/0/select", 400, where="true")
    assert [each["state"] for each in told["shards"]] == ["damaged", "ok", "ok"]
    assert "is not a TFRecord" in told["catalog"]["why"]
    assert said.startswith("there is no catalog: ")


@pytest.mark.medium
def test_a_large_target_behind_a_url_is_not_fetched_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
    store = fsspec.filesystem("memory")
    for path in write_pets(tmp_path / "pets").iterdir():
        store.pipe(f"/viewed/{path.name}", path.read_bytes())
    try:
        with serving("memory://viewed") as viewing:
            told = viewing.wait("/api/t/0", "catalog", "ready")
            assert told["records"] == 12
            assert viewing.ask("/api/t/0/findings")["state"] == "none"
        # Now it is kept, and nothing has to be fetched for it; of other bytes it is not.
        monkeypatch.setattr("tfrecreg.builtin.view.background.REMOTE_BYTES", 1000)
        store.pipe("/viewed/pets-new.tfrecord-00000-of-00001", framed(b"x"))
        with serving("memory://viewed") as viewing:
            told = viewing.wait("/api/t/0", "catalog", "unavailable")
            assert len(viewing.ask("/api/t/0/records")["records"]) == 13
    finally:
        store.rm("/viewed", recursive=True)
    assert told["catalog"]["why"] == (
        "the shards behind a URL exceed 1.0 kB, so no catalog is made automatically: "
        "`tfrecreg query memory://viewed` makes it"
    )


@pytest.mark.medium
def test_no_records_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    with serving(tmp_path / "a.tfrecord") as viewing:
        told = viewing.wait("/api/t/0", "catalog", "ready")
        assert told["records"] == 0
        assert viewing.ask("/api/t/0/records")["records"] == []
        assert viewing.ask("/api/t/0/select", where="true")["count"] == 0
        viewing.ask("/api/t/0/facets")
