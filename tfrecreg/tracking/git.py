"""What git knows of the registry's folder. Reads only: nothing is ever added or committed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tfrecreg.errors import FailureError
from tfrecreg.text import safe

__all__ = ["blobs_of_refs", "commits_of_refs", "head_commit", "work_tree"]


def work_tree(folder: str) -> Path | None:
    """The root of the git work tree that `folder` lies in, None outside one."""
    here = Path(folder).resolve()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), None)


def head_commit(folder: str) -> str:
    """The commit that is checked out, as hex; empty outside git, before a first commit, or
    without a git command.
    """
    if work_tree(folder) is None:
        return ""
    command = ["git", "-C", folder, "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commits_of_refs(folder: str) -> list[str]:
    """The commits that refs name: branches, tags, stashes, and what was fetched of others.

    Empty outside git and before a first commit.

    Raises:
        FailureError: git refused: then nobody knows what is referred to.
    """
    if work_tree(folder) is None:
        return []
    # A tag may name a tag or a file: `*` follows the first, and the type tells the second.
    tag, other = "%(*objecttype) %(*objectname)", "%(objecttype) %(objectname)"
    form = f"%(if)%(*objectname)%(then){tag}%(else){other}%(end)"
    lines = _git(folder, "for-each-ref", f"--format={form}").decode().splitlines()
    found = [line.partition(" ")[2] for line in lines if line.startswith("commit ")]
    head = head_commit(folder)  # detached, it may be in no ref
    return list(dict.fromkeys([*found, *([head] if head else [])]))


def blobs_of_refs(folder: str, below: str, name: str) -> Iterator[bytes]:
    """Every version of the files called `name` below a path, in every ref: branches, tags, stashes
    and what was fetched of others. Each content once; none outside git.

    Args:
        folder: in the work tree.
        below: a folder, relative to `folder`.
        name: of the files, the last part of their path.

    Raises:
        FailureError: git refused: then nobody knows what is referred to.
    """
    seen: set[str] = set()
    for commit in commits_of_refs(folder):
        listing = _git(folder, "ls-tree", "-r", "-z", commit, "--", below)
        for line in listing.split(b"\0"):
            head, _, path = line.partition(b"\t")
            blob = head.split()[2].decode() if path else ""
            if path.rpartition(b"/")[2] == name.encode() and blob not in seen:
                seen.add(blob)
                yield _git(folder, "cat-file", "blob", blob)


def _git(folder: str, *arguments: str | bytes) -> bytes:
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=False)
    except OSError as error:
        raise FailureError(
            f"git cannot be run: {error.strerror}", hint="install git, or add it to PATH"
        ) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
        raise FailureError(f"git refused: {safe(said[-1])}", hint="`git fsck` shows more")
    return done.stdout
