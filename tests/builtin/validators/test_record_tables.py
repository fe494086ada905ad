"""Records that are read by their layout, hundreds at once, say what each of them says."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from check_support import Document, document, framed
from hypothesis import given, settings
from hypothesis import strategies as st
from image_support import jpeg, png

from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.records import batch_columns as columns

VALIDATORS = ("annotations", "duplicates", "images", "inflation")


def row(number: int, **changes: Feature) -> bytes:
    features = {
        "image/encoded": bytes_feature(png(9, 7, seed=number)),
        "image/format": bytes_feature(b"png"),
        "image/height": int64_feature(7),
        "image/width": int64_feature(9),
        "image/class/label": int64_feature(number % 10),
        "image/class/text": bytes_feature(f"class {number % 10}"),
    }
    return encode({**features, **{f"image/{name}": each for name, each in changes.items()}})


@pytest.fixture
def planted(tmp_path: Path) -> list[Path]:
    """Two splits with something of everything, most of it of one layout."""
    dice = random.Random(5)
    changes: list[dict[str, Feature]] = [
        {"format": bytes_feature(b"jpeg")},
        {"format": bytes_feature(b"PNG")},
        {"height": int64_feature(8)},
        {"width": int64_feature(8)},
        {"encoded": bytes_feature(b"no image at all")},
        {"encoded": bytes_feature(png(9, 7)[:-12])},
        {"encoded": bytes_feature(jpeg(9, 7)), "format": bytes_feature(b"jpg")},
        {"channels": int64_feature(1)},
        {"class/label": int64_feature(77)},
        {"class/text": bytes_feature(b"another class")},
        {"class/label": int64_feature(-1)},
        {"class/label": int64_feature([1, 2])},
        {"object/bbox/xmin": float_feature(2.0)},
        {"encoded": bytes_feature([])},
    ]
    paths = []
    for split in ("train", "test"):
        payloads = [row(dice.randrange(400)) for _ in range(300)]
        payloads += [row(dice.randrange(400), **change) for change in changes]
        payloads += [b"\xff\xff", b"", encode({"x": int64_feature(1)})]
        payloads += [row(1, data=bytes_feature(os.urandom(10) * 300))] * 40
        dice.shuffle(payloads)
        for shard in range(2):
            path = tmp_path / f"x-{split}.tfrecord-{shard:05d}-of-00002"
            path.write_bytes(framed(*payloads[shard::2]))
            paths.append(path)
    return paths


def look(paths: list[Path]) -> Document:
    return document(paths, only=VALIDATORS)


def test_what_is_found_is_the_same_either_way(
    planted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_table = look(planted)
    monkeypatch.setattr(columns, "_WORTH_IT", 1 << 40)
    one_by_one = look(planted)
    assert by_table == one_by_one
    codes = {each["code"] for each in by_table["findings"]}
    assert codes >= {
        "ANN001",
        "ANN007",
        "DUP001",
        "DUP002",
        "IMG001",
        "IMG002",
        "IMG003",
        "IMG004",
    }


@pytest.mark.parametrize("least", [32, 1 << 40])
@pytest.mark.parametrize(
    ("name", "wrong", "code", "detail"),
    [
        ("format", bytes_feature(b"gif"), "IMG001", "declared `gif`, found `png`"),
        ("height", int64_feature(8), "IMG002", "declared 8, found 7"),
        ("width", int64_feature(8), "IMG002", "declared 8, found 9"),
        ("channels", int64_feature(4), "IMG003", "declared 4, found 3"),
    ],
)
def test_each_declared_field_is_compared_in_each_record(
    least: int,
    name: str,
    wrong: Feature,
    code: str,
    detail: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "_WORTH_IT", least)
    payloads = [row(number, channels=int64_feature(3)) for number in range(100)]
    payloads[61] = row(61, **{"channels": int64_feature(3), name: wrong})
    path = tmp_path / "x-train.tfrecord-00000-of-00001"
    path.write_bytes(framed(*payloads))
    (finding,) = document([path], only=("images",))["findings"]
    assert (finding["code"], finding["count"]) == (code, 1)
    assert [(each["record"], each["detail"]) for each in finding["locations"]] == [(61, detail)]


ANY_CHANGE = st.fixed_dictionaries(
    {},
    optional={
        "encoded": st.sampled_from(
            [png(9, 7), png(9, 7)[:-12], jpeg(9, 7), b"", b"no image at all"]
        ).map(bytes_feature),
        "format": st.sampled_from([b"png", b"jpg", b"PNG", b""]).map(bytes_feature),
        "height": st.integers(6, 8).map(int64_feature),
        "width": st.integers(8, 10).map(int64_feature),
        "channels": st.integers(0, 4).map(int64_feature),
        "class/label": st.integers(-1, 11).map(int64_feature),
        "class/text": st.sampled_from([b"class 1", b"class 2", b"\xff", b""]).map(bytes_feature),
        "object/bbox/xmin": st.sampled_from([0.0, 0.5, 1.5, -0.25]).map(float_feature),
        "object/bbox/xmax": st.sampled_from([0.0, 0.5, 1.5]).map(float_feature),
        "pixels": st.integers(0, 3).map(lambda n: float_feature([0.5 * n] * 27)),
    },
)


@pytest.mark.slow
@settings(max_examples=60)
@given(changes=st.lists(ANY_CHANGE, min_size=1, max_size=60), splits=st.integers(1, 2))
def test_any_records_give_the_same_findings_either_way(
    changes: list[dict[str, Feature]], splits: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        payloads = [row(number % 20) for number in range(40)]
        payloads += [row(number % 20, **change) for number, change in enumerate(changes)]
        paths = []
        for number in range(splits):
            path = Path(folder, f"x-{('train', 'test')[number]}.tfrecord-00000-of-00001")
            path.write_bytes(framed(*payloads[number::splits]))
            paths.append(path)
        patch.setattr(columns, "_WORTH_IT", 8)
        by_table = look(paths)
        patch.setattr(columns, "_WORTH_IT", 1 << 40)
        assert look(paths) == by_table


def test_a_label_map_is_held_against_either_way(
    planted: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrecreg.core.registry.init import init

    init(tmp_path / "registry", with_dvc=False)
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"class {number}" for number in range(9)))
    with (tmp_path / "registry/tfrecreg.toml").open("a") as config:
        config.write(f"\n[gates.default]\nlimits.annotations.label_map = '{names}'\n")
    found = []
    for least in (32, 1 << 40):
        monkeypatch.setattr(columns, "_WORTH_IT", least)
        found.append(document(planted, tmp_path / "registry", only=("annotations",)))
    assert found[0] == found[1]
    counts = {each["code"]: each["count"] for each in found[0]["findings"]}
    assert counts["ANN007"] >= 1
    assert counts["ANN004"] > 20
