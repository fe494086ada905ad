"""Pages in a real browser, without a network: nothing is asked for, and everything works."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hostile_support import NAMES, hostile_report
from page_support import hostile_records
from PIL import Image

import tfrecreg
from tfrecreg.builtin.pages.collect import Surveys
from tfrecreg.builtin.pages.render import render_page
from tfrecreg.core.values.text import safe

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("browser_program.py")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Opens pages in the browser, and returns what it told of them, in order."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("there is no Chromium: `apt-get install chromium`")
    folder = tmp_path_factory.mktemp("browser")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    wanted = ("playwright", "axe-playwright-python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True, timeout=300)

    def looked(*pages: str, schemes: str = "light,dark") -> list[dict[str, Any]]:
        paths = []
        for number, html in enumerate(pages):
            path = folder / f"{number}.html"
            path.write_text(html, "utf-8")
            paths.append(str(path))
        done = subprocess.run(
            [python, str(PROGRAM), browser, schemes, *paths],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        return [told[path] for path in paths]

    return looked


def expect_quiet(told: dict[str, Any]) -> None:
    assert told["console"] == []
    assert told["dialogs"] == []
    assert told["requests"] == []
    assert told["violations"] == []
    assert told["broken"] == 0
    assert told["overflow"] <= 0
    assert told["overflow_narrow"] <= 0
    assert all(told["enlarged_without_script"].values())
    assert told["without_script"] == 0
    assert told["sections"] > 0


def test_a_page_works_by_mouse_and_keyboard(
    look: Any, digits_original: Path, tmp_path: Path
) -> None:
    shard = next((digits_original / "data" / "digits").glob("digits-train*00000*"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(data)
    (tmp_path / "b.tfrecord").write_bytes(data[:-3])
    damaged = tfrecreg.report(str(tmp_path)).html
    sound = tfrecreg.report("digits@1.0.0", registry=digits_original).html
    looked = look(damaged, sound)
    assert "all" in looked[0]["used"]
    for told, images in zip(looked, (40, 100), strict=True):
        expect_quiet(told)
        assert told["images"] > images
        used = told["used"]
        assert told["enlarged_without_script"]["enlarged"]
        assert used["enlarged"]
        assert used["overlay_fits"]
        assert used["closed"]
        assert used["by_arrows"]
        assert used["closed_by_key"]
        assert used["theme_changes"]
        if "all" in used:
            assert used["all"] > 1
            assert used["filtered"] == 0
            assert 0 < used["errors"] <= used["all"]
            assert used["by_code"] == sorted(used["by_code"])
            assert used["unfolded"] == used["all"]
            assert used["folded"] == 0
            assert used["one_unfolded"] == 1


def test_hostile_records_do_nothing(look: Any, tmp_path: Path) -> None:
    out = BytesIO()
    Image.new("RGB", (80, 40)).save(out, "PNG")
    path = tmp_path / "hostile.tfrecord"
    with tfrecreg.TFRecordWriter(path) as writer:
        for record in hostile_records(out.getvalue()):
            writer.write(record)
    (told,) = look(tfrecreg.report(str(path)).html, schemes="light")
    expect_quiet(told)
    assert told["images"] > 50
    assert told["used"]["overlay_fits"]


def test_hostile_names_do_nothing(look: Any) -> None:
    reports = [
        hostile_report(name, target=f"{number} {safe(name)}") for number, name in enumerate(NAMES)
    ]
    pages = [
        render_page(Surveys().page(reports[start : start + 40]))
        for start in range(0, len(reports), 40)
    ]
    for told in look(*pages, schemes="light"):
        expect_quiet(told)


def test_other_people_s_data(look: Any, realdata: Path, tmp_path: Path) -> None:
    registry = tfrecreg.init(tmp_path, with_dvc=False)
    pages = []
    for name, source, raw in (
        ("objects", "coco", "coco/dali"),
        ("folders", "imagefolder", "imagefolder/dali"),
    ):
        build = registry[name].build(source=source, raw=realdata / raw)
        pages.append(build.report().html)
    for told in look(*pages):
        expect_quiet(told)
        assert told["images"] > 40
