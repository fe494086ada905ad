"""The options of a check, as commands and programs give them.

The items of raw data that records should hold: ``check --source S --raw DIR``.

What `check --same-as` and `check --expect` say, as the validator `content` takes it.

Facts about the target in a report: its place, and what it was judged by.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3

from tfrecreg.core.build.sources.guarded import GuardedSource, Record
from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.check.scan.interface import Expected, RawItem, RawItems, Target
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import resolve_in
from tfrecreg.core.registry.shardset.side import Side, side_of
from tfrecreg.core.storage.raw import raw_storage
from tfrecreg.core.values.config import Config, FailOn, GateConfig
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Options of a check, with the defaults of the command line."""

    only: tuple[str, ...] = ()
    """Names of the validators to run; empty for all."""
    skip: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Names of validators to run in addition to those that run anyway."""
    raw: str | None = None
    """Folder of raw data, as the base of inflation."""
    source: str | None = None
    """The source of `raw`, whose items are looked for in the records: the validator `items` then
    runs."""
    source_options: Sequence[str] | Mapping[str, Any] = ()
    """Options of that source, as ``K=V`` or by name."""
    schema: str | None = None
    """Path of a schema to use instead of the target's own."""
    fail_on: FailOn | str | None = None
    """None for what the gate says, or ``error``. ``never`` measures and does not judge: findings
    have the severities of their codes, and waivers are ignored, so the result does not depend on
    the date."""
    against: str | None = None
    """A reference or files to compare with: the validator `drift` then runs."""
    same_as: str | None = None
    """A reference, or a content digest of 64 hex digits: the validator `content` then runs."""
    expect: Mapping[str, int] = field(default_factory=dict)
    """Number of records by split; splits that are not named may have any."""
    gate: str | None = None
    """Name of a gate to use, such as that of another dataset; None for the dataset's own, else the
    default one."""
    ignore_missing: bool = False
    """Without targets: whether datasets whose bytes are not on this machine are passed over."""
    cached: bool = False
    """Whether shards that did not change since an earlier check with this option, by their size,
    time and inode, are not read again."""


def raw_items(options: CheckOptions) -> RawItems:
    """The items that the options name."""
    if options.source is None:
        raise UsageError("`--option` is for a source", hint="name it: --source coco --raw DIR")
    if options.raw is None:
        raise UsageError(
            f"`--source {options.source}` needs the raw data", hint="name their folder: --raw DIR"
        )
    parsed, _ = plugins().source_options(options.source, options.source_options)
    raw = raw_storage(options.raw)
    raw.expect_folder()
    source = plugins().open_source(options.source, raw, parsed)
    source.labels()  # reads the annotations: what is wrong with them is said before the scan
    return RawItems(options.source, lambda: _items(source))


def _items(source: GuardedSource) -> Iterator[RawItem]:
    for entry in source.items():
        if isinstance(entry, Skipped):
            yield RawItem(entry.split, entry.key, None, entry.code)
        elif isinstance(entry, Item):
            made = source.record(entry, {})
            if isinstance(made, Record):
                yield RawItem(entry.split, entry.key, made.payload)
            else:
                yield RawItem(entry.split, entry.key, None, made.code)


_DIGEST = re.compile("[0-9a-f]{64}")


def expected_of(
    same_as: str | None, counts: Mapping[str, int], registry: RegistryLike | None
) -> Expected:
    """What the targets of a check should hold."""
    for split, count in counts.items():
        if count < 0:
            raise UsageError(
                f"the number of records of a split should be at least 0, found {count}",
                hint=f"`--expect {safe(split)}=60000`",
            )
    if same_as is None:
        return Expected(counts)
    if _DIGEST.fullmatch(same_as):
        return Expected(counts, same_as)
    resolved = resolve_in(registry, same_as)
    side: Side = side_of(resolved)
    numbers = {entry.path: number for number, entry in enumerate(side.manifest.shards)}
    return Expected(
        counts,
        side.manifest.content,
        side.name,
        side.manifest,
        lambda entry: side.index(numbers[entry.path]),
    )


def schema_digest(text: str | None) -> str | None:
    """blake3 of a schema, as manifests have it."""
    if text is None:
        return None
    return blake3(text.encode("utf-8", "surrogatepass")).hexdigest()


def limits_of(config: Config, gate: GateConfig, dataset: str, validator: str) -> dict[str, Any]:
    """The gate's limits for a validator, merged with the dataset's own."""
    limits = gate.options_of(validator)
    hosts = config.dataset(dataset).hosts
    if validator == "manifest" and hosts is not None:
        return {"hosts": hosts, **limits}
    return limits


def folder_of(target: Target) -> str | None:
    """The folder of the target's bytes, relative to its registry, POSIX; outside of one its
    absolute path, or its URL; None for bare files.
    """
    if target.storage is None:
        return None
    if target.home is None or not target.storage.is_local:
        return target.storage.root
    return os.path.relpath(target.storage.root, target.home.root).replace(os.sep, "/")
