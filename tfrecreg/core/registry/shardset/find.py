"""The build or release that a word names, or the word itself where it names files.

A build in a folder of no registry, such as a copy or one behind a URL, judged by the manifest
and the schema in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from blake3 import blake3

from tfrecreg.core.registry.lookup import Resolved, resolve, resolve_folder
from tfrecreg.core.registry.manifest import (
    LEDGER_NAME,
    MANIFEST_NAME,
    SCHEMA_NAME,
    Manifest,
    is_own_manifest,
    parse_manifest,
)
from tfrecreg.core.registry.registry import Registry, RegistryLike, find_registry, open_registry
from tfrecreg.core.registry.shardset.files import close_file, names_files, names_folder, names_set
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.paths import is_url, named_url
from tfrecreg.core.storage.raw import storage_at
from tfrecreg.core.values.errors import ManifestError, MissingFileError, NoSuchNameError
from tfrecreg.core.values.reference import looks_like_reference, parse_reference
from tfrecreg.core.values.text import safe


@dataclass(frozen=True)
class FolderBuild:
    """A build outside of a registry; see :class:`tfrecreg.core.registry.lookup.Resolved`."""

    name: str
    """Path or URL of the folder, escaped."""
    manifest: Manifest
    _storage: Readable

    kind: ClassVar[Literal["build"]] = "build"
    registry: ClassVar[None] = None
    folder: ClassVar[None] = None

    def storage(self, *, to_check: bool = False) -> Readable:  # noqa: ARG002 - releases use it
        """Rooted at the folder."""
        return self._storage

    @property
    def schema_path(self) -> str:
        """The place of its schema, for messages."""
        return f"{self._storage.root}/{SCHEMA_NAME}"

    @cached_property
    def schema(self) -> str | None:
        """The text of the schema in the folder.

        None if there is none: a build that was adopted in place, and those of earlier versions of
        tfrecreg have none.
        """
        try:
            data = self._storage.read(SCHEMA_NAME)
        except MissingFileError:
            return None
        if blake3(data).hexdigest() == self.manifest.schema.blake3:
            return data.decode("utf-8", "replace")
        if all(entry.path != SCHEMA_NAME for entry in self.manifest.files):
            return None  # a file of another tool
        raise ManifestError(
            f"`{safe(self.schema_path, limit=1000)}` is not the schema that the manifest beside "
            "it names",
            hint="fetch the folder again, or name a schema with `schema=`",
        )


def folder_build(name: str, storage: Readable, notes: list[str]) -> FolderBuild | None:
    """The build in a folder; None without a manifest."""
    where = f"{storage.root}/{MANIFEST_NAME}"
    shown = safe(where, limit=1000)
    try:
        data = storage.read(MANIFEST_NAME)
    except MissingFileError:
        if storage.is_local and storage.stat(LEDGER_NAME) is not None:
            notes.append(
                f"`{shown}` is missing beside a `{LEDGER_NAME}`: only the shards themselves are "
                "judged"
            )
        return None
    if not is_own_manifest(data) and storage.stat(LEDGER_NAME) is None:
        notes.append(f"`{shown}` is not used: it is not a manifest of tfrecreg")
        return None
    return FolderBuild(safe(name, limit=1000), parse_manifest(data, where), storage)


TargetLike: TypeAlias = str | os.PathLike[str] | Resolved
"""A reference, path, URL, glob or folder; or a build or a release."""
TargetsLike: TypeAlias = TargetLike | Iterable[TargetLike]
"""One target or several."""
Built: TypeAlias = Resolved | FolderBuild
"""A build or a release."""


def named_targets(targets: TargetsLike, *, once: bool = True) -> list[str | Resolved]:
    """The targets, paths as text and URLs without queries."""
    several = [targets] if isinstance(targets, str | os.PathLike | Resolved) else targets
    named = (each if isinstance(each, Resolved) else _text_of(each) for each in several)
    return list(dict.fromkeys(named) if once else named)


def _text_of(target: str | os.PathLike[str]) -> str:
    text = os.fsdecode(target)
    return named_url(text) if is_url(text) else text


def resolve_in(registry: RegistryLike | None, reference: str | Resolved) -> Resolved:
    """The build or the release that `reference` names; a resolved target is returned unchanged."""
    if isinstance(reference, Resolved):
        return reference
    return resolve(open_registry(registry), reference)


def find(word: str | Resolved, registry: RegistryLike | None) -> Built | str:
    """The build or release that `word` names; `word` itself where it names files.

    A dataset of the registry comes before a file or folder of the same name, for which
    ``./mnist`` can be written. The folder of a build or release, such as ``data/mnist``, names
    what its reference names, and any other folder with a manifest the build in it.
    """
    found = find_reference(word, registry)
    if isinstance(found, Resolved) or not names_folder(found):
        return found
    opened = registry if isinstance(registry, Registry) else None
    build = None if is_url(found) else resolve_folder(found, opened)
    return build or folder_build(found, storage_at(found), []) or found


def find_reference(word: str | Resolved, registry: RegistryLike | None) -> Resolved | str:
    """As :func:`find`, but a folder names the files in it."""
    if isinstance(word, Resolved) or is_url(word):
        return word
    if not looks_like_reference(word):
        expect_no_misspelt_reference(word, registry)
        return word
    if os.path.lexists(word):
        root = registry if registry is not None else find_registry()
        if root is None:
            return word
        opened = open_registry(root)
        if parse_reference(word).name not in opened.dataset_names():
            return word
        return resolve(opened, word)
    if registry is None and find_registry() is None:
        raise NoSuchNameError(
            f"there is no file `{safe(word)}`, and no registry here to look it up in"
            f"{close_file(word)}",
            hint="`-C DIR`, in Python `registry=DIR`, names a registry",
        )
    return resolve(open_registry(registry), word)


def expect_no_misspelt_reference(word: str, registry: RegistryLike | None) -> None:
    """Refuse a misspelt reference that names no file: ``mnist@1``, ``Mnist@latest``.

    What has a slash or a wildcard means files, and so does ``prefix@5``, the files of one set of
    five, unless a dataset has that name.
    """
    name, *others = re.split("([@#])", word, maxsplit=1)
    mark, rest = others or ("", "")
    if not mark or names_files(word):
        return
    if mark == "@" and rest.isdecimal():
        root = registry if registry is not None else find_registry()
        if root is None or name not in open_registry(root).dataset_names():
            return
        if names_set(word):
            return
    parse_reference(word)
