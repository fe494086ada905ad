"""Following the hints of commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tfrecreg.cli.main import main

_COMMAND = re.compile(r"tfrecreg ([a-z]+(?: [^\s`;,)]+)*)")
_PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|…")
_ELSEWHERE = "on a machine that has it"
_STATED = ("cannot be repaired here", "cannot be repaired, and nothing was changed", _ELSEWHERE)
_MOST = 12


class Walk:
    """Which commands were run, and how it ended."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.texts: list[str] = []
        self.done = False
        """Whether the first command succeeded in the end; else the last one gave the reason."""

    def __str__(self) -> str:
        pairs = zip(self.commands, self.texts, strict=False)
        return "\n".join(f"$ {command}\n{text}" for command, text in pairs)


def follow(root: Path, start: str, capsys: pytest.CaptureFixture[str]) -> Walk:
    """Run a command; while it fails, follow the first command of its hint that can be run here.
    After one that succeeded, the one that named it is run again.

    Fails on a cycle, and on an end that neither succeeds nor states that nothing helps here.
    """
    walk = Walk()
    waiting: list[str] = []
    command = start
    while True:
        walk.commands.append(command)
        capsys.readouterr()
        code = main(["-C", str(root), *shlex.split(command)])
        printed = capsys.readouterr()
        text = " ".join((printed.err + printed.out).split())
        walk.texts.append(text)
        assert len(walk.commands) <= _MOST, f"no end:\n{walk}"
        if code == 0:
            if not waiting:
                walk.done = True
                return walk
            command = waiting.pop()
            continue
        here = _hinted(text)
        if here is None:
            assert any(each in text for each in _STATED), f"neither repaired nor stated:\n{walk}"
            return walk
        if here in (*waiting, command):
            stated = any(each in said for said in walk.texts for each in _STATED)
            assert stated, f"a circle to `{here}`:\n{walk}"
            return walk
        waiting.append(command)
        command = here


def _hinted(text: str) -> str | None:
    """The first command of the hints that can be run here."""
    hints = text.split("hint: ")[1:]
    for hint in hints:
        for match in _COMMAND.finditer(hint.partition(_ELSEWHERE)[0]):
            if not _PLACEHOLDER.search(match[1]) and match[1].split()[0] != "salvage":
                return match[1].rstrip(".")
    return None
