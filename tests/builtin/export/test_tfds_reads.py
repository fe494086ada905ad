"""TensorFlow Datasets itself reads what was exported, and finds what went in."""

from __future__ import annotations

import base64
import gzip
import re
import shutil
import struct
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrecreg.builtin.export.run import export
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.shards import ShardPolicy

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[3] / "docs/export.md"
TRAIN, TEST = 300, 50


def array(value: dict[str, Any]) -> np.ndarray:
    data = base64.b64decode(value["values"])
    return np.frombuffer(data, value["dtype"]).reshape(value["shape"])


def texts(value: dict[str, Any]) -> Any:
    assert value["dtype"] == "string"
    found = [base64.b64decode(each) for each in value["values"]]
    return found if value["shape"] else found[0]


def idx(path: Path) -> np.ndarray:
    data = gzip.decompress(path.read_bytes())
    dims = struct.unpack_from(f">{data[3]}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims)


def png(pixels: np.ndarray) -> bytes:
    """An image as PNG: u8 or u16, (height, width, 1 to 4)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    height, width, channels = pixels.shape
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, pixels.dtype.itemsize * 8, colour, 0, 0, 0)
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with releases of drawn digits: plain, gzip, and as raw pixels."""
    root = tmp_path_factory.mktemp("digits")
    init(root, with_dvc=False)
    write_digits(LocalStorage(root / "raw"), train=TRAIN, test=TEST, seed=4)
    (root / "datasets").mkdir(exist_ok=True)
    for name in ("digits", "digits_gzip", "digits_raw"):
        (root / f"datasets/{name}.toml").write_text(
            'owner = "ada"\nlicense = "CC0-1.0"\n'
            f'description = "Drawn digits. Über {name}."\ncitation = "@misc{{digits}}"\n',
            encoding="utf-8",
        )
    for name, compression, encoding in (
        ("digits", "none", "png"),
        ("digits_gzip", "gzip", "png"),
        ("digits_raw", "none", "raw"),
    ):
        request = BuildRequest(
            name=name,
            source="mnist",
            raw=str(root / "raw"),
            policy=ShardPolicy(shards=3),
            compression=compression,
            options={"encoding": encoding},
        )
        build(open_registry(root), request)
        note = ReleaseRequest(name=name, version="1.2.3", note="drawn anew")
        release(open_registry(root), note)
    return root


@pytest.fixture(scope="module")
def exported(digits: Path, tmp_path_factory: pytest.TempPathFactory, read_tfds) -> list[Any]:
    """What TFDS reads of the release, of its gzip, of the build and of the raw pixels."""
    folders = []
    for reference in ("digits@latest", "digits_gzip@1.2.3", "digits", "digits_raw"):
        folders.append(tmp_path_factory.mktemp("exported") / "out")
        export(open_registry(digits), reference, folders[-1])
    return [*read_tfds(*folders), folders[0]]


def test_digits_come_back_pixel_by_pixel(digits: Path, exported: list[Any]) -> None:
    plain, unpacked, build, *_ = exported
    for split, word, count in (("train", "train", TRAIN), ("test", "t10k", TEST)):
        pixels = idx(digits / f"raw/{word}-images-idx3-ubyte.gz")
        labels = idx(digits / f"raw/{word}-labels-idx1-ubyte.gz")
        pairs = zip(pixels, labels, strict=True)
        wanted = Counter((image.tobytes(), int(label)) for image, label in pairs)
        for found in (plain, unpacked, build):
            examples = found["splits"][split]
            assert len(examples) == count == sum(found["shard_lengths"][split])
            for each in examples:
                assert each["image/encoded"]["shape"] == [28, 28, 1]
                assert each["image/encoded"]["dtype"] == "uint8"
                assert each["image/class/label"]["dtype"] == "int64"
                assert array(each["image/height"]) == array(each["image/width"]) == 28
                assert texts(each["image/format"]) == b"png"
            read = Counter(
                (array(each["image/encoded"]).tobytes(), int(array(each["image/class/label"])))
                for each in examples
            )
            assert read == wanted
        # With the very same shards even the order is that of the shards.
        assert plain["splits"][split] == build["splits"][split]


def test_what_tfds_knows_of_the_digits(digits: Path, exported: list[Any]) -> None:
    found, _, _, raw, folder = exported
    assert (found["name"], found["version"]) == ("digits", "1.2.3")
    assert found["description"] == "Drawn digits. Über digits."
    assert found["citation"] == "@misc{digits}"
    assert found["license"] == "CC0-1.0"
    assert found["release_notes"] == {"1.2.3": "drawn anew"}
    assert found["metadata"]["tfrecreg"]["reference"] == "digits@1.2.3"
    assert found["metadata"]["tfrecreg"]["owner"] == "ada"
    assert found["supervised_keys"] == ["image/encoded", "image/class/label"]
    assert found["names"]["image/class/label"] == list("0123456789")
    assert found["features"]["image/encoded"] == "Image(shape=(28, 28, 1), dtype=uint8)"
    shards = list(folder.glob("*.tfrecord-*"))
    framing = 16 * (TRAIN + TEST)
    assert found["dataset_size"] == sum(path.stat().st_size for path in shards) - framing
    stored = sum(path.stat().st_size for path in (digits / "raw").iterdir())
    assert found["download_size"] == stored
    assert (raw["version"], raw["supervised_keys"]) == ("0.0.0", None)
    pixels = idx(digits / "raw/t10k-images-idx3-ubyte.gz")
    read = Counter(texts(each["image/raw"]) for each in raw["splits"]["test"])
    assert read == Counter(image.tobytes() for image in pixels)


SCHEMA = """
feature { name: "id" type: BYTES presence { min_fraction: 1 } shape {} }
feature { name: "a" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "a/b" type: FLOAT presence { min_fraction: 1 } shape {} }
feature { name: "a/b/c" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "word" type: BYTES presence { min_fraction: 1 } shape {}
          string_domain { value: "ä" value: "b" } }
feature { name: "maybe/int" type: INT shape {} }
feature { name: "maybe/word" type: BYTES natural_language_domain {} }
feature { name: "maybe/image" type: BYTES image_domain {} }
feature { name: "images" type: BYTES image_domain {} value_count { min: 0 } }
feature { name: "pair" type: BYTES presence { min_fraction: 1 } shape { dim { size: 2 } }
          image_domain {} }
feature { name: "box" type: FLOAT presence { min_fraction: 1 }
          shape { dim { size: 2 } dim { size: 3 } } }
feature { name: "maybe/box" type: FLOAT shape { dim { size: 2 } dim { size: 3 } } }
feature { name: "rows" type: INT presence { min_fraction: 1 } shape { dim {} dim { size: 2 } } }
feature { name: "maybe/rows" type: INT shape { dim {} dim { size: 2 } } }
feature { name: "grid" type: INT shape { dim {} dim {} } }
feature { name: "counted" type: INT presence { min_fraction: 1 } value_count { min: 3 max: 3 } }
feature { name: "many" type: FLOAT presence { min_fraction: 1 } value_count { min: 1 } }
feature { name: "labels" type: INT presence { min_fraction: 1 } }
feature { name: "label" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "two/labels" type: INT presence { min_fraction: 1 } shape { dim { size: 2 } } }
feature { name: "square/labels" type: INT presence { min_fraction: 1 }
          shape { dim { size: 2 } dim { size: 1 } } }
feature { name: "old" type: INT lifecycle_stage: DEPRECATED }
sparse_feature { name: "sparse" index_feature { name: "rows" } value_feature { name: "many" } }
"""


def test_every_form_of_feature_comes_back(place_build, tmp_path: Path, read_tfds) -> None:
    rng = np.random.default_rng(5)
    grey, rgb, small = (
        rng.integers(0, 256, shape, np.uint8) for shape in ((4, 5, 1), (4, 5, 3), (2, 2, 3))
    )
    full = {
        "id": bytes_feature(b"\x00\xff not UTF-8"),
        "a": int64_feature(-(2**63)),
        "a/b": float_feature(0.1),
        "a/b/c": int64_feature(2**63 - 1),
        "word": bytes_feature("ä"),
        "maybe/int": int64_feature(7),
        "maybe/word": bytes_feature("ß"),
        "maybe/image": bytes_feature(png(grey)),
        "images": bytes_feature([png(rgb), png(rgb[::-1]), png(rgb[:, ::-1])]),
        "pair": bytes_feature([png(small), png(small[::-1])]),
        "box": float_feature([1, 2, 3, 4, 5, 6]),
        "maybe/box": float_feature([1, 2, 3, 4, 5, 6]),
        "rows": int64_feature([1, 2, 3, 4]),
        "maybe/rows": int64_feature([5, 6]),
        "grid": int64_feature([1, 2, 3]),
        "counted": int64_feature([3, 2, 1]),
        "many": float_feature([0.5]),
        "labels": int64_feature([1, 0, 1]),
        "label": int64_feature(1),
        "two/labels": int64_feature([0, 1]),
        "square/labels": int64_feature([1, 0]),
        "old": bytes_feature("of another type"),
    }
    scant = {
        name: feature for name, feature in full.items() if "maybe" not in name and name != "grid"
    }
    scant |= {
        "images": bytes_feature([]),
        "rows": int64_feature([]),
        "labels": unset_feature(),
    }
    names = {
        "label": ["no", "yes"],
        "labels": ["cat", " dog "],
        "two/labels": ["same", "same"],
        "square/labels": ["x", "y"],
    }
    registry = place_build(
        {"train": [[full], [], [scant, full]], "empty": [[]]}, SCHEMA, labels=names
    )
    result = export(registry, "things", tmp_path / "out")
    (found,) = read_tfds(tmp_path / "out")
    assert found["shard_lengths"] == {"train": [1, 0, 2], "empty": [0]}
    first, second, third = found["splits"]["train"]
    assert first == third
    assert set(first) == set(full) - {"old"} == set(second)
    for name in ("id", "word"):
        assert texts(first[name]) == full[name].values[0]
    for name in ("a", "a/b", "a/b/c", "label"):
        assert first[name]["shape"] == []
        assert array(first[name]) == np.array(full[name].values[0], first[name]["dtype"])
    assert first["a/b"]["dtype"] == "float32"
    for name in ("maybe/int", "grid", "counted", "many", "labels", "two/labels"):
        assert first[name]["shape"] == [full[name].count]
        assert array(first[name]).tolist() == list(full[name].values)
    assert texts(first["maybe/word"]) == ["ß".encode()]
    assert array(first["maybe/image"]).tolist() == [grey.tolist()]
    assert array(first["images"])[1].tolist() == rgb[::-1].tolist()
    assert array(first["pair"]).tolist() == [small.tolist(), small[::-1].tolist()]
    assert array(first["box"]).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert array(first["maybe/box"]).tolist() == [[[1, 2, 3], [4, 5, 6]]]
    assert array(first["rows"]).tolist() == [[1, 2], [3, 4]]
    assert array(first["maybe/rows"]).tolist() == [[5, 6]]
    assert array(first["square/labels"]).tolist() == [[1], [0]]
    for name, shape in {
        "maybe/int": [0],
        "maybe/word": [0],
        "maybe/image": [0, 4, 5, 1],
        "images": [0, 4, 5, 3],
        "maybe/box": [0, 2, 3],
        "rows": [0, 2],
        "maybe/rows": [0, 2],
        "grid": [0],
        "labels": [0],
    }.items():
        assert second[name]["shape"] == shape, name
    assert found["names"]["label"] == ["no", "yes"]
    assert found["names"]["labels"] == ["cat", "1"]
    assert found["names"]["two/labels"] == ["same", "1"]
    assert found["names"]["square/labels"] is None
    assert found["supervised_keys"] is None
    assert any("`sparse` are exported as their component features" in n for n in result.notes)


IMAGES = """
feature { name: "image" type: BYTES presence { min_fraction: 1 } shape {} image_domain {} }
"""
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


def test_images_come_back_in_their_channels(place_build, tmp_path: Path, read_tfds) -> None:
    rng = np.random.default_rng(6)
    sets = [(1,), (2,), (3,), (4,), (1, 3), (3, 4), (2, 4), (1, 2, 4)]
    images: dict[Path, list[np.ndarray]] = {}
    for channels in sets:
        for dtype in (np.uint8, np.uint16):
            folder = tmp_path / f"{channels}-{dtype.__name__}"
            most = np.iinfo(dtype).max
            made = [rng.integers(0, most, (3, 4 + n, n), dtype, endpoint=True) for n in channels]
            examples = [{"image": bytes_feature(png(each))} for each in made]
            export(place_build({"train": [examples]}, IMAGES), "things", folder)
            shutil.rmtree(tmp_path / "registry-root")
            images[folder] = made
    for found, made in zip(read_tfds(*images), images.values(), strict=True):
        channels = {each.shape[2] for each in made}
        wanted = channels.pop() if channels in ({1}, {3}) else 3 if {1, 3} & channels else 4
        for example, pixels in zip(found["splits"]["train"], made, strict=True):
            decoded = array(example["image"])
            assert decoded.dtype == pixels.dtype
            assert decoded.shape == (*pixels.shape[:2], wanted)
            count = pixels.shape[2]
            if count < 3 <= wanted:  # grey is repeated
                assert all((decoded[..., n] == pixels[..., 0]).all() for n in range(3))
                assert wanted == 3 or (decoded[..., 3] == pixels[..., -1]).all()
            else:
                same = min(count, wanted)
                assert (decoded[..., :same] == pixels[..., :same]).all()


def test_other_images(place_build, tmp_path: Path, read_tfds) -> None:
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    deep = np.arange(12, dtype=np.uint16).reshape(3, 4, 1) * 5000
    sets = {
        "gif": [GIF, GIF],
        "gif-and-png": [GIF, png(grey)],
        "webp": [png(grey), b"RIFF\x04\0\0\0WEBP"],
        "mixed-depth": [png(grey), png(deep)],
    }
    for name, values in sets.items():
        examples = [{"image": bytes_feature(value)} for value in values]
        export(place_build({"train": [examples]}, IMAGES), "things", tmp_path / name)
        shutil.rmtree(tmp_path / "registry-root")
    gif, both, webp, depths = read_tfds(*(tmp_path / name for name in sets))
    assert [each["image"]["shape"] for each in gif["splits"]["train"]] == [[1, 1, 1, 3]] * 2
    assert [texts(each["image"]) for each in both["splits"]["train"]] == sets["gif-and-png"]
    assert [texts(each["image"]) for each in webp["splits"]["train"]] == sets["webp"]
    first, second = (array(each["image"]) for each in depths["splits"]["train"])
    assert first.dtype == np.uint8
    assert (first == grey).all()
    assert (second == deep >> 8).all()


def test_the_page_on_export_works_as_written(digits: Path, tmp_path: Path, run_tfds) -> None:
    export(open_registry(digits), "digits@1.2.3", tmp_path / "digits-tfds")
    export(open_registry(digits), "digits@1.2.3", tmp_path / "datasets/digits/1.2.3")
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCS.read_text("utf-8"), re.M | re.S)
    blocks = [block for block in blocks if "import tensorflow_datasets" in block]
    assert len(blocks) == 2
    program = "\n".join(f"exec({block!r}, {{}})" for block in blocks)
    done = run_tfds("-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
