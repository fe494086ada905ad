"""Which local plugins this user lets run on this machine: a registry that was cloned runs no code.

The store is ``tfrecreg/trusted.json`` below `XDG_STATE_HOME` or ``~/.local/state``, outside of any
registry. It has the folders of local plugins, each with the digest of the code that was trusted, or
with the mark that its code stays trusted after changes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from tfrecreg.errors import UsageError
from tfrecreg.storage.local import LocalStorage
from tfrecreg.text import safe

_FILE = "trusted.json"
_FORMAT = 1
ALWAYS = "always"
"""Stands for any digest."""


def trusted_folders() -> dict[str, str]:
    """The trusted folders: absolute path to the digest of the code, or :data:`ALWAYS`.

    Raises:
        UsageError: the store is damaged.
    """
    place = _store()
    try:
        document = json.loads((place / _FILE).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _damaged(place, str(error)) from error
    found = document.get("folders") if isinstance(document, dict) else None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise _damaged(place, "it has no `folders`")
    return found


def is_trusted(folder: str, digest: str) -> bool:
    """Whether the code with that digest may run.

    Args:
        folder: absolute, without links.

    Raises:
        UsageError: the store is damaged.
    """
    return trusted_folders().get(folder) in (digest, ALWAYS)


def change(trusted: Mapping[str, str | None], *, registry: str) -> None:
    """Trust some folders, or stop trusting them.

    Args:
        trusted: folder to digest, to :data:`ALWAYS`, or to None to stop trusting it.
        registry: the folder of the registry, which may not have the store in it.

    Raises:
        UsageError: the store is damaged, or is in the registry.
        StorageError: it cannot be written.
    """
    place = _store()
    if Path(os.path.realpath(place)).is_relative_to(os.path.realpath(registry)):
        raise UsageError(
            f"the list of trusted plugins would be in the registry, at `{safe(str(place))}`",
            hint="set `XDG_STATE_HOME` to a folder outside",
        )
    found: dict[str, str | None] = {**trusted_folders(), **trusted}
    kept = {folder: how for folder, how in sorted(found.items()) if how is not None}
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps({"format_version": _FORMAT, "folders": kept}, indent=2)
    with LocalStorage(place).create(_FILE) as file:
        file.write(f"{text}\n".encode("utf-8", "surrogateescape"))


def _store() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    if not Path(base).is_absolute():
        home = os.path.expanduser("~")  # noqa: PTH111 - never raises
        base = os.path.join(home, ".local", "state")  # noqa: PTH118
        if not Path(base).is_absolute():
            raise UsageError(
                "there is no folder for the list of trusted plugins",
                hint="set `HOME` or `XDG_STATE_HOME`",
            )
    return Path(base, "tfrecreg")


def _damaged(place: Path, reason: str) -> UsageError:
    return UsageError(
        f"`{safe(str(place / _FILE))}` is damaged: {safe(reason)}",
        hint="remove it, and trust the local plugins again: tfrecreg plugins trust",
    )
