"""The programs in `examples/`, run as `examples/README.md` shows them, each in a fresh folder."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from guide_support import run, type_in

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))

QUICK = ("by_hand.py", "imagenet_input.py --framework numpy")
"""They need neither TensorFlow nor more than two seconds."""

LEAST = {"mnist_keras.py": 0.95, "image_folder.py": 0.8, "coco_boxes.py": 0.9}
"""Test accuracy on made data. By chance it is 0.1 for digits, 0.25 for shapes."""

CONSOLE = re.compile(r"^```console\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [block["text"] for block in CONSOLE.finditer((EXAMPLES / "README.md").read_text("utf-8"))]


def program(text: str) -> str:
    """The program that a block or a command runs, with its arguments."""
    found = re.match(r"(?:\$ )?python examples/(.*)", text)
    assert found
    return found[1]


def masked(text: str) -> str:
    """Without what depends on the versions of zlib, Pillow and TensorFlow."""
    text = re.sub(r"(content) [0-9a-f]{12}", r"\1 …", text)
    text = re.sub(r"accuracy [01]\.\d+", "accuracy …", text)
    text = re.sub(r"\d+( bytes, shards )\d+: \d\.\d+", r"…\1…: …", text)
    return re.sub(r"(record 0), offset .*", r"\1, …", text)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty folder but for a link to the examples."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    return tmp_path


@pytest.fixture
def env() -> dict[str, str]:
    """This environment, where `python` and `tfrecreg` are those of the tests."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }


def accuracy(printed: str) -> float:
    """The test accuracy that a program printed."""
    (found,) = re.findall(r"^test accuracy ([01]\.\d{3})$", printed, re.MULTILINE)
    return float(found)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block,
            id=program(block),
            marks=() if program(block) in QUICK else pytest.mark.slow,
        )
        for block in BLOCKS
    ],
)
def test_a_program_prints_what_the_readme_shows(
    block: str, here: Path, env: dict[str, str]
) -> None:
    name = program(block)
    if name not in QUICK and find_spec("tensorflow") is None:
        pytest.skip("the extra `tf` is missing")
    printed = type_in(here, env, block, masked=masked)
    if name in LEAST:
        assert accuracy(printed) >= LEAST[name]
    if name == "coco_boxes.py":
        expect_drawn(here / "coco-registry/contact-sheet.png")


def expect_drawn(sheet: Path) -> None:
    """A contact sheet has red boxes, and masks that turn bright shapes blue."""
    from PIL import Image

    with Image.open(sheet) as image:
        assert image.size == (640, 480)
        pixels = np.asarray(image.convert("RGB"))
    red, green, blue = np.moveaxis(pixels.astype(int), -1, 0)
    assert np.mean((red == 255) & (green == 0) & (blue == 0)) > 0.01
    assert np.mean((red < 130) & (green > 130) & (blue > 180)) > 0.02


@pytest.mark.slow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
def test_tf_data_prints_what_numpy_prints(here: Path, env: dict[str, str]) -> None:
    (block,) = (each for each in BLOCKS if "--framework numpy" in each)
    type_in(here, env, block.replace("numpy", "tf"), masked=masked)


def test_the_readme_shows_every_program() -> None:
    shown = {program(block).partition(" ")[0] for block in BLOCKS}
    assert shown == set(PROGRAMS) - {"sample_data.py"}
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    assert readme.count("```") == 2 * len(BLOCKS)
    for name in PROGRAMS:
        assert f"[`{name}`]({name})" in readme


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", (EXAMPLES / "README.md").read_text("utf-8")):
        assert (EXAMPLES / target).exists(), target


# With real data.


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
def test_mnist_is_learnt_from_its_test_images(
    realdata: Path, here: Path, env: dict[str, str]
) -> None:
    for file in (realdata / "mnist/mnist-t10k").glob("t10k-*"):
        (here / "raw").mkdir(exist_ok=True)
        shutil.copy(file, here / "raw")
    splits = "--train 'test[:80%]' --test 'test[80%:]'"
    printed = run(
        here, env, f"python examples/mnist_keras.py --raw raw --epochs 3 {splits} 2>/dev/null"
    )
    assert "'test': 10000" in printed
    assert accuracy(printed) >= 0.95


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
def test_a_folder_of_real_images_is_stored_at_raw_size(
    realdata: Path, here: Path, env: dict[str, str]
) -> None:
    raw = realdata / "mnist/two-class/training-images-insta"
    printed = run(here, env, f"python examples/image_folder.py --raw {raw} 2>/dev/null")
    assert "test: 19 images\ntrain: 83 images" in printed
    assert accuracy(printed) > 0.6


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
def test_real_objects_are_drawn_and_cropped(
    realdata: Path, here: Path, env: dict[str, str]
) -> None:
    splits = "--train 'train[:80%]' --test 'train[80%:]'"
    raw = realdata / "coco/dali"
    command = f"python examples/coco_boxes.py --raw {raw} {splits} --epochs 1 2>/dev/null"
    printed = run(here, env, command)
    assert "{'train': 61}\ncontact-sheet.png: 640 x 480 pixels" in printed
    assert 0 <= accuracy(printed) <= 1  # 91 objects of 17 classes do not teach much


@pytest.mark.slow
@pytest.mark.realdata
def test_hosts_share_real_images_of_many_sizes(
    realdata: Path, here: Path, env: dict[str, str]
) -> None:
    raw = realdata / "imagefolder/dali"
    printed = run(here, env, f"python examples/imagenet_input.py --raw {raw} --hosts 3")
    for epoch in range(2):
        assert f"epoch {epoch}: 47 images, 47 different ones of 47" in printed
