"""Interpreters, archives and fresh environments."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

COMPILERS = ("cc", "gcc", "clang")
"""What the build hook looks for."""

LIBRARY = "tfrecreg/core/records/libwalk.so.1"
"""The compiled scanner."""

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""The versions that are supported."""

_KEPT = ("PATH", "TMPDIR", "LANG", "TFRECREG_JOBS", "TF_CPP_MIN_LOG_LEVEL")


@dataclass(frozen=True)
class Done:
    """A process that ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Interpreter:
    """A Python that is run from `/`, away from the checkout and from the user's settings."""

    python: str
    env: Mapping[str, str]

    @property
    def bin(self) -> Path:
        """The folder of the console scripts."""
        return Path(self.python).parent

    def run(self, *arguments: str | Path, cwd: str | Path = "/") -> Done:
        """Run it with these arguments."""
        return self._call([self.python, *map(str, arguments)], cwd)

    def tfrecreg(self, *arguments: str | Path, cwd: str | Path = "/") -> Done:
        """Run ``python -m tfrecreg``."""
        return self.run("-m", "tfrecreg", *arguments, cwd=cwd)

    def script(self, *arguments: str | Path, cwd: str | Path = "/") -> Done:
        """Run the console script."""
        return self._call([str(self.bin / "tfrecreg"), *map(str, arguments)], cwd)

    def _call(self, command: Sequence[str], cwd: str | Path) -> Done:
        done = subprocess.run(
            command, cwd=cwd, env=dict(self.env), capture_output=True, text=True, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)


def plain_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment without anything by which a process would find the checkout."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "100", **more}


def source_modules() -> dict[str, Path]:
    """Every module that is shipped, by its name."""
    found: dict[str, Path] = {}
    roots = [
        CHECKOUT / "tfrecreg",
        *(each.parent for each in CHECKOUT.glob("plugins/*/__init__.py")),
    ]
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
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


@dataclass(frozen=True)
class Archives:
    """What `python -m build` makes of the checkout."""

    sdist: Path
    wheel: Path
    """Built from the unpacked sdist, so nothing that the sdist lacks can be in it."""

    def sdist_names(self) -> set[str]:
        """The files of the sdist, without the folder around them."""
        with tarfile.open(self.sdist) as archive:
            names = [member.name for member in archive.getmembers() if member.isfile()]
        return {name.partition("/")[2] for name in names}


def wheel_files(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel with their bytes."""
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


def make_archives(folder: Path) -> Archives:
    """Build the sdist of the checkout, and the wheel from the sdist."""
    _build(folder)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return Archives(sdist, wheel)


def make_wheel(folder: Path, env: Mapping[str, str] | None = None) -> Path:
    """Build a wheel right from the checkout.

    Args:
        folder: where to.
        env: the environment to build in; None for that of this process.
    """
    _build(folder, "--wheel", env=env)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _build(folder: Path, *options: str, env: Mapping[str, str] | None = None) -> None:
    # Without isolation, which would fetch hatchling: the development environment has it.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), *options]
    done = subprocess.run(
        [*command, str(CHECKOUT)], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def find_python(version: str) -> str | None:
    """An interpreter of that version (``3.12``) on this machine, or None."""
    for candidate in _candidates(version):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            done = subprocess.run(
                [candidate, "-c", code], capture_output=True, text=True, check=False
            )
        except OSError:
            continue
        # pyenv's shims exist for versions that are not switched on, and fail.
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def _candidates(version: str) -> Iterator[str]:
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield on_path
    homes = [os.environ.get("PYENV_ROOT"), str(Path.home() / ".pyenv")]
    for home in homes:
        if home:
            yield from map(str, sorted(Path(home).glob(f"versions/{version}.*/bin/python")))
    managed = Path.home() / ".local/share/uv/python"
    yield from map(str, sorted(managed.glob(f"cpython-{version}.*/bin/python{version}")))


class NoNetworkError(Exception):
    """The package index could not be reached, so nothing was proved."""


def fresh_environment(
    folder: Path,
    python: str,
    *wanted: str,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Interpreter:
    """A new virtual environment with `wanted` in it and nothing else.

    Args:
        folder: where it is made.
        python: the interpreter to make it of.
        wanted: requirements.
        options: of the installer.
        env: the environment to install in; None for that of this process.

    Raises:
        NoNetworkError: there is no `uv`, or the package index cannot be reached.
        AssertionError: the installation failed.
    """
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if uv is None:
        raise NoNetworkError("there is no `uv` to install with")
    made = folder / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", str(made), *options, *wanted]
    for command in ([uv, "venv", "--quiet", "--python", python, str(folder)], install):
        # HOME stays: uv's cache is there.
        done = subprocess.run(
            command, cwd=folder.parent, env=env, capture_output=True, text=True, check=False
        )
        if "Failed to fetch" in done.stderr or "network was disabled" in done.stderr:
            raise NoNetworkError(done.stderr.strip().splitlines()[0])
        assert done.returncode == 0, done.stderr
    home = folder / "home"
    home.mkdir()
    return Interpreter(str(made), plain_environment(home))


NEEDS = "looking at drift needs the extra `tfdv`, which is not installed: "

_NEEDY = """
from tfrecreg.api import Code, Severity, ValidatorRecord, hookimpl

@hookimpl
def tfrecreg_validators():
    code = Code("ZZZ001", "needy", Severity.ERROR, "needs more", "install it", "It needs more.")
    yield ValidatorRecord("needy", "needs more than there is", [code], load)

def load():
    from tfrecreg.core.values.errors import MissingExtraError
    raise MissingExtraError("looking at drift", "tfdv")
"""


def plant_needy_plugin(folder: Path) -> None:
    """A distribution in `folder` whose validator `needy` needs an extra that is not there."""
    about = folder / "needy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: needy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tfrecreg]\nneedy = needy_plugin\n")
    (folder / "needy_plugin.py").write_text(_NEEDY)
