"""The code of local plugins: the Python files in one folder of a registry that the user trusts.

A folder is one package: its modules import each other by `from .boxes import clip`. The name of
the package has the folder and the digest of its files, so that a worker process that unpacks an
object of a local plugin finds the same code, or refuses.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from blake3 import blake3

from tfrecreg.builtin.local_plugins.trust import is_trusted
from tfrecreg.errors import UsageError
from tfrecreg.text import safe

PACKAGE = "tfrecreg.builtin.local_plugins.loaded"
"""The package of all modules of local plugins."""


@dataclass(frozen=True)
class LocalCode:
    """The Python files in a folder, as they were when they were read."""

    folder: str
    """Its path, absolute and without links."""
    digest: str
    """What identifies them: 16 hex digits."""

    def load(self, name: str) -> ModuleType:
        """The module of one of its files, imported when it is first asked for."""
        package = f"f{os.fsencode(self.folder).hex()}_{self.digest}"
        return import_module(f"{PACKAGE}.{package}.{name.removesuffix('.py')}")


@cache
def read_code(folder: str) -> LocalCode:
    """The code in a folder, read once in a process."""
    root = os.path.realpath(folder)
    hasher = blake3(b"tfrecreg local code v1\n")
    try:
        for path in sorted(Path(root).glob("*.py")):
            data = path.read_bytes()
            hasher.update(os.fsencode(path.name))
            hasher.update(b"\0%d\n" % len(data))
            hasher.update(data)
    except OSError as error:
        raise UsageError(
            f"the local plugins in `{safe(root)}` cannot be read: {error.strerror}",
            hint="make its files readable",
        ) from error
    return LocalCode(root, hasher.hexdigest()[:16])


class LocalFinder:
    """Finds the modules of local plugins for Python's import."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module of that name; None if it is not one of a local plugin."""
        del path, target
        if not name.startswith(f"{PACKAGE}."):
            return None
        package, _, module = name[len(PACKAGE) + 1 :].partition(".")
        place, _, digest = package[1:].partition("_")
        folder = os.fsdecode(bytes.fromhex(place))
        if not is_trusted(folder):
            raise ImportError("the local plugin is not trusted here: `tfrecreg plugins trust`")
        if read_code(folder).digest != digest:
            raise ImportError(f"the code in `{safe(folder)}` has changed since the command began")
        if not module:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = []
            return spec
        file = Path(folder, f"{module}.py")
        if not file.is_file():
            raise ModuleNotFoundError(f"`{safe(folder)}` has no `{safe(file.name)}`", name=name)
        return spec_from_file_location(name, file, loader=_Loader(name, str(file)))


class _Loader(SourceFileLoader):
    """Compiles the source: Python's caches know a file by its time and size only."""

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        code: CodeType = compile(self.get_data(self.path), self.path, "exec", dont_inherit=True)
        return code


def install_finder() -> None:
    """Have Python find the modules of local plugins in this process."""
    if not any(isinstance(each, LocalFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, LocalFinder())
