"""The end of a build: the manifest, the check of the written files, and the exchange of folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfrecreg.core.build.assemble import assemble, ledgers, outline
from tfrecreg.core.build.planning.begin import BuildStart
from tfrecreg.core.build.planning.changed_settings import ChangedSettings
from tfrecreg.core.build.planning.growth import Growth, growth_of
from tfrecreg.core.build.read_back import ReadBack, ReadBackProof
from tfrecreg.core.build.shard import MadeShard
from tfrecreg.core.build.sink import StageSink
from tfrecreg.core.build.state import BuildRecord, expect_raw_unchanged, remember
from tfrecreg.core.check.findings import with_keys
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest.file import render_manifest
from tfrecreg.core.registry.manifest.model import MANIFEST_NAME, Ledger, Manifest
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.transaction import Transaction
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.codes import SRC047, SRC048
from tfrecreg.core.values.errors import RefusedError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import ShortRepr, safe
from tfrecreg.core.values.toml_files import update_toml
from tfrecreg.core.workers.interface import Engine


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BuildResult(ShortRepr):
    """A finished build."""

    manifest: Manifest = field(repr=False)
    folder: str
    """Folder of the build, relative to the registry."""
    report: Report
    """Report of the check after writing."""
    resumed: int
    """Shards that an earlier, killed run had finished."""
    growth: Growth | None
    """Reuse of the base's shards; None without a base."""
    unchanged: bool
    """Whether the build that was there is the same to the byte."""
    settings: ChangedSettings
    """Differences of its settings from the dataset's file and from earlier builds."""


def conclude(
    registry: Registry,
    start: BuildStart,
    made: Sequence[MadeShard],
    *,
    labels: Mapping[str, Sequence[str]],
    resumed: int,
    sink: StageSink,
    change: Transaction,
    engine: Engine,
    progress: Progress,
    raw_compared: bool = False,
    proof: ReadBackProof | None = None,
) -> BuildResult:
    """Complete the folder of a build, read it back, and put it in the place of the old one."""
    name = start.prepared.name
    found = ledgers(start.plan, made)
    _accept_skipped(start, made, found)
    _accept_dropped(start, made, found)
    outlined = outline(
        start.prepared, start.plan, made, schema=start.schema, raw=start.raw, labels=labels
    )
    reading = ReadBack(registry, start, sink.folder, engine, progress)
    if proof is None:
        manifest = _complete(outlined, start, made, sink.folder)
        report = reading.check(reading.target(manifest))
    else:
        manifest, report = _prove(outlined, start, sink.folder, reading, proof)
    if not raw_compared:
        expect_raw_unchanged(start.prepared.raw, start.files, progress)
    unchanged = _is_there(registry, manifest)
    # What was read back just now is the manifest's, byte for byte.
    change.replace(
        layout.build_folder(name),
        sink.folder,
        manifest,
        verified=True,
        beside=_first_files(registry, start),
    )
    _remember(registry, start, manifest)
    return BuildResult(
        manifest=manifest,
        folder=layout.build_folder(name),
        report=report,
        resumed=resumed,
        growth=growth_of(
            start.plan,
            {shard.entry.path for shard in made if shard.kept} | _as_in_base(start, made),
            {shard.entry.path: shard.entry.bytes for shard in made},
        ),
        unchanged=unchanged,
        settings=start.settings,
    )


def _as_in_base(start: BuildStart, made: Sequence[MadeShard]) -> set[str]:
    """Shards that were made again and are the base's, byte for byte."""
    base = start.plan.base
    there = {} if base is None else {each.entry.path: each.entry.blake3 for each in base.shards}
    return {each.entry.path for each in made if there.get(each.entry.path) == each.entry.blake3}


def _complete(
    outlined: Manifest, start: BuildStart, made: Sequence[MadeShard], folder: Storage
) -> Manifest:
    """Write all files of the build but the shards and their indexes."""
    manifest = assemble(outlined, start.plan, made, build=folder, schema=start.schema)
    with folder.create(MANIFEST_NAME) as writer:
        writer.write(render_manifest(manifest))
    return manifest


def _prove(
    outlined: Manifest, start: BuildStart, folder: Storage, reading: ReadBack, proof: ReadBackProof
) -> tuple[Manifest, Report]:
    """Read the shards, complete the build from them, and check its other files."""
    # Its files are not there yet, apart from the shards.
    report = reading.scan(replace(reading.target(outlined), storage=None), beside=(proof,))
    reading.expect_read(report)
    # Before the findings: it names the shard and the part, which findings do not.
    made = proof.proven(folder, reading.progress)
    manifest = _complete(outlined, start, made, folder)
    target = reading.target(manifest)
    # The indexes, which exist now, have the keys of records.
    named = tuple(with_keys(report.findings, target.shards))
    reading.expect_passed(replace(report, findings=named))
    reading.expect_passed(reading.scan(replace(target, shards=()), only=("manifest",)))
    return manifest, report


_LAYOUT = "are the source and the folder right? (build --dry-run shows how they are read) If so, "


def _accept_skipped(
    start: BuildStart, made: Sequence[MadeShard], found: Mapping[str, Ledger]
) -> None:
    """Refuse a build that lost more items than was agreed."""
    counts: Counter[str] = Counter()
    for ledger in found.values():
        counts.update(ledger.skipped)
    items = sum(ledger.items for ledger in found.values())
    skipped = sum(counts.values())
    limit = start.prepared.settings.max_skipped
    if limit.allows(skipped, items):
        return
    reasons = ", ".join(f"{code}: {count}" for code, count in sorted(counts.items()))
    first = next(iter([*start.plan.skipped, *(each for shard in made for each in shard.skipped)]))
    raise RefusedError(
        f"{skipped} of {items} items were skipped ({reasons}), at most {limit} may be; one is "
        f"`{safe(first.key)}`: {safe(first.detail)}",
        hint=_LAYOUT * (skipped * 2 >= items)
        + f"fix the raw data, or accept the skipped items: --max-skipped {skipped}",
    )


def _accept_dropped(
    start: BuildStart, made: Sequence[MadeShard], found: Mapping[str, Ledger]
) -> None:
    """Refuse a build with a split that lost more of its objects than was agreed."""
    written: Counter[str] = Counter()
    for shard in made:
        written[shard.entry.split] += shard.objects
    limit = start.prepared.settings.max_dropped
    dropped = {split: ledger.remarks.get(SRC047.code, 0) for split, ledger in found.items()}
    bad = {
        split: number
        for split, number in dropped.items()
        if not limit.allows(number, number + written[split])
    }
    if not bad:
        return
    split, number = next(iter(bad.items()))
    bare = found[split].remarks.get(SRC048.code, 0)
    lost = f"; {SRC048.count_text(bare)}" if bare else ""
    every = (*start.plan.remarks, *(each for shard in made for each in shard.remarks))
    first = next(each for each in every if (each.split, each.code) == (split, SRC047.code))
    raise RefusedError(
        f"{number} of {number + written[split]} objects of `{split}` were dropped, at most {limit} "
        f"may be{lost}; one is in `{safe(first.key)}`, {safe(first.detail)}",
        hint=f"fix the annotations, or accept the loss: --max-dropped {max(bad.values())}",
    )


def _is_there(registry: Registry, manifest: Manifest) -> bool:
    """Whether the existing build equals the new one, byte for byte."""
    path = f"{layout.build_folder(manifest.dataset)}/{MANIFEST_NAME}"
    storage = registry.storage
    return storage.stat(path) is not None and storage.read(path) == render_manifest(manifest)


def _first_files(registry: Registry, start: BuildStart) -> dict[str, bytes]:
    """The files published with a first build: the schema and the configuration."""
    name = start.prepared.name
    found: dict[str, bytes] = {}
    if start.schema_is_new:
        found[registry.dataset(name).schema_path] = start.schema.encode("utf-8")
    path = layout.dataset_path(name)
    if start.prepared.remember and registry.storage.stat(path) is None:
        found[path] = update_toml("", path, start.prepared.remember).encode("utf-8")
    return found


def _remember(registry: Registry, start: BuildStart, manifest: Manifest) -> None:
    """Keep the configuration and the state of the raw data for the next build."""
    name = manifest.dataset
    storage = registry.storage
    path = layout.dataset_path(name)
    if start.prepared.remember:
        before = b"" if storage.stat(path) is None else storage.read(path)
        text = update_toml(before.decode("utf-8"), path, start.prepared.remember).encode("utf-8")
        if text != before:
            with storage.create(path) as writer:
                writer.write(text)
    # A run that was killed may have written them, and not made them durable.
    for written in (registry.dataset(name).schema_path, path):
        if storage.stat(written) is not None:
            storage.sync_dir(written.rpartition("/")[0])
    raw = start.prepared.raw
    if raw is not None:
        record = BuildRecord(manifest=manifest.digest, raw=raw.root, files=start.files)
        remember(registry, name, record)
