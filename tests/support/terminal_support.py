"""An interactive shell on a pseudo-terminal, for completion."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_DUMP = "\x18\x17"
"""Ctrl-X Ctrl-W: writes the line that is being edited to the file `line`."""

_BASH = """
PS1='PROMPT: '
bind 'set enable-bracketed-paste off'
bind 'set bell-style none'
bind 'set show-all-if-ambiguous on'
bind 'set completion-query-items 0'
bind 'set page-completions off'
bind -x '"\\C-x\\C-w": printf %s "$READLINE_LINE" > "$DUMP.new"; mv "$DUMP.new" "$DUMP"'
"""

_ZSH = """
PS1='PROMPT: '
unsetopt zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste
setopt list_ambiguous no_beep
LISTMAX=0
autoload -Uz compinit
compinit -u -D
_dump() { print -rn -- "$BUFFER" > "$DUMP.new"; mv "$DUMP.new" "$DUMP" }
zle -N _dump
bindkey '^X^W' _dump
"""

_START = {
    "bash": (("--norc", "--noprofile", "-i"), _BASH),
    "zsh": (("-f", "-i"), _ZSH),
}


@dataclass(frozen=True)
class Pressed:
    """What pressing TAB made of a line."""

    line: str
    """As it stands then."""
    shown: str
    """What the terminal printed: the line, the names to choose from, and errors."""


def press_tab(
    shell: str, typed: str, folder: Path, environment: dict[str, str], script: str
) -> Pressed:
    """Type a part of a line and press TAB.

    Args:
        shell: ``bash`` or ``zsh``, by its name or path.
        typed: the part.
        folder: where the shell is.
        environment: of the shell.
        script: the completion script.
    """
    arguments, setup = _START[Path(shell).name]
    home = Path(environment["HOME"])
    start, dump = home / "start", home / "line"
    start.write_text(f"{setup}\n{script}\n")
    dump.unlink(missing_ok=True)
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [shell, *arguments],
        cwd=folder,
        env={**environment, "DUMP": str(dump), "TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        _send(ours, f". {start}; echo rea''dy\n")
        # The prompt comes when the shell reads keys itself, no longer the terminal's lines.
        _read(ours, lambda text: "PROMPT: " in text.rpartition("ready\r\n")[2])
        _send(ours, f"{typed}\t{_DUMP}")
        shown = _read(ours, lambda _: dump.exists())
        return Pressed(dump.read_text(), shown)
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def _send(terminal: int, text: str) -> None:
    os.write(terminal, text.encode())


def _read(terminal: int, done: Callable[[str], bool], patience: float = 60) -> str:
    """What the terminal shows until it is done."""
    text, end = "", time.monotonic() + patience
    while not done(text):
        assert time.monotonic() < end, f"the shell does not answer: {text!r}"
        if select.select([terminal], [], [], 0.05)[0]:
            text += os.read(terminal, 1 << 16).decode("utf-8", "replace")
    while select.select([terminal], [], [], 0)[0]:
        text += os.read(terminal, 1 << 16).decode("utf-8", "replace")
    return text
