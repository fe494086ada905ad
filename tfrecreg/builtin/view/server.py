"""The server: a socket on the loopback address, and the application behind its guard.

A page of another site can send requests to the loopback address, also under a name of its own whose
address it changes later (DNS rebinding). So the `Host` and the `Origin` must be those of this
server, and every request needs the token, which only the address that was printed has.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from html import escape
from http.cookies import CookieError, SimpleCookie
from operator import attrgetter
from types import FrameType
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tfrecreg.builtin.view.app import Viewer
from tfrecreg.builtin.view.browsed import pillow_notes
from tfrecreg.errors import FailureError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

HOST = "127.0.0.1"
STRANGERS = 64
"""Connections that have not asked yet, at most: the oldest give way."""
_SILENT_SECONDS = 5
"""Seconds that a connection may take to ask."""
_IDLE_SECONDS = 30
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    b"media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class ViewServer:
    """A viewer that is served. It listens from the beginning, and answers in :meth:`run`."""

    def __init__(self, viewer: Viewer, port: int = 0, where: str = "") -> None:
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        self.notes: list[str] = pillow_notes()
        """What is not shown, and why."""
        self._viewer = viewer
        self._where = where
        config = uvicorn.Config(
            Guard(viewer.app(), self.token, self.port),
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)

    @property
    def address(self) -> str:
        """Without its token."""
        return f"http://{HOST}:{self.port}/"

    @property
    def url(self) -> str:
        """The address for the browser."""
        asked = {"token": self.token, **({"where": self._where} if self._where else {})}
        return f"{self.address}?{urlencode(asked)}"

    def stop(self, *_: object) -> None:
        """End :meth:`run`. May be called by any thread, and as a handler of a signal."""
        self._server.should_exit = True

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Answer until :meth:`stop`; in the main thread also until a signal ends it."""
        try:
            with _signals(self.stop):
                ready()
                self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._viewer.close()

    def start(self) -> threading.Thread:
        """Answer in a thread, which ends with the program."""
        thread = threading.Thread(target=self.run, name="tfrecreg-view", daemon=True)
        thread.start()
        return thread


class Guard:
    """Refuses requests that are not from the browser of this user."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = f"tfrecreg-view-{port}"
        self._hosts = {f"{name}:{port}".encode() for name in (HOST, "localhost")}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"no answer to {scope['type']}")

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        headers: Headers = scope["headers"]
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in asked if name == "token"]
        enters = scope["path"] == "/" and bool(given)
        refused = self._refused(scope["method"], headers, enters)
        if refused is not None:
            await _refuse(with_headers, *refused)
        elif enters and not self._is_token(given[0]):
            await _refuse(with_headers, 403, "the token of this address is not valid")
        elif enters:
            await self._enter(with_headers, headers, [each for each in asked if each[0] != "token"])
        elif not any(map(self._is_token, self._tokens(headers))):
            await _refuse(
                with_headers, 403, "open the address that `tfrecreg view` printed: it has a token"
            )
        else:
            await self._app(scope, receive, with_headers)

    def _refused(self, method: str, headers: Headers, enters: bool) -> tuple[int, str] | None:
        """The status and the reason; None for a request that may have a token."""
        values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(value)
        hosts = values.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 403, "the host of this address is not served here"
        if any(each.lower() not in self._origins for each in values.get(b"origin", [])):
            return 403, "no other origin is answered"
        follows_link = (
            enters
            and values.get(b"sec-fetch-mode") == [b"navigate"]
            and values.get(b"sec-fetch-dest") == [b"document"]
        )
        if _is_of_other_site(headers) and not follows_link:
            return 403, "no other site is answered: open the address in a new tab"
        if method not in ("GET", "HEAD"):
            return 405, "only GET and HEAD are answered"
        return None

    def _tokens(self, headers: Headers) -> Iterable[str]:
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
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    async def _enter(self, send: Send, headers: Headers, rest: list[tuple[str, str]]) -> None:
        """Keep the token in a cookie, and take it out of the address."""
        place = f"/?{urlencode(rest)}" if rest else "/"
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        kept = (b"set-cookie", cookie.encode("ascii"))
        if not _is_of_other_site(headers):
            await _answer(send, 303, b"", [(b"location", place.encode("ascii")), kept])
            return
        # A browser sends the cookie after a redirect only if the link was on a page of this site.
        page = f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(place)}">'
        kind = (b"content-type", b"text/html; charset=utf-8")
        await _answer(send, 200, page.encode("ascii"), [kind, kept])


def _is_of_other_site(headers: Headers) -> bool:
    sites = [value for name, value in headers if name.lower() == b"sec-fetch-site"]
    return any(each not in (b"same-origin", b"none") for each in sites)


async def _refuse(send: Send, status: int, text: str) -> None:
    """Answer with a reason, and close the connection: a stranger does not keep it."""
    allow = [(b"allow", b"GET, HEAD")] if status == 405 else []
    close = (b"connection", b"close")
    kind = (b"content-type", b"text/plain; charset=utf-8")
    await _answer(send, status, f"{text}\n".encode(), [kind, close, *allow])


async def _answer(send: Send, status: int, body: bytes, headers: Headers) -> None:
    length = (b"content-length", str(len(body)).encode())
    every = [*headers, length, (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": body})


class _Protocol(H11Protocol):
    """A connection, which is closed if it does not ask, so that it cannot keep the user out.

    The guard closes those that ask without the token.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(_SILENT_SECONDS, self._expect_question)
        self.began = self.loop.time()
        every = (each for each in self.connections if isinstance(each, _Protocol))
        silent = [each for each in every if each.is_silent]
        if len(silent) > STRANGERS:
            min(silent, key=attrgetter("began")).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    @property
    def is_silent(self) -> bool:
        """Whether it has sent no whole head of a request; uvicorn's types leave out the None."""
        return getattr(self, "cycle", None) is None

    def _expect_question(self) -> None:
        if self.is_silent:
            self.transport.abort()


class _Server(uvicorn.Server):
    """A server that leaves signals to others."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _signals(stop: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    both = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, stop) for each in both]
    try:
        yield
    finally:
        for each, handler in zip(both, before, strict=True):
            signal.signal(each, handler)


def _listening(port: int) -> socket.socket:
    # By its protocol the event loop knows that small packets should not wait for each other.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
    except (OSError, OverflowError) as error:
        found.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FailureError(
            f"port {port} cannot be used: {reason}", hint="`--port 0` takes a free one"
        ) from None
    found.listen(128)
    found.set_inheritable(False)
    return found
