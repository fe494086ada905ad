"""The viewer in a real browser on data of other people: nothing broken, nothing inaccessible."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from browser_support import Browser
from view_support import serving

import tfrecreg

pytestmark = [pytest.mark.slow, pytest.mark.realdata]

FILES = (
    "tfrecord/raccoon/data/test.record",
    "tfrecord/ydf/sentences.tfe-tfrecord",
    "tfrecord/nucleus/test_reads.fastq.tfrecord",
    "tfrecord/tfrecord-lite/test.tfrecord",
)
VIEWS = ("", "&open=0.0&position=0", "&tab=findings")
WINDOWS = ((1400, False), (1400, True), (400, False), (400, True))
"""Width in pixels, and whether dark."""
READY = """
    !document.querySelector('progress') && !document.querySelector('#catalog').innerText
    && document.querySelector('.tile .caption, #findings-view h2')
    && (!location.search.includes('open=') || document.querySelector('.facts h3'))
    && [...document.images].every((each) => each.complete)
"""


@pytest.fixture
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script that finds what people with disabilities cannot use."""
    folder = tmp_path_factory.mktemp("axe")
    wanted = ("--target", str(folder), "--no-deps", "--quiet", "axe-playwright-python")
    subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=True, timeout=300)
    return next(folder.rglob("axe.min.js")).read_text("utf-8")


def violations(browser: Browser, axe: str) -> list[str]:
    script = """;
        window.axed = null;
        axe.run(document.querySelector('dialog[open]') ?? document).then((told) => {
          window.axed = [told.violations.map((each) => `${each.id}: ${each.nodes[0].html}`)];
        });
    """
    browser.run(axe + script)
    [found] = browser.until("window.axed")
    return list(found)


def expect_whole(browser: Browser, what: str, axe: str) -> None:
    wider = "return document.documentElement.scrollWidth - window.innerWidth"
    assert browser.run(wider) <= 0, what
    broken = "return [...document.images].filter((each) => !each.naturalWidth).length"
    assert browser.run(broken) == 0, what
    assert violations(browser, axe) == [], what


def test_every_view_is_whole(
    realdata: Path,
    chromium: Browser,
    axe: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    registry = tfrecreg.init(tmp_path / "registry", with_dvc=False)
    registry["objects"].build(source="coco", raw=realdata / "coco/dali")
    registry["folders"].build(source="imagefolder", raw=realdata / "imagefolder/dali")
    targets = ["objects", "folders", *(realdata / name for name in FILES)]
    with serving(*targets, registry=tmp_path / "registry", check=True) as viewing:
        chromium.open(viewing.server.url)
        for (width, is_dark), target, view in product(WINDOWS, range(len(targets)), VIEWS):
            chromium.resize(width, 900)
            chromium.dark(is_dark)
            chromium.open(f"{viewing.server.address}?t={target}{view}")
            chromium.until(READY)
            expect_whole(chromium, f"{targets[target]}{view}, {width}, dark: {is_dark}", axe)
        assert chromium.console() == []
        host = viewing.server.address.removeprefix("http://").rstrip("/")
        assert chromium.hosts() == {host}
    chromium.resize(1400, 900)
    chromium.dark(False)
