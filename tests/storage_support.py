"""Doing things to a storage, and to the file system behind it.

On sys.path by `pythonpath` in pyproject.toml.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from package_support import CHECKOUT

from tfrecreg.storage import LocalStorage, Storage

__all__ = ["forbid_links", "names", "put", "run"]


def put(storage: LocalStorage, path: str, data: bytes = b"data") -> Path:
    """Write a file of a storage by other means."""
    target = Path(storage.root) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def names(storage: Storage, path: str = "", *, recursive: bool = True) -> list[str]:
    """The paths that a storage lists."""
    return [entry.path for entry in storage.list(path, recursive=recursive)]


def run(script: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd="/",
        timeout=60,
        **options,
    )


def forbid_links(monkeypatch: pytest.MonkeyPatch, errno: int = 1) -> None:
    """As on a file system without hard links: mounting one takes rights that tests do not have."""

    def link(source: str, target: str) -> None:
        raise OSError(errno, os.strerror(errno), source, None, target)

    monkeypatch.setattr(os, "link", link)
