"""The viewer beside a notebook: a link to a tab of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from browser_support import Browser
from view_support import write_pets

import tfrecreg as tr

LINK = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document", "sec-fetch-mode": "navigate"}
"""What a browser says of a link on a page of another site."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> tr.Registry:
    return tr.init(tmp_path_factory.mktemp("registry"), with_dvc=False)


@pytest.fixture(scope="module")
def pets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pets(tmp_path_factory.mktemp("pets"))


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/?TOKEN", LINK, 200),
        ("/?TOKEN", {**LINK, "sec-fetch-site": "same-site"}, 200),
        ("/?TOKEN", {}, 303),
        ("/", LINK, 403),
        ("/?token=wrong", LINK, 403),
        ("/api/targets?TOKEN", LINK, 403),
        ("/?TOKEN", {"sec-fetch-site": "cross-site"}, 403),
        ("/?TOKEN", {**LINK, "sec-fetch-dest": "iframe"}, 403),
        ("/?TOKEN", {**LINK, "sec-fetch-dest": "image", "sec-fetch-mode": "no-cors"}, 403),
        ("/?TOKEN", {**LINK, "origin": "http://evil.example"}, 403),
        ("/?TOKEN", {**LINK, "host": "evil.example"}, 403),
    ],
)
def test_a_link_on_another_page_opens_a_tab_and_nothing_else(
    registry: tr.Registry, pets: Path, path: str, headers: dict[str, str], status: int
) -> None:
    view = registry.view(pets, where="score > 0.5 AND '\"<' = '\"<'")
    address = urlsplit(view.url)
    token = view.url.partition("token=")[2].partition("&")[0]
    url = f"http://{address.netloc}{path.replace('TOKEN', address.query)}"
    answer = httpx.get(url, headers=headers)
    assert answer.status_code == status, answer.text
    assert ("set-cookie" in answer.headers) == (status != 403)
    if status == 200:
        assert token not in answer.text
        place = unescape(answer.text.partition("url=")[2].rpartition('"')[0])
        assert place == f"/?{address.query.partition('&')[2]}"
    view.close()
    assert not view.is_open


@pytest.mark.medium
def test_the_same_cell_again_ends_the_viewer_before(registry: tr.Registry) -> None:
    first = registry.view()
    assert repr(first).startswith("<View the registry: http://127.0.0.1:")
    assert "token" not in repr(first)
    second = registry.view(port=urlsplit(first.url).port or 0)
    assert (first.is_open, second.is_open) == (False, True)
    assert first._repr_html_() == "<p>&lt;View the registry: closed&gt;</p>"
    second.close()
    second.close()


def test_hostile_names_are_text_in_the_output(registry: tr.Registry, tmp_path: Path) -> None:
    path = tmp_path / '"><script>alert(1)<' / "x.tfrecord"
    path.parent.mkdir()
    path.write_bytes(b"")
    view = registry.view(path)
    assert "<script" not in view._repr_html_()
    view.close()


@contextmanager
def page_with(html: str) -> Iterator[str]:
    """The port of a page on the loopback address, as a notebook is one."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<!doctype html><link rel="icon" href="data:,">{html}'.encode()
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
def test_the_link_in_a_notebook_shows_the_records(
    chromium: Browser, registry: tr.Registry, pets: Path
) -> None:
    view = registry.view(pets)
    with page_with(view._repr_html_().replace("_blank", "_self")) as port:
        chromium.open("about:blank")
        chromium.console()  # of the page before, whose viewer has ended
        chromium.open(f"http://localhost:{port}/")
        chromium.click("a")
        chromium.until("document.querySelector('.tile img.here')?.naturalWidth")
        chromium.until("document.querySelectorAll('.facet').length > 2")
        assert chromium.run("return location.href.includes('token')") is False
        assert chromium.console() == []
    view.close()
