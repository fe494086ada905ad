"""Opens pages in Chromium and prints what happened, as JSON.

Run by `test_browser.py` in an environment that has Playwright:
``browser_program.py CHROMIUM SCHEMES PAGE..``; SCHEMES are those to run axe in: ``light,dark``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def opened(browser: Browser, path: str, told: dict[str, Any], **context: Any) -> Page:
    page = browser.new_context(offline=True, **context).new_page()
    page.on("console", lambda message: told["console"].append(message.text))
    page.on("pageerror", lambda error: told["console"].append(str(error)))
    page.on("dialog", lambda dialog: told["dialogs"].append(dialog.message))
    page.on(
        "request",
        lambda request: request.url.startswith("data:") or told["requests"].append(request.url),
    )
    page.goto(Path(path).resolve().as_uri())
    return page


def used(page: Page) -> dict[str, Any]:
    """What filter, sort, fold, enlarging and theme do, by mouse and by keyboard."""
    found: dict[str, Any] = {}
    shown = "document.querySelectorAll('.finding:not([hidden])').length"
    if page.locator("[data-findings]").count():
        found["all"] = page.evaluate(shown)
        page.locator("[data-search]").first.fill("no finding has this")
        found["filtered"] = page.evaluate(shown)
        page.locator("[data-search]").first.fill("")
        page.locator("[data-severity]").first.select_option("error")
        found["errors"] = page.evaluate(shown)
        page.locator("[data-severity]").first.select_option("")
        codes = "[...document.querySelectorAll('.finding')].map(e => e.dataset.code)"
        page.locator("[data-order]").first.select_option("code")
        found["by_code"] = page.evaluate(codes)
        opened_ = "document.querySelectorAll('.finding[open]').length"
        page.locator("[data-fold]").first.focus()
        page.keyboard.press("Enter")
        found["unfolded"] = page.evaluate(opened_)
        page.keyboard.press("Enter")
        found["folded"] = page.evaluate(opened_)
        page.locator(".finding > summary").first.focus()
        page.keyboard.press("Enter")
        found["one_unfolded"] = page.evaluate(opened_)
    found |= enlarged(page)
    if found.get("enlarged"):
        frames = page.locator("figure a.frame:visible")
        shown_id = "document.querySelector('figure:target')?.id"
        frames.first.focus()
        page.keyboard.press("Enter")
        first = page.evaluate(shown_id)
        page.keyboard.press("ArrowRight")
        second = page.evaluate(shown_id)
        page.keyboard.press("ArrowLeft")
        found["by_arrows"] = first != second and page.evaluate(shown_id) == first
        page.keyboard.press("Escape")
        found["closed_by_key"] = page.evaluate(shown_id) is None
    theme = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(theme)
    page.locator("[data-theme-button]").click()
    found["theme_changes"] = page.evaluate(theme) != before
    return found


def enlarged(page: Page) -> dict[str, bool]:
    """What a click on an image does, and one on Close; nothing without a visible image."""
    frames = page.locator("figure a.frame:visible")
    if not frames.count():
        return {}
    image = "document.querySelector('figure:target img')?.getBoundingClientRect().width || 0"
    before = frames.first.locator("img").bounding_box()
    frames.first.click()
    width = page.evaluate(image)
    overlays = page.evaluate(
        "[...document.querySelectorAll('figure:target .frame > .overlay')].every(e => {"
        " const [one, other] = [e, e.parentElement.querySelector('img')]"
        ".map(each => each.getBoundingClientRect());"
        " return Math.abs(one.width - other.width) < 1 && Math.abs(one.height - other.height) < 1;"
        "})"
    )
    page.locator("figure:target .close").click()
    return {
        "enlarged": before is not None and width > before["width"],
        "overlay_fits": overlays,
        "closed": page.evaluate(image) == 0,
    }


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window. Names may be wide; the page may not be."""
    wider: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return wider


def look(browser: Browser, path: str, schemes: list[str]) -> dict[str, Any]:
    told: dict[str, Any] = {"console": [], "dialogs": [], "requests": [], "violations": []}
    page = opened(browser, path, told)
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    told["images"] = page.evaluate("document.images.length")
    page.evaluate("Promise.all([...document.images].map(e => e.decode().catch(() => 0)))")
    told["broken"] = page.evaluate(
        "[...document.images].filter(e => !(e.complete && e.naturalWidth > 0)).length"
    )
    told["overflow"] = overflow(page)
    page.evaluate("document.querySelectorAll('.finding').forEach(e => { e.open = false; })")
    told["used"] = used(page)
    without = opened(browser, path, told, java_script_enabled=False)
    told["without_script"] = without.locator("[data-script]:visible").count()
    told["sections"] = without.locator("h2:visible").count()
    told["enlarged_without_script"] = enlarged(without)
    narrow = opened(browser, path, told, viewport={"width": 400, "height": 900})
    told["overflow_narrow"] = overflow(narrow)
    for scheme in schemes:
        # The page's policy would forbid axe, too, which is a script from elsewhere.
        checked = opened(browser, path, told, color_scheme=scheme, bypass_csp=True)
        result = Axe().run(checked).response
        assert result["passes"]
        told["violations"] += [
            f"{scheme}: {each['id']}: {each['nodes'][0]['html'][:200]}"
            for each in result["violations"]
        ]
    told["requests"] = [url for url in told["requests"] if url != Path(path).resolve().as_uri()]
    return told


def main() -> None:
    chromium, schemes, *paths = sys.argv[1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        sys.stdout.write(
            json.dumps({path: look(browser, path, schemes.split(",")) for path in paths})
        )


if __name__ == "__main__":
    main()
