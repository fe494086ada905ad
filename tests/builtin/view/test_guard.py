"""Who may ask: every request over a real socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from view_support import Viewing, serving, write_pets


@pytest.fixture(scope="module")
def viewing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewing]:
    with serving(write_pets(tmp_path_factory.mktemp("pets"))) as found:
        yield found


def raw(viewing: Viewing, request: str) -> tuple[str, str]:
    """The status line and the body of an answer to bytes that no client would send."""
    text = request.replace("PORT", str(viewing.server.port)).replace("\n", "\r\n")
    with socket.create_connection(("127.0.0.1", viewing.server.port), timeout=20) as connection:
        connection.sendall(text.encode("latin-1") + b"\r\nConnection: close\r\n\r\n")
        answer = b""
        while block := connection.recv(65536):
            answer += block
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body.decode()


def test_it_listens_on_the_loopback_address_only(viewing: Viewing) -> None:
    assert urlsplit(viewing.server.url).hostname == "127.0.0.1"
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", viewing.server.port)) != 0


def test_the_token_becomes_a_cookie_and_leaves_the_address(viewing: Viewing) -> None:
    address = viewing.server.url + "&t=0&where=label%20%3D%20%27a%26b%27"
    with httpx.Client() as client:
        first = client.get(address)
        assert first.status_code == 303
        assert "token" not in first.headers["location"]
        assert parse_qs(urlsplit(first.headers["location"]).query) == {
            "t": ["0"],
            "where": ["label = 'a&b'"],
        }
        cookie = first.headers["set-cookie"]
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/")
        page = client.get(httpx.URL(viewing.server.address).join(first.headers["location"]))
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/static/index.html", {}),
        ("/api/targets", {}),
        ("/api/targets?token=TOKEN", {}),
        ("/api/t/0/image/0/0", {"authorization": "Bearer x"}),
        ("/api/t/0", {"authorization": "Basic TOKEN"}),
        ("/api/t/0", {"cookie": "tfrecreg-view-PORT="}),
        ("/api/t/0", {"cookie": "tfrecreg-view=TOKEN"}),
        ("/api/t/0", {"cookie": "\x00;;=;"}),
    ],
)
def test_without_the_token_nothing_is_answered(
    viewing: Viewing, path: str, headers: dict[str, str]
) -> None:
    def filled(text: str) -> str:
        text = text.replace("TOKEN", viewing.server.token)
        return text.replace("PORT", str(viewing.server.port))

    lines = "".join(f"\n{name}: {filled(value)}" for name, value in headers.items())
    status, body = raw(viewing, f"GET {filled(path)} HTTP/1.1\nHost: 127.0.0.1:PORT{lines}")
    if "\x00" in lines:
        assert status == "HTTP/1.1 400 Bad Request"
        return
    assert status == "HTTP/1.1 403 Forbidden"
    assert body == "open the address that `tfrecreg view` printed: it has a token\n"


def test_a_wrong_token_is_refused(viewing: Viewing) -> None:
    answer = httpx.get(viewing.server.address, params={"token": viewing.server.token[:-1] + "é"})
    assert (answer.status_code, answer.text) == (403, "the token of this address is not valid\n")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:PORT", "127.0.0.1", "localhost:1", "[::1]:PORT", ""]
)
def test_another_host_is_refused_as_dns_rebinding_has_it(viewing: Viewing, host: str) -> None:
    status, body = raw(
        viewing,
        f"GET /api/targets HTTP/1.1\nHost: {host}\nAuthorization: Bearer {viewing.server.token}",
    )
    assert status == "HTTP/1.1 403 Forbidden"
    assert body == "this server does not answer to that host name\n"


def test_two_hosts_and_none_are_refused(viewing: Viewing) -> None:
    token = f"Authorization: Bearer {viewing.server.token}"
    both = "Host: 127.0.0.1:PORT\nHost: evil.example"
    assert raw(viewing, f"GET / HTTP/1.1\n{both}\n{token}")[0].startswith("HTTP/1.1 40")
    assert raw(viewing, f"GET / HTTP/1.0\n{token}")[0] == "HTTP/1.1 403 Forbidden"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_its_own_pages_are_answered(viewing: Viewing, name: str) -> None:
    host = f"{name}:{viewing.server.port}"
    headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    assert viewing.client.get("/api/targets", headers=headers).status_code == 200
    answer = viewing.client.head("/api/targets", headers=headers)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("origin", "http://evil.example", "requests from another origin are not answered"),
        ("origin", "null", "requests from another origin are not answered"),
        ("origin", "https://127.0.0.1:PORT", "requests from another origin are not answered"),
        ("origin", "http://127.0.0.1:1", "requests from another origin are not answered"),
        (
            "sec-fetch-site",
            "cross-site",
            "requests from another site are not answered: open the address in a new tab",
        ),
        (
            "sec-fetch-site",
            "same-site",
            "requests from another site are not answered: open the address in a new tab",
        ),
    ],
)
def test_other_sites_are_refused_even_with_the_token(
    viewing: Viewing, name: str, value: str, said: str
) -> None:
    value = value.replace("PORT", str(viewing.server.port))
    answer = viewing.client.get("/api/targets", headers={name: value})
    assert (answer.status_code, answer.text) == (403, f"{said}\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"])
def test_only_get_and_head_are_answered(viewing: Viewing, method: str) -> None:
    answer = viewing.client.request(method, "/api/targets")
    assert (answer.status_code, answer.text) == (405, "only GET and HEAD are answered\n")
    assert answer.headers["allow"] == "GET, HEAD"


def test_websockets_are_not_served(viewing: Viewing) -> None:
    upgrade = "Upgrade: websocket\nSec-WebSocket-Key: eA==\n"
    status, _ = raw(
        viewing,
        f"GET /api/targets HTTP/1.1\nHost: 127.0.0.1:PORT\n{upgrade}Sec-WebSocket-Version: 13",
    )
    assert status == "HTTP/1.1 403 Forbidden"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2fapp.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/static/%2Fetc%2Fpasswd",
        "/static/index.html%00.css",
        "/static/index.html/",
        "/static/./index.html",
        "/static/",
        "/../etc/passwd",
        "/api/t/0/thumb/..%2f0/0",
        "/docs",
        "/openapi.json",
    ],
)
def test_no_path_leads_out_of_the_static_files(viewing: Viewing, path: str) -> None:
    status, body = raw(
        viewing,
        f"GET {path} HTTP/1.1\nHost: 127.0.0.1:PORT\nAuthorization: Bearer {viewing.server.token}",
    )
    assert status.split(" ", 1)[1] in ("404 Not Found", "400 Bad Request"), body
    assert "import" not in body


@pytest.mark.parametrize(
    "path", ["/", "/api/targets", "/api/t/0/image/0/0", "/nothing", "/api/t/9"]
)
def test_every_answer_has_the_headers_that_keep_others_out(viewing: Viewing, path: str) -> None:
    headers = viewing.client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers
    assert headers["cache-control"] in ("no-store", "no-cache")


@pytest.mark.parametrize("request_", ["GET /api/targets HTTP/1.1", "POST / HTTP/1.1"])
def test_a_connection_without_the_token_is_closed(viewing: Viewing, request_: str) -> None:
    port = viewing.server.port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"{request_}\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        answer = b""
        while block := connection.recv(65536):  # until it is closed
            answer += block
    assert answer.split()[1] in (b"403", b"405")
