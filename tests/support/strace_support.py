"""The real program under strace, which kills it at a call of the system, or refuses the call."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_CALLS = (
    *("openat", "mkdir", "rename", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir"),
    *("write", "fsync", "getdents64"),
)
_LINE = re.compile(r"^(\d+) +(\w+)\((.*)$")


class Call(NamedTuple):
    """A call of the system that the program makes."""

    name: str
    number: int
    """Of all calls of that name, from 1."""
    line: str
    """As strace shows it."""


def unusable() -> str:
    """Why strace cannot be used; empty where it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-qq", "true"], check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"strace may not trace here: {done.stderr.strip()}"


def calls_under(root: Path, command: Sequence[str], log: Path) -> list[Call]:
    """The calls of a command's own process that have to do with a folder."""
    done = _run(command, ["-y", "-s", "0", "-e", f"trace={','.join(_CALLS)}"], log)
    assert done.returncode == 0, done.stderr
    counts: Counter[str] = Counter()
    found, own = [], ""
    for line in log.read_text("utf-8", "replace").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        pid, name, rest = match.groups()
        own = own or pid
        if pid == own:
            counts[name] += 1
            if str(root) in rest:
                found.append(Call(name, counts[name], rest[:300]))
    return found


def injected(
    command: Sequence[str], call: Call, what: str, log: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command that dies at a call, or has it refused: ``signal=KILL``, ``error=EIO``."""
    inject = f"inject={call.name}:{what}:when={call.number}"
    return _run(command, ["-e", f"trace={call.name}", "-e", inject], log)


def _run(
    command: Sequence[str], options: Sequence[str], log: Path
) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tfrecreg", *command]
    return subprocess.run(
        ["strace", "-f", "-qq", "-o", str(log), *options, *program],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        # The same calls in every run: no bytecode is written, and no thread is started to count.
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        },
    )
