"""Whose plugins this user lets run on this machine: a registry that was cloned runs no code.

The list is ``tfrecreg/trusted.json`` below `XDG_STATE_HOME` or ``~/.local/state``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tfrecreg.errors import UsageError
from tfrecreg.storage.local import LocalStorage
from tfrecreg.text import safe

_FILE = "trusted.json"
_FORMAT = 2


def is_trusted(folder: str) -> bool:
    """Whether a folder is in a registry whose plugins may run."""
    return any(Path(folder).is_relative_to(each) for each in _trusted())


def change(registry: str, *, trusted: bool) -> None:
    """Trust the plugins in a registry, or stop trusting them."""
    found = {*_trusted()} - {os.path.realpath(registry)}
    if trusted:
        found.add(os.path.realpath(registry))
    place = _place()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps({"format_version": _FORMAT, "registries": sorted(found)}, indent=2)
    with LocalStorage(place).create(_FILE) as file:
        file.write(f"{text}\n".encode("utf-8", "surrogateescape"))


def _trusted() -> list[str]:
    place = _place() / _FILE
    try:
        document = json.loads(place.read_bytes())
        if document["format_version"] != _FORMAT:
            return []
        return [str(each) for each in document["registries"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"`{safe(str(place))}` is damaged: {safe(str(error))}",
            hint="remove it, and trust the registry again: tfrecreg plugins trust",
        ) from error


def _place() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    if not Path(base).is_absolute():
        base = os.path.expanduser("~/.local/state")  # noqa: PTH111 - never raises
    return Path(base, "tfrecreg")
