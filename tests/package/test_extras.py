"""A feature whose extra is missing says so in one line, with the command that installs it.

Each runs in a process in which the package is as good as absent. `test_core_install.py` does the
same in environments in which it is absent.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from package_support import CHECKOUT, Interpreter, plain_environment

from tfrecreg.core.values.errors import install_command

MAIN = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # importing it raises ModuleNotFoundError
from tfrecreg.cli.main import main
sys.exit(main(sys.argv[2:]))
"""

HEAVY = "tensorflow,tensorflow_data_validation,apache_beam,pandas,pyarrow,PIL,torch,pycocotools"


@pytest.fixture
def python(tmp_path: Path) -> Interpreter:
    path = f"{CHECKOUT}:{CHECKOUT / 'plugins'}:{tmp_path}"
    return Interpreter(sys.executable, plain_environment(tmp_path, PYTHONPATH=path))


@pytest.mark.medium
def test_urls_need_fsspec(python: Interpreter) -> None:
    done = python.run("-c", MAIN, "fsspec", "check", "s3://folder/train-*")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        "error: reading URLs needs the extra `remote`, which is not installed",
        f"hint: {install_command(extra='remote')}",
    ]


@pytest.mark.medium
def test_a_protocol_needs_its_library(python: Interpreter) -> None:
    done = python.run("-c", MAIN, "s3fs", "check", "s3://bucket/train-*")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        "error: `s3://` needs the package `s3fs`, which cannot be imported",
        f"hint: {install_command('s3fs')}",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "digits@1.0.0"),
        ("check", "digits"),
        ("head", "digits", "-n", "1"),
        ("schema", "show", "digits", "--format", "tf"),
        ("schema", "infer", "digits"),
        ("plugins", "list"),
    ],
    ids=" ".join,
)
def test_what_needs_no_extra_does_without(
    arguments: tuple[str, ...], python: Interpreter, digits_original: Path
) -> None:
    done = python.run("-c", MAIN, f"{HEAVY},dvc", "-C", digits_original, *arguments)
    assert done.code == 0, done.err
    assert done.out
