"""`docs/plugins.md`, followed from top to bottom."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

GUIDE = Path(__file__).parents[2] / "docs" / "plugins.md"
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'^(?P<language>\w+) title="(?P<title>[^"]+)"$')
COMMAND = re.compile(
    r"^\$ (?P<command>.*?)(?:  # exit (?P<code>\d))?\n(?P<out>(?:[^$].*\n)*)", re.M
)
OUTPUT = "output of "
AT_END = ", at its end"


class Block(NamedTuple):
    """A block of code: a file, commands, or the output of a script."""

    language: str
    title: str
    text: str


def blocks() -> list[Block]:
    """Those of the guide, in order; one without a title would be one that nothing runs."""
    found = []
    for fence in FENCE.finditer(GUIDE.read_text("utf-8")):
        info = TITLE.match(fence["info"])
        assert info, f"a block that no test would run: {fence['info']!r}"
        found.append(Block(info["language"], info["title"], fence["text"]))
    return found


def follow(
    folder: Path,
    env: Mapping[str, str],
    *,
    put: Callable[[Block], None] = lambda block: None,
    skip: tuple[str, ...] = (),
) -> None:
    """Write every file, run every command, and compare the output.

    Args:
        folder: an empty folder to work in.
        env: the environment; `PATH` finds `python`, `tfrecreg` and `pip`.
        put: called with every file that was written.
        skip: commands not to type, by how they begin.
    """
    for block in blocks():
        if block.language == "console":
            type_in(folder, env, block.text, skip)
        elif block.title.startswith(OUTPUT):
            script = block.title.removeprefix(OUTPUT)
            compare(
                f"$ python -W error {script}\n",
                run(folder, env, f"python -W error {script}"),
                block.text,
            )
        else:
            file = folder / block.title.removesuffix(AT_END)
            file.parent.mkdir(exist_ok=True)
            with file.open("a" if block.title.endswith(AT_END) else "x", encoding="utf-8") as to:
                to.write(block.text)
            put(block)


def type_in(folder: Path, env: Mapping[str, str], text: str, skip: tuple[str, ...]) -> None:
    """Type every command of a block."""
    commands = list(COMMAND.finditer(text))
    assert "".join(each[0] for each in commands) == text
    for each in commands:
        if each["command"].startswith(skip or "\0"):
            continue
        done = run(folder, env, each["command"], int(each["code"] or 0))
        if each["out"]:
            compare(each["command"], done, each["out"])


def run(folder: Path, env: Mapping[str, str], command: str, code: int = 0) -> str:
    """What a command prints."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def compare(command: str, found: str, expected: str) -> None:
    """Whether that was printed; a line of `…` matches any lines."""
    pieces = [re.escape(piece) for piece in re.split(r"^…\n", expected, flags=re.MULTILINE)]
    assert re.fullmatch(r"(?:.*\n)*".join(pieces), found), f"$ {command}\n{found}"
