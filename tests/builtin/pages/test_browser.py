"""Pages in a real browser: nothing is asked for, and everything works."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from browser_support import Browser, violations
from hostile_support import NAMES, hostile_report
from page_support import hostile_records
from PIL import Image

import tfrecreg
from tfrecreg.builtin.pages.collect import Surveys
from tfrecreg.builtin.pages.make import render_page
from tfrecreg.core.values.text import safe

pytestmark = pytest.mark.slow

FRAME = "figure a.frame"
WIDTH = "(document.querySelector('figure:target img')?.getBoundingClientRect().width ?? 0)"
FITS = """
    return [...document.querySelectorAll('figure:target .frame > .overlay')].every((each) => {
      const [one, other] = [each, each.parentElement.querySelector('img')]
        .map((either) => either.getBoundingClientRect());
      return Math.abs(one.width - other.width) < 1 && Math.abs(one.height - other.height) < 1;
    });
"""


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The window; a page has asked for nothing, and nothing is in the console."""
    chromium.open("about:blank")
    chromium.console()
    chromium.hosts()
    yield chromium
    chromium.resize(1400, 900)
    chromium.dark(False)
    assert chromium.console() == []
    assert chromium.hosts() <= {""}


def show(browser: Browser, path: Path) -> None:
    """Open a page, and all that is folded in it."""
    browser.open("about:blank")
    browser.open(path.as_uri())
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.until("[...document.images].every((each) => each.complete)")


def number(browser: Browser, selector: str) -> int:
    return int(browser.run("return document.querySelectorAll(arguments[0]).length", selector))


def expect_whole(browser: Browser, axe: str, path: Path, html: str, *, images: int = 0) -> None:
    """A page has so many images, fits its window, can be used by everybody, needs no script."""
    path.write_text(html, "utf-8")
    for is_dark in (False, True) if images else (False,):
        browser.dark(is_dark)
        browser.open(path.as_uri())
        assert violations(browser, axe) == []
    show(browser, path)
    assert number(browser, "img") >= images
    assert browser.run("return [...document.images].every((each) => each.naturalWidth)")
    wider = "return document.documentElement.scrollWidth - window.innerWidth"
    assert browser.run(wider) <= 0
    if images:
        enlarge(browser)
    browser.resize(400, 900)
    browser.open(path.as_uri())  # findings are folded
    assert browser.run(wider) <= 0
    browser.resize(1400, 900)
    browser.chrome("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(browser, path)
        assert number(browser, "[data-script]:not([hidden])") == 0
        assert number(browser, "h2") > 0
        if images:
            enlarge(browser)
    finally:
        browser.chrome("Emulation.setScriptExecutionDisabled", value=False)


def enlarge(browser: Browser) -> None:
    """A click on an image enlarges it with what is drawn on it, one on Close ends that."""
    script = "return document.querySelector(arguments[0]).getBoundingClientRect().width"
    before = browser.run(script, f"{FRAME} img")
    browser.click(FRAME)
    assert browser.until(WIDTH) > before
    assert browser.run(FITS)
    browser.click("figure:target .close")
    browser.until(f"{WIDTH} === 0")


def choose(browser: Browser, selector: str, value: str) -> None:
    script = """
        const each = document.querySelector(arguments[0]);
        each.value = arguments[1];
        for (const kind of ['input', 'change']) each.dispatchEvent(new Event(kind));
    """
    browser.run(script, selector, value)


def press(browser: Browser, selector: str, key: str) -> None:
    browser.run("document.querySelector(arguments[0]).focus()", selector)
    browser.press(key)


def test_a_page_works_by_mouse_and_keyboard(
    browser: Browser, axe: str, digits_original: Path, tmp_path: Path
) -> None:
    shard = next((digits_original / "data" / "digits").glob("digits-train*00000*"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(data)
    (tmp_path / "b.tfrecord").write_bytes(data[:-3])
    damaged = tfrecreg.report(str(tmp_path)).html
    path = tmp_path / "page.html"
    expect_whole(browser, axe, path, damaged, images=40)
    show(browser, path)
    findings = number(browser, ".finding")
    assert findings > 1
    shown = ".finding:not([hidden])"
    choose(browser, "[data-search]", "no finding has this")
    assert number(browser, shown) == 0
    choose(browser, "[data-search]", "")
    choose(browser, "[data-severity]", "error")
    assert 0 < number(browser, shown) <= findings
    choose(browser, "[data-severity]", "")
    choose(browser, "[data-order]", "code")
    codes = browser.run(
        "return [...document.querySelectorAll('.finding')].map((each) => each.dataset.code)"
    )
    assert codes == sorted(codes)
    for opened in (0, findings):
        press(browser, "[data-fold]", "Enter")
        assert number(browser, ".finding[open]") == opened
    press(browser, ".finding > summary", "Enter")
    assert number(browser, ".finding[open]") == findings - 1
    background = "return getComputedStyle(document.body).backgroundColor"
    before = browser.run(background)
    browser.click("[data-theme-button]")
    assert browser.run(background) != before


def test_enlarged_records_follow_the_arrows(
    browser: Browser, axe: str, digits_registry: Path, tmp_path: Path
) -> None:
    sound = tfrecreg.report("digits@1.0.0", registry=digits_registry).html
    expect_whole(browser, axe, tmp_path / "page.html", sound, images=100)
    show(browser, tmp_path / "page.html")
    seen = []
    press(browser, FRAME, "Enter")
    for key in ("Right", "Left", "Escape"):
        seen.append(browser.until("document.querySelector('figure:target')?.id"))
        browser.press(key)
    assert seen[0] == seen[2] != seen[1]
    browser.until("!document.querySelector('figure:target')")


def test_hostile_records_do_nothing(browser: Browser, axe: str, tmp_path: Path) -> None:
    out = BytesIO()
    Image.new("RGB", (80, 40)).save(out, "PNG")
    path = tmp_path / "hostile.tfrecord"
    with tfrecreg.TFRecordWriter(path) as writer:
        for record in hostile_records(out.getvalue()):
            writer.write(record)
    html = tfrecreg.report(str(path)).html
    expect_whole(browser, axe, tmp_path / "page.html", html, images=50)


def test_hostile_names_do_nothing(browser: Browser, axe: str, tmp_path: Path) -> None:
    reports = [
        hostile_report(name, target=f"{number} {safe(name)}") for number, name in enumerate(NAMES)
    ]
    for start in range(0, len(reports), 20):
        html = render_page(Surveys().page(reports[start : start + 20]))
        expect_whole(browser, axe, tmp_path / "page.html", html)


def test_other_people_s_data(browser: Browser, axe: str, realdata: Path, tmp_path: Path) -> None:
    registry = tfrecreg.init(tmp_path / "registry", with_dvc=False)
    for name, source, raw in (
        ("objects", "coco", "coco/dali"),
        ("folders", "imagefolder", "imagefolder/dali"),
    ):
        html = registry[name].build(source=source, raw=realdata / raw).report().html
        expect_whole(browser, axe, tmp_path / "page.html", html, images=40)
