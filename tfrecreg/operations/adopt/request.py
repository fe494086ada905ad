"""What is to be adopted, how, and by which schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfrecreg.errors import UsageError
from tfrecreg.operations.schemas import find_schema
from tfrecreg.registry import Registry
from tfrecreg.schema import parse_schema
from tfrecreg.text import safe

__all__ = ["AdoptRequest", "How", "KnownSchema", "known_schema"]

How = Literal["copy", "link", "in-place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRequest:
    """What to adopt."""

    name: str
    """Of the dataset."""
    paths: tuple[str, ...] = ()
    """Files, globs, folders (every shard below them) and ``prefix@N`` sets, relative to the
    current folder. Empty with ``in-place``: all that lies in the build's folder."""
    how: How = "copy"
    """``copy``: the build has bytes of its own. ``link``: hard links, so that whoever writes into
    the files changes the build as well; copies where links are impossible. ``in-place``: the files
    lie in ``data/<name>`` already and stay as they are, names and all."""
    splits: tuple[tuple[str, str], ...] = ()
    """Split and glob over the files of it: before what names say."""
    schema: str | None = None
    """A schema's file or a reference; None for the dataset's own, or one that is drafted."""
    raw: str | None = None
    """Folder of the raw data that the records were made from, to judge the size by; None for the
    `raw` of the dataset, if it has one."""
    key: str | None = None
    """The feature whose value is the key of a record; None for file and number."""
    labels: tuple[tuple[str, str], ...] = ()
    """Feature and file of what its classes are called: before what lies beside the shards."""


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """The schema that the records are held against."""

    text: str
    path: str
    """Where it came from, for messages."""
    is_new: bool
    """Whether the dataset has it from now on."""
    judges: bool
    """Whether it has features of Examples to judge records by."""


def known_schema(registry: Registry, request: AdoptRequest) -> KnownSchema | None:
    """The schema that was named, or the dataset's own; None where one is to be drafted.

    Raises:
        UsageError: the one that was named does not exist, or is not the dataset's own.
        SchemaError: it does not parse.
    """
    own = registry.schema_text(request.name)
    path = registry.schema_path(request.name)
    if request.schema is not None:
        text, where = find_schema(request.schema, registry=registry.storage.root)
        if own is not None and own != text:
            raise UsageError(
                f"`{path}` is the schema of `{request.name}` already, and `{safe(where)}` "
                "is another",
                hint=f"replace `{path}`, or leave out `--schema`",
            )
    elif own is not None:
        text, where = own, path
    else:
        return None
    schema = parse_schema(text, where)
    judges = bool(schema.features) and not schema.describes_sequences()
    return KnownSchema(text, where, is_new=own is None, judges=judges)
