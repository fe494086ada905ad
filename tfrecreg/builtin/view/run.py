"""Opens targets in a viewer, from the command line or from Python."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING

from tfrecreg.core.registry.data import TargetLike, TargetsLike
from tfrecreg.core.registry.find import find_target, named_targets
from tfrecreg.core.registry.registry import RegistryLike, find_registry, open_registry
from tfrecreg.core.values.errors import MissingExtraError, UsageError
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from tfrecreg.builtin.view.server import ViewServer


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
    """Make a viewer. The viewer listens on its port at once, but answers requests only during
    `ViewServer.run`.
    """
    try:
        server = import_module("tfrecreg.builtin.view.server")
    except ImportError as error:
        raise MissingExtraError("the viewer", "view") from error
    from tfrecreg.builtin.view.app import Viewer
    from tfrecreg.builtin.view.browsed import Opened

    named = named_targets(targets)
    root = registry if registry is not None else find_registry()
    if not named and root is None:
        raise UsageError("there is no registry here: name TFRecord files to view")
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
    """A viewer that runs in a thread of the program. A notebook shows a link to it."""

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
        """End the viewer."""
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


def view(
    targets: Sequence[TargetLike],
    *,
    registry: RegistryLike | None = None,
    where: str | None = None,
    port: int = 0,
    engine: Engine | None = None,
) -> View:
    """Start a viewer in a thread. A second call with the same targets stops the first viewer."""
    title = ", ".join(safe(str(getattr(each, "name", each)), limit=200) for each in targets)
    name = (str(getattr(registry, "root", registry)), title, where or "")
    if name in _views:
        _views.pop(name).close()  # first, because it may use the port
    server = open_server(targets, registry=registry, port=port, where=where, engine=engine)
    if not _views:
        atexit.register(_close_all)
    _views[name] = View(server, title or "the registry")
    return _views[name]


def _close_all() -> None:
    # A thread inside Arrow or DuckDB would crash the program when it ends.
    while _views:
        _views.popitem()[1].close()
