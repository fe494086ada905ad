"""Programs in a folder, as at a terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass
class Shell:
    """A shell in a folder, whose PATH has the program under test."""

    root: Path
    environment: dict[str, str]

    def __call__(self, command: str, *, expect: int = 0, stderr: int = subprocess.STDOUT) -> str:
        """Run a command; its output, on both streams."""
        done = subprocess.run(
            shlex.split(command),
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=300,
        )
        assert done.returncode == expect, f"{command}: {done}"
        return done.stdout

    def repro(self, *, expect: int = 0) -> list[str]:
        """The stages that `dvc repro` ran."""
        said = self("dvc repro", expect=expect)
        return re.findall(r"^Running stage '([^']*)'", said, re.MULTILINE)

    def document(self, command: str, *, expect: int = 0) -> Any:
        return json.loads(self(command, expect=expect, stderr=subprocess.PIPE))

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        file = self.root / path
        file.write_text(change(file.read_text("utf-8")), "utf-8")

    def at(self, folder: Path) -> Shell:
        return replace(self, root=folder)


def open_shell(folder: Path, name: str = "registry-root") -> Shell:
    """Somebody in a new folder of that name, with a home of their own beside it."""
    root, home = folder / name, folder / "home"
    root.mkdir()
    home.mkdir()
    checkout = Path(__file__).parents[2]
    (home / ".gitconfig").write_text("[user]\nname = ada\nemail = ada@example.org\n")
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{checkout}{os.pathsep}{checkout / 'plugins'}",
        "HOME": str(home),
        "NO_COLOR": "1",
        "TFRECREG_JOBS": "1",
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(folder / "site"),
    }
    return Shell(root, environment)
