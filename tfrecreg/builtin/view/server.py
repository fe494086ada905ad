"""The server of the viewer, which listens on the loopback address and checks all requests.

A page of another site can send requests to this server. With DNS rebinding, even the host name of
that site can point to this server. So `Host` and `Origin` must name this server, and every request
needs the token.
"""

from __future__ import annotations

import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from types import FrameType
from urllib.parse import urlencode

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfrecreg.builtin.view.app import Viewer
from tfrecreg.core.values.errors import FailureError

HOST = "127.0.0.1"
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
    """A viewer. It listens as soon as it is created, and answers during :meth:`run`."""

    def __init__(self, viewer: Viewer, port: int = 0, where: str = "") -> None:
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        self._viewer = viewer
        self._where = where
        config = uvicorn.Config(
            Guard(viewer.app(), self.token, self.port),
            http="h11",
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
        """The address without the token."""
        return f"http://{HOST}:{self.port}/"

    @property
    def url(self) -> str:
        """The address for the browser."""
        asked = {"token": self.token, **({"where": self._where} if self._where else {})}
        return f"{self.address}?{urlencode(asked)}"

    def stop(self, *_: object) -> None:
        """End :meth:`run`. Any thread and any signal handler may call this."""
        self._server.should_exit = True

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Answer until :meth:`stop` is called or, in the main thread, until a signal arrives."""
        try:
            with _signals(self.stop):
                ready()
                self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._viewer.close()

    def start(self) -> threading.Thread:
        """Answer in a daemon thread, which ends with the program."""
        thread = threading.Thread(target=self.run, name="tfrecreg-view", daemon=True)
        thread.start()
        return thread


class Guard:
    """Refuses requests that do not come from the browser of this user."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = f"tfrecreg-view-{port}"
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        answer = self._answer(Request(scope)) or self._app
        await answer(scope, receive, with_headers)

    def _answer(self, request: Request) -> Response | None:
        """The reply to a request; None if the application may answer it."""
        headers = request.headers
        hosts = [each.lower() for each in headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return _refused(403, "this server does not answer to that host name")
        origins = {each.lower() for each in headers.getlist("origin")}
        if not origins <= {f"http://{each}" for each in self._hosts}:
            return _refused(403, "requests from another origin are not answered")
        given = request.query_params.getlist("token") if request.scope["path"] == "/" else []
        is_of_other_site = not set(headers.getlist("sec-fetch-site")) <= {"same-origin", "none"}
        follows_link = (
            bool(given)
            and headers.getlist("sec-fetch-mode") == ["navigate"]
            and headers.getlist("sec-fetch-dest") == ["document"]
        )
        if is_of_other_site and not follows_link:
            return _refused(
                403, "requests from another site are not answered: open the address in a new tab"
            )
        if request.method not in ("GET", "HEAD"):
            return _refused(405, "only GET and HEAD are answered", allow="GET, HEAD")
        if given:
            if not self._is_token(given[0]):
                return _refused(403, "the token of this address is not valid")
            rest = [each for each in request.query_params.multi_items() if each[0] != "token"]
            return self._entered(f"/?{urlencode(rest)}" if rest else "/", is_of_other_site)
        bearers = [
            each.removeprefix("Bearer ")
            for each in headers.getlist("authorization")
            if each.startswith("Bearer ")
        ]
        if any(map(self._is_token, (*bearers, request.cookies.get(self._cookie, "")))):
            return None
        return _refused(403, "open the address that `tfrecreg view` printed: it has a token")

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _entered(self, place: str, is_of_other_site: bool) -> Response:
        """Store the token in a cookie, and remove it from the address."""
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        headers = {"cache-control": "no-store", "set-cookie": cookie}
        if not is_of_other_site:
            return Response(b"", 303, {**headers, "location": place})
        # A browser sends the cookie after a redirect only if the link was on a page of this site.
        icon = '<link rel="icon" href="static/icon.svg" type="image/svg+xml">'
        page = f'<!doctype html>{icon}<meta http-equiv="refresh" content="0; url={escape(place)}">'
        return Response(page, 200, headers, "text/html")


def _refused(status: int, text: str, **headers: str) -> Response:
    """A refusal with its reason. It closes the connection, so strangers cannot keep it open."""
    every = {"connection": "close", "cache-control": "no-store", **headers}
    return Response(f"{text}\n", status, every, "text/plain")


class _Server(uvicorn.Server):
    """A server that does not handle signals."""

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
    # The protocol number tells the event loop not to delay small packets.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
    except (OSError, OverflowError) as error:
        found.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FailureError(f"port {port} cannot be used: {reason}") from None
    found.listen(128)
    found.set_inheritable(False)
    return found
