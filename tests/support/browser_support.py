"""Chromium, driven through its driver by the WebDriver protocol."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
_SECONDS = 60.0
"""The longest that a page is waited for."""


class Browser:
    """A window of Chromium.

    Args:
        width: of the window in pixels.
        height: of the window in pixels.
    """

    def __init__(self, width: int = 1400, height: int = 900) -> None:
        browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
        driver = shutil.which("chromedriver")
        if browser is None or driver is None:
            pytest.skip("there is no Chromium: `apt-get install chromium chromium-driver`")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL)
        self._address = f"http://127.0.0.1:{port}"
        try:
            self._begin(browser, width, height)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _begin(self, browser: str, width: int, height: int) -> None:
        end = time.monotonic() + _SECONDS
        while True:
            try:
                self._send("GET", "/status")
                break
            except urllib.error.URLError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
        wanted = {
            "browserName": "chrome",
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
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def chrome(self, command: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width: int, height: int) -> None:
        """Give the window another size in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.chrome("Emulation.setDeviceMetricsOverride", **size)

    def dark(self, is_dark: bool) -> None:
        """Prefer dark colors, or light ones."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.chrome("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Go to an address, and wait until it is loaded."""
        self._send("POST", "/url", {"url": url})

    @contextmanager
    def frame(self, selector: str) -> Iterator[None]:
        """Be in a frame of the page."""
        self._send(
            "POST",
            "/frame",
            {"id": self.run("return document.querySelector(arguments[0])", selector)},
        )
        try:
            yield
        finally:
            self._send("POST", "/frame", {"id": None})

    def back(self) -> None:
        """As the button does."""
        self._send("POST", "/back", {})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
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

    def saved(self, path: Path) -> str:
        """The text of a file as soon as the browser has saved it."""
        end = time.monotonic() + _SECONDS
        while not path.exists():
            if time.monotonic() > end:
                pytest.fail(f"the browser did not save `{path.name}`")
            time.sleep(0.03)
        return path.read_text("utf-8")

    def text(self, selector: str) -> str:
        """The text of the first element that fits, as it is shown."""
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
        box = self.run(script + "return [b.left, b.top, b.width, b.height]", selector)
        y = round(box[1] + box[3] / 2)
        at = [
            {"type": "pointerMove", "x": round(box[0] + box[2] * part), "y": y}
            for part in (start, end)
        ]
        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        mouse = {"type": "pointer", "id": "mouse", "actions": [at[0], down, at[1], up]}
        self._send("POST", "/actions", {"actions": [mouse]})

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self._send("GET", "/screenshot"))

    def console(self) -> list[str]:
        """What the console was told since the last call."""
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
        """End the browser and its driver."""
        try:
            self._send("DELETE", "")
        finally:
            self._process.terminate()
            self._process.wait()


KEYS = {
    "Backspace": "\ue003",
    "End": "\ue010",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Home": "\ue011",
    "Left": "\ue012",
    "Right": "\ue014",
    "Tab": "\ue004",
}
"""Code points by which WebDriver names keys."""
