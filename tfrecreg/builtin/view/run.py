"""From targets as the user names them to a server that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from tfrecreg.engines.interface import Engine
from tfrecreg.engines.local import LocalEngine
from tfrecreg.errors import MissingExtraError, UsageError
from tfrecreg.registry.registry import RegistryLike, find_registry, open_registry
from tfrecreg.shardset.find import TargetsLike, named_targets
from tfrecreg.shardset.target import find_target

if TYPE_CHECKING:
    from tfrecreg.builtin.view.server import ViewServer


def open_server(
    targets: TargetsLike = (),
    *,
    registry: RegistryLike | None = None,
    port: int = 0,
    where: str | None = None,
    engine: Engine | None = None,
    check: bool = True,
    origins: Sequence[str] = (),
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
        made: ViewServer = server.ViewServer(viewer, port, where=where or "", origins=origins)
    except BaseException:
        viewer.close()
        raise
    return made
