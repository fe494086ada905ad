"""`tfrecreg view`: from targets to an application behind its guard, and its handle.

A page of another site can send requests to the loopback address, also under a name of its own whose
address it changes later (DNS rebinding). So the `Host` and the `Origin` must be those of this
server, and every request needs the token, which only the address that was printed has.
"""

from __future__ import annotations

import asyncio
import atexit
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib import import_module
from operator import attrgetter
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tfrecreg.builtin.view.app import Viewer
from tfrecreg.builtin.view.browsed import pillow_notes
from tfrecreg.core.registry.registry import RegistryLike, find_registry, open_registry
from tfrecreg.core.registry.shardset.find import TargetLike, TargetsLike, named_targets
from tfrecreg.core.registry.shardset.target import find_target
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option, where_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import FailureError, MissingExtraError, UsageError
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine

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
        """The answer to a stranger, or to who comes with the token; None for one with a cookie."""
        headers = request.headers
        hosts = [each.lower() for each in headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return _refused(403, "the host of this address is not served here")
        origins = {each.lower() for each in headers.getlist("origin")}
        if not origins <= {f"http://{each}" for each in self._hosts}:
            return _refused(403, "no other origin is answered")
        given = request.query_params.getlist("token") if request.scope["path"] == "/" else []
        is_of_other_site = not set(headers.getlist("sec-fetch-site")) <= {"same-origin", "none"}
        follows_link = (
            bool(given)
            and headers.getlist("sec-fetch-mode") == ["navigate"]
            and headers.getlist("sec-fetch-dest") == ["document"]
        )
        if is_of_other_site and not follows_link:
            return _refused(403, "no other site is answered: open the address in a new tab")
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
        """Keep the token in a cookie, and take it out of the address."""
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        headers = {"cache-control": "no-store", "set-cookie": cookie}
        if not is_of_other_site:
            return Response(b"", 303, {**headers, "location": place})
        # A browser sends the cookie after a redirect only if the link was on a page of this site.
        icon = '<link rel="icon" href="static/icon.svg" type="image/svg+xml">'
        page = f'<!doctype html>{icon}<meta http-equiv="refresh" content="0; url={escape(place)}">'
        return Response(page, 200, headers, "text/html")


def _refused(status: int, text: str, **headers: str) -> Response:
    """A reason, which closes the connection: a stranger does not keep it."""
    every = {"connection": "close", "cache-control": "no-store", **headers}
    return Response(f"{text}\n", status, every, "text/plain")


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


_FAREWELL = 15.0


def open_server(
    targets: TargetsLike = (),
    *,
    registry: RegistryLike | None = None,
    port: int = 0,
    where: str | None = None,
    engine: Engine | None = None,
    check: bool = True,
) -> ViewServer:
    """A viewer of targets, which listens and is not running yet."""
    try:
        server = import_module("tfrecreg.builtin.view.server")
    except ImportError as error:
        raise MissingExtraError("the viewer", "view") from error
    from tfrecreg.builtin.view.app import Viewer
    from tfrecreg.builtin.view.browsed import Opened

    named = named_targets(targets)
    root = registry if registry is not None else find_registry()
    if not named and root is None:
        raise UsageError(
            "there is no target to view, and no registry here",
            hint="name TFRecord files: `tfrecreg view 'data/*.tfrecord'`",
        )
    found = [find_target(each, registry=registry) for each in named]
    home = open_registry(root) if root is not None else None
    viewer = Viewer(Opened(found, home, engine or LocalEngine(1), check=check))
    try:
        made: ViewServer = server.ViewServer(viewer, port, where=where or "")
    except BaseException:
        viewer.close()
        raise
    return made


class View:
    """A viewer that runs beside the program. A notebook shows a link to it."""

    def __init__(self, server: ViewServer, title: str) -> None:
        self._server = server
        self._title = title
        self._thread = server.start()

    @property
    def url(self) -> str:
        """The address for a browser on this machine, with the token."""
        return self._server.url

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """End it."""
        self._server.stop()
        self._thread.join(_FAREWELL)

    def __repr__(self) -> str:
        place = self._server.address if self.is_open else "closed"
        return f"<View {self._title}: {place}>"

    def _repr_html_(self) -> str:
        if not self.is_open:
            return f"<p>{escape(repr(self))}</p>"
        link = f'<a href="{escape(self.url)}" target="_blank" rel="noopener noreferrer">'
        return f"<p>{link}View {escape(self._title)}</a></p>"


_views: dict[tuple[str, ...], View] = {}
_lock = threading.Lock()


def view(
    targets: Sequence[TargetLike],
    *,
    registry: RegistryLike | None = None,
    where: str | None = None,
    port: int = 0,
    engine: Engine | None = None,
) -> View:
    """View targets beside the program. The same call again ends the viewer of the one before."""
    title = ", ".join(safe(str(getattr(each, "name", each)), limit=200) for each in targets)
    name = (str(getattr(registry, "root", registry)), title, where or "")
    with _lock:
        before = _views.pop(name, None)
    if before is not None:
        before.close()  # first: it may have the port
    server = open_server(targets, registry=registry, port=port, where=where, engine=engine)
    made = View(server, title or "the registry")
    with _lock:
        if not _views:
            atexit.register(_close_all)
        _views[name] = made
    return made


def _close_all() -> None:
    # A thread that is in the code of Arrow or DuckDB when the program ends takes it down.
    while _views:
        _views.popitem()[1].close()


@session_command("view")
@click.argument("targets", nargs=-1, metavar="[TARGET..]", shell_complete=complete.targets)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port of the viewer. Default: 0, a free one.",
)
@click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
@where_option
@jobs_option
def command(
    session: Session,
    targets: tuple[str, ...],
    port: int,
    no_open: bool,
    where: str | None,
    engine: Engine,
) -> None:
    """See every record in the browser.

    TARGET is a reference (mnist, mnist@1.0.0), or a path, URL, folder or glob of TFRecord files,
    which need no registry. Two targets can be compared. Without a TARGET, the viewer lists the
    datasets of the registry.

    The viewer is a server that only this machine can reach, at an address with a token. It changes
    no file. Ctrl-C ends it.
    """

    session.warn_of_broken_plugins()
    server = open_server(targets, registry=session.registry, port=port, where=where, engine=engine)

    def ready() -> None:
        if not session.printed_json({"url": server.url}):
            print(server.url, flush=True)  # noqa: T201 - a console would wrap it
        if not no_open:
            import webbrowser

            # A browser in the terminal runs until it is left.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()

    for note in server.notes:
        session.err.print(note)
    server.run(ready)
