"""What installed distributions declare as plugins, and what identifies their code.

The lines of ``entry_points.txt`` are read here, not by ``importlib.metadata``: once any library
has imported the backport ``importlib_metadata``, that one answers for the standard library as
well, and since its version 9 one invalid line makes all entry points of a distribution unreadable.
The format is that of https://packaging.python.org/specifications/entry-points/.

The version of a distribution that was installed from an index or a wheel says which code it is.
The code of an editable install, of a local folder, or of modules without an installer's record can
change under the same version. Results of other code are never taken for results of today's code.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from functools import cache
from importlib import metadata, util
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from blake3 import blake3

from tfrecreg.core.plugins.bundled import BUNDLED, OURS
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from importlib import metadata

GROUP = "tfrecreg"
"""The group of the entry points."""

_OTHERS = re.compile(r"(?!tfrecreg(-\d|\.)).*\.(dist|egg)-info")
"""Folders with the metadata of distributions other than this one."""
_VALUE = re.compile(r"([\w.]+)\s*(:\s*[\w.]+\s*)?(\[.*\]\s*)?")


class Broken(Exception):
    """What is wrong with a distribution or its plugin, in one line."""


class EntryPoint(NamedTuple):
    """An entry point of the group."""

    name: str
    value: str
    """``module`` or ``module:object``, if it is valid."""

    @property
    def module(self) -> str:
        """The module that it names; empty if the value is invalid."""
        found = _VALUE.fullmatch(self.value)
        return "" if found is None else found.group(1)

    def load(self) -> object:
        """Import what it names."""
        if not self.module:
            shown = safe(self.value)
            raise Broken(f"`{shown}` should have the form `module` or `module:object`")
        from importlib import metadata

        return metadata.EntryPoint(self.name, self.value, GROUP).load()


def entries(distribution: metadata.Distribution) -> list[EntryPoint]:
    """The entry points of a distribution, each once, in order of name."""
    found = set()
    group = ""
    for line in map(str.strip, (distribution.read_text("entry_points.txt") or "").splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1]
        elif line and not line.startswith("#") and group == GROUP:
            name, is_pair, value = line.partition("=")
            if not is_pair:
                raise Broken(f"its entry point `{safe(line)}` is not `name = value`")
            found.add(EntryPoint(name.strip(), value.strip()))
    return sorted(found)


def is_local(distribution: str) -> bool:
    """Whether it is the file of a local plugin, ``./checks/blanks.py``, in the place of a
    distribution; or the word for one, ``./sources/yolo.py:Yolo``.
    """
    return distribution.startswith("./")


def may_be_installed() -> bool:
    """Whether the metadata of a distribution on the path have entry points for plugins.

    This takes 4 ms for 280 distributions, and the help of all commands 50 ms; `importlib.metadata`
    takes 20 ms for its own import. It does not see what is in archives.
    """
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as found:
            for each in found:
                if _OTHERS.fullmatch(each.name) and _names_group(each.path):
                    return True
    return False


def _names_group(folder: str) -> bool:
    try:
        with open(f"{folder}/entry_points.txt", "rb") as file:  # noqa: PTH123
            return f"[{GROUP}]".encode() in file.read()
    except OSError:
        return False


def with_plugins(path: Sequence[str] | None = None) -> Iterator[metadata.Distribution]:
    """Other distributions with plugins; of several with the same name, the first on the path, which
    is imported.
    """
    from importlib import metadata

    where: dict[str, Any] = {} if path is None else {"path": list(path)}
    seen: set[str] = set()
    for found in metadata.distributions(**where):
        if not _mentions_plugins(found):
            continue
        try:
            name = canonical_name(identity(found)[0])
        except Exception:
            yield found  # it has no name to compare, and will be reported as broken
            continue
        if name in seen or name == OURS:
            continue
        seen.add(name)
        # The first may have no plugins: then the package that is imported has none.
        first = next(iter(metadata.distributions(name=name, **where)), found)
        if _mentions_plugins(first):
            yield first


def identity(distribution: metadata.Distribution) -> tuple[str, str]:
    """Name and version of a distribution."""
    try:
        found: Any = distribution.metadata
    except FileNotFoundError:  # importlib_metadata, where a library has imported it
        found = {}
    for key in ("Name", "Version"):
        if key not in found or not found[key]:
            place = safe(str(distribution.locate_file("")))
            raise Broken(f"a distribution in `{place}` has no `{key}` in its metadata")
    return found["Name"], found["Version"]


def canonical_name(distribution: str) -> str:
    """The name by which distributions are equal: ``My_Plugin`` is ``my-plugin`` (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _mentions_plugins(distribution: metadata.Distribution) -> bool:
    """A cheap test: most distributions have no plugins, and parsing all of them takes long."""
    try:
        return GROUP in (distribution.read_text("entry_points.txt") or "")
    except (OSError, ValueError):
        return False  # the plugins in an unreadable file are unknown


_CHUNK = 1 << 20
_LARGE = 1 << 26
"""Size in bytes from which on a file counts by its name and size alone: data, hardly code."""


@cache
def code_of(distribution: str, *modules: str) -> str:
    """The digest of code that can change under its version; empty if the version identifies it."""
    if is_local(distribution):
        return ""  # its version is the digest of its code
    return code_digest(distribution, *modules) if _can_change(distribution) else ""


def code_digest(distribution: str, *modules: str) -> str:
    """The digest of the packages that a distribution's entry points and `modules` are in, as hex.

    It is computed once per process, when the code was just loaded.
    """
    names = {module for module in modules if module} | set(_entry_modules(distribution))
    return digest_of_packages(frozenset(_packages(names)))


@cache
def digest_of_packages(packages: frozenset[str]) -> str:
    """The digest of all files of these packages, once per process."""
    hasher = blake3(b"tfrecreg code v1\n")
    for package, spec in sorted(_packages(packages).items()):
        for name, path in _files(package, spec):
            _add(hasher, name, path)
    return hasher.hexdigest()


def _can_change(distribution: str) -> bool:
    try:
        found = metadata.distribution(distribution)
        origin = found.read_text("direct_url.json")
        if origin is None:
            return found.read_text("RECORD") is None
        return "dir_info" in json.loads(origin)
    except (metadata.PackageNotFoundError, OSError, ValueError, TypeError):
        return True


def _entry_modules(distribution: str) -> Iterator[str]:
    if distribution == OURS:
        yield from BUNDLED
        return
    try:
        declared = entries(metadata.distribution(distribution))
    except (metadata.PackageNotFoundError, Broken, OSError, ValueError):
        return  # discovery reports the error
    yield from filter(None, (entry.module for entry in declared))


def _packages(modules: Set[str]) -> dict[str, ModuleSpec]:
    """The outermost packages of modules, except namespaces, which distributions share."""
    found: dict[str, ModuleSpec] = {}
    for module in modules:
        name = ""
        for part in module.split("."):
            name = f"{name}.{part}" if name else part
            try:
                spec = util.find_spec(name)
            except (ImportError, ValueError, AttributeError):
                spec = None
            if spec is None:
                break
            if spec.origin is not None:
                found[name] = spec
                break
    return found


def _files(package: str, spec: ModuleSpec) -> list[tuple[str, Path]]:
    """Name and path of each file of a package but caches and hidden ones, in order of name."""
    if not spec.submodule_search_locations:
        path = Path(spec.origin or "")
        return [(path.name, path)]
    found = []
    for root in spec.submodule_search_locations:
        for folder, folders, names in os.walk(root):
            folders[:] = [each for each in folders if each[0] != "." and each != "__pycache__"]
            inside = Path(folder)
            paths = [inside / name for name in names if name[0] != "."]
            found += [
                (f"{package}/{path.relative_to(root).as_posix()}", path)
                for path in paths
                if path.suffix != ".pyc"
            ]
    return sorted(found)


def _add(hasher: blake3, name: str, path: Path) -> None:
    hasher.update(f"{name}\0".encode("utf-8", "surrogateescape"))
    try:
        if not path.is_file():
            return  # such as a link that leads nowhere, or a pipe
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            hasher.update(f"{size}\n".encode())
            while size < _LARGE and (data := file.read(_CHUNK)):
                hasher.update(data)
    except OSError as error:
        hasher.update(f"{error.errno}\n".encode())
