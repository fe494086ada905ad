"""The schema of a dataset, a release or a file, by name."""

from __future__ import annotations

from tfrecreg.core.registry.absence import absent_schema, expect_dataset
from tfrecreg.core.registry.lookup import expect_schema, resolve
from tfrecreg.core.registry.registry import RegistryLike, open_registry
from tfrecreg.core.registry.shardset.find import expect_no_misspelt_reference
from tfrecreg.core.registry.shardset.target import read_schema_file
from tfrecreg.core.values.reference import looks_like_reference, parse_reference


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
