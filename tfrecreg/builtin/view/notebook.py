"""A viewer in a notebook: it runs beside the cells, and is shown in a frame."""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tfrecreg.builtin.view.run import open_server
from tfrecreg.engines.interface import Engine
from tfrecreg.errors import UsageError
from tfrecreg.registry.registry import RegistryLike
from tfrecreg.shardset.find import TargetLike
from tfrecreg.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.view.server import ViewServer

LOOPBACK = ("http://localhost:*", "http://127.0.0.1:*")
"""Origins of notebooks on this machine."""
_ORIGIN = re.compile(r"https?://[a-z0-9.-]{1,253}(:([0-9]{1,5}|\*))?")
_HEIGHT = 700
_FAREWELL = 15.0


class View:
    """A viewer that runs beside the program. A notebook shows it in a frame."""

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
        """Whether it answers."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End it."""
        self._server.stop()
        self._thread.join(_FAREWELL)

    def __repr__(self) -> str:
        place = self._server.address if self.is_open else "closed"
        return f"<View {self._title}: {place}>"

    def _repr_html_(self) -> str:
        """A frame, whose address opens once: a saved notebook opens nothing."""
        if not self.is_open:
            return f"<p>{escape(repr(self))}</p>"
        return (
            f'<iframe title="View of {escape(self._title)}" src="{escape(self._server.frame)}" '
            f'allow="clipboard-write; fullscreen" width="100%" height="{_HEIGHT}"></iframe>'
        )


_views: dict[tuple[str, ...], View] = {}
_lock = threading.Lock()


def view(
    targets: Sequence[TargetLike],
    *,
    registry: RegistryLike | None = None,
    where: str | None = None,
    port: int = 0,
    origin: str | None = None,
    engine: Engine | None = None,
) -> View:
    """View targets in a notebook. The same call again ends the viewer of the one before."""
    if origin is not None and _ORIGIN.fullmatch(origin) is None:
        raise UsageError(
            f"`origin` should be the scheme and the host of a page, found `{safe(origin)}`",
            hint="as in the address bar of the notebook: `https://hub.example.org`",
        )
    title = ", ".join(safe(str(getattr(each, "name", each)), limit=200) for each in targets)
    name = (str(getattr(registry, "root", registry)), title, where or "")
    with _lock:
        before = _views.pop(name, None)
    if before is not None:
        before.close()  # first: it may have the port
    server = open_server(
        targets,
        registry=registry,
        port=port,
        where=where,
        engine=engine,
        origins=(origin,) if origin is not None else LOOPBACK,
    )
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
