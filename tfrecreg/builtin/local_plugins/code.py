"""The code of local plugins: the Python files in one folder, as they were when it was read.

A folder is one unit: its modules import each other by `from .boxes import clip`, and no other
file of the registry. The bytes that the digest is of are those that run: they are read once, and
compiled without Python's caches, which the author of the registry may have manipulated.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from blake3 import blake3

from tfrecreg.builtin.local_plugins import trust
from tfrecreg.errors import UsageError
from tfrecreg.text import safe

PACKAGE = "tfrecreg.builtin.local_plugins.loaded"
"""The package of all modules of local plugins."""

_SUFFIX = ".py"
_FILES, _BYTES = 200, 1 << 24
"""Maximum number of files in a folder of local plugins, and of all their bytes."""
_read: dict[str, LocalCode] = {}
"""The code that this process may run, by the name of its package."""


@dataclass(frozen=True, eq=False)
class LocalCode:
    """The Python files in a folder."""

    folder: str
    """Its path, absolute and without links."""
    files: dict[str, bytes]
    """Content by file name."""

    @property
    def digest(self) -> str:
        """What identifies it: 16 hex digits."""
        hasher = blake3(b"tfrecreg local code v1\n")
        for name, data in sorted(self.files.items()):
            hasher.update(name.encode("utf-8", "surrogateescape"))
            hasher.update(b"\0%d\n" % len(data))
            hasher.update(data)
        return hasher.hexdigest()[:16]

    @property
    def package(self) -> str:
        """The name of its package, the same in each process that sees the folder: ``f…_…``."""
        return f"f{_place(self.folder)}_{self.digest}"

    def load(self, name: str) -> ModuleType:
        """The module of one of its files, imported when it is first asked for.

        Raises:
            Exception: any exception of the module.
        """
        _read[self.package] = self
        return import_module(f"{PACKAGE}.{self.package}.{name.removesuffix(_SUFFIX)}")


@cache
def read_code(folder: str) -> LocalCode:
    """The code in a folder, read once in a process.

    Raises:
        UsageError: it cannot be read, or is not one of a few files.
    """
    root, size = os.path.realpath(folder), 0
    files: dict[str, bytes] = {}
    try:
        for path in sorted(Path(root).glob(f"*{_SUFFIX}")):
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                continue
            size += status.st_size
            if len(files) >= _FILES or size > _BYTES:
                raise UsageError(
                    f"`{safe(root)}` has more Python files than local plugins may have",
                    hint="put the plugins into a folder of their own, such as `sources`",
                )
            if Path(os.path.realpath(path)).parent != Path(root):
                raise UsageError(
                    f"`{safe(str(path))}` is a link to a file elsewhere",
                    hint="put the file itself into the folder: only that code is trusted",
                )
            files[path.name] = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the local plugins in `{safe(root)}` cannot be read: {error.strerror}",
            hint="make its files readable",
        ) from error
    return LocalCode(root, files)


def find_code(package: str) -> LocalCode:
    """The code of a package of :data:`PACKAGE`, in the command or in a worker process.

    Raises:
        ImportError: this machine does not trust it, or it has changed.
    """
    found = _read.get(package)
    if found is not None:
        return found
    place, _, digest = package[1:].partition("_")
    for folder in trust.trusted_folders():
        if _place(folder) != place:
            continue
        code = read_code(folder)
        if code.digest != digest:
            raise ImportError(f"the code in `{safe(folder)}` has changed since the command began")
        if trust.is_trusted(folder, digest):
            _read[package] = code
            return code
    raise ImportError("the local plugin is not trusted here: `tfrecreg plugins trust`")


def _place(folder: str) -> str:
    return blake3(os.fsencode(folder)).hexdigest()[:12]


class LocalFinder:
    """Finds the modules of local plugins for Python's import."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module of that name; None if it is not one of a local plugin."""
        del path, target
        if not name.startswith(f"{PACKAGE}."):
            return None
        package, _, module = name[len(PACKAGE) + 1 :].partition(".")
        code = find_code(package)
        if not module:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = []
            return spec
        file = f"{module}{_SUFFIX}"
        if file not in code.files:
            raise ModuleNotFoundError(f"`{safe(code.folder)}` has no `{safe(file)}`", name=name)
        path = os.path.join(code.folder, file)  # noqa: PTH118 - a text
        return spec_from_file_location(name, path, loader=_Loader(name, path, code.files[file]))


class _Loader(SourceFileLoader):
    """Compiles the bytes that were read."""

    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self._data = data

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        code: CodeType = compile(self._data, self.path, "exec", dont_inherit=True)
        return code

    def get_data(self, path: str) -> bytes:
        del path
        return self._data


def install_finder() -> None:
    """Have Python find the modules of local plugins in this process."""
    if not any(isinstance(each, LocalFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, LocalFinder())
