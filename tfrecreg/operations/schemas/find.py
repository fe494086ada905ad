"""Finding the schema that a name stands for."""

from __future__ import annotations

from tfrecreg.operations.targets import expect_no_misspelt_reference, read_schema_file
from tfrecreg.reference import looks_like_reference, parse_reference
from tfrecreg.registry import RegistryLike, expect_dataset, open_registry, resolve
from tfrecreg.registry.absence import absent_schema

__all__ = ["find_schema"]


def find_schema(name: str, *, registry: RegistryLike | None = None) -> tuple[str, str]:
    """The text of a schema and where it is: of a reference, or of a file.

    Args:
        name: ``mnist`` (the working schema), ``mnist@1.0.0`` (as it was released), or the path of
            a file; a file with the name of a dataset is ``./mnist``.
        registry: an open registry or a path in one; None for that of the current folder.

    Raises:
        UsageError: there is no such dataset, release or file.
        NotHereError: the dataset has no schema.
        ManifestError: a release's manifest or schema is not the one that was released.
    """
    if not looks_like_reference(name):
        expect_no_misspelt_reference(name, registry)
        return read_schema_file(name), name
    opened = open_registry(registry)
    if parse_reference(name).selector is None:
        text = opened.schema_text(name)
        if text is not None:
            return text, opened.schema_path(name)
        expect_dataset(opened, name)
        raise absent_schema(opened, name)
    resolved = resolve(opened, name)
    text = resolved.schema
    assert text is not None  # a release has one, or resolving it fails
    return text, resolved.schema_path
