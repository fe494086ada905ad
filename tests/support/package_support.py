"""Interpreters, archives and fresh environments."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

COMPILERS = ("cc", "gcc", "clang")

LIBRARY = "tfrecreg/core/records/libwalk.so.1"

PYTHONS = ("3.10", "3.11", "3.12", "3.13")

_KEPT = ("PATH", "TMPDIR", "LANG", "TFRECREG_JOBS", "TF_CPP_MIN_LOG_LEVEL")


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Interpreter(NamedTuple):
    """A Python that is run from `/`, away from the checkout and from the user's settings."""

    python: str
    env: Mapping[str, str]

    def run(self, *arguments: str | Path, cwd: str | Path = "/", program: str = "") -> Done:
        """Run it, or another program of its environment."""
        done = subprocess.run(
            [program or self.python, *map(str, arguments)],
            cwd=cwd,
            env=dict(self.env),
            capture_output=True,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def tfrecreg(self, *arguments: str | Path) -> Done:
        return self.run("-m", "tfrecreg", *arguments)

    def script(self, *arguments: str | Path) -> Done:
        return self.run(*arguments, program=str(Path(self.python).with_name("tfrecreg")))


def plain_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment without anything by which a process would find the checkout."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "100", **more}


def source_modules() -> dict[str, Path]:
    """Every module that is shipped, by its name."""
    found: dict[str, Path] = {}
    for root in (CHECKOUT, CHECKOUT / "plugins"):
        for path in sorted(root.glob("tfrecreg*/**/*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def imports_of(path: Path) -> frozenset[str]:
    """What a source imports anywhere, in functions and by name too; ``a.b`` for `b` of `a`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            constants = (each for each in node.args[:1] if isinstance(each, ast.Constant))
            found |= {str(each.value) for each in constants}
    return frozenset(found)


class Archives(NamedTuple):
    wheel: Path
    sdist: Path = Path()


def wheel_files(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def has_compiler() -> bool:
    """Whether wheels that are built here hold the compiled scanner."""
    return any(shutil.which(each) for each in COMPILERS)


def without_compiler(folder: Path) -> dict[str, str]:
    """This process's environment where `PATH` is a new `folder` with everything but compilers."""
    folder.mkdir()
    for place in os.get_exec_path():
        for tool in Path(place).glob("*"):
            link = folder / tool.name
            if tool.name not in COMPILERS and not link.is_symlink():
                link.symlink_to(tool)
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CFLAGS")}
    return {**kept, "PATH": str(folder)}


def make_wheel(folder: Path, env: Mapping[str, str] | None = None) -> Path:
    """Build a wheel right from the checkout."""
    return build(folder, "--wheel", env=env).wheel


def build(folder: Path, *options: str, env: Mapping[str, str] | None = None) -> Archives:
    """Build archives of the checkout: the wheel from the sdist, whose files alone it can have."""
    # Without isolation, which would fetch hatchling: the development environment has it.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), *options]
    done = subprocess.run(
        [*command, str(CHECKOUT)], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Archives(*folder.glob("*.whl"), *folder.glob("*.tar.gz"))


def find_python(version: str) -> str | None:
    """An interpreter of that version (``3.12``) on this machine, or None."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(root.glob(f"versions/{version}.*/bin/python"))
    return str(found[-1]) if found else shutil.which(f"python{version}")


def fresh_environment(
    folder: Path,
    python: str,
    *wanted: str,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Interpreter:
    """A new virtual environment with the requirements `wanted` and nothing else; skips where the
    package index cannot be reached.
    """
    uv = str(Path(sys.executable).with_name("uv"))
    made = folder / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", str(made), *options, *wanted]
    for command in ([uv, "venv", "--quiet", "--python", python, str(folder)], install):
        # HOME stays: uv's cache is there.
        done = subprocess.run(
            command, cwd=folder.parent, env=env, capture_output=True, text=True, check=False
        )
        if "Failed to fetch" in done.stderr or "network was disabled" in done.stderr:
            pytest.skip(f"nothing can be installed: {done.stderr.strip().splitlines()[0]}")
        assert done.returncode == 0, done.stderr
    home = folder / "home"
    home.mkdir()
    return Interpreter(str(made), plain_environment(home))
