"""Who may ask what: a token, one host, one origin, two methods. And the headers of all answers.

A page of another site can send requests to the loopback address, also under a name of its own whose
address it changes later (DNS rebinding). So the `Host` and the `Origin` must be those of this
server, and every request needs the token, which only the address that was printed has.

A notebook shows the viewer in a frame. Its page is of another origin, for which browsers keep no
cookie, so the token of a frame is in its path. A notebook is saved with its output: the address in
it opens one frame, once, and leads to a path that only the frame knows.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_ENTRY, _FRAME = "/frame/", "/f/"
_PAGES = re.compile(rf"{_ENTRY}[^/]+|{_FRAME}[^/]+/")
_FRAMES = 100
"""Frames, and addresses for them, that are known at once."""


class Guard:
    """Refuses requests that are not from the browser of this user."""

    def __init__(self, app: App, token: str, port: int, origins: Sequence[str] = ()) -> None:
        self._app = app
        self._token = token
        self._ancestors = "".join(f" {each}" for each in origins)
        self._entries: deque[str] = deque(maxlen=_FRAMES)
        self._frames: deque[str] = deque(maxlen=_FRAMES)
        self._cookie = f"tfrecreg-view-{port}"
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self._origins = {b"http://" + host for host in self._hosts}

    def entry(self) -> str:
        """The path at which a frame is opened, once."""
        once = secrets.token_urlsafe(24)
        self._entries.append(once)
        return f"{_ENTRY}{once}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise ValueError(f"no answer to {scope['type']}")
        path: str = scope["path"]
        framed = bool(self._ancestors) and path.startswith((_ENTRY, _FRAME))
        policy = f"{_POLICY}{self._ancestors}" if framed else _POLICY

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = (b"content-security-policy", policy.encode("ascii"))
                message["headers"] = [*message["headers"], own, *_HEADERS]
            await send(message)

        headers: list[tuple[bytes, bytes]] = scope["headers"]
        refused = self._refused(scope["method"], headers, self._opens_frame(path, headers))
        if refused is not None:
            await _refuse(with_headers, *refused)
            return
        if framed:
            await self._in_frame(scope, receive, with_headers)
            return
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in pairs if name == "token"]
        if scope["path"] == "/" and given:
            if not self._is_token(given[0]):
                await _refuse(with_headers, 403, "the token of this address is not valid")
                return
            await self._enter(with_headers, [each for each in pairs if each[0] != "token"])
            return
        if not any(map(self._is_token, self._tokens(headers))):
            await _refuse(
                with_headers, 403, "open the address that `tfrecreg view` printed: it has a token"
            )
            return
        await self._app(scope, receive, with_headers)

    async def _in_frame(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what a frame asks; its path has its token."""
        _, kind, token, *rest = scope["path"].split("/", 3)
        opens = f"/{kind}/" == _ENTRY
        known = _match(token, self._entries if opens else self._frames)
        if known is None or not (opens or rest):
            await _refuse(send, 403, "this frame was opened before: run the cell again")
        elif not opens:
            await self._app({**scope, "path": f"/{rest[0]}"}, receive, send)
        else:
            self._entries.remove(known)
            self._frames.append(secrets.token_urlsafe(24))
            query = b"?" + scope["query_string"] if scope["query_string"] else b""
            place = f"{_FRAME}{self._frames[-1]}/".encode("ascii") + query
            await _answer(send, 303, b"", [(b"location", place)])

    def _opens_frame(self, path: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether it is the address of a frame that a page of another origin has."""
        told = {(name.lower(), value) for name, value in headers}
        wanted = {(b"sec-fetch-dest", b"iframe"), (b"sec-fetch-mode", b"navigate")}
        return bool(self._ancestors) and wanted <= told and _PAGES.fullmatch(path) is not None

    def _refused(
        self, method: str, headers: Iterable[tuple[bytes, bytes]], opens_frame: bool
    ) -> tuple[int, str] | None:
        """The status and the reason; None for a request that may have a token."""
        values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(value)
        hosts = values.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 403, "the host of this address is not served here"
        if any(each.lower() not in self._origins for each in values.get(b"origin", [])):
            return 403, "no other origin is answered"
        sites = values.get(b"sec-fetch-site", [])
        if not opens_frame and any(each not in (b"same-origin", b"none") for each in sites):
            return 403, "no other site is answered: open the address in a new tab"
        if method not in ("GET", "HEAD"):
            return 405, "only GET and HEAD are answered"
        return None

    def _tokens(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterable[str]:
        for name, value in headers:
            text = value.decode("latin-1")
            if name.lower() == b"authorization" and text.startswith("Bearer "):
                yield text.removeprefix("Bearer ")
            if name.lower() == b"cookie":
                try:
                    found = SimpleCookie(text).get(self._cookie)
                except CookieError:
                    continue
                if found is not None:
                    yield found.value

    def _is_token(self, given: str) -> bool:
        return _match(given, (self._token,)) is not None

    async def _enter(self, send: Send, rest: list[tuple[str, str]]) -> None:
        """Keep the token in a cookie, and take it out of the address."""
        place = f"/?{urlencode(rest)}" if rest else "/"
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        await _answer(
            send,
            303,
            b"",
            [(b"location", place.encode("ascii")), (b"set-cookie", cookie.encode("ascii"))],
        )


def _match(given: str, known: Iterable[str]) -> str | None:
    """The known token that is given."""
    seen = given.encode("utf-8", "replace")
    return next((each for each in known if secrets.compare_digest(seen, each.encode())), None)


async def _refuse(send: Send, status: int, text: str) -> None:
    """Answer with a reason, and close the connection: a stranger does not keep it."""
    allow = [(b"allow", b"GET, HEAD")] if status == 405 else []
    close = (b"connection", b"close")
    kind = (b"content-type", b"text/plain; charset=utf-8")
    await _answer(send, status, f"{text}\n".encode(), [kind, close, *allow])


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", str(len(body)).encode())
    store = (b"cache-control", b"no-store")
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [*headers, length, store],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
