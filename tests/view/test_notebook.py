"""The viewer in a notebook: a frame that opens once, for pages of this machine only."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from browser_support import Browser
from view_support import write_pets

import tfrecreg as tr
from tfrecreg.builtin.view.notebook import View
from tfrecreg.errors import UsageError

FRAME = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe", "sec-fetch-mode": "navigate"}
"""What a browser says of a frame of another site."""
AGAIN = "this frame was opened before: run the cell again\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> tr.Registry:
    return tr.init(tmp_path_factory.mktemp("registry"), with_dvc=False)


@pytest.fixture(scope="module")
def pets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pets(tmp_path_factory.mktemp("pets"))


@pytest.fixture(scope="module")
def view(registry: tr.Registry, pets: Path) -> Iterator[View]:
    shown = registry.view(pets, where="score > 0.5")
    yield shown
    shown.close()
    assert not shown.is_open


def source(view: View) -> str:
    found = re.search(' src="([^"]+)"', view._repr_html_())
    assert found is not None
    return found[1].replace("&amp;", "&")


def policy(answer: httpx.Response) -> str:
    return answer.headers["content-security-policy"].partition("frame-ancestors ")[2]


def test_a_frame_opens_once_and_its_path_is_its_token(view: View) -> None:
    address = source(view)
    first = httpx.get(address, headers=FRAME)
    place = first.headers["location"]
    assert (first.status_code, "set-cookie" in first.headers) == (303, False)
    assert place.endswith("/?where=score+%3E+0.5")
    assert urlsplit(address).path.rpartition("/")[2] not in place
    page = httpx.get(httpx.URL(address).join(place), headers=FRAME)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert policy(page) == "'self' http://localhost:* http://127.0.0.1:*"
    for path in ("api/targets", "static/main.js"):
        inside = httpx.get(page.url.join(path), headers={"sec-fetch-site": "same-origin"})
        assert inside.status_code == 200
    again = httpx.get(address, headers=FRAME)
    assert (again.status_code, again.text) == (403, AGAIN)
    assert "http://localhost:*" in policy(again)  # so that the notebook shows the sentence


def test_each_frame_has_an_address_of_its_own(view: View) -> None:
    one, other = source(view), source(view)
    assert one != other
    assert httpx.get(other).status_code == httpx.get(one).status_code == 303


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("frame/", FRAME, 403),
        ("frame/no-such-token", FRAME, 403),
        ("frame/no-such-token/api/targets", {}, 403),
        ("f/", FRAME, 403),
        ("f/no-such-token/", FRAME, 403),
        ("f/no-such-token/api/targets", {}, 403),
        ("f/ENTERED", FRAME, 403),
        ("f/ENTERED/", {}, 200),
        ("f/ENTERED/", {"sec-fetch-site": "cross-site"}, 403),
        ("f/ENTERED/", {**FRAME, "sec-fetch-dest": "image"}, 403),
        ("f/ENTERED/", {**FRAME, "sec-fetch-mode": "no-cors"}, 403),
        ("f/ENTERED/", {**FRAME, "origin": "http://evil.example"}, 403),
        ("f/ENTERED/", {**FRAME, "host": "evil.example"}, 403),
        ("f/ENTERED/api/targets", FRAME, 403),
        ("f/ENTERED/api/targets", {"sec-fetch-site": "same-site"}, 403),
        ("f/ENTERED/api/targets", {"origin": "http://localhost:8888"}, 403),
        ("f/ENTERED/f/ENTERED/api/targets", {}, 404),
        ("?token=ENTERED", {}, 403),
        ("", FRAME, 403),
        ("api/targets", FRAME, 403),
    ],
)
def test_others_stay_refused(view: View, path: str, headers: dict[str, str], status: int) -> None:
    entered = httpx.get(source(view)).headers["location"].split("/")[2]
    address = urlsplit(view.url)
    with httpx.Client() as client:
        request = client.build_request("GET", f"http://{address.netloc}/", headers=headers)
        request.url = request.url.copy_with(
            raw_path=f"/{path.replace('ENTERED', entered)}".encode()
        )
        answer = client.send(request)
    assert answer.status_code == status, answer.text


def test_the_token_is_in_no_output(view: View) -> None:
    token = view.url.partition("token=")[2].partition("&")[0]
    assert len(token) > 20
    assert token not in view._repr_html_() + repr(view)


def test_a_page_elsewhere_is_named(registry: tr.Registry, pets: Path) -> None:
    view = registry.view(pets, origin="https://hub.example.org")
    place = httpx.get(source(view), headers=FRAME).headers["location"]
    page = httpx.get(httpx.URL(view.url).join(place), headers=FRAME)
    assert policy(page) == "'self' https://hub.example.org"
    view.close()


@pytest.mark.parametrize(
    "origin", ["", "*", "https://*", "hub.example.org", "https://a.b/c", "https://a; script-src *"]
)
def test_an_origin_is_a_scheme_and_a_host(registry: tr.Registry, origin: str) -> None:
    with pytest.raises(UsageError, match="`origin` should be the scheme and the host") as caught:
        registry.view(origin=origin)
    assert caught.value.hint == ("as in the address bar of the notebook: `https://hub.example.org`")


@pytest.mark.medium
def test_the_same_cell_again_ends_the_viewer_before(registry: tr.Registry) -> None:
    first = registry.view()
    assert repr(first).startswith("<View the registry: http://127.0.0.1:")
    second = registry.view(port=urlsplit(first.url).port or 0)
    assert (first.is_open, second.is_open) == (False, True)
    assert first._repr_html_() == "<p>&lt;View the registry: closed&gt;</p>"
    second.close()
    second.close()


def test_hostile_names_are_text_in_the_frame(registry: tr.Registry, tmp_path: Path) -> None:
    path = tmp_path / '"><script>alert(1)<' / "x.tfrecord"
    path.parent.mkdir()
    path.write_bytes(b"")
    view = registry.view(path)
    assert "<script" not in view._repr_html_()
    view.close()


@contextmanager
def notebook(html: Callable[[], str]) -> Iterator[str]:
    """A page on the loopback address, as a notebook is one; its port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<!doctype html><link rel="icon" href="data:,">{html()}'.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield str(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.medium
def test_a_notebook_shows_it_in_place(chromium: Browser, registry: tr.Registry, pets: Path) -> None:
    view = registry.view(pets)
    shown = view._repr_html_()  # one output, as it is in a saved notebook
    with notebook(lambda: shown) as port:
        chromium.open("about:blank")
        chromium.console()  # of the page before, whose viewer has ended
        chromium.open(f"http://localhost:{port}/")
        with chromium.frame("iframe"):
            chromium.until("document.querySelector('.tile img.here')?.naturalWidth")
            chromium.until("document.querySelectorAll('.facet').length > 2")
            chromium.click("[data-at='1'] .picture")
            chromium.until("document.querySelector('#record img')?.naturalWidth === 9")
            assert "/f/" in chromium.run("return location.pathname")
            chromium.press("Escape")
            chromium.until("!document.querySelector('#record').open")
        reads = "try { return document.querySelector('iframe').contentWindow.location.href }"
        assert chromium.run(f"{reads} catch (error) {{ return error.name }}") == "SecurityError"
        assert chromium.console() == []
        chromium.open(f"http://127.0.0.1:{port}/")
        with chromium.frame("iframe"):
            chromium.until(f"document.body.innerText.trim() === {AGAIN.strip()!r}")
    view.close()


@pytest.mark.medium
def test_a_page_of_another_origin_shows_nothing(
    chromium: Browser, registry: tr.Registry, pets: Path
) -> None:
    view = registry.view(pets, origin="http://localhost:1")
    addresses = iter([source(view), view.url, view.url.partition("?")[0]])
    with notebook(lambda: f"<iframe src='{next(addresses)}'></iframe>") as port:
        for _ in range(3):
            chromium.open(f"http://localhost:{port}/")
            assert any("frame-ancestors" in each for each in chromium.console())
            with chromium.frame("iframe"):
                assert not chromium.run("return document.querySelector('#grid')")
    view.close()
