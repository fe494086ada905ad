"""Completion, in real shells: bash and zsh on a terminal, fish by its own `complete -C`."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from shell_support import Shell, open_shell

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


Press = Callable[[str], Pressed]


@pytest.fixture
def shell(tmp_path: Path, digits_original: Path) -> Shell:
    """Somebody in a copy of the registry `digits`, with a second release and some files."""
    made = open_shell(tmp_path, "registry-root")
    made.root.rmdir()
    shutil.copytree(digits_original, made.root)
    shutil.copytree(made.root / "registry/digits/1.0.0", made.root / "registry/digits/1.1.0")
    (made.root / "more files").mkdir()
    (made.root / "more files/a.tfrecord").touch()
    (made.root / "digest.txt").touch()
    return made


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture(params=["bash", "zsh"])
def press(shell: Shell, request: pytest.FixtureRequest) -> Press:
    path = program(request.param)
    script = shell(f"tfrecreg completion {request.param}")
    return lambda typed: press_tab(path, typed, shell.root, shell.environment, script)


@pytest.fixture
def bash(shell: Shell) -> Press:
    path, script = program("bash"), shell("tfrecreg completion bash")
    return lambda typed: press_tab(path, typed, shell.root, shell.environment, script)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("tfrecreg che", "tfrecreg check "),
        ("tfrecreg show digits@1.1", "tfrecreg show digits@1.1.0 "),
        ("tfrecreg tag digi", "tfrecreg tag digits@"),
        ("tfrecreg check --only crc,man", "tfrecreg check --only crc,manifest "),
        ("tfrecreg build digits --engine lo", "tfrecreg build digits --engine local "),
        ("tfrecreg check mor", "tfrecreg check more\\ files/"),
        ("tfrecreg check --schema sch", "tfrecreg check --schema schemas/"),
    ],
)
def test_what_was_begun_is_completed(press: Press, typed: str, line: str) -> None:
    assert press(typed).line == line


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("tfrecreg check --against=digits@la", "tfrecreg check --against=digits@latest "),
        ("tfrecreg check 'digits@la", "tfrecreg check 'digits@latest' "),
        ("tfrecreg check ~/lin", "tfrecreg check ~/line_of_home "),
    ],
)
def test_bash_breaks_words_its_own_way(bash: Press, shell: Shell, typed: str, line: str) -> None:
    (Path(shell.environment["HOME"]) / "line_of_home").touch()
    pressed = bash(typed)
    assert pressed.line.replace("\\$", "$") == line


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("tfrecreg show digits@1.", ["digits@1.1.0", "digits@1.0.0"]),
        ("tfrecreg check --only crc,man", ["crc,manifest"]),
        ("tfrecreg check dig", ["digits", "digits@latest", "digits@1.1.0", "digits@1.0.0"]),
        ("tfrecreg check dige", ["digest.txt"]),
        ("tfrecreg build digits --raw r", ["raw/"]),
    ],
)
def test_fish_completes_as_well(shell: Shell, typed: str, expected: list[str]) -> None:
    path = program("fish")
    script = shell("tfrecreg completion fish")
    done = subprocess.run(
        [path, "--no-config", "-c", f"{script}\ncomplete -C '{typed}'"],
        cwd=shell.root,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    found = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert [each for each in found if each in expected] == expected


@pytest.mark.parametrize(
    ("typed", "expected", "light"),
    [
        ("tfrecreg check digits@1", "plain,digits@1.1.0", True),
        ("tfrecreg check --only cr", "plain,crc", False),
    ],
)
def test_completing_imports_nothing_heavy(
    shell: Shell, typed: str, expected: str, light: bool
) -> None:
    code = (
        "import sys\n"
        "from tfrecreg.cli.main import main\n"
        "try: main([])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)\n"
    )
    asked = {
        "_TFRECREG_COMPLETE": "bash_complete",
        "TFRECREG_LINE": typed,
        "TFRECREG_WORD": typed.rpartition(" ")[2],
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=shell.root,
        env={**shell.environment, **asked},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert expected in done.stdout.splitlines()
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    heavy = {"PIL", "dvc", "pandas", "pyarrow", "rich", "tensorflow", "tensorflow_metadata"}
    assert loaded & heavy == set()
    if light:
        assert "tfrecreg.core.workers" not in done.stderr.split()
        assert loaded & {"numpy", "pluggy"} == set()
