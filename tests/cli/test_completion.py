"""Completion, in real shells: bash and zsh on a terminal, fish by its own `complete -C`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shell_support import Shell, open_shell
from terminal_support import Pressed, press_tab

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
        ("tfrecreg build new --source imagef", "tfrecreg build new --source imagefolder "),
        ("tfrecreg export digits --to tfd", "tfrecreg export digits --to tfds "),
        ("tfrecreg build digits --engine lo", "tfrecreg build digits --engine local "),
        ("tfrecreg explain inf001", "tfrecreg explain inf001 "),
        ("tfrecreg check data/dig", "tfrecreg check data/digits/"),
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
