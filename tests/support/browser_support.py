"""Chromium, driven through its driver by the WebDriver protocol."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import pytest

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--autoplay-policy=no-user-gesture-required",
)
_PORT = re.compile(r"successfully on port (\d+)")
_SECONDS = 60.0


class Browser:
    def __init__(self, width: int = 1400, height: int = 900) -> None:
        browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
        driver = shutil.which("chromedriver")
        if browser is None or driver is None:
            pytest.skip("there is no Chromium: `apt-get install chromium chromium-driver`")
        command = [driver, "--port=0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        port = next(filter(None, map(_PORT.search, self._process.stdout)))[1]
        self._address = f"http://127.0.0.1:{port}"
        wanted = {
            "browserName": "chrome",
            "timeouts": {"script": 60_000},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"binary": browser, "args": list(_FLAGS)},
        }
        session = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._address += f"/session/{session['sessionId']}"
        self.resize(width, height)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def chrome(self, command: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.chrome("Emulation.setDeviceMetricsOverride", **size)

    def dark(self, is_dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.chrome("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        self._send("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        body = {"script": script, "args": list(arguments)}
        return self._send("POST", "/execute/sync", body)

    def until(self, expression: str, *arguments: Any) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + _SECONDS
        while True:
            found = self.run(f"return ({expression})", *arguments)
            if found:
                return found
            if time.monotonic() > end:
                pytest.fail(f"never true: {expression}; the page says {self.text('body')[:2000]}")
            time.sleep(0.03)

    def text(self, selector: str) -> str:
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return str(self.run(script, selector))

    def click(self, selector: str) -> None:
        """Click on the middle of the first element that fits, as a mouse does."""
        self.until("document.querySelector(arguments[0])", selector)
        script = "return document.querySelector(arguments[0])"
        [element] = self.run(script, selector).values()
        self._send("POST", f"/element/{element}/click", {})

    def press(self, *keys: str) -> None:
        """Press keys one after another. Names are those of `KEYS`, all else is typed."""
        actions = []
        for key in keys:
            for value in [KEYS[key]] if key in KEYS else key:
                actions += [{"type": down, "value": value} for down in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": actions}
        self._send("POST", "/actions", {"actions": [keyboard]})

    def drag(self, selector: str, start: float, end: float) -> None:
        """Drag over an element, from a fraction of its width to another."""
        self.until("document.querySelector(arguments[0])", selector)
        script = "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
        left, middle, width = self.run(
            script + "return [b.left, b.top + b.height / 2, b.width]", selector
        )
        mouse = {"y": middle, "button": "left", "clickCount": 1}
        for kind, part in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
            self.chrome("Input.dispatchMouseEvent", type=kind, x=left + width * part, **mouse)

    def picture(self) -> bytes:
        return base64.b64decode(self._send("GET", "/screenshot"))

    def console(self) -> list[str]:
        return [each["message"] for each in self._send("POST", "/se/log", {"type": "browser"})]

    def hosts(self) -> set[str]:
        """The hosts and ports of all requests since the last call."""
        events = self._send("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(each["message"])["message"] for each in events]
        urls = [
            urlsplit(each["params"]["request"]["url"])
            for each in messages
            if each["method"] == "Network.requestWillBeSent"
        ]
        return {url.netloc for url in urls if url.scheme not in ("data", "blob", "chrome")}

    def close(self) -> None:
        try:
            self._send("DELETE", "")
        finally:
            with self._process:
                self._process.terminate()


def violations(browser: Browser, axe: str) -> list[str]:
    """What people with disabilities cannot use on a page, by the script axe."""
    script = """;
        window.axed = null;
        axe.run(document.querySelector('dialog[open]') ?? document).then((told) => {
          window.axed = [told.violations.map((each) => `${each.id}: ${each.nodes[0].html}`)];
        });
    """
    browser.run(axe + script)
    [found] = browser.until("window.axed")
    return list(found)


KEYS = {
    "End": "\ue010",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Left": "\ue012",
    "Right": "\ue014",
}
