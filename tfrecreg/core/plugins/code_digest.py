"""A digest of a distribution's files, which identifies its code if its version does not.

If a distribution was installed from an index or a wheel, its version identifies its code. Other
code can change while the version stays the same: an editable install, a local folder, or modules
that no installer recorded. The digest shows that results come from different code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence, Set
from functools import cache
from importlib import metadata, util
from importlib.machinery import ModuleSpec
from pathlib import Path

from blake3 import blake3

from tfrecreg.core.plugins.bundled import BUNDLED, OURS
from tfrecreg.core.plugins.entry_points import entries, is_local


@cache
def code_of(distribution: str, *modules: str) -> str:
    """The hex digest of a distribution's code: the packages of `modules` and of the entry points.
    Empty if the version already identifies the code.
    """
    if is_local(distribution) or not _can_change(distribution):
        return ""  # the version of a local plugin is the digest of its code
    names = {module for module in modules if module} | set(_entry_modules(distribution))
    return digest_of_packages(frozenset(_packages(names)))


@cache
def digest_of_packages(packages: frozenset[str]) -> str:
    """The digest of all files of these packages. It is computed once per process."""
    hasher = blake3(b"tfrecreg code v1\n")
    for package, spec in sorted(_packages(packages).items()):
        for name, path in _files(package, spec):
            hasher.update(f"{name}\0".encode("utf-8", "surrogateescape"))
            try:
                if not path.is_file():
                    continue  # such as a broken link or a pipe
                hasher.update(b"%d\n" % path.stat().st_size)
                with path.open("rb") as file:
                    while data := file.read(1 << 20):
                        hasher.update(data)
            except OSError as error:
                hasher.update(f"{error.errno}\n".encode())
    return hasher.hexdigest()


def _can_change(distribution: str) -> bool:
    try:
        found = metadata.distribution(distribution)
        origin = found.read_text("direct_url.json")
        if origin is None:
            return found.read_text("RECORD") is None
        return "archive_info" not in json.loads(origin)
    except (metadata.PackageNotFoundError, OSError, ValueError, TypeError):
        return True


def _entry_modules(distribution: str) -> Sequence[str]:
    if distribution == OURS:
        return BUNDLED
    try:
        return [entry.module for entry in entries(metadata.distribution(distribution))]
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return ()  # discovery reports the error


def _packages(modules: Set[str]) -> dict[str, ModuleSpec]:
    """The outermost package of each module. Namespaces do not count: distributions share them."""
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
    """Name and path of each file of a package, sorted by name, without caches and hidden files."""
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
