"""What a build decides before its work starts: settings, schema, raw data, plan.

The release that a build grows from, the shards it keeps, and an estimate of the push.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tfrecreg._version import __version__
from tfrecreg.core.build.assemble import warming
from tfrecreg.core.build.base import Base, find_base
from tfrecreg.core.build.plan import Plan, make_plan
from tfrecreg.core.build.request import (
    ChangedSettings,
    Prepared,
    code_of_source,
    compare_settings,
    source_detection,
)
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.build.state import expect_no_foreign_files, expect_no_loss, raw_files, raw_state
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.registry.absence import expect_same_schema
from tfrecreg.core.registry.manifest import RawTotals
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import ManifestError, NewerFormatError, RawDataError, UsageError
from tfrecreg.core.values.progress import Progress, Ticker, counting
from tfrecreg.core.values.shards import collision
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Shards that a build keeps of its base, and shards that it writes.

    Sizes of shards that do not exist yet are estimates of the source, scaled by the ratio of real
    to estimated size in the base.
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


def sizes_of(plan: Plan, kept: set[str]) -> dict[str, int]:
    """Size in bytes by shard path; estimated for shards that do not exist yet.

    Estimates of the source are scaled by the ratio of real to estimated size in the base.
    """
    estimates = {shard.path: sum(item.size for item in shard.items) for shard in plan.shards}
    of_base = {shard.path: shard.base.entry.bytes for shard in plan.shards if shard.base}
    estimated = sum(estimates[path] for path in of_base)
    scale = sum(of_base.values()) / estimated if estimated else 1.0
    return {
        path: of_base[path] if path in kept and path in of_base else round(estimate * scale)
        for path, estimate in estimates.items()
    }


def growth_of(plan: Plan, kept: set[str], sizes: Mapping[str, int]) -> Growth | None:
    """Count and sum the shards of a plan; None without a base."""
    if plan.base is None:
        return None
    counts: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    for shard in plan.shards:
        if shard.path in kept and shard.base is not None:
            what = "kept"
        else:
            what = "rewritten" if shard.base is not None or shard.lost_items else "new"
        counts[what] += 1
        amounts[what] += sizes[shard.path]
    return Growth(
        base=plan.base.name,
        kept=counts["kept"],
        kept_bytes=amounts["kept"],
        rewritten=counts["rewritten"],
        rewritten_bytes=amounts["rewritten"],
        new=counts["new"],
        new_bytes=amounts["new"],
    )


def choose_base(registry: Registry, prepared: Prepared) -> Base | None:
    """The release to grow from; None without one, or if the request has another layout."""
    request = prepared.request
    named = request.base not in (None, "none")
    if named and request.policy is not None:
        raise UsageError(
            "`--base` and the number of shards exclude each other: shards of the base stay",
            hint="`--base none` rewrites all shards, as many as you ask for",
        )
    if request.policy is not None:
        return None
    base = find_base(registry, request.name, request.base)
    if base is None or base.manifest.compression == prepared.settings.compression:
        return base
    if named:
        raise UsageError(
            f"the base `{base.name}` has compression {base.manifest.compression}, the build has "
            f"{prepared.settings.compression}",
            hint="`--base none` rewrites all shards",
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStart:
    """A build before its first shard."""

    prepared: Prepared
    plan: Plan
    raw: RawTotals
    files: dict[str, tuple[int, int]]
    """Raw file to its size and modification time in nanoseconds."""
    schema: str
    """Text of the schema."""
    schema_is_new: bool
    """Whether the registry has no schema of the dataset yet."""
    settings: ChangedSettings


def begin(
    registry: Registry,
    prepared: Prepared,
    engine: Engine,
    progress: Progress,
) -> BuildStart:
    """Plan the build, and refuse now what would be refused at its end."""
    settings = compare_settings(registry, prepared)
    for note in settings.notes():
        progress.note(note)
    dataset = registry.dataset(prepared.name)
    expect_buildable(dataset)
    base = choose_base(registry, prepared)
    if prepared.data is not None:
        prepared.data.survey()
        engine = LocalEngine(1) if not prepared.data.travels else engine
    schema = dataset.schema_text()
    with _fitting_folder_named(registry, prepared):
        for note in prepared.source.notes():
            progress.note(note)
        text = prepared.source.schema() if schema is None else schema
        if schema is None and not prepared.request.default_schema:
            expect_same_schema(dataset, text, drafted=prepared.data is not None)
        parse_schema(text, dataset.schema_path)
        totals, files = raw_files(prepared.source, prepared.raw, progress)
        for feature, names in prepared.source.labels().items():
            if clash := collision(names):
                progress.note(f"two classes of `{safe(feature)}` {clash}")
    salt = _plan_salt(prepared, files)
    with counting(progress, f"planning {prepared.name}", "items") as ticker:
        listed = warming(_counted(prepared.source.items(), ticker), engine)
        plan = make_plan(
            prepared.name,
            listed,
            prepared.settings.policy,
            salt,
            base,
            source=prepared.source,
        )
    return BuildStart(
        prepared=prepared,
        plan=plan,
        raw=totals,
        files=files,
        schema=text,
        schema_is_new=schema is None,
        settings=settings,
    )


@contextmanager
def _fitting_folder_named(registry: Registry, prepared: Prepared) -> Iterator[None]:
    """Where the raw data are refused, have the hint name the folder above or below that has files
    for the source, or another source that recognizes them.
    """
    try:
        yield
    except RawDataError as error:
        entry, raw = prepared.entry, prepared.raw
        if raw is None:
            raise
        known, detection = plugins_of(registry.config), source_detection()
        source = known.find(SourceRecord, f"{entry.distribution}:{entry.name}")
        folder = detection.fitting_folder(raw, source)
        if folder in ("", raw.root):
            other = "" if folder else detection.other_source_hint(raw, entry.name, known)
            if not other:
                raise
            raise RawDataError(error.message, hint=f"{other}; or {error.hint}") from error
        hint = f"`{safe(folder, limit=1000)}` has files for it: name that with `--raw`"
        if raw.root.startswith(folder):  # it may be meant otherwise
            hint = f"{hint}; or {error.hint}"
        raise RawDataError(error.message, hint=hint) from error


def _plan_salt(prepared: Prepared, files: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Everything besides the items that the bytes depend on: part of a plan's digest."""
    salt = {f"option.{name}": value for name, value in prepared.entry.options.items()}
    salt["compression"] = prepared.settings.compression
    entry = prepared.entry
    salt["source"] = f"{entry.distribution} {entry.version} {entry.name}"
    salt["tfrecreg"] = __version__
    code = code_of_source(entry.distribution, prepared.source)
    salt.update({f"code.{name}": digest for name, digest in code.items()})
    salt["raw"] = raw_state(files)
    if prepared.request.anew:  # the digest of no other plan
        salt["anew"] = secrets.token_hex(16)
    return salt


def _counted(
    listed: Iterable[Item | Skipped | Remark], ticker: Ticker
) -> Iterator[Item | Skipped | Remark]:
    for each in listed:
        ticker.add(1, 0)
        yield each


def expect_buildable(dataset: Dataset) -> None:
    """Refuse, before any work, a build that could not be published without losing files."""
    expect_no_foreign_files(dataset)
    try:
        before = dataset.build_manifest()
    except (ManifestError, NewerFormatError):
        return  # building again replaces a damaged build
    expect_no_loss(dataset, before, "")
