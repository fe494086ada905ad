"""Operations on a storage and on the file system below it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from package_support import CHECKOUT

from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage


def put(storage: LocalStorage, path: str, data: bytes = b"data") -> Path:
    """Write a file of a storage by other means."""
    target = Path(storage.root) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def names(storage: Storage, path: str = "", *, recursive: bool = True) -> list[str]:
    """The paths that a storage lists."""
    return [entry.path for entry in storage.list(path, recursive=recursive)]


def counted(memory: Any, monkeypatch: pytest.MonkeyPatch, *methods: str) -> list[str]:
    """The following calls of methods of a file system, as `method path`; without methods, of those
    that request an object or its state.
    """
    calls: list[str] = []
    for method in methods or ("info", "cat_file"):
        function = getattr(type(memory), method)

        def noted(
            system: Any, path: str, *given: Any, function: Any = function, **options: Any
        ) -> Any:
            calls.append(f"{function.__name__} {path}")
            return function(system, path, *given, **options)

        monkeypatch.setattr(type(memory), method, noted)
    return calls


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
