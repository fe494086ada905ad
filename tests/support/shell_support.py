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

    def __call__(self, command: str, *, expect: int = 0) -> str:
        """Run a command; its output, on both streams."""
        done = subprocess.run(
            shlex.split(command),
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert done.returncode == expect, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def repro(self, arguments: str = "", *, expect: int = 0) -> list[str]:
        """The stages that `dvc repro` ran."""
        said = self(f"dvc repro {arguments}", expect=expect)
        return re.findall(r"^Running stage '([^']*)'", said, re.MULTILINE)

    def document(self, command: str, *, expect: int = 0) -> Any:
        """A command's stdout, parsed as JSON."""
        done = subprocess.run(
            shlex.split(command),
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == expect, f"{command}: {done.returncode}\n{done.stderr}"
        return json.loads(done.stdout)

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        """Change a file by a function of its content."""
        file = self.root / path
        file.write_text(change(file.read_text("utf-8")), "utf-8")

    def at(self, folder: Path) -> Shell:
        """The same shell in another folder."""
        return replace(self, root=folder)


def open_shell(folder: Path, name: str = "registry-root") -> Shell:
    """Somebody in a new folder of that name, with a home of their own beside it."""
    root, home, bin_ = folder / name, folder / "home", folder / "bin"
    for each in (root, home, bin_):
        each.mkdir()
    for module in ("tfrecreg", "dvc"):
        program = bin_ / module
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
        program.chmod(0o755)
    checkout = Path(__file__).parents[2]
    people = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "ada"), ("EMAIL", "ada@example.org"))
    }
    environment = {
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{checkout}{os.pathsep}{checkout / 'plugins'}",
        "HOME": str(home),
        "NO_COLOR": "1",
        "TFRECREG_JOBS": "1",
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(folder / "site"),
        **people,
    }
    return Shell(root, environment)
