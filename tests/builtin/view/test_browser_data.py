"""The viewer in a real browser on data of other people: nothing broken, nothing inaccessible."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from browser_support import Browser, violations
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
WINDOWS = ((1400, True), (400, False))
"""Width in pixels, and whether dark."""
READY = """
    !document.querySelector('progress') && !document.querySelector('#catalog').innerText
    && document.querySelector('.tile .caption, #findings-view h2')
    && (!location.search.includes('open=') || document.querySelector('.facts h3'))
    && [...document.images].every((each) => each.complete)
"""


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
