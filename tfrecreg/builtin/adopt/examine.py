"""Reads foreign shards once: makes indexes, counts features and payloads, and finds faults."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from tfrecreg.builtin.adopt.request import AdoptPlan, KnownSchema
from tfrecreg.builtin.validators.annotations import AnnotationsPart, AnnotationsValidator
from tfrecreg.core.check.findings import complete_findings
from tfrecreg.core.check.infer import Collector, LargeRecords
from tfrecreg.core.check.scan.interface import Need, Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.check.scan.tally import Tally, add_up
from tfrecreg.core.example.decode import decode_with_form
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Kind, feature_key
from tfrecreg.core.example.sequences import PayloadSketch
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.hashing import FileDigest, record_digest
from tfrecreg.core.records.index import IndexBuilder, load_index
from tfrecreg.core.records.writer import hashed_write
from tfrecreg.core.registry.foreign.folders import (
    DescribedShards,
    check_bare,
    check_empty,
    check_payloads,
)
from tfrecreg.core.registry.foreign.labels import LabelsBeside, in_order
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.schema.payload_kinds import PayloadCounts
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.codes import ANN004, ANN007
from tfrecreg.core.values.config import FailOn, Verdict, judge
from tfrecreg.core.values.errors import FailureError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.findings import Finding, Measure
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.workers.interface import Engine


def index_path(split: str, number: int) -> str:
    """Temporary path of a shard's index during the examination."""
    return f"{split}-{number:05d}.index"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the visitors of an adoption. Picklable."""

    scratch: Storage
    """Storage for the new indexes."""
    base: str
    """File names in keys are relative to this folder."""
    key: str | None
    """The feature whose values are the keys of records."""
    sketch: bool
    """Whether to draft a schema."""
    pixels: Mapping[str, tuple[int, int, int]]
    """Height, width and channels for each feature that holds the pixels of an image."""


@dataclass(slots=True)
class Examined:
    """Result of examining one shard."""

    sketch: PayloadSketch | None
    payloads: PayloadCounts = field(default_factory=PayloadCounts)
    features: Counter[str] = field(default_factory=Counter)
    """Size of the values of each feature in bytes."""
    sound: bool = True
    """Whether the scanner found no fault."""
    keyless: int | None = None
    """Number of the first record that has no key; None if all have one."""
    problem: TfrecregError | None = None
    """Why the shard cannot be adopted, if no finding says so."""
    end: StreamEnd = field(init=False)
    index: FileDigest = field(init=False)


@dataclass(frozen=True, slots=True)
class Examination:
    """All shards of an adoption, read and examined."""

    seen: Sequence[tuple[Shard, Examined]]
    names: Mapping[str, list[str]]
    """Class names by feature, if only the records have them."""
    findings: tuple[Finding, ...]
    """Findings that the gate accepted."""

    def kinds(self) -> dict[str, int]:
        """Number of payloads by kind."""
        total: Counter[str] = Counter()
        for _, part in self.seen:
            total.update(part.payloads.kinds)
        return {kind.value: total[kind.value] for kind in PayloadKind if total[kind.value]}


class _Reading(Collector):
    """Reads all shards. Reports contradictory file names, and payloads of other kinds among
    Examples. The validator `manifest` reports the same for bare files.
    """

    name = "adopt"
    needs = Need.DIGESTS | Need.MEMBERS

    def __init__(self, settings: Settings, judged: bool, infos: Sequence[DescribedShards]) -> None:
        super().__init__(partial(_Examiner, settings))
        self._judged = judged  # against a schema; that check also reports other payloads
        self._infos = infos

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Examined]]
    ) -> Iterator[Finding | Measure]:
        yield from super().finish(target, parts)
        tally = Tally()
        check_bare(tally, target.shards, self._infos, self.seen)
        check_empty(tally, self.seen, bare=True, tensorflow=None)
        if not self._judged:
            check_payloads(tally, self.seen)
        yield from tally.findings(target.dataset)


class _LabelNames(AnnotationsValidator):
    """Compares class numbers and names with the label maps next to the shards, and collects the
    names that records have. Its findings do not stop the adoption, because a map may be wrong.
    """

    found = frozenset((ANN004.code, ANN007.code))

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, list[str]] = {}
        """Class names by feature, in order of class numbers, if each number has one name."""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, AnnotationsPart]]
    ) -> Iterator[Finding | Measure]:
        seen, total = list(parts), AnnotationsPart()
        for _, part in seen:
            add_up(total, part)
        for feature, names in total.names.items():
            counts, known = total.classes[feature], names.as_map()
            whole = not names.full and not counts.full and known.keys() == counts.counts.keys()
            if whole and all(known.values()) and not any(names.conflicts()):
                with suppress(UsageError):
                    self.names[feature] = in_order(known, feature)
        for each in super().finish(target, seen):
            if isinstance(each, Measure) or each.code not in self.found:
                continue
            if each.locations[0].record is not None:  # otherwise the records contradict each other
                yield each


class _Examiner(Visitor):
    """Examines the records of one shard, and writes their index."""

    def __init__(self, settings: Settings, shard: Shard) -> None:
        self._settings = settings
        self._shard = shard
        self._file = os.path.relpath(f"/{shard.path}", settings.base)
        self._index = IndexBuilder()
        self._part = Examined(PayloadSketch() if settings.sketch else None)
        self._large = LargeRecords(shard.storage, shard.path, shard.name)

    def batch(self, batch: RecordBatch) -> None:
        part = self._part
        if part.problem is not None:
            return
        for position, length in enumerate(batch.lengths):
            record = batch.first + position
            if batch.whole:
                payload = batch.payload(position)
            else:
                try:
                    payload = self._large.payload(batch)
                except TfrecregError as error:
                    part.problem = error
                    return
            example, form, _ = decode_with_form(payload)
            kind = kind_of(payload, 0, length, example)
            part.payloads.count(self._shard, batch, position, kind)
            self._index.add(record_digest(form), length, self._key(example, record))
            if kind is PayloadKind.EXAMPLE and example is not None:
                for name, feature in example.items():
                    part.features[name] += feature.wire_bytes
                if self._settings.pixels and part.problem is None:
                    part.problem = self._wrong_pixels(example, record)
            if part.sketch is not None:
                part.sketch.add(payload, kind, example)

    def fault(self, fault: Fault) -> None:
        del fault  # the validator `crc` reports it
        self._part.sound = False

    def close(self, end: StreamEnd) -> Examined:
        self._large.close()
        part, shard = self._part, self._shard
        path = index_path(shard.split, shard.number)
        data = self._index.render(end.members if part.sound else ())
        part.end, part.index = end, hashed_write(self._settings.scratch, path, data)
        return part

    def _wrong_pixels(self, example: Example, record: int) -> UsageError | None:
        """The error if a feature has more or fewer values than its declared image size requires."""
        for name, (height, width, channels) in self._settings.pixels.items():
            feature = example.get(name)
            if feature is None:
                continue
            is_bytes = feature.kind is Kind.BYTES
            sizes = tuple(feature.sizes) if is_bytes else (feature.count,)
            size = height * width * channels
            if sizes != (size,):
                found = " and ".join(map(str, sizes[:3])) or "no"
                return UsageError(
                    f"record {record} of `{self._shard.name}` has {found} "
                    f"{'bytes' if is_bytes else 'values'} in `{name}`, expected {height} x {width} "
                    f"x {channels} = {size}"
                )
        return None

    def _key(self, example: Example | None, record: int) -> str:
        name = self._settings.key
        if name is None:
            return f"{self._file}#{record}"
        key = feature_key(example, name)
        if key is None:
            if self._part.keyless is None:
                self._part.keyless = record
            return ""
        return key


def expect_unique(plan: AdoptPlan, done: Examination, scratch: Storage, feature: str) -> None:
    """Refuse records without a key, and keys that occur twice in a split. Memory holds the keys of
    one split at a time.
    """
    for shard, part in done.seen:
        if part.keyless is not None:
            raise RefusedError(
                f"record {part.keyless} of `{shard.name}` should have exactly one bytes or "
                f"int64 value in `{feature}`"
            )
    for split, files in plan.splits().items():
        seen: set[str] = set()
        for file in files:
            index = load_index(scratch, index_path(split, file.shard.number))
            for key in map(index.key, range(len(index))):
                if key in seen:
                    raise RefusedError(
                        f"two records of the split `{split}` have the key `{key}` in `{feature}`"
                    )
                seen.add(key)


def examine(
    registry: Registry,
    plan: AdoptPlan,
    known: KnownSchema | None,
    beside: LabelsBeside,
    settings: Settings,
    engine: Engine,
    progress: Progress,
) -> Examination:
    """Read every file once, and refuse files that fail the checks."""
    judged = known is not None and known.judges
    target = Target(
        name=plan.dataset,
        kind="files",
        dataset=plan.dataset,
        shards=tuple(file.shard for file in plan.files),
        storage=None,
        manifest=None,
        schema=known.text if known is not None and judged else None,
        schema_path=known.path if known is not None else None,
        raw=None,
        beside=beside,
    )
    shards = {shard.path: shard for shard in target.shards}
    infos = [
        (info, [shards[each.path] for each in members if each.path in shards])
        for info, members in plan.beside.infos
    ]
    reading, labels = _Reading(settings, judged, infos), _LabelNames()
    crc, conformance = (plugins().load(ValidatorRecord, name)() for name in ("crc", "schema"))
    validators: list[Validator] = [crc, reading, labels, *([conformance] if judged else [])]
    gate = registry.config.gate(plan.dataset)
    result = run_scan(
        target,
        validators,
        engine,
        options={each.name: gate.options_of(each.name) for each in validators},
        label=f"reading files for {plan.dataset}",
        progress=progress,
    )
    for each in result.unreadable:
        raise FailureError(f"nothing was adopted: `{each.shard}` was not read: {each.reason}")
    for crash in result.crashes:
        where = f" on `{crash.shard}`" if crash.shard else ""
        raise FailureError(
            f"nothing was adopted: `{crash.plugin_id.name}` failed{where}: {crash.reason}"
        )
    for _, part in reading.seen:
        if part.problem is not None:
            raise part.problem
    found = list(complete_findings(result.findings, target))
    told = [each for each in found if each.code in _LabelNames.found]
    verdict = judge(
        [each for each in found if each.code not in _LabelNames.found],
        FailOn.ERROR,
        severity=gate.severity,
        waivers=registry.config.waivers,
        today=datetime.datetime.now(datetime.timezone.utc).date(),
    )
    if verdict.status == "fail":
        raise _refused(plan, verdict)
    if not result.records:
        raise UsageError(f"there is no record in the {len(plan.files)} files")
    return Examination(reading.seen, labels.names, (*verdict.findings, *told))


def _refused(plan: AdoptPlan, verdict: Verdict) -> RefusedError:
    failing = [each for each in verdict.findings if verdict.fail_on.fails(each.severity)]
    failing += (each for each, _ in verdict.lapsed)
    hint = "fix the files, or accept the findings with a waiver in `tfrecreg.toml`"
    if any(each.code.startswith("CRC") for each in failing):
        hint = "`tfrecreg salvage FILE.. --output DIR` saves the undamaged records: then adopt DIR"
    return RefusedError(
        f"the files of `{plan.dataset}` are not adopted: {failing[0].message}",
        hint=hint,
        findings=verdict.findings,
    )
