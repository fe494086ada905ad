"""Asks git about the registry's folder, and makes tags with the names that GTO uses. Never adds or
commits files.

The tag ``mnist@v1.2.3`` registers a version, and ``mnist@v1.2.3!`` marks it as yanked. The tag
``mnist#prod#4`` assigns a version to the stage ``prod``. The number 4 means that this is the
dataset's fourth tag for a stage. If the registry is below the root of its repository, its tags
begin with its folder: ``some/registry=mnist@v1.2.3``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfrecreg.core.values.errors import FailureError, UsageError

_COMMIT = b"\x01"
"""Starts the line of a commit. Lines of files never start with it."""


def work_tree(folder: str) -> Path | None:
    """The root of the git work tree that contains `folder`; None outside one."""
    here = Path(folder).resolve()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), None)


def head_commit(folder: str) -> str:
    """The checked-out commit, as hex; empty outside git, before a first commit, or without git."""
    if work_tree(folder) is None:
        return ""
    try:
        return find_commit(folder, "HEAD")
    except (FailureError, UsageError):
        return ""


def find_commit(folder: str, revision: str) -> str:
    """The commit that a revision names, as hex."""
    options = ("--verify", "--quiet", "--end-of-options")
    done = _call(folder, "rev-parse", *options, f"{revision}^{{commit}}")
    if done.returncode == 0:
        return done.stdout.decode("ascii", "replace").strip()
    if done.stderr:
        raise _refused(("rev-parse",), done.stderr)
    raise UsageError(
        f"`{revision}` does not name a commit here",
        hint="name a branch, a tag or a commit; `git fetch` fetches what others pushed",
    )


def folder_in_tree(folder: str) -> str:
    """Path of `folder` in its work tree, POSIX, such as ``some/registry``; empty for the root."""
    return _text(folder, "rev-parse", "--show-prefix").strip("\n").rstrip("/")


def is_shallow(folder: str) -> bool:
    """Whether the oldest commits are missing, as in a clone with limited depth."""
    return _text(folder, "rev-parse", "--is-shallow-repository").strip() == "true"


def merge_base(folder: str, one: str, other: str) -> str:
    """The last common ancestor of two commits, as hex; empty if they have none."""
    done = _call(folder, "merge-base", "--end-of-options", one, other)
    if done.returncode not in (0, 1):
        raise _refused(("merge-base",), done.stderr)
    return done.stdout.decode("ascii", "replace").strip()


@dataclass(frozen=True, slots=True)
class FileChange:
    commit: str
    path: str
    blob: str
    """The file's object after the commit, as hex; empty if the commit removed the file."""
    added: bool


def touches(folder: str, *paths: str) -> list[FileChange]:
    """The changes of these files in the history of the checked-out commit."""
    if not head_commit(folder):
        return []
    where = f"{folder_in_tree(folder)}/".lstrip("/")
    data = _run(
        folder,
        *("log", "--format=%x01%H", "--topo-order", "--no-color", "--no-show-signature"),
        *("-c", "--raw", "--no-abbrev", "--no-renames", "-z", "--", *paths),
    )
    return list(_parsed(data, where))


def _parsed(data: bytes, where: str) -> Iterator[FileChange]:
    commit = ""
    pieces = iter(data.split(b"\0"))
    for piece in pieces:
        head = piece.lstrip(b"\n")
        if head.startswith(_COMMIT):
            commit = head.removeprefix(_COMMIT).decode("ascii", "replace")
        elif head.startswith(b":"):
            # ":old-mode new-mode old-object new-object status", and the path as the next piece. A
            # merge has one colon, one old mode, one old object and one letter of the status per
            # parent.
            *_, blob, status = head.decode("ascii", "replace").split(" ")
            path = next(pieces, b"").decode("utf-8", "surrogateescape")
            yield FileChange(
                commit=commit,
                path=path.removeprefix(where),
                blob="" if "D" in status else blob,
                added=not status.strip("A"),
            )


def list_blobs(folder: str, commit: str, path: str) -> dict[str, str]:
    """For each file below `path` in a commit: its path in `folder`, and its object as hex."""
    data = _run(folder, "ls-tree", "-r", "-z", commit, "--", path)
    found = {}
    for line in filter(None, data.split(b"\0")):
        facts, _, name = line.partition(b"\t")
        found[name.decode("utf-8", "surrogateescape")] = facts.split(b" ")[2].decode("ascii")
    return found


def read_blob(folder: str, commit: str, path: str) -> bytes | None:
    """The content of a file in a commit; None if the commit does not have the file."""
    blob = list_blobs(folder, commit, path).get(path)
    return None if blob is None else _run(folder, "cat-file", "blob", blob)


def restore_command(folder: str, path: str) -> str:
    """The command that restores a missing file; empty if the checked-out commit lacks that file."""
    commit = head_commit(folder)
    if not commit or path not in list_blobs(folder, commit, path):
        return ""
    return f"git checkout HEAD -- {shlex.quote(path)}"


def blob_id(data: bytes, like: str) -> str:
    """The name of git's object for a file with these bytes, in the hash format of `like`."""
    hasher = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    hasher.update(b"blob %d\0" % len(data))
    hasher.update(data)
    return hasher.hexdigest()


@dataclass(frozen=True, slots=True)
class GitTag:
    name: str
    commit: str
    annotated: bool
    time: int
    """Time of its creation, in seconds since 1970; 0 for a tag without annotation."""


def list_tags(folder: str, start: str) -> list[GitTag]:
    """The tags whose names begin with `start`, sorted by name."""
    form = "%(refname:strip=2)%00%(objectname)%00%(*objectname)%00%(taggerdate:unix)"
    found = []
    for line in _run(folder, "for-each-ref", f"--format={form}", "refs/tags").splitlines():
        name, own, target, time = line.decode("utf-8", "surrogateescape").split("\0")
        if name.startswith(start):
            found.append(GitTag(name, target or own, bool(target), int(time or 0)))
    return found


def create_tag(folder: str, name: str, commit: str, message: str) -> None:
    _run(folder, "tag", "--annotate", "--message", message, "--end-of-options", name, commit)


def commits_of_refs(folder: str) -> list[str]:
    """The commits of all refs: branches, tags, stashes, and remote-tracking branches."""
    if work_tree(folder) is None:
        return []
    # A tag may name another tag or a file: `*` follows a tag to its target, and the type excludes
    # files.
    tag, other = "%(*objecttype) %(*objectname)", "%(objecttype) %(objectname)"
    form = f"%(if)%(*objectname)%(then){tag}%(else){other}%(end)"
    lines = _run(folder, "for-each-ref", f"--format={form}").decode().splitlines()
    found = [line.partition(" ")[2] for line in lines if line.startswith("commit ")]
    head = head_commit(folder)  # a detached commit may not be in a ref
    return list(dict.fromkeys([*found, *([head] if head else [])]))


def blobs_of_refs(folder: str, below: str, name: str) -> Iterator[bytes]:
    """Search all refs for files with the name `name` below a path. Yield each content once."""
    seen: set[str] = set()
    for commit in commits_of_refs(folder):
        for path, blob in list_blobs(folder, commit, below).items():
            if path.rpartition("/")[2] == name and blob not in seen:
                seen.add(blob)
                yield _run(folder, "cat-file", "blob", blob)


def _text(folder: str, *arguments: str) -> str:
    return _run(folder, *arguments).decode("utf-8", "surrogateescape")


def _run(folder: str, *arguments: str) -> bytes:
    done = _call(folder, *arguments)
    if done.returncode:
        raise _refused(arguments, done.stderr)
    return done.stdout


def _call(folder: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-C", folder, *arguments]
    # Messages must be in English, because they are parsed; nobody would see a question for a
    # password. A hook of git sets the other variables, which would hide where `folder` is.
    environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    for name in ("GIT_DIR", "GIT_WORK_TREE"):
        environment.pop(name, None)
    try:
        return subprocess.run(command, capture_output=True, check=False, env=environment)
    except OSError as error:
        raise FailureError(f"git cannot be run: {error.strerror}") from None


def _refused(arguments: tuple[str, ...], stderr: bytes) -> FailureError:
    lines = stderr.decode("utf-8", "replace").strip().splitlines() or ["it printed nothing"]
    # The reason is in the first line marked as an error; advice surrounds it.
    told = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0])
    reason = told.removeprefix("fatal:").removeprefix("error:").strip()
    return FailureError(f"`git {arguments[0]}` refused: {reason}")


_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9-/_]*[a-zA-Z0-9])?")
_FOLDER = re.compile(r"[a-zA-Z0-9-_./]+")


def is_name(dataset: str) -> bool:
    """Whether GTO accepts the name of a dataset in tags."""
    return _NAME.fullmatch(dataset) is not None


def artifact(dataset: str, folder: str) -> str:
    """The name of a dataset in GTO's tags."""
    if not is_name(dataset):
        raise UsageError(
            f"GTO accepts no tags for the name `{dataset}`: it has to end with a letter or digit",
        )
    if folder and not _FOLDER.fullmatch(folder):
        raise UsageError(
            f"GTO accepts no tags for the registry's folder `{folder}`: expected letters, "
            "digits, `-`, `_`, `.` and `/`",
        )
    return f"{folder}={dataset}" if folder else dataset


def check_stage(stage: str) -> None:
    if not _NAME.fullmatch(stage):
        raise UsageError(
            f"`{stage}` is not a stage name: expected letters, digits, `-`, `_` and `/`, "
            "with a letter or digit at both ends",
        )


def version_tag(name: str, version: str) -> str:
    return f"{name}@v{version}"


def is_version(name: str, tag: str) -> bool:
    """Whether a tag registers a version of the artifact."""
    return re.fullmatch(rf"{re.escape(name)}@v[0-9]+\.[0-9]+\.[0-9]+(#[0-9]+)?", tag) is not None


def withdrawal_tag(name: str, version: str) -> str:
    """The tag that deregisters a version."""
    return f"{name}@v{version}!"


def stage_tag(name: str, stage: str, tags: Iterable[GitTag]) -> str:
    """The name for a new tag that assigns a version to a stage."""
    counters = [0, *(counter for _, _, counter in _events(name, tags))]
    return f"{name}#{stage}#{max(counters) + 1}"


def in_stage(name: str, stage: str, tags: Iterable[GitTag]) -> str | None:
    """The commit of the latest tag for a stage; None if the stage is empty."""
    events = [each for each in _events(name, tags) if each[1]["stage"] == stage]
    last = max(events, key=lambda each: (each[0].time, each[2]), default=None)
    return None if last is None or last[1]["cancel"] else last[0].commit


_EVENT = re.compile(
    r"(?:#(?P<stage>[a-zA-Z0-9][a-zA-Z0-9-/_]*)|@[^#!]+)(?P<cancel>!?)(?:#(?P<counter>[0-9]+))?"
)


def _events(name: str, tags: Iterable[GitTag]) -> Iterator[tuple[GitTag, re.Match[str], int]]:
    """The annotated tags of an artifact, each with its match of `_EVENT` and its number."""
    for tag in tags:
        match = _EVENT.fullmatch(tag.name.removeprefix(name))
        if tag.annotated and tag.name.startswith(name) and match is not None:
            yield tag, match, int(match["counter"] or 0)
