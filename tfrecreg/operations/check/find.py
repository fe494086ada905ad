"""From one argument to what it names: something in the registry, or files."""

from __future__ import annotations

import glob
import os
import re

from tfrecreg.operations.check.targets import files_target, reference_target, sharded_spec
from tfrecreg.reference import looks_like_reference, parse_reference
from tfrecreg.registry import Resolved, find_registry, open_registry, resolve
from tfrecreg.scan import Target

__all__ = ["expect_no_misspelt_reference", "find", "find_target"]


def find(argument: str, registry: str | os.PathLike[str] | None) -> Resolved | str:
    """The build or release that `argument` names; `argument` itself where it names files.

    A dataset of the registry comes before a file or folder of the same name, for which
    ``./mnist`` can be written.

    Raises:
        UsageError: it is a reference, and there is no such thing.
        ManifestError: the manifest of what it names is damaged.
    """
    if not looks_like_reference(argument):
        expect_no_misspelt_reference(argument, registry)
        return argument
    if os.path.lexists(argument):
        root = registry if registry is not None else find_registry()
        if root is None:
            return argument
        opened = open_registry(root)
        if parse_reference(argument).name not in opened.datasets():
            return argument
        return resolve(opened, argument)
    return resolve(open_registry(registry), argument)


def expect_no_misspelt_reference(argument: str, registry: str | os.PathLike[str] | None) -> None:
    """Refuse what names no file and was meant as a reference: ``mnist@1``, ``Mnist@latest``.

    What has a slash or a wildcard means files, and so does ``prefix@5``, the files of one set of
    five, unless a dataset has that name.

    Raises:
        UsageError: it is such an argument; the message says which part of it is wrong.
    """
    name, *others = re.split("([@#])", argument, maxsplit=1)
    mark, rest = others or ("", "")
    if not mark or "/" in argument or glob.has_magic(argument) or os.path.lexists(argument):
        return
    if mark == "@" and rest.isdecimal():
        root = registry if registry is not None else find_registry()
        if root is None or name not in open_registry(root).datasets():
            return
        if any(sharded_spec(argument)):
            return
    parse_reference(argument)


def find_target(argument: str, *, registry: str | os.PathLike[str] | None = None) -> Target:
    """What one argument names, as a target.

    Raises:
        UsageError: it does not exist.
        ManifestError: the manifest of what it names is damaged.
    """
    found = find(argument, registry)
    if isinstance(found, Resolved):
        return reference_target(found, schema=None, raw=None)
    return files_target([found], schema=None, raw=None)
