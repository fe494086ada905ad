"""The contents of `plan.json`: all data that parts need besides the items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from tfrecreg.documents import canonical_json, digest_apart, known_format, refusing, strict_json
from tfrecreg.errors import UsageError
from tfrecreg.manifest.model import Parent, RawTotals, SchemaEntry, SourceEntry
from tfrecreg.operations.builds.parts.lines import WRITE_AGAIN, TextDigest
from tfrecreg.operations.builds.settings import DEFAULT_MAX_DROPPED
from tfrecreg.text import safe

PLAN_NAME = "plan.json"
PLAN_FORMAT = 1
PLAN_KIND = "tfrecreg-plan"
"""The value of `kind`, which distinguishes a plan from other files of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOfPlan:
    """One shard to make."""

    path: str
    """Its file name in the build's folder."""
    split: str
    number: int
    """Number in its split, from 0."""
    size: int
    """Estimated size of its payloads in bytes."""
    items: TextDigest
    """The list of its items."""
    raw_files: TextDigest | None = None
    """Path, size and modification time of the raw files of its items; None if the source does not
    know which they are.
    """
    base: str | None = None
    """The shard of the base that it is, if no record changed."""
    lost_items: bool = False
    """It is a shard of the base that has lost items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The code that makes the bytes. Every part needs the same."""

    tfrecreg: str
    codecs: dict[str, str]
    """Encoders that affect the bytes, with their versions: ``{"zlib": "1.3"}``."""
    code: dict[str, str] = field(default_factory=dict)
    """Distribution to the digest of its code, where that can change under the same version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """When and where the plan was made. Not covered by its digest."""

    created: str
    """UTC, ISO 8601 to the second."""
    by: str
    host: str
    python: str
    raw: str
    """Folder of the raw data: an absolute path or a URL. Parts may name another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument:
    """The plan of a build, with a digest for each of its other files."""

    format_version: int
    kind: str
    dataset: str
    order: str
    """Digest of the plan as a build in one go has it: items, their order, options, raw state."""
    shards: list[ShardOfPlan]
    """In order of split and number."""
    listed: TextDigest
    """Items that the source skipped while it listed them, and its remarks."""
    raw_files: TextDigest
    """Path, size and modification time of each raw file that is not one of a shard's items."""
    source: SourceEntry
    versions: Versions
    compression: Literal["none", "gzip"]
    max_skipped: str
    """Maximum number of skipped items, as ``--max-skipped`` takes it."""
    schema: SchemaEntry
    labels: dict[str, list[str]]
    """Class names in order of their numbers, by feature name."""
    raw: RawTotals
    settings: str
    """JSON of the settings that go to `datasets/NAME.toml` when the build is published."""
    max_dropped: str = DEFAULT_MAX_DROPPED
    """The same of dropped objects."""
    base: Parent | None = None
    """The release to grow from."""
    data: str | None = None
    """URL of the folder that the shards go to; None for `build/` in the folder of the plan."""
    planned: Planned | None = None
    digest: str = field(default="")
    """blake3 over the canonical JSON of everything but `digest` and `planned`. Receipts name it."""


def seal_plan(document: PlanDocument) -> PlanDocument:
    """The plan with its digest."""
    return replace(document, digest=_digest(msgspec.to_builtins(document)))


def render_plan(document: PlanDocument) -> bytes:
    """The file: canonical JSON and a newline.

    Raises:
        UsageError: a name in it is not UTF-8.
    """
    with refusing(
        UsageError,
        f"the plan of `{safe(document.dataset)}` cannot be written",
        hint="names of labels and folders have to be UTF-8: rename those that are not",
    ):
        return canonical_json(msgspec.to_builtins(document)) + b"\n"


def parse_plan(data: bytes, where: str) -> PlanDocument:
    """Read the file and check its digest.

    Raises:
        NewerFormatError: a newer tfrecreg wrote it.
        UsageError: it is not a plan, or was changed.
    """
    shown = safe(where, limit=1000)
    with refusing(UsageError, f"`{shown}` is not a plan", hint=WRITE_AGAIN):
        found = strict_json(data)
        if not isinstance(found, dict) or found.get("kind") != PLAN_KIND:
            raise ValueError(f"its `kind` is not `{PLAN_KIND}`")
        known_format(found, PLAN_FORMAT, f"`{shown}` has plan format")
        document = msgspec.convert(found, PlanDocument)
        expected = _digest(found)
    if document.digest != expected:
        raise UsageError(
            f"`{shown}` was changed after it was written: its digest should be "
            f"`{expected[:16]}…`, found `{safe(document.digest[:16])}…`",
            hint=WRITE_AGAIN,
        )
    return document


def _digest(plain: dict[str, Any]) -> str:
    return digest_apart(plain, "digest", "planned")
