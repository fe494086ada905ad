"""Check targets, survey their records in the same pass, and fill a page with the results."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tfrecreg.builtin.look.snippets import FRAMEWORKS, snippet
from tfrecreg.builtin.pages.content import (
    Budget,
    Gallery,
    Page,
    PageFinding,
    PageLocation,
    PageProvenance,
    TargetPage,
    figures_of,
    striking_looks,
)
from tfrecreg.builtin.pages.features import charts_of, feature_charts, kinds_of, page_features
from tfrecreg.builtin.pages.records import PagePlace, PageRecord, read_records
from tfrecreg.builtin.pages.render import difference_of
from tfrecreg.builtin.pages.survey import EXTREMES, Pick, Survey, SurveyValidator, class_names
from tfrecreg.builtin.statistics.make import Stats, StatsOfCheck
from tfrecreg.builtin.statistics.tfdv import missing_tfdv
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.images.decoder import require_pillow
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.plugins.manager import code_named
from tfrecreg.core.registry.listing import log
from tfrecreg.core.registry.lookup import Build, Release, Resolved, resolve
from tfrecreg.core.registry.registry import Registry, RegistryLike, open_registry
from tfrecreg.core.registry.shardset.find import TargetsLike, find, named_targets, resolve_in
from tfrecreg.core.values.config import Waiver
from tfrecreg.core.values.errors import MissingExtraError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe
from tfrecreg.core.workers.interface import Engine

_FINDINGS = 200
"""Findings of a target that are shown."""
_PLACES = 6
"""Locations of a finding that are shown with their records."""
_SAMPLE = 60
"""Records of a split in its sample."""
_STRIKING = 3
"""Records of each extreme."""
_FEATURES = 60
"""Features of a target that are shown."""
BUDGET = 8_000_000
"""Default size of a page in bytes."""
_HTML = 300_000
"""Bytes reserved for styles, charts and tables."""


@dataclass(frozen=True, slots=True)
class _Surveyed:
    target: Target
    survey: SurveyValidator
    statistics: StatsOfCheck


class Surveys:
    """What is seen of the records of targets while they are checked, for a page about them."""

    def __init__(self, *, statistics: bool = False) -> None:
        self._statistics = statistics
        self._surveyed: dict[str, _Surveyed] = {}

    def look(self, target: Target) -> list[Validator]:
        """The validators that see the records of a target."""
        made, validator = StatsOfCheck(target), SurveyValidator()
        self._surveyed[target.name] = _Surveyed(target, validator, made)
        return [validator, *made.validators]

    def page(
        self,
        reports: Sequence[Report],
        *,
        registry: RegistryLike | None = None,
        against: str | None = None,
        budget: int = BUDGET,
        engine: Engine | None = None,
        progress: Progress = SILENT,
    ) -> Page:
        """The content of the page."""
        notice = _no_images(list(self._surveyed.values()))
        spent = Budget(max(budget - _HTML * len(reports), 0))
        pages = []
        for report in reports:
            seen = self._surveyed.get(report.target)
            if seen is None:  # it could not be read: the report has the reason
                pages.append(
                    TargetPage(
                        report=report,
                        findings=tuple(_findings(report, {}, {}, None)),
                        figures=figures_of(report, {}, {}, (), {}),
                    )
                )
                continue
            page = _page_of(report, seen, spent, notice)
            if not self._statistics:
                page = replace(page, statistics=None)
            if against is not None:
                before = resolve(open_registry(registry), against)
                after = _resolved(seen.target)
                splits = seen.survey.splits
                found = difference_of(
                    before, after, spent, progress, surveyed=splits, engine=engine
                )
                page = replace(page, difference=found)
            pages.append(page)
        return Page(targets=tuple(pages), left_out=spent.left_out(), notice=notice)


def make_page(
    targets: TargetsLike = (),
    *,
    registry: RegistryLike | None = None,
    options: CheckOptions | None = None,
    against: str | None = None,
    statistics: bool = False,
    budget: int,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Page:
    """Check targets, and collect the content of a page about them: see :func:`tfrecreg.report`."""
    if against is not None:
        _expect_one_version(targets, registry)
        resolve_in(registry, against)
    if statistics:
        options = _with_anomalies(options or CheckOptions(), against, progress)
    surveys = Surveys(statistics=statistics)
    reports = check(
        targets,
        registry=registry,
        options=options,
        engine=engine,
        progress=progress,
        beside=lambda target: [
            (PluginId("validator", each.name), each) for each in surveys.look(target)
        ],
    )
    return surveys.page(
        reports, registry=registry, against=against, budget=budget, engine=engine, progress=progress
    )


def _no_images(surveyed: Sequence[_Surveyed]) -> str:
    """The reason why images cannot be shown; empty if they can."""
    if any(survey.sizes for each in surveyed for survey in each.survey.splits.values()):
        try:
            require_pillow("decoding images")
        except MissingExtraError as error:
            return f"{error.message}: {error.hint}"
    return ""


def _expect_one_version(targets: TargetsLike, registry: RegistryLike | None) -> None:
    named = named_targets(targets)
    if len(named) != 1 or not isinstance(find(named[0], registry), Resolved):
        raise UsageError(
            "`--against` compares one build or release with another",
            hint="tfrecreg report mnist --against mnist@latest --output page.html",
        )


def _page_of(report: Report, surveyed: _Surveyed, budget: Budget, notice: str) -> TargetPage:
    target, surveys = surveyed.target, surveyed.survey.splits
    splits = {name: surveys[name] for name in sorted(surveys, key=in_reading_order)}
    provenance = provenance_of(_resolved(target)) if target.home is not None else None
    history = provenance.history if provenance is not None else ()
    labels = {**class_names(splits.values()), **target.labels}
    stats, problem = _statistics(report, surveyed.statistics)
    features, more = page_features(stats, _FEATURES) if stats is not None else ((), 0)
    return TargetPage(
        report=report,
        figures=figures_of(
            report, labels, splits, history, kinds_of(stats) if stats is not None else {}
        ),
        charts=tuple(charts_of(target.manifest, labels, splits, history)),
        findings=tuple(_read_findings(report, target, budget, notice)),
        galleries=() if notice else tuple(_galleries(target, splits, budget)),
        features=features,
        no_features=problem,
        more_features=more,
        more_charts=tuple(feature_charts(report, target.manifest, splits)),
        statistics=stats,
        provenance=provenance,
    )


def _resolved(target: Target) -> Build | Release:
    assert target.home is not None
    return resolve(Registry(target.home), target.reference)


def _with_anomalies(options: CheckOptions, against: str | None, progress: Progress) -> CheckOptions:
    """The options of a check with drift, and with anomalies if TFDV is installed."""
    options = replace(options, against=against)
    if missing := missing_tfdv():
        progress.note(f"no anomalies: {missing.message}: {missing.hint}")
        return options
    return replace(options, also=(*options.also, "statistics"))


def _statistics(report: Report, made: StatsOfCheck) -> tuple[Stats | None, str]:
    """The statistics of a target, and why it has none.

    One without Examples, or that was not read completely, has none without a reason.
    """
    if report.status == "error":
        return None, ""
    try:
        return made.result(), ""
    except RefusedError as error:
        return None, error.message
    except UsageError:
        return None, ""


def _read_findings(
    report: Report, target: Target, budget: Budget, notice: str
) -> Iterator[PageFinding]:
    places: set[PagePlace] = set()
    damaged: set[PagePlace] = set()
    for finding in (*report.findings, *report.waived)[:_FINDINGS]:
        for location in finding.locations[:_PLACES]:
            if location.shard is not None and location.record is not None:
                place = PagePlace(location.shard, location.record)
                places.add(place)
                if finding.code.startswith("CRC"):
                    damaged.add(place)
    beside = {
        PagePlace(place.shard, place.record + step)
        for place in damaged
        for step in (-1, 1)
        if place.record + step >= 0
    }
    records = read_records(target, places | beside)
    shown: dict[PagePlace, PageRecord] = {}
    for place in sorted(records):
        record = budget.spend(records[place])
        if record is not None:  # the page reports once what all records lack
            problem = record.problem.removesuffix(notice).removesuffix("; ")
            shown[place] = replace(record, problem=problem)
    yield from _findings(report, shown, _neighbours(damaged, shown), target)


def _neighbours(
    damaged: Iterable[PagePlace], shown: Mapping[PagePlace, PageRecord]
) -> dict[PagePlace, tuple[PageRecord, ...]]:
    found = {}
    for place in damaged:
        beside = (PagePlace(place.shard, place.record + step) for step in (-1, 1))
        found[place] = tuple(shown[each] for each in beside if each in shown)
    return found


def _findings(
    report: Report,
    records: Mapping[PagePlace, PageRecord],
    neighbours: Mapping[PagePlace, tuple[PageRecord, ...]],
    target: Target | None,
) -> Iterator[PageFinding]:
    judged: list[tuple[Finding, Waiver | None]] = [(each, None) for each in report.findings]
    judged += zip(report.waived, report.waivers, strict=False)
    for finding, waiver in judged[:_FINDINGS]:
        code = code_named(finding.code)
        locations = []
        for location in finding.locations:
            place = PagePlace(
                location.shard or "", -1 if location.record is None else location.record
            )
            locations.append(
                PageLocation(
                    location=location,
                    record=records.get(place),
                    neighbours=neighbours.get(place, ()),
                    command=_command(target, place)
                    if target is not None and place.record >= 0
                    else "",
                )
            )
        yield PageFinding(
            finding=finding,
            waiver=waiver,
            explanation=code.page if code is not None else "",
            locations=tuple(locations),
        )


def _command(target: Target, place: PagePlace) -> str:
    """The command that prints a record."""
    shard = shlex.quote(place.shard)
    if target.partial and target.storage is not None:
        where = shlex.quote(f"{target.storage.root}/{place.shard}")
    else:
        where = shard if target.kind == "files" else f"{target.name} --shard {shard}"
    return safe(f"tfrecreg head {where} --at {place.record}", limit=1000)


def _galleries(target: Target, splits: Mapping[str, Survey], budget: Budget) -> Iterator[Gallery]:
    sample: list[PageRecord] = []
    for split, survey in splits.items():
        records = _by_class(_page_records(target, _sample(survey), budget))
        name = f"Sample of {safe(split)}" if split else "Sample"
        note = f"{len(records):,} of {count(survey.records, 'record')}, chosen by a hash of content"
        if any(record.marks for record in records):
            note += ", in order of classes"
        sample += records
        if records:
            yield Gallery(heading=name, records=records, note=note)
    yield from _extremes(target, splits, sample, budget)


def _extremes(
    target: Target, splits: Mapping[str, Survey], sample: Sequence[PageRecord], budget: Budget
) -> Iterator[Gallery]:
    """One gallery of all extremes, each record once, with what it is an example of."""
    whole = Survey()
    for survey in splits.values():
        for name, picks in survey.extremes.items():
            whole.keep_extreme(name, picks)
    named: list[tuple[str, PagePlace]] = []
    for name, words in EXTREMES.items():
        picks = whole.extremes.get(name, [])
        # Where as many as are kept are equally extreme, none of them is.
        picks = [pick for pick in picks[:_STRIKING] if pick.order < picks[-1].order]
        named += ((words, PagePlace(pick.shard, pick.record)) for pick in picks)
    read = read_records(target, (place for _, place in named))
    chosen = [(words, read[place]) for words, place in named if place in read]
    chosen += ((words, record) for words, found in striking_looks(sample) for record in found)
    tags: dict[tuple[str, int], list[str]] = {}
    records: dict[tuple[str, int], PageRecord] = {}
    for words, record in chosen:
        key = record.shard, record.record
        tags.setdefault(key, []).append(words)
        if key not in records and (spent := budget.spend(record)) is not None:
            records[key] = spent
    if records:
        said = tuple(", ".join(tags[key]) for key in records)
        yield Gallery(heading="Extremes", records=tuple(records.values()), tags=said)


def _sample(survey: Survey) -> list[Pick]:
    """Records of every class, as many of each as fit, in order of the classes; then of any."""
    classes = [picks for _, picks in sorted(survey.samples.items(), key=_class_order)]
    chosen: dict[tuple[str, int], tuple[int, Pick]] = {}
    for round_ in range(max(map(len, classes), default=0)):
        for at, picks in enumerate(classes):
            if round_ < len(picks) and len(chosen) < _SAMPLE:
                pick = picks[round_]
                chosen.setdefault((pick.shard, pick.record), (at, pick))
    # Sorting keeps the order of each class.
    return [pick for _, pick in sorted(chosen.values(), key=lambda each: each[0])]


def _by_class(records: Sequence[PageRecord]) -> tuple[PageRecord, ...]:
    """Records by the class named first, in the order in which the classes appear."""
    order: dict[str, int] = {}
    for record in records:
        if record.marks:
            order.setdefault(record.marks[0].name, len(order))
    last = len(order)
    return tuple(
        sorted(
            records, key=lambda each: order.get(each.marks[0].name, last) if each.marks else last
        )
    )


def _class_order(item: tuple[int | None, list[Pick]]) -> tuple[bool, int]:
    number = item[0]
    return number is None, number or 0


def _page_records(target: Target, picks: Sequence[Pick], budget: Budget) -> tuple[PageRecord, ...]:
    places = [PagePlace(pick.shard, pick.record) for pick in picks]
    records = read_records(target, places)
    spent = (budget.spend(records[place]) for place in places if place in records)
    return tuple(record for record in spent if record is not None)


def provenance_of(resolved: Build | Release) -> PageProvenance:
    """The origin and history of a build or a release, from its manifest and its dataset."""
    code = {}
    for name in FRAMEWORKS:
        try:
            code[name] = snippet(resolved, name)
        except TfrecregError:
            continue  # the framework does not fit its records, or these are not here
    config = resolved.dataset.config
    return PageProvenance(
        manifest=resolved.manifest,
        about={
            name: text
            for name in ("description", "owner", "license", "citation")
            if (text := getattr(config, name))
        },
        history=tuple(log(resolved.registry, str(resolved.dataset))),
        schema=resolved.schema or "",
        code=code,
    )
