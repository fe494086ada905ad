"""Finds the schema of a dataset, a release or a file, and the schema that a build was made with.

A manifest names a schema by the digest of its text. A build stays valid while the working schema
has the same meaning, and a release freezes the text that its manifest names.
"""

from __future__ import annotations

import contextlib

from blake3 import blake3

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import absent_schema, expect_dataset
from tfrecreg.core.registry.data import Resolved, expect_schema, resolve
from tfrecreg.core.registry.find import read_schema_file
from tfrecreg.core.registry.manifest import SCHEMA_NAME, remake_command
from tfrecreg.core.registry.registry import Dataset, Registry, RegistryLike, open_registry
from tfrecreg.core.schema.proto import parse_schema, render_schema
from tfrecreg.core.values.errors import SchemaError, TfrecregError, UsageError
from tfrecreg.core.values.reference import looks_like_reference, parse_reference


def keep_schema(registry: Registry, text: str) -> None:
    """Save a schema under its digest, for a build in the folder of another tool."""
    data = text.encode("utf-8")
    registry.storage.put_if_absent(layout.cached_schema(blake3(data).hexdigest()), data)


def built_schema(resolved: Resolved) -> str:
    """The text of the schema with which a build was made. The working schema must be equivalent."""
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
            data = dataset.registry.storage.read(place)
            if blake3(data).hexdigest() == digest:
                return data.decode("utf-8", "replace")
    return None


def find_schema(name: str, *, registry: RegistryLike | None = None) -> tuple[str, str]:
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
