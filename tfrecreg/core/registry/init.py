"""Makes a folder a registry: adds missing files, and leaves existing files unchanged."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.registry import find_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import expect_no_url, path_text
from tfrecreg.core.values.config import CONFIG_NAME
from tfrecreg.core.values.errors import StorageError, UsageError

_CONFIG = """\
# A tfrecreg registry. Each dataset has its own file, datasets/NAME.toml:
# `tfrecreg build NAME --source SOURCE --raw PATH` writes it. Gates and waivers are here.

# [gates.default]
# fail_on = "error"
# limits.inflation = { ratio = 1.10, allowance = 512, base = "decoded" }
"""

_REST = {
    # DVC tracks the bytes of builds, git tracks their pointers.
    f"{layout.BUILDS}/.gitignore": b"/*/\n",
    **dict.fromkeys(layout.IGNORES, layout.IGNORE_ALL),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InitResult:
    """The result of `init`."""

    root: str
    made: tuple[str, ...]
    dvc: Literal["made", "there", "absent"]
    """``absent``: DVC is not installed or not wanted, so `versions/` keeps the bytes of releases.
    """
    commands: tuple[str, ...] = field(repr=False)
    """Git commands to run next; empty outside git, and if nothing was made."""


def init(
    folder: str | os.PathLike[str] = ".", *, with_dvc: bool | None = None, nested: bool = False
) -> InitResult:
    """Make `folder` a registry. The folder is made if it is missing."""
    expect_no_url(os.fsdecode(folder), "a registry is a folder on this machine")
    storage = LocalStorage(os.path.expanduser(folder))  # noqa: PTH111 - never raises
    root = Path(storage.root)
    if not nested and not os.path.lexists(root / CONFIG_NAME):
        around = find_registry(root.parent)
        if around is not None:  # the outer registry would silently ignore the new one
            raise UsageError(
                f"`{path_text(str(root))}` is inside the registry `{path_text(str(around))}`",
                hint=f"use that one, or put an empty `{CONFIG_NAME}` into the folder first",
            )
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        is_file = isinstance(error, FileExistsError | NotADirectoryError)
        wrong = UsageError if is_file else StorageError
        raise wrong(f"`{path_text(str(root))}` cannot be made: {error.strerror}") from error
    is_new = storage.stat(CONFIG_NAME) is None
    wanted = is_new if with_dvc is None else with_dvc
    made = [path for path, data in _REST.items() if storage.put_if_absent(path, data)]
    state = tracker().begin(storage.root, wanted=wanted, required=bool(with_dvc))
    # This file comes last, so that a killed run is repeated in full.
    if storage.put_if_absent(CONFIG_NAME, _CONFIG.encode("utf-8")):
        made.insert(0, CONFIG_NAME)
    return InitResult(
        root=storage.root,
        made=tuple(made),
        dvc=state,
        commands=_commands(storage.root, made, dvc_made=state == "made"),
    )


def _commands(root: str, made: list[str], *, dvc_made: bool) -> tuple[str, ...]:
    paths = [path for path in made if path not in layout.IGNORES]
    if dvc_made:
        paths += tracker().files
    if git.work_tree(root) is None or not paths:
        return ()
    command = "git"
    if os.path.realpath(root) != os.path.realpath("."):
        command = f"git -C {shlex.quote(root)}"
    return (f"{command} add {' '.join(paths)}", f"{command} commit -m 'Begin a tfrecreg registry'")
