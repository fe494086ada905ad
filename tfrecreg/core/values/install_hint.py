"""The command that installs a distribution as this environment has it, for hints.

A distribution that did not come from an index says where it came from in ``direct_url.json``:
https://packaging.python.org/specifications/direct-url/. An index may have nothing of that name, or
another version.
"""

from __future__ import annotations

import json
from functools import cache
from shlex import quote
from typing import Any

from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.values.text import safe

_LIMIT = 1000
"""Characters of a URL or a path."""


def install_command(distribution: str = OURS, extra: str = "", version: str = "") -> str:
    """The command that adds an extra, or installs the distribution."""
    origin, tool = _installed(distribution), _tool()
    name, extras = safe(distribution, limit=80), f"[{extra}]" if extra else ""
    if origin is None:
        pinned = f"=={safe(version, limit=40)}" if version else ""
        return f"{tool} install {quote(name + extras + pinned)}"
    if "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"{tool} install {editable}{quote(_path(origin) + extras)}"
    return f"{tool} install {quote(f'{name}{extras} @ {_url(origin)}')}"


def upgrade_hint() -> str:
    """What to do for a newer tfrecreg."""
    origin, tool = _installed(OURS), _tool()
    if origin is None:
        return f"{tool} install --upgrade {OURS}"
    where = _path(origin) if "dir_info" in origin else _url(origin)
    return f"this tfrecreg was installed from `{where}`: install a newer one"


@cache
def _installed(distribution: str) -> dict[str, Any] | None:
    """Where a distribution came from; None for an index, or if it is not installed."""
    try:
        found = json.loads(_read(distribution, "direct_url.json"))
        known = {"dir_info", "archive_info", "vcs_info"} & found.keys()
        usable = isinstance(found["url"], str) and all(
            isinstance(found[each], dict) for each in known
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if usable and known else None


@cache
def _tool() -> str:
    by_uv = _read(OURS, "INSTALLER").strip() == "uv" and not _read("pip", "METADATA")
    return "uv pip" if by_uv else "pip"


def _read(distribution: str, name: str) -> str:
    from importlib import metadata

    try:
        return metadata.distribution(distribution).read_text(name) or ""
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return ""


def _path(origin: dict[str, Any]) -> str:
    from urllib.parse import unquote, urlsplit

    return safe(unquote(urlsplit(origin["url"]).path), limit=_LIMIT)


def _url(origin: dict[str, Any]) -> str:
    url, found = origin["url"], origin.get("vcs_info")
    if found is not None:
        at = found.get("requested_revision") or found.get("commit_id")
        url = f"{found.get('vcs')}+{url}{f'@{at}' if at else ''}"
    return safe(url, limit=_LIMIT)
