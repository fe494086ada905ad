"""Schemas by name: of a dataset, a release, a file, and the one that a build was made with.

A manifest names a schema by the digest of its text. The working schema may be edited after the
build: as long as it means the same, the build stands, and a release freezes the text that its
manifest names. A build has that text in its folder, unless it was adopted in place. It is found by
its digest, so no place need be trusted.

The schema of a first build is one. It is put before the folder, so that no build is seen without
it. A note in the stage says which files these are; where the folder did not follow, whoever holds
the lock next removes them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from blake3 import blake3

from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.absence import absent_schema, expect_dataset
from tfrecreg.core.registry.lookup import Resolved, expect_schema, resolve
from tfrecreg.core.registry.manifest import SCHEMA_NAME, Manifest, remake_command
from tfrecreg.core.registry.registry import Dataset, Registry, RegistryLike, open_registry
from tfrecreg.core.registry.shardset.find import expect_no_misspelt_reference
from tfrecreg.core.registry.shardset.target import read_schema_file
from tfrecreg.core.schema.proto import parse_schema, render_schema
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import (
    FailureError,
    ManifestError,
    NewerFormatError,
    SchemaError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.reference import looks_like_reference, parse_reference


def keep_schema(registry: Registry, text: str) -> None:
    """Remember the text of a schema on this machine, under its digest: that of a build whose folder
    is another tool's.
    """
    data = text.encode("utf-8")
    registry.storage.put_if_absent(layout.cached_schema(blake3(data).hexdigest()), data)


def built_schema(resolved: Resolved) -> str:
    """The text of the schema that a build was made with.

    The working schema may differ from it in comments, layout and anything else without meaning.
    """
    digest = resolved.manifest.schema.blake3
    text, path = expect_schema(resolved), resolved.schema_path
    changed = f"`{path}` is not the schema that `{resolved.name}` was built with"
    hint = remake_command(resolved.manifest)
    if blake3(text.encode("utf-8")).hexdigest() == digest:
        return text
    meaning = render_schema(parse_schema(text, path))
    before = schema_of_digest(resolved.dataset, digest)
    if before is None:
        raise UsageError(
            f"{changed}, and the text of that one is neither in git's history nor on this machine "
            "to compare their meaning",
            hint=hint,
        )
    try:
        same = render_schema(parse_schema(before, path)) == meaning
    except SchemaError:
        same = False  # another tensorflow-metadata may have read it
    if not same:
        raise UsageError(changed, hint=hint)
    return before


def schema_of_digest(dataset: Dataset, digest: str) -> str | None:
    """The text with this digest, from wherever it may be; None if it is not on this machine."""
    for data in _candidates(dataset, digest):
        if blake3(data).hexdigest() == digest:
            return data.decode("utf-8", "replace")
    return None


def _candidates(dataset: Dataset, digest: str) -> Iterator[bytes]:
    path = dataset.schema_path
    places = [f"{layout.build_folder(dataset.name)}/{SCHEMA_NAME}", layout.cached_schema(digest)]
    places.append(path)
    places += [
        f"{layout.release_folder(dataset.name, version)}/{SCHEMA_NAME}"
        for version in reversed(dataset.versions)
    ]
    registry = dataset.registry
    for place in places:
        try:
            yield registry.storage.read(place)
        except TfrecregError:
            continue  # it is not there, or no file: the next place may have it
    try:
        for touch in git.touches(registry.storage.root, path):
            if touch.blob:
                yield git.read_object(registry.storage.root, touch.blob)
    except FailureError:
        return  # git is missing or refused: then there is no history to search


_NOTE = "beside.json"


class _Note(msgspec.Struct, frozen=True):
    manifest: str
    """Digest of the manifest of the build."""
    files: dict[str, str]
    """Path to blake3, of the files that were missing."""


@contextlib.contextmanager
def published_with(
    dataset: Dataset,
    stage: str,
    manifest: Manifest,
    files: Mapping[str, bytes],
    tried: Callable[..., Any],
) -> Iterator[None]:
    """Put files that are missing, and remove them again unless the block publishes the build."""
    storage = dataset.registry.storage
    missing = {path: data for path, data in files.items() if storage.stat(path) is None}
    if not missing:
        yield
        return
    try:
        digests = {path: blake3(data).hexdigest() for path, data in missing.items()}
        with storage.create(f"{stage}/{_NOTE}") as writer:
            writer.write(render_note(_Note(manifest.digest, digests)))
        for path, data in missing.items():
            storage.put_if_absent(path, data)
        yield
    finally:
        tried(settle_beside, dataset, stage)


def settle_beside(dataset: Dataset, stage: str) -> None:
    """Remove files that were put for a build that was not published."""
    storage, place = dataset.registry.storage, f"{stage}/{_NOTE}"
    if storage.stat(place) is None:
        return
    try:
        note = read_note(storage.read(place), _Note)
    except ValueError:
        note = _Note("", {})  # not ours: no file is recorded
    if not _is_published(dataset, note.manifest):
        for path, digest in note.files.items():
            if storage.stat(path) is not None and blake3(storage.read(path)).hexdigest() == digest:
                storage.remove(path)
    storage.remove(place)


def _is_published(dataset: Dataset, digest: str) -> bool:
    try:
        found = dataset.build_manifest()
    except (ManifestError, NewerFormatError):
        return False
    return found is not None and found.digest == digest


def find_schema(name: str, *, registry: RegistryLike | None = None) -> tuple[str, str]:
    """The text and the path of a schema."""
    if not looks_like_reference(name):
        expect_no_misspelt_reference(name, registry)
        return read_schema_file(name), name
    opened = open_registry(registry)
    if parse_reference(name).selector is None:
        text = opened.dataset(name).schema_text()
        if text is not None:
            return text, opened.dataset(name).schema_path
        expect_dataset(opened.dataset(name))
        raise absent_schema(opened.dataset(name))
    resolved = resolve(opened, name)
    return expect_schema(resolved), resolved.schema_path
