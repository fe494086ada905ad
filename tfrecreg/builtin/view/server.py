"""The server: a socket on the loopback address, and the application behind its guard."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from types import FrameType
from urllib.parse import urlencode

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tfrecreg.builtin.view.app import Viewer
from tfrecreg.builtin.view.browsed import pillow_notes
from tfrecreg.builtin.view.guard import Guard
from tfrecreg.errors import FailureError

HOST = "127.0.0.1"
STRANGERS = 64
"""Connections that have not asked yet, at most: the oldest give way."""
_SILENT_SECONDS = 5
"""Seconds that a connection may take to ask."""
_IDLE_SECONDS = 30


class ViewServer:
    """A viewer that is served. It listens from the beginning, and answers in :meth:`run`."""

    def __init__(
        self, viewer: Viewer, port: int = 0, where: str = "", *, origins: Sequence[str] = ()
    ) -> None:
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        self.notes: list[str] = pillow_notes()
        """What is not shown, and why."""
        self._viewer = viewer
        self._where = where
        self._guard = Guard(viewer.app(), self.token, self.port, origins)
        config = uvicorn.Config(
            self._guard,
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

    @property
    def frame(self) -> str:
        """An address for a frame of a notebook, each time another one. It can be opened once."""
        asked = f"?{urlencode({'where': self._where})}" if self._where else ""
        return f"{self.address.rstrip('/')}{self._guard.entry()}{asked}"

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
