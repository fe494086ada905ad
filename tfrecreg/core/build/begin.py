"""What a build decides before its work starts: schema, raw data, base, plan."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tfrecreg._version import __version__
from tfrecreg.core.build.plan import Base, Plan, find_base, make_plan
from tfrecreg.core.build.request import (
    ChangedSettings,
    Prepared,
    code_of_source,
    compare_settings,
    shard_policy,
)
from tfrecreg.core.build.shard import make_part
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.build.state import expect_no_foreign_files, expect_no_loss, raw_files, raw_state
from tfrecreg.core.registry.absence import expect_same_schema
from tfrecreg.core.registry.manifest import RawTotals
from tfrecreg.core.registry.registry import Dataset
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import ManifestError, NewerFormatError, UsageError
from tfrecreg.core.values.progress import Ticker, counting
from tfrecreg.core.workers.interface import WORTH_SECONDS, Engine
from tfrecreg.core.workers.local import LocalEngine

ListedItem = TypeVar("ListedItem", bound=Item | Skipped | Remark)

_ITEM_SECONDS, _BYTE_SECONDS = 60e-6, 3e-9
"""Approximate times in seconds. The time per item is for a digit that is encoded as PNG. The time
per byte is for a JPEG that is stored unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How many shards a build keeps from its base, and how many it writes.

    The source estimates the sizes of shards that do not exist yet.
    """

    base: str
    """``mnist@1.0.0``."""
    kept: int
    """Number of unchanged shards of the base."""
    kept_bytes: int
    rewritten: int
    """Number of shards of the base in which records changed or were removed."""
    rewritten_bytes: int
    new: int
    """Number of shards with records that the base does not have."""
    new_bytes: int

    @property
    def written_bytes(self) -> int:
        """Size of all shards that are written."""
        return self.rewritten_bytes + self.new_bytes


def sizes_of(plan: Plan, kept: Collection[str]) -> dict[str, int]:
    """The size of each shard in bytes, by path. It is an estimate if the shard does not exist."""
    return {
        shard.path: shard.base.entry.bytes
        if shard.path in kept and shard.base is not None
        else sum(item.size for item in shard.items)
        for shard in plan.shards
    }


def growth_of(plan: Plan, kept: Collection[str], sizes: Mapping[str, int]) -> Growth | None:
    """The numbers and sizes of kept and written shards; None if the plan has no base."""
    if plan.base is None:
        return None
    counts: Counter[str] = Counter()
    for shard in plan.shards:
        if shard.path in kept and shard.base is not None:
            what = "kept"
        else:
            what = "rewritten" if shard.base is not None or shard.lost_items else "new"
        counts.update({what: 1, f"{what}_bytes": sizes[shard.path]})
    names = ("kept", "kept_bytes", "rewritten", "rewritten_bytes", "new", "new_bytes")
    return Growth(base=plan.base.name, **{name: counts[name] for name in names})


def choose_base(prepared: Prepared) -> Base | None:
    """The base. None if there is no release, or if the request changes the size or compression of
    shards.
    """
    request = prepared.request
    named = request.base not in (None, "none")
    if request.policy is not None:
        if named:
            raise UsageError(
                "`--base` cannot be used with a number of shards, because shards of the base are "
                "kept"
            )
        return None
    base = find_base(prepared.registry, request.name, request.base)
    if base is None or base.manifest.compression == prepared.settings.compression:
        return base
    if named:
        raise UsageError(
            f"the base `{base.name}` has compression {base.manifest.compression}, but the build "
            f"has {prepared.settings.compression}: `--base none` rewrites all shards"
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStart:
    """A build before its first shard."""

    prepared: Prepared
    plan: Plan
    raw: RawTotals
    files: dict[str, tuple[int, int]]
    """Size and modification time (in nanoseconds) of each raw file."""
    schema: str
    """Text of the schema."""
    schema_is_new: bool
    """Whether the registry has no schema of the dataset yet."""
    settings: ChangedSettings


def begin(prepared: Prepared, engine: Engine) -> BuildStart:
    """Plan the build. Errors that would otherwise occur at its end are raised here."""
    progress, source = prepared.progress, prepared.source
    settings = compare_settings(prepared)
    for note in settings.notes():
        progress.note(note)
    dataset = prepared.registry.dataset(prepared.name)
    _expect_buildable(dataset)
    base = choose_base(prepared)
    if prepared.data is not None:
        prepared.data.survey()
        engine = LocalEngine(1) if not prepared.data.travels else engine
    schema = dataset.schema_text()
    for note in source.notes():
        progress.note(note)
    text = source.schema() if schema is None else schema
    if schema is None and not prepared.request.default_schema:
        expect_same_schema(dataset, text, drafted=prepared.data is not None)
    parse_schema(text, dataset.schema_path)
    totals, files = raw_files(source, prepared.raw, progress)
    policy, salt = shard_policy(prepared.settings), _plan_salt(prepared, files)
    with counting(progress, f"planning {prepared.name}", "items") as ticker:
        entries = _counted(source.items(), ticker, engine)
        plan = make_plan(prepared.name, entries, policy, salt, base, source=source)
    return BuildStart(
        prepared=prepared,
        plan=plan,
        raw=totals,
        files=files,
        schema=text,
        schema_is_new=schema is None,
        settings=settings,
    )


def _expect_buildable(dataset: Dataset) -> None:
    """Before any work, refuse a build that could not be published without losing files."""
    expect_no_foreign_files(dataset)
    try:
        before = dataset.build_manifest()
    except (ManifestError, NewerFormatError):
        return  # building again replaces a damaged build
    expect_no_loss(dataset, before, "")


def _plan_salt(prepared: Prepared, files: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Everything that affects the bytes, except the items. A plan's digest includes it."""
    entry = prepared.entry
    salt = {f"option.{name}": value for name, value in entry.options.items()}
    salt["compression"] = prepared.settings.compression
    salt["source"] = f"{entry.distribution} {entry.version} {entry.name}"
    salt["tfrecreg"] = __version__
    code = code_of_source(entry.distribution, prepared.source)
    salt.update({f"code.{name}": digest for name, digest in code.items()})
    salt["raw"] = raw_state(files)
    if prepared.request.anew:  # then no earlier plan has this digest
        salt["anew"] = secrets.token_hex(16)
    return salt


def _counted(listed: Iterable[ListedItem], ticker: Ticker, engine: Engine) -> Iterator[ListedItem]:
    """Yield the listed entries and count them. Workers start as soon as enough items are listed,
    because their imports take about as long as planning.
    """
    work = 0.0
    entries = iter(listed)
    for entry in entries:
        ticker.add(1, 0)
        yield entry
        if isinstance(entry, Item):
            work += _seconds(entry)
            if work > WORTH_SECONDS:
                engine.warm(make_part)
                break
    for entry in entries:
        ticker.add(1, 0)
        yield entry


def engine_for_build(plan: Plan, engine: Engine) -> Engine:
    """Return `engine`, or an engine in this process if the build is too small to need workers."""
    work = (_seconds(item) for shard in plan.shards for item in shard.items)
    return engine.for_work(work)


def _seconds(item: Item) -> float:
    return _ITEM_SECONDS + max(item.size, 0) * _BYTE_SECONDS
