"""`docs/plugin-examples.md`, followed from top to bottom."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

GUIDE = Path(__file__).parents[2] / "docs" / "plugin-examples.md"
FENCE = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
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
    """Those of the guide, in order; a block without a title would be one that nothing runs."""
    text = GUIDE.read_text("utf-8")
    found = [Block(*each) for each in FENCE.findall(text)]
    assert len(re.findall("^```", text, re.MULTILINE)) == 2 * len(found)
    return found


def follow(
    folder: Path,
    env: Mapping[str, str],
    *,
    put: Callable[[Block], None] = lambda block: None,
    skip: str = "\0",
) -> None:
    """Write every file, run every command in `folder`, and compare the output; `put` is called with
    every file, and commands that begin with `skip` are not typed.
    """
    for block in blocks():
        if block.language == "console":
            type_in(folder, env, block.text, skip)
        elif block.title.startswith(OUTPUT):
            script = block.title.removeprefix(OUTPUT)
            type_in(folder, env, f"$ python -W error {script}\n{block.text}")
        else:
            file = folder / block.title.removesuffix(AT_END)
            file.parent.mkdir(exist_ok=True)
            with file.open("a" if block.title.endswith(AT_END) else "x", encoding="utf-8") as to:
                to.write(block.text)
            put(block)


def type_in(
    folder: Path,
    env: Mapping[str, str],
    text: str,
    skip: str = "\0",
    masked: Callable[[str], str] = str,
) -> str:
    """Type every command of a block, compare what it prints, and return all of that."""
    commands = list(COMMAND.finditer(text))
    assert "".join(each[0] for each in commands) == text
    printed = ""
    for each in commands:
        if each["command"].startswith(skip):
            continue
        done = run(folder, env, each["command"], int(each["code"] or 0))
        if each["out"]:
            # A line of `…` matches any lines.
            pieces = re.split(r"^…\n", masked(each["out"]), flags=re.MULTILINE)
            pattern = r"(?:.*\n)*".join(map(re.escape, pieces))
            matches = re.fullmatch(pattern, masked(done))
            assert matches, f"$ {each['command']}\n{done}"
        printed += done
    return printed


def run(folder: Path, env: Mapping[str, str], command: str, code: int = 0) -> str:
    """What a command prints, which ends with this exit code."""
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
