"""`tfrecreg build --source imagefolder`, as a user runs it: what is said, and the exit codes."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases_support import case
from image_support import jpeg, png
from tests_support import tree

from tfrecreg.core.registry.init import init
from tfrecreg.core.values.errors import install_command


@pytest.fixture
def build(monkeypatch, tmp_path, cli, raw) -> Callable[..., Any]:
    """``build("layout=class", "--json")`` in an empty registry, which is the current folder."""
    init(tmp_path / "registry", with_dvc=False)
    monkeypatch.chdir(tmp_path / "registry")

    def call(*options: str) -> Any:
        given = [part for each in options if each[0] != "-" for part in ("--option", each)]
        flags = [each for each in options if each[0] == "-"]
        return cli("build", "pets", "--source", "imagefolder", "--raw", raw.path, *given, *flags)

    return call


def manifest() -> Any:
    return json.loads(Path("data/pets/manifest.json").read_bytes())


def ledger() -> list[Any]:
    return [json.loads(line) for line in Path("data/pets/ledger.jsonl").read_bytes().splitlines()]


def told(line: dict[str, Any]) -> str:
    """The code of a line of the ledger, with its case."""
    return case(line["code"], line["detail"])


def test_a_folder_is_built_and_checks_clean(cli, build, raw) -> None:
    raw.puts("train/cat/1.png", "train/dog/1.png", "val/cat/2.png", "LICENSE", ".hidden")
    done = build("--json")
    assert done.code == 0, done.err
    assert done.json["splits"] == {"train": 2, "validation": 1}
    assert manifest()["labels"] == {"image/class/label": ["cat", "dog"]}
    assert json.loads(Path("data/pets/labels.json").read_bytes()) == manifest()["labels"]
    assert manifest()["codecs"].keys() == {"zlib"}
    assert manifest()["ledger"]["train"] == {
        "items": 2,
        "remarks": {"SRC015": 2},
        "skipped": {},
        "written": 2,
    }
    assert [(told(line), line["key"], line["times"]) for line in ledger()] == [
        ("SRC015", ".hidden", 1),
        ("SRC015", "LICENSE", 1),
    ]
    checked = cli("check", "pets", "--raw", raw.path)
    assert checked.code == 0, checked.out
    assert "raw files: 3 images were compared with their raw files" in checked.out
    assert "pass: 0 errors, " in checked.out
    assert build("--json").json["unchanged"] is True


def test_anything_skipped_refuses_the_build_and_leaves_the_old_one(cli, build, raw) -> None:
    raw.puts("cat/1.png", "cat/2.png")
    assert build().code == 0
    before = tree(Path("data"))
    raw.put("cat/3.png", b"")
    raw.put("cat/notes.txt", "notes")
    done = build()
    assert done.code == 1
    assert tree(Path("data")) == before
    done = build("--max-skipped=2", "--json")
    assert done.code == 0, done.err
    assert manifest()["ledger"]["train"]["skipped"] == {"SRC110": 2}
    assert list(map(told, ledger())) == ["SRC110 empty", "SRC110 format"]
    assert cli("check", "pets", "--only", "source").code == 0


@pytest.mark.parametrize(
    "options",
    [
        ["layout=flat"],
        ["layout=split"],
        ["colour=red"],
        ["split=a=1,b=1", "group=(cat)"],  # which finds nothing below the class folder
        ["resize=256"],
        ["resize=2x0", "reencode=png"],
        ["reencode=jpeg:101"],
        ["label_file=gone.csv"],
        ["label_file=../gone.csv"],
        ["label_file=/dev/null"],
        ["class_pattern=x"],
        ["class_pattern=("],
        ["class_pattern=(x)", "layout=class"],
        ["class_pattern=(x)", "label_file=x.csv"],
        ["class_pattern=(zzz)"],
    ],
)
def test_what_cannot_be_read_so_is_exit_2_in_one_line(build, raw, options) -> None:
    raw.puts("cat/1.png", "dog/1.png")
    done = build(*options)
    assert done.code == 2
    assert not Path("data/pets").exists()


@pytest.mark.parametrize(
    ("names", "option"),
    [
        (["1.png", "2.png"], "layout=auto"),
        (["train/cat/1.png", "test/1.png"], "layout=auto"),
        (["train/cat/1.png", "val/cat/1.png", "annotations/1.png"], "layout=auto"),
        (["test-dev/cat/1.png"], "layout=split"),
        (["images/cat/1.png", "images/dog/1.png"], "layout=auto"),
        (["bottle/train/good/1.png", "bottle/test/bad/1.png"], "layout=auto"),
        (["train/cat/1.png", "Train/cat/1.png"], "layout=auto"),
        (["train/Cat/1.png", "test/cat/1.png"], "layout=auto"),
        ([b"caf\xe9/1.png", "cat/1.png"], "layout=auto"),
        (["train/cat/1.png", "test/cat/1.png"], "split=train=0.5,test=0.5"),
    ],
)
def test_folders_that_can_be_read_in_two_ways_are_exit_2(build, raw, names, option) -> None:
    for name in names:
        raw.put(name)
    assert build(option).code == 2
    assert not Path("data/pets").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        b"caf\xe9.png,cat",
        "cat\nbig dog\n",
        "cat\n",  # two images
        "x.png,cat\n",
        "a.png,cat\nb.png,cat\na.png,dog\n",
        "a.png,Cat\nb.png,cat\n",
        "split,file,label\ntrain,a.png,cat\n,b.png,cat\n",
        "split,file,label\ntrain,a.png,cat\nTrain,b.png,cat\n",
        "split,file,label\nmy split,a.png,cat\nx,b.png,cat\n",
    ],
)
def test_label_files_that_cannot_be_used_are_exit_2(build, raw, text) -> None:
    raw.puts("a.png", "b.png")
    raw.put("labels.csv", text)
    assert build("label_file=labels.csv").code == 2
    assert not Path("data/pets").exists()


def test_without_pillow_decoding_is_exit_3_with_the_command_that_helps(
    build, raw, monkeypatch
) -> None:
    from tfrecreg.core.images import decoder

    raw.puts("cat/1.png")
    monkeypatch.setattr(decoder, "find_spec", lambda name: None)
    done = build("verify=decode")
    assert done.code == 3
    assert "`verify=decode` needs the extra `images`, which is not installed" in done.err
    assert install_command(extra="images") in done.err
    assert build().code == 0


def test_everything_hostile_at_once_ends_in_words(cli, build, raw, tmp_path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key.png").write_bytes(png())
    long = "x" * 251 + ".png"
    raw.puts("cat/1.png", f"cat/{long}", "cat/[/]:skull:.png", "cat/a\n\x1b[2Jb.png")
    os.mkfifo(raw.path / "cat/fifo.png")
    os.mkfifo(raw.path / "fifo")
    raw.link("cat/device.png", "/dev/zero")
    raw.link("cat/secret", "../../secret")
    raw.link("cat/loop", "loop")
    raw.link("cat/up", "..")
    raw.link("dog", "../secret")
    raw.put(b"cat/caf\xe9.png")
    raw.put("cat/zero.png", b"")
    done = build("symlinks=inside", "--max-skipped=8", "--json")
    assert done.code == 0, done.err
    assert done.json["splits"] == {"train": 4}
    assert manifest()["ledger"]["train"]["items"] == 12
    bad = {
        "cat/caf\\xe9.png": "SRC111",
        "cat/device.png": "SRC111 link",
        "cat/fifo.png": "SRC111",
        "cat/loop": "SRC111 link",
        "cat/secret": "SRC111 link",
        "cat/up": "SRC111 link",
        "cat/zero.png": "SRC110 empty",
        "dog": "SRC111 link",
        "fifo": "SRC015",
    }
    assert {line["key"]: told(line) for line in ledger()} == bad
    done = build("symlinks=all", "--max-skipped=6", "--json")
    assert done.code == 0, done.err
    assert done.json["splits"] == {"train": 6}
    del bad["cat/secret"], bad["dog"]
    bad["cat/device.png"] = "SRC111"
    assert {line["key"]: told(line) for line in ledger()} == bad
    (raw.path / "cat/loop").unlink()  # `--raw` measures all that links lead to, and says no
    checked = cli("check", "pets", "--raw", raw.path)
    assert checked.code == 0, checked.out + checked.err
    assert "6 images were compared with their raw files" in checked.out
    shown = cli("head", "pets", "-n", "20")
    assert shown.code == 0
    assert "\x1b" not in shown.out


def test_the_bytes_do_not_depend_on_the_order_of_the_folder(cli, build, raw, tmp_path) -> None:
    names = [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(20)]
    raw.puts(*names)
    assert build("--shards=3").code == 0
    first = tree(Path("data/pets"))
    other = type(raw)(tmp_path / "other")
    other.puts(*reversed(names))
    done = cli("build", "again", "--source", "imagefolder", "--raw", other.path, "--shards", "3")
    assert done.code == 0, done.err
    again = {name.replace("again", "pets"): data for name, data in tree(Path("data/again")).items()}
    first.pop("manifest.json")
    assert {name: again[name] for name in first} == first


def test_images_weigh_what_their_files_weigh(build, raw) -> None:
    chance = random.Random(0)
    for number in range(30):
        scan = chance.randbytes(100_000).replace(b"\xff", b"\xfe")
        raw.put(f"class{number % 3}/{number}.jpg", jpeg(640, 480, scan=scan))
    assert build().code == 0
    stored = sum(path.stat().st_size for path in raw.path.rglob("*.jpg"))
    assert sum(len(data) for data in tree(Path("data/pets")).values()) <= 1.01 * stored


def test_decoding_names_pillow_in_the_manifest(build, raw) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    raw.puts("cat/1.png", "dog/1.png")
    assert build("verify=decode").code == 0
    assert manifest()["codecs"].keys() == {"pillow", "zlib"}


def test_tensorflow_reads_it_by_the_feature_spec_that_is_printed(cli, build, raw) -> None:
    tf = pytest.importorskip("tensorflow")
    images = {f"{kind}/{n}.png": png(5, 4, seed=n) for kind in ("cat", "dog") for n in range(4)}
    for name, data in images.items():
        raw.put(name, data)
    assert build("--shards=1").code == 0
    space: dict[str, Any] = {"tf": tf}
    exec(cli("schema", "show", "pets", "--format", "tf").out, space)
    spec = next(
        value for value in space.values() if isinstance(value, dict) and "image/encoded" in value
    )
    (shard,) = Path("data/pets").glob("pets-train.tfrecord-*")
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(shard))]
    parsed = tf.io.parse_example(records, spec)
    found = {}
    for number in range(len(records)):
        data = parsed["image/encoded"][number].numpy()
        decoded = tf.io.decode_png(data)
        assert decoded.shape[:2] == (
            parsed["image/height"][number].numpy(),
            parsed["image/width"][number].numpy(),
        )
        kind = parsed["image/class/text"][number].numpy().decode()
        assert ["cat", "dog"][parsed["image/class/label"][number].numpy()] == kind
        found[f"{kind}/{parsed['image/filename'][number].numpy().decode()}"] = data
    assert found == images
