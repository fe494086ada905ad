"""Git repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

_PERSON = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """Run git, and return its output."""
    command = ["git", "-C", str(folder), *_PERSON, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout.rstrip()


def start(folder: Path) -> Path:
    """A repository with the branch `main`, whose user is known to it."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    return folder


def commit(folder: Path, message: str = "a commit", *paths: str) -> str:
    """Commit everything, or what is at some paths; its name."""
    git(folder, "add", "--all", *(paths or (".",)))
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")
