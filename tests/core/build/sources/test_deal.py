"""Splits that a build asks for: any source, by shares, by groups, without moving what is there."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cases_support import count_cases
from image_support import png
from object_sources_support import OBJECT_SOURCES, write_objects

import tfrecreg as tr
from tfrecreg.testing import write_digits

SHARES = "split=train=0.8,validation=0.2"
BY_CLASS = ("split=x=0.8,y=0.2", "stratify=yes")
DEALT = {"x": {"a": 32, "b": 8, "c": 4}, "y": {"a": 8, "b": 2, "c": 1}}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn digits as MNIST's files. Read only."""
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, train=200, test=20)
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    tr.init(tmp_path / "registry", with_dvc=False)
    return tmp_path / "registry"


def coco(raw: Path, split: str, count: int) -> None:
    """Images of `count` scenes, two each, with one box an image."""
    names = (f"scene{number // 2:03}_{number % 2}.png" for number in range(count))
    write_objects("coco", raw, split, {name: [("box", (1, 1, 5, 5))] for name in names})


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def keys(build: Any) -> dict[str, set[str]]:
    """Keys of a build by split."""
    found = {}
    for each in build.manifest.splits:
        source = build.data_source(each.name)
        found[each.name] = {source.key(number) for number in range(len(source))}
    return found


def made(registry: Path, source: str, raw: Path, *options: str, **keywords: Any) -> Any:
    given = dict(each.split("=", 1) for each in options)
    return tr.open(registry)["d"].build(
        source=source, raw=raw, options=given, progress=False, **keywords
    )


def error_of(registry: Path, source: str, raw: Path, *options: str) -> tr.UsageError:
    with pytest.raises(tr.UsageError) as caught:
        made(registry, source, raw, *options)
    return caught.value


def test_one_split_of_any_source_is_dealt_by_shares(registry: Path, digits: Path) -> None:
    whole = keys(made(registry, "mnist", digits))
    build = made(registry, "mnist", digits, SHARES)
    found = keys(build)
    assert sorted(found) == ["test", "train", "validation"]
    assert found["test"] == whole["test"]
    assert found["train"] | found["validation"] == whole["train"]
    assert not found["train"] & found["validation"]
    assert len(found["validation"]) == pytest.approx(40, abs=20)
    assert build.manifest.source.options["split"] == "train=0.8,validation=0.2"
    assert build.check().status == "pass"


def test_records_are_those_of_the_source(registry: Path, digits: Path) -> None:
    def elements(build: Any, *splits: str) -> dict[str, tuple[bytes, int]]:
        found = {}
        for source in build.data_source(list(splits)):
            for number in range(len(source)):
                each = source[number]
                found[source.key(number)] = each["image/encoded"], int(each["image/class/label"])
        return found

    whole = elements(made(registry, "mnist", digits), "train")
    assert elements(made(registry, "mnist", digits, SHARES), "train", "validation") == whole


def test_groups_stay_together_and_nothing_moves(registry: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    coco(raw, "train", 60)
    options = ("split=train=0.7,test=0.3", "group=(scene[0-9]+)_")
    first = keys(made(registry, "coco", raw, *options))
    scenes = Counter(
        scene for each in first.values() for scene in {key.split("_")[0] for key in each}
    )
    assert len(scenes) == 30
    assert set(scenes.values()) == {1}
    coco(raw, "train", 90)
    second = keys(made(registry, "coco", raw, *options))
    for split, each in first.items():
        assert each < second[split]


def test_records_are_compared_with_their_raw_files(registry: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    coco(raw, "train", 20)
    build = made(registry, "coco", raw, "split=a=1,b=1")
    report = build.check(raw=raw)
    assert report.to_json()["measures"]["source.compared"] == 20
    file = next((raw / "train").iterdir())
    file.write_bytes(png(20, 10, seed=99))
    assert [each.code for each in build.check(raw=raw, only=["source"]).findings] == ["SRC017"]


def test_skipped_images_are_in_the_ledger_of_a_split(registry: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    coco(raw, "train", 20)
    (raw / "train/scene003_1.png").write_bytes(b"")  # skipped where its example is made
    (raw / "train/scene004_0.png").unlink()  # skipped while the items are listed
    build = made(registry, "coco", raw, "split=a=1,b=1", max_skipped=2)
    assert set(build.manifest.ledger) == {"a", "b"}
    skipped = sum((Counter(each.skipped) for each in build.manifest.ledger.values()), Counter())
    assert skipped == {"SRC110": 1, "SRC112": 1}
    lines = (registry / "data/d/ledger.jsonl").read_text("utf-8").splitlines()
    assert count_cases(map(json.loads, lines)) == {"SRC110 empty": 1, "SRC112 missing": 1}
    assert sum(len(each) for each in keys(build).values()) == 18


def test_repair_deals_as_the_build_did(registry: Path, digits: Path) -> None:
    made(registry, "mnist", digits, SHARES)
    built = tr.open(registry)["d"].built
    shard = next((registry / "data/d").glob("d-validation.tfrecord-*"))
    whole = shard.read_bytes()
    shard.unlink()
    built.repair()
    assert shard.read_bytes() == whole


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("imagefolder", ()),
        ("imagefolder", ("label_file=../rows.csv",)),
        ("imagefolder", ("class_pattern=^(.)",)),
        ("table", ("columns=id,class:label", "file=rows.csv", "key=id")),
    ],
)
def test_a_source_that_knows_classes_gives_each_split_its_share_of_them(
    registry: Path, tmp_path: Path, source: str, options: tuple[str, ...]
) -> None:
    counts, lines = {"a": 40, "b": 10, "c": 5}, ["id,class"]
    for name, count in counts.items():
        for number in range(count):
            path = f"{name}/{name}.{number}.png"
            write(tmp_path / f"raw/{path}", png(9, 9, seed=ord(name) * 100 + number))
            lines.append(f"{path},{name}")
    rows = tmp_path / ("raw/rows.csv" if source == "table" else "rows.csv")
    rows.write_text("\n".join(lines))
    given = (registry, source, tmp_path / "raw", *BY_CLASS, *options)
    build = made(*given)
    found = {split: Counter(key[0] for key in names) for split, names in keys(build).items()}
    assert found == DEALT
    assert made(*given, jobs=2, anew=True).digest() == build.digest()
    message = error_of(*given, "group=(.)").message
    assert "`stratify` and `group` exclude each other" in message


@pytest.mark.parametrize("source", OBJECT_SOURCES)
def test_an_image_of_objects_counts_for_its_rarest_class(
    registry: Path, tmp_path: Path, source: str
) -> None:
    images = {
        f"{name}{number}.png": [
            (each, (1, 1, 5, 5)) for each in {"a": "a", "b": "ab", "c": "abc"}[name]
        ]
        for name, count in (("a", 40), ("b", 10), ("c", 5))
        for number in range(count)
    }
    raw = tmp_path / "raw"
    write_objects(source, raw, "train", images)
    build = made(registry, source, raw, *BY_CLASS)
    found = {
        split: Counter(key.rpartition("/")[2][0] for key in names)
        for split, names in keys(build).items()
    }
    assert found == DEALT
    again = made(registry, source, raw, *BY_CLASS, jobs=2, anew=True)
    assert again.digest() == build.digest()


def test_every_source_of_single_classes_can_stratify(
    registry: Path, tmp_path: Path, digits: Path
) -> None:
    raw = tmp_path / "raw"
    for name in ["a"] * 40 + ["b"] * 10 + ["c"] * 5:
        number = len([*raw.glob("*/*")])
        write(raw / f"{name}/{name}{number}.bin", b"%d" % number)
    build = made(registry, "folder", raw, "labels=folder", "suffixes=bin", *BY_CLASS)
    assert {k: Counter(each[0] for each in v) for k, v in keys(build).items()} == DEALT
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        for path in sorted(raw.rglob("*.bin")):
            label = tmp_path / "label"
            label.write_text(str(ord(path.name[0]) - ord("a")))
            archive.add(path, f"{path.stem}.bin")
            archive.add(label, f"{path.stem}.cls")
    (tmp_path / "tar").mkdir()
    (tmp_path / "set.tar").rename(tmp_path / "tar/set.tar")
    tr.init(tmp_path / "other", with_dvc=False)
    build = made(tmp_path / "other", "webdataset", tmp_path / "tar", *BY_CLASS)
    assert {k: Counter(each[0] for each in v) for k, v in keys(build).items()} == DEALT
    tr.init(tmp_path / "third", with_dvc=False)
    build = made(tmp_path / "third", "mnist", digits, *BY_CLASS)
    sources = {split: build.data_source(split) for split in "xy"}
    labels = {
        split: Counter(int(each[n]["image/class/label"]) for n in range(len(each)))
        for split, each in sources.items()
    }
    for each, count in (labels["x"] + labels["y"]).items():
        assert abs(labels["y"][each] - count / 5) < 1
    error = error_of(registry, "folder", raw, "labels=none", *BY_CLASS)
    assert "no item of the source `folder` has one" in error.message


def test_groups_of_imagefolder_are_searched_below_the_class(registry: Path, tmp_path: Path) -> None:
    for number in range(40):
        kind = ("sick", "well")[number % 2]
        path = f"raw/{kind}/patient{number // 4}_{number % 4}.png"
        write(tmp_path / path, png(9, 9, seed=number))
    options = ("split=train=0.5,test=0.5", "group=^(patient[0-9]+)_")  # below the class
    found = keys(made(registry, "imagefolder", tmp_path / "raw", *options))
    patients = {k: {each.split("/")[1].split("_")[0] for each in v} for k, v in found.items()}
    assert sorted(patients) == ["test", "train"]
    assert not patients["test"] & patients["train"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["split=train=1,test=1"], "the source has a split `test` of its own"),
        (
            ["split=a=1,b=1", "split_of=validation"],
            "needs items of the split `validation`, but the source has no such items: ",
        ),
        (["split_of=test"], "the options `split_of`, `group` and `stratify` need `split`"),
        (["split=a=1,b=1", "split_of=te st"], "the option `split_of` is `te st`"),
        (["group=(x)"], "the options `split_of`, `group` and `stratify` need `split`"),
        (["split=a=1,b=1", "group=(nowhere)"], "`group` finds nothing in `00000`"),
        (["split=a=1,b=0.000001"], "the split `b` got no item"),
        (["stratify=yes"], "the options `split_of`, `group` and `stratify` need `split`"),
        (["splitt=a=1,b=1"], "`splitt` of `mnist` is not known; did you mean `split`?"),
    ],
)
def test_what_cannot_be_dealt_is_refused(
    registry: Path, digits: Path, options: list[str], message: str
) -> None:
    error = error_of(registry, "mnist", digits, *options)
    assert message in error.message
    assert error.exit_code == 2
