"""Finds the schema of a dataset, a release or a file, and the schema that a build was made with.

A manifest names a schema by the digest of its text. The working schema may be edited after the
build. The build stays valid as long as the schema's meaning is the same, and a release freezes the
text that its manifest names. A build has that text in its folder, unless it was adopted in place.
The text may come from any place, because its digest is verified.

A first build also publishes its schema. The schema is written before the build's folder appears, so
that no build is visible without it. A note in the stage lists the files that were written in
advance. If the folder does not appear, the next holder of the lock removes these files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from blake3 import blake3

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import absent_schema, expect_dataset
from tfrecreg.core.registry.data import Resolved, expect_schema, resolve
from tfrecreg.core.registry.find import read_schema_file
from tfrecreg.core.registry.manifest import SCHEMA_NAME, Manifest, remake_command
from tfrecreg.core.registry.registry import Dataset, Registry, RegistryLike, open_registry
from tfrecreg.core.schema.proto import parse_schema, render_schema
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import (
    ManifestError,
    NewerFormatError,
    SchemaError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.reference import looks_like_reference, parse_reference


def keep_schema(registry: Registry, text: str) -> None:
    """Save the text of a schema on this machine, under the text's digest. This serves builds that
    were adopted in place: their folders belong to another tool.
    """
    data = text.encode("utf-8")
    registry.storage.put_if_absent(layout.cached_schema(blake3(data).hexdigest()), data)


def built_schema(resolved: Resolved) -> str:
    """The text of the schema with which a build was made.

    The working schema may differ from it in comments, layout and other parts without meaning.
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
            f"{changed}, and the schema of the build is not on this machine", hint=hint
        )
    try:
        same = render_schema(parse_schema(before, path)) == meaning
    except SchemaError:
        same = False  # another version of tensorflow-metadata may have parsed it
    if not same:
        raise UsageError(changed, hint=hint)
    return before


def schema_of_digest(dataset: Dataset, digest: str) -> str | None:
    """The schema with this digest, from any place that may have it; None if no place has it."""
    for data in _candidates(dataset, digest):
        if blake3(data).hexdigest() == digest:
            return data.decode("utf-8", "replace")
    return None


def _candidates(dataset: Dataset, digest: str) -> Iterator[bytes]:
    folders = [layout.release_folder(dataset.name, each) for each in reversed(dataset.versions)]
    places = [
        f"{layout.build_folder(dataset.name)}/{SCHEMA_NAME}",
        layout.cached_schema(digest),
        dataset.schema_path,
        *(f"{folder}/{SCHEMA_NAME}" for folder in folders),
    ]
    for place in places:
        # If a place has no such file, the next place may have it.
        with contextlib.suppress(TfrecregError):
            yield dataset.registry.storage.read(place)


_NOTE = "beside.json"


class _Note(msgspec.Struct, frozen=True):
    manifest: str
    files: dict[str, str]
    """The blake3 of each file that was missing and was written, by path."""


@contextlib.contextmanager
def published_with(
    dataset: Dataset,
    stage: str,
    manifest: Manifest,
    files: Mapping[str, bytes],
    tried: Callable[..., Any],
) -> Iterator[None]:
    """Write those `files` that are missing. If the ``with`` block does not publish the build,
    remove the written files.
    """
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
    """Remove files that were written for a build that was not published."""
    storage, place = dataset.registry.storage, f"{stage}/{_NOTE}"
    if storage.stat(place) is None:
        return
    try:
        note = read_note(storage.read(place), _Note)
    except ValueError:
        note = _Note("", {})  # another program wrote the note: it lists no file
    found: Manifest | None = None
    with contextlib.suppress(ManifestError, NewerFormatError):
        found = dataset.build_manifest()
    if found is None or found.digest != note.manifest:
        for path, digest in note.files.items():
            if storage.stat(path) is not None and blake3(storage.read(path)).hexdigest() == digest:
                storage.remove(path)
    storage.remove(place)


def find_schema(name: str, *, registry: RegistryLike | None = None) -> tuple[str, str]:
    """The text and the path of a schema."""
    if not looks_like_reference(name):
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
