"""The viewer in a real browser: what a user sees and does, and what hostile data do not."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from browser_support import Browser
from diff_support import example, put_build, put_release
from hostile_support import NAMES
from image_support import png
from view_support import serving

import tfrecreg
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

RECORDS = 60_000
MANY, FIRST, SECOND, HOSTILE, DAMAGED, NAMED = range(6)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
MARKUP = ("<img src=x onerror=alert(1)>", "<script>alert(1)</script>", '"><svg onload=alert(1)>')
READY = "!document.querySelector('#grid-view').hidden && document.querySelector('.tile .caption')"


def write_many(path: Path) -> None:
    with tfrecreg.TFRecordWriter(path, index=True) as writer:
        for number in range(RECORDS):
            writer.write({"label": number % 10, "square": number * number}, key=f"key {number}")


def write_named(path: Path) -> None:
    with tfrecreg.TFRecordWriter(path) as writer:
        for number in range(400):
            writer.write({"name": f"the 'last' of {number % 200}", "n": number})


def write_hostile(path: Path) -> None:
    names = [*MARKUP, *(name for name in NAMES if name.isprintable() and name.strip())][:60]
    with tfrecreg.TFRecordWriter(path) as writer:
        for number, name in enumerate(names):
            image = SVG if number % 2 else png(8, 8, seed=number)
            labels = {"image/class/text": name, "image/class/label": number}
            writer.write({"image/encoded": image, "caption": name, name: name, **labels})


def write_damaged(path: Path) -> None:
    with tfrecreg.TFRecordWriter(path) as writer:
        for number in range(100):
            writer.write({"text": f"The text of record {number}.", "label": number})
    data = path.read_bytes()
    path.write_bytes(data.replace(b"record 50.", b"record 5O."))


@pytest.fixture(scope="module")
def address(digits_original: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A viewer of six targets; its address has the token."""
    folder = tmp_path_factory.mktemp("viewed")
    root = folder / "registry"
    shutil.copytree(digits_original, root)
    registry = tfrecreg.open(root)
    write_digits(LocalStorage(root / "more"), train=210, test=60, seed=1)
    registry["digits"].build(source="mnist", raw=root / "more")
    registry["digits"].release(bump="auto")
    newest = str(registry["digits"].versions[-1])
    for write, name in (
        (write_many, "many"),
        (write_hostile, "hostile"),
        (write_damaged, "damaged"),
        (write_named, "named"),
    ):
        write(folder / f"{name}.tfrecord")
    many, hostile, damaged, named = (
        str(folder / f"{name}.tfrecord") for name in ("many", "hostile", "damaged", "named")
    )
    targets = [many, "digits@1.0.0", f"digits@{newest}", hostile, damaged, named]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        with serving(*targets, registry=root, check=True) as viewing:
            yield viewing.server.url


@pytest.fixture(scope="module")
def window(chromium: Browser, address: str) -> Browser:
    chromium.open(address)
    return chromium


@pytest.fixture
def browser(window: Browser, address: str) -> Iterator[Browser]:
    """The window; afterwards the console is empty, and no other host was asked."""
    window.console()
    window.hosts()
    yield window
    host = address.removeprefix("http://").partition("/")[0]
    assert window.hosts() <= {host}
    assert window.console() == []


def show(browser: Browser, address: str, question: str, ready: str = READY) -> None:
    browser.open(address.partition("?")[0] + question)
    browser.until(ready)


def count(browser: Browser) -> str:
    return browser.text("#count")


@pytest.mark.medium
def test_scrolls_to_any_record(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={MANY}")
    assert count(browser) == "60,000 records"
    tiles = browser.run("return document.querySelectorAll('.tile').length")
    assert 10 < tiles < 200
    script = "const g = document.querySelector('#grid'); g.scrollTop = g.scrollHeight * 5 / 6"
    browser.run(script)
    browser.until(
        "document.querySelector('[data-at=\"50000\"] .caption')?.innerText.includes('50000')"
    )
    browser.until("new URLSearchParams(location.search).get('at') > 49900")
    browser.open(browser.run("return location.href"))
    browser.until(
        "document.querySelector('[data-at=\"50000\"] .caption')?.innerText.includes('50000')"
    )


@pytest.mark.medium
def test_the_keyboard_goes_through_the_records(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={MANY}")
    browser.run("document.querySelector('.tile .picture').focus()")
    browser.press("Right", "Right")
    browser.until("document.activeElement.closest('.tile')?.dataset.at === '2'")
    browser.press("End")
    browser.until("document.activeElement.closest('.tile')?.dataset.at === '59999'")
    browser.until("document.activeElement.closest('.tile')?.innerText.includes('59999')")
    browser.press("Enter")
    browser.until("document.querySelector('#record').open")
    browser.until("document.querySelector('.position').innerText === '60,000 of 60,000'")
    browser.press("Left")
    browser.until("document.querySelector('.position').innerText === '59,999 of 60,000'")
    browser.press("Escape")
    browser.until("!document.querySelector('#record').open")
    browser.until("document.activeElement.closest('.tile')?.dataset.at === '59998'")


@pytest.mark.medium
def test_filters_by_class_and_by_sql(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={FIRST}")
    assert count(browser) == "260 records"
    browser.until("document.querySelectorAll('.facet').length > 2")
    label = "#facets [data-keep='label 3']"
    of_class = int(
        browser.run(
            "const line = document.querySelector(arguments[0]).closest('label');"
            "return line.querySelector('.number').innerText",
            label,
        )
    )
    browser.click(label)
    browser.until("document.querySelector('#count').innerText.includes(' of 260')")
    assert count(browser) == f"{of_class} of 260 records"
    browser.click("#where")
    browser.press("split = 'test'")
    browser.until("document.querySelector('#count').innerText.includes('Enter')")
    browser.press("Enter")
    browser.until(
        "location.search.includes('where=')"
        " && !document.querySelector('#count').innerText.includes('Enter')"
    )
    both = int(count(browser).split()[0])
    assert 0 < both < of_class
    browser.run("history.back()")
    browser.until(f"document.querySelector('#count').innerText.startsWith('{of_class} of')")
    browser.click("#clear")
    browser.until("document.querySelector('#count').innerText === '260 records'")


@pytest.mark.medium
def test_a_value_beyond_the_listed_ones_is_picked_by_its_name(
    browser: Browser, address: str
) -> None:
    """Of 200 names, a facet lists fifty."""
    pick = quote("name~name = 'the ''last'' of 199'")
    show(browser, address, f"?t={NAMED}")
    browser.until("document.querySelectorAll('.facet').length > 1")
    show(browser, address, f"?t={NAMED}&pick={pick}")
    text = "document.querySelector('#facets input:checked')?.closest('label').innerText ?? ''"
    browser.until(f"({text}).includes(arguments[0])", "the 'last' of 199")
    assert count(browser) == "2 of 400 records"
    browser.click("#facets input:checked")
    browser.until("document.querySelector('#count').innerText === '400 records'")


@pytest.mark.medium
def test_a_histogram_is_brushed(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={MANY}")
    browser.until("document.querySelector('.bars')")
    browser.drag(".bars", 0.02, 0.3)
    browser.until("document.querySelector('#count').innerText.includes(' of 60,000')")
    fewer = int(count(browser).split()[0].replace(",", ""))
    assert 0 < fewer < RECORDS
    assert browser.run("return document.querySelector('.ends input').value") != ""


@pytest.mark.medium
def test_an_error_of_sql_is_under_the_box(window: Browser, address: str) -> None:
    show(window, address, f"?t={MANY}")
    window.click("#where")
    window.press("no_such > 1", "Enter")
    window.until("document.querySelector('#where-error').innerText.includes('no_such')")
    assert window.run("return document.querySelector('#where').ariaInvalid") == "true"
    window.open(address.partition("?")[0] + f"?t={MANY}&where=square+%3E+9")
    window.until("document.querySelector('#count').innerText === '59,996 of 60,000 records'")
    for end in ("Enter", ""):
        window.run("document.querySelector('#where').value = ''")
        window.click("#where")
        window.press("no_such > 1", *filter(None, [end]))
        window.until("document.querySelector('#where-error').innerText.includes('no_such')")
        time.sleep(1)  # nothing takes it away
        assert "no_such" in window.text("#where-error")
        assert "square > 9" in window.text("#where-error")
        assert count(window) == "59,996 of 60,000 records"
    window.open(address.partition("?")[0] + f"?t={MANY}&where=no_such+%3E+1")
    window.until("document.querySelector('#where-error').innerText.includes('no_such')")
    time.sleep(1)
    assert "no_such" in window.text("#where-error")
    window.run("document.querySelector('#where').value = ''")
    window.click("#where")
    window.press("square > 9", "Enter")
    window.until("document.querySelector('#count').innerText === '59,996 of 60,000 records'")
    assert window.text("#where-error") == ""
    # Of the refused request, the browser itself tells the console.
    assert all("Failed to load resource" in each for each in window.console())


@pytest.mark.medium
def test_a_costly_search_is_cancelled(window: Browser, address: str) -> None:
    show(window, address, f"?t={MANY}")
    window.click("#where")
    window.press("(SELECT count(*) FROM range(1000000000000)) > 5", "Enter")
    window.until("!document.querySelector('#searching').hidden")
    window.click("#cancel")
    window.until("document.querySelector('#where-error').innerText.includes('cancelled')")
    assert count(window) == "60,000 records"
    window.run("document.querySelector('#where').value = ''")
    window.click("#where")
    window.press("square > 9", "Enter")
    window.until("document.querySelector('#count').innerText === '59,996 of 60,000 records'")
    assert window.run("return document.querySelector('#searching').hidden")
    window.console()


@pytest.mark.medium
def test_sorts(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={MANY}&sort=square&desc=1")
    browser.until("document.querySelector('[data-at=\"0\"] .caption')?.innerText.includes('59999')")
    browser.run("document.querySelector('[data-keep=direction]').focus()")
    browser.press("Enter")
    caption = "document.querySelector('[data-at=\"0\"] .caption')"
    browser.until(f"{caption}?.innerText.split('\\n').includes('key 0')")
    assert browser.run("return document.activeElement.dataset.keep") == "direction"


@pytest.mark.medium
def test_a_record_is_opened_and_others_follow(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={FIRST}")
    browser.click("[data-at='1'] .picture")
    browser.until("document.querySelector('#record img')?.naturalWidth === 28")
    assert browser.text(".position") == "2 of 260"
    assert "image/encoded" in browser.text(".facts")
    width = "parseFloat(document.querySelector('.zoomed').style.width)"
    fitted = browser.run(f"return {width}")
    browser.press("+")
    browser.until(f"{width} > {fitted} * 1.2")
    browser.press("0", "Right")
    browser.until("document.querySelector('.position').innerText === '3 of 260'")
    browser.run("history.back()")
    browser.until("document.querySelector('.position').innerText === '2 of 260'")
    browser.press("Escape")
    browser.until("!document.querySelector('#record').open")


@pytest.mark.medium
def test_two_versions_are_compared(browser: Browser, address: str) -> None:
    ready = "document.querySelector('.change .tile')"
    show(browser, address, f"?t={FIRST}&tab=compare&compare={FIRST},{SECOND}", ready)
    assert browser.text(".verdict strong") == "MAJOR"
    assert browser.text("[data-kind='changed'] b") == "200"
    assert "image/encoded" in browser.text(".change")
    assert browser.run("return document.querySelectorAll('.change').length") == 60
    browser.click(".change .tile .picture")
    browser.until("document.querySelector('#record').open")
    browser.press("Escape")
    browser.click("[data-kind='added']")
    browser.until("document.querySelectorAll('.change').length === 10")
    show(browser, address, f"?t={MANY}&tab=compare&compare={FIRST},{FIRST}", "true")
    browser.until("document.querySelector('.rows')?.innerText.includes('No records are changed')")


@pytest.mark.medium
def test_counts_without_indexes_are_left_open(chromium: Browser, tmp_path: Path) -> None:
    put_build(tmp_path, {"train": [{"a": example(1)}]}, indexed=False)
    put_release(tmp_path, "1.0.0")
    put_build(tmp_path, {"train": [{"a": example(2)}]}, indexed=False)
    with serving("d@1.0.0", "d", registry=tmp_path) as viewing:
        chromium.open(f"{viewing.server.url}&t=0&tab=compare&compare=0,1")
        chromium.until("document.querySelector('.verdict, .compared .alert')")
        assert "indexes are not on this machine" in chromium.text(".compared")
        assert chromium.text("[data-kind='changed'] b") == "–"
        assert "No records" not in chromium.text(".compared")


@pytest.mark.medium
def test_what_a_version_changed_is_chosen(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={SECOND}&since=digits@1.0.0")
    browser.until("document.querySelector('#count').innerText === '210 of 270 records'")
    browser.until("document.querySelector('[data-keep=since]')?.value === 'digits@1.0.0'")


@pytest.mark.medium
def test_hostile_data_are_inert(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={HOSTILE}&open=0.1")
    browser.until("document.querySelector('.facts h3')")
    browser.until("document.querySelectorAll('.facet').length > 1")
    assert MARKUP[1] in browser.text(".facts")
    assert (
        browser.run("return document.querySelectorAll('script, svg [onload], img[src=x]').length")
        == 1
    )
    browser.press("Escape")
    assert MARKUP[0] in browser.text("#grid")
    browser.open(
        browser.run("return location.origin") + "/?tab=<b>&t=0&open=<b>&pick=<b>~<b>&kind=<b>"
    )
    browser.until(
        "document.querySelector('#where-error').innerText || document.querySelector('.tile')"
    )
    assert browser.run("return document.querySelectorAll('b b').length") == 0
    # A refused condition is told to the console by the browser itself.
    assert all("Failed to load resource" in each for each in browser.console())


@pytest.mark.medium
def test_damage_is_shown_in_place(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={DAMAGED}&tab=findings", "document.querySelector('.card .tile')")
    assert "CRC" in browser.text("#findings-view")
    show(browser, address, f"?t={DAMAGED}&at=48")
    browser.until("document.querySelector('.tile.is-problem')")
    assert "Cannot be shown" in browser.text(".tile.is-problem")


@pytest.mark.medium
def test_a_finding_of_many_places_says_so(browser: Browser, address: str) -> None:
    ready = (
        "[...document.querySelectorAll('.card')].some((each) => each.innerText.includes('20 of '))"
    )
    show(browser, address, f"?t={HOSTILE}&tab=findings", ready)
    code = browser.run(
        "const cards = [...document.querySelectorAll('.card')];"
        "const card = cards.find((each) => each.innerText.includes('20 of '));"
        "card.querySelector('header button').click();"
        "return card.querySelector('b').innerText"
    )
    browser.until("document.querySelector('#count').innerText.includes('findings list 20 of ')")
    assert browser.run("return new URLSearchParams(location.search).get('findings')") == code


@pytest.mark.medium
def test_fits_a_narrow_window_and_the_dark(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={FIRST}")
    browser.resize(400, 800)
    try:
        wider = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not browser.run(f"return {wider}")
        browser.click("#side-open")
        browser.until("document.querySelector('#side').getBoundingClientRect().left >= 0")
        browser.click("#side-close")
        color = "getComputedStyle(document.body).backgroundColor"
        before = browser.run(f"return {color}")
        browser.click("#theme")
        assert browser.run(f"return {color}") != before
        browser.click("#theme")
    finally:
        browser.resize(1400, 900)


@pytest.mark.medium
def test_the_bar_reaches_a_hundred_million_pixels(browser: Browser, address: str) -> None:
    show(browser, address, f"?t={MANY}")
    script = """
        const [frame, spacer] = ['div', 'div'].map((tag) => document.createElement(tag));
        frame.append(spacer);
        document.body.append(frame);
        Object.assign(frame.style, { height: '500px', overflow: 'auto' });
        import('/static/grid/grid.js').then(async ({ Scroller }) => {
          const painted = () => new Promise(requestAnimationFrame);
          const scroller = new Scroller(frame, spacer, () => {});
          scroller.resize(1e8, 5e7);
          const seen = [scroller.top];
          for (const to of [frame.scrollTop + 100, frame.scrollHeight, 0]) {
            frame.scrollTop = to;
            await painted();
            await painted();
            seen.push(scroller.top);
          }
          frame.remove();
          window.seen = seen;
        });
    """
    browser.run(script)
    assert browser.until("window.seen") == [50_000_000, 50_000_100, 100_000_000 - 500, 0]
