"""A decoder of another distribution: one class, and training, checks and pages read its format."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest
from plugin_support import install, with_site
from sources_support import new_registry, tfrecreg

PLUGIN = """
import numpy as np
from tfrecreg.api import (
    DecoderRecord, FeatureDecoder, ImageHeader, Item, RawFile, Source, SourceRecord,
    bytes_feature, hookimpl, int64_feature,
)

MAGIC = b"DPTH"

def encoded(number):
    values = number + np.arange(6, dtype="<f4").reshape(2, 3)
    return MAGIC + bytes(values.shape) + values.tobytes()

class Depths(FeatureDecoder):
    def reads(self, feature, start):
        assert len(start) <= 64
        return start.startswith(MAGIC)

    def header(self, data):
        if len(data) < 6:
            raise ValueError("a depth map that ends in its header")
        return ImageHeader("depth", data[4], data[5], 1, 32, False)

    def array(self, data):
        head = self.header(data)
        values = np.frombuffer(data[6:], "<f4").copy()
        return values.reshape(head.height, head.width, 1)

    def caption(self, data):
        head = self.header(data)
        return f"depth map, {head.width}x{head.height}"

class Rooms(Source):
    def raw_files(self):
        yield RawFile("rooms.txt", 5, 5)

    def items(self):
        for number in range(12):
            yield Item("train", str(number), 10)

    def example(self, item):
        number = int(item.key)
        data = encoded(number)
        spoiled = {
            "cut": data[:5], "short": data[:-3], "high": data,
        }
        if number == 7:
            data = spoiled.get(self.options.spoil, data)
        return {
            "depth/encoded": bytes_feature(data),
            "depth/height": int64_feature(9 if number == 7 and self.options.spoil == "high" else 2),
            "number": int64_feature(number),
        }

    def schema(self):
        return '''
feature { name: "depth/encoded" type: BYTES presence { min_fraction: 1 } shape {} image_domain {} }
feature { name: "depth/height" type: INT shape {} }
feature { name: "number" type: INT shape {} }
'''

from dataclasses import dataclass

@dataclass(frozen=True)
class Options:
    spoil: str = ""

Rooms.Options = Options

@hookimpl
def tfrecreg_sources():
    yield SourceRecord("rooms", "rooms", lambda: Rooms)

@hookimpl
def tfrecreg_decoders():
    yield DecoderRecord(name="depths", summary="depth maps", load=lambda: Depths)
"""

Image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with a distribution that has a source and a decoder."""
    folder = tmp_path_factory.mktemp("site")
    install(folder, "rooms", PLUGIN)
    return with_site(folder)


Build = Callable[[Path, str], Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory, site: dict[str, str]) -> Build:
    """``build(registry, spoil)``: a copy of a registry with that build, which is made once."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "raw").mkdir()
    (folder / "raw" / "rooms.txt").write_text("rooms")

    @cache
    def original(spoil: str) -> Path:
        made = new_registry(folder / f"registry-{spoil}")
        done = tfrecreg(
            *("-C", made, "build", "rooms", "--source", "rooms", "--raw", folder / "raw"),
            *("--option", f"spoil={spoil}", "--jobs", "2", "--records-per-shard", "5"),
            env=site,
        )
        assert done.returncode == 0, done.stderr
        return made

    return lambda registry, spoil: Path(shutil.copytree(original(spoil), registry))


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """The place for a copy."""
    return tmp_path / "registry"


def run(registry: Path, site: dict[str, str], code: str) -> subprocess.CompletedProcess[str]:
    """Python in the registry."""
    return subprocess.run(
        [sys.executable, "-c", dedent(code)],
        capture_output=True,
        text=True,
        cwd=registry,
        env={**os.environ, **site},
        timeout=120,
    )


@pytest.mark.medium
def test_training_gets_its_arrays(registry: Path, site: dict[str, str], build: Build) -> None:
    build(registry, "")
    done = run(
        registry,
        site,
        """
        import pickle, subprocess, sys, tfrecreg

        source = tfrecreg.data_source("rooms", "train", decode=True)
        array = source[3]["depth/encoded"]
        print(array.shape, array.dtype, array.flags.writeable)
        print({int(each["depth/encoded"][1, 2, 0] - each["number"][0]) for each in source})
        print(next(source.batches(4))["depth/encoded"].shape, flush=True)
        named = tfrecreg.data_source("rooms", "train", decode="depth/encoded")
        worker = "import pickle, sys; found = pickle.load(sys.stdin.buffer)[0]"
        worker += "; print(found['depth/encoded'].shape)"
        command = [sys.executable, "-c", worker]
        subprocess.run(command, input=pickle.dumps(named), check=True)
        """,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "(2, 3, 1) float32 True",
        "{5}",
        "(4, 2, 3, 1)",
        "(2, 3, 1)",
    ]


@pytest.mark.medium
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
def test_load_calls_it(registry: Path, site: dict[str, str], build: Build) -> None:
    code = """
        import tensorflow
        import tfrecreg

        def load(**more):
            return tfrecreg.load("rooms", "train", decode=True, **more)

        single = list(load())
        depths = [each["depth/encoded"].numpy()[1, 2, 0] for each in single]
        print({int(far) - int(each["number"].values[0]) for far, each in zip(depths, single)})
        for more in {}, {"batch_size": 5}, {"batch_size": 4, "drop_remainder": True}:
            each = next(iter(load(**more, shuffle=True)))["depth/encoded"]
            print(len(load(**more)), each.shape, each.dtype.name)
        try:
            load(channels=3)
        except tfrecreg.TfrecregError as error:
            print(error.message.partition(",")[0])
        try:
            list(load(registry="../short"))
        except tensorflow.errors.InvalidArgumentError as error:
            print(error.message.replace("\\n", " "))
    """
    build(registry, "")
    build(registry.with_name("short"), "short")
    done = run(registry, site, code)
    (*lines, last) = done.stdout.splitlines()
    assert lines == [
        "{5}",
        "12 (2, 3, 1) float32",
        "3 (5, 2, 3, 1) float32",
        "3 (4, 2, 3, 1) float32",
        "`depth/encoded` is decoded by a plugin",
    ], done.stderr
    assert "`depth/encoded` of record " in last
    assert "does not decode: buffer size must be a multiple of element size" in last
    assert "; its key is `7`" in last


@pytest.mark.medium
def test_without_it_the_value_is_no_image(
    registry: Path, site: dict[str, str], build: Build
) -> None:
    build(registry, "")
    code = "import tfrecreg; tfrecreg.data_source('rooms', 'train', decode=True)[0]"
    done = run(registry, {**site, "TFRECREG_DISABLE": "depths"}, code)
    assert "RefusedError: record 0 of " in done.stderr
    assert "has an image in `depth/encoded` that does not decode: " in done.stderr


@pytest.mark.medium
@pytest.mark.parametrize(
    ("spoil", "codes"),
    [("", []), ("cut", ["IMG004"]), ("high", ["IMG002"]), ("short", ["IMG005"])],
)
def test_a_check_reads_headers_and_decodes(
    registry: Path, site: dict[str, str], build: Build, spoil: str, codes: list[str]
) -> None:
    build(registry, spoil)
    config = registry / "tfrecreg.toml"
    config.write_text(config.read_text() + "[gates.rooms.limits.images]\ndecode = true\n")
    report = json.loads(tfrecreg("-C", registry, "check", "rooms", "--json", env=site).stdout)
    found = [each for each in report["findings"] if each["code"].startswith("IMG")]
    assert [each["code"] for each in found] == codes
    assert report["measures"]["images.formats"] == {"depth": 12 - (spoil == "cut")}
    assert report["measures"].get("images.decoded", 0) == 12 - (spoil in ("cut", "short"))
    off = {**site, "TFRECREG_DISABLE": "depths"}
    done = tfrecreg("-C", registry, "check", "rooms", "--json", "--cached", env=off)
    assert "should be an image with a readable header" in done.stdout
    done = tfrecreg("-C", registry, "check", "rooms", "--json", "--cached", env=site)
    assert ("IMG004" in done.stdout) == (spoil == "cut")


@pytest.mark.medium
def test_head_says_what_it_is(registry: Path, site: dict[str, str], build: Build) -> None:
    build(registry, "cut")
    done = tfrecreg("-C", registry, "head", "rooms", "-n", "12", env=site)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("depth map, 3x2") == 11
    assert done.stdout.count("5 B, unreadable: a depth map that ends in its header") == 1
    off = {**site, "TFRECREG_DISABLE": "depths"}
    assert "depth map" not in tfrecreg("-C", registry, "head", "rooms", env=off).stdout
    folder = registry.parent / "saved"
    done = tfrecreg("-C", registry, "head", "rooms", "--json", "--save", folder, env=site)
    (first, *_) = json.loads(done.stdout)["records"]
    assert first["pictures"] == [
        {
            "feature": "depth/encoded",
            "value": 0,
            "format": "depth",
            "width": 3,
            "height": 2,
            "bytes": 30,
        }
    ]
    assert all(each.suffix == ".depth" for each in folder.iterdir())


@pytest.mark.medium
def test_a_page_has_its_thumbnails_and_captions(
    registry: Path, site: dict[str, str], build: Build
) -> None:
    build(registry, "short")
    page = registry.parent / "page.html"
    done = tfrecreg("-C", registry, "report", "rooms", "--output", page, env=site)
    assert page.exists(), done.stderr
    text = page.read_text("utf-8")
    assert text.count("depth map, 3x2") >= 12
    assert "the image does not decode: buffer size must be a multiple of element size" in text
    pictures = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", text)
    found = [list(Image.open(io.BytesIO(b64decode(each))).tobytes()) for each in pictures]
    assert found[:11] == [[0, 51, 102, 153, 204, 255]] * 11
