"""The end of a build: the manifest, the check of the written files, and the exchange of folders.

Provenance: user and time, which no digest covers.

How a build or a release was made: the provenance that its manifest records.

Reading a new build back: the check that it has to pass before it replaces the old one.
"""

from __future__ import annotations

import datetime
import getpass
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tfrecreg.core.build.assemble import assemble, ledgers, outline
from tfrecreg.core.build.begin import BuildStart, Growth, growth_of
from tfrecreg.core.build.request import ChangedSettings
from tfrecreg.core.build.shard import MadeShard, StageSink
from tfrecreg.core.build.state import BuildRecord, expect_raw_unchanged, remember
from tfrecreg.core.check.findings import with_keys
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.check.target import check_target
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.core.registry.manifest import MANIFEST_NAME, Ledger, Manifest, render_manifest
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.shardset.target import build_target
from tfrecreg.core.registry.transaction import Transaction
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.codes import SRC047, SRC048
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.documents import update_toml
from tfrecreg.core.values.errors import FailureError, RefusedError
from tfrecreg.core.values.findings import Location
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import ShortRepr, safe
from tfrecreg.core.workers.interface import Engine


class ReadBackProof(Validator):
    """Proves claims about shards without an index, in the pass that reads a new build back."""

    @abstractmethod
    def proven(self, folder: Storage, progress: Progress) -> list[MadeShard]:
        """The shards with SHA-256 and index. Called after :meth:`finish`, if every shard was
        read.
        """


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The check that a new build has to pass."""

    registry: Registry
    started: BuildStart
    files: Readable
    """Rooted at the folder of the build, with all its files."""
    engine: Engine
    progress: Progress

    def target(self, manifest: Manifest) -> Target:
        """The build, as `manifest` describes it."""
        return build_target(
            manifest,
            self.files,
            name=manifest.dataset,
            kind="build",
            schema=self.started.schema,
            schema_path=self.registry.dataset(manifest.dataset).schema_path,
        )

    def check(self, target: Target) -> Report:
        """The report of a target that passed."""
        report = self.scan(target)
        self.expect_passed(report)
        return report

    def scan(
        self, target: Target, *, only: tuple[str, ...] = (), beside: Sequence[ReadBackProof] = ()
    ) -> Report:
        """The report of a target."""
        records = (each.record for each in plugins().every(ValidatorRecord))
        only = only or tuple(each.name for each in records if each.reads_back)
        report = check_target(
            target,
            self.registry.config,
            CheckOptions(only=only, fail_on=FailOn.ERROR),
            engine=self.engine,
            progress=self.progress,
            beside=[(PluginId("validator", each.name), each) for each in beside],
        )
        return replace(report, folder=None)  # the unfinished folder is gone afterwards

    def expect_read(self, report: Report) -> None:
        """Raise if the check is incomplete."""
        if report.errors:
            raise FailureError(
                f"the new build could not be read back{self._old_stays}: {report.errors[0]}",
                hint="fix this and run the build again; finished shards are reused",
            )

    @property
    def _old_stays(self) -> str:
        """Words of a message; empty if there is no old build."""
        dataset = self.registry.dataset(self.started.prepared.name)
        return ", and the old one stays" if dataset.is_built() else ""

    def expect_passed(self, report: Report) -> None:
        """Raise if the check failed."""
        self.expect_read(report)
        if report.status == "pass":
            return
        first = report.findings[0]
        hint, where = "fix the schema or the raw data; the findings above say where", ""
        if self.started.prepared.data is not None:
            hint = "fix the data, or the schema: `findings` of this error has all of them"
            places = (f" ({_place(each)})" for each in first.locations)
            where = next(places, "")
        raise RefusedError(
            f"the new build does not pass its own check{self._old_stays}: {first.message}{where}",
            hint=hint,
            findings=report.findings,
        )


def _place(location: Location) -> str:
    return f"split `{safe(location.split or '')}`, key `{safe(location.key or '')}`"


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


def now() -> str:
    """UTC, ISO 8601 to the second: ``2026-01-31T12:00:00Z``."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def user() -> str:
    """The user's name; empty for a user id that has none, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


@dataclass(frozen=True, slots=True)
class Origin:
    """What is recorded of the making of a version."""

    reference: str
    manifest: Manifest

    @property
    def gate(self) -> str:
        """The result of the gate, as far as the version records it."""
        if self.manifest.release is None:
            return "not judged yet: a build is judged when it is released"
        return "passed, as for every release"

    def to_json(self) -> dict[str, Any]:
        """As the document of ``show --provenance --json`` has it."""
        manifest = self.manifest
        plain = msgspec.to_builtins(manifest)
        return {
            "reference": self.reference,
            "manifest": manifest.digest,
            "source": plain["source"],
            "raw": plain["raw"],
            "codecs": plain["codecs"],
            "schema": plain["schema"],
            "compression": manifest.compression,
            "ledger": plain["ledger"],
            "base": plain["base"],
            "parents": plain["parents"],
            "salvaged": manifest.salvaged,
            "release": plain["release"],
            "released": plain["provenance"],
            "gate": {"passed": manifest.release is not None or None, "why": self.gate},
        }


def origin_of(resolved: Resolved) -> Origin:
    """What is recorded of the making of a build or a release."""
    return Origin(resolved.name, resolved.manifest)
