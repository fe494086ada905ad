"""Checks targets, surveys their records in the same pass, and fills a page with the results."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tfrecreg.builtin.look.snippets import FRAMEWORKS, snippet
from tfrecreg.builtin.pages.content import (
    Gallery,
    Page,
    PageFinding,
    PageLocation,
    PageProvenance,
    TargetPage,
    figures_of,
)
from tfrecreg.builtin.pages.features import charts_of, feature_charts, page_features
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
from tfrecreg.core.registry.data import Build, Release, Resolved, TargetsLike, resolve, resolve_in
from tfrecreg.core.registry.find import find_built, named_targets
from tfrecreg.core.registry.listing import log
from tfrecreg.core.registry.registry import Registry, RegistryLike, open_registry
from tfrecreg.core.values.config import Waiver
from tfrecreg.core.values.errors import MissingExtraError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe
from tfrecreg.core.workers.interface import Engine

_FINDINGS = 200
"""Maximum number of findings shown per target."""
_PLACES = 6
"""Maximum number of locations per finding that are shown with their records."""
_RECORDS = 100
"""Maximum number of records shown for all findings of a target."""
_SPLITS = 8
"""Maximum number of splits per target that get a sample."""
_SAMPLE = 60
"""Maximum number of records in the sample of a split."""
_STRIKING = 3
"""Maximum number of records shown per extreme."""
_FEATURES = 60
"""Maximum number of features shown per target."""


@dataclass(frozen=True, slots=True)
class _Surveyed:
    target: Target
    survey: SurveyValidator
    statistics: StatsOfCheck


class Surveys:
    """Surveys the records of targets during a check, for a page about the targets."""

    def __init__(self, *, statistics: bool = False) -> None:
        self._statistics = statistics
        self._surveyed: dict[str, _Surveyed] = {}

    def look(self, target: Target) -> list[Validator]:
        """The validators that collect what the page shows about a target."""
        made, validator = StatsOfCheck(target), SurveyValidator()
        self._surveyed[target.name] = _Surveyed(target, validator, made)
        return [validator, *made.validators]

    def page(
        self,
        reports: Sequence[Report],
        *,
        registry: RegistryLike | None = None,
        against: str | None = None,
        engine: Engine | None = None,
        progress: Progress = SILENT,
    ) -> Page:
        """The content of the page."""
        notice = _no_images(list(self._surveyed.values()))
        pages = []
        for report in reports:
            seen = self._surveyed.get(report.target)
            if seen is None:  # the target could not be read: the report has the reason
                findings, figures = tuple(_findings(report)), tuple(figures_of(report, {}, {}))
                pages.append(TargetPage(report=report, findings=findings, figures=figures))
                continue
            page = _page_of(report, seen, notice)
            if not self._statistics:
                page = replace(page, statistics=None)
            if against is not None:
                before = resolve(open_registry(registry), against)
                after = _resolved(seen.target)
                splits = seen.survey.splits
                found = difference_of(before, after, progress, surveyed=splits, engine=engine)
                page = replace(page, difference=found)
            pages.append(page)
        return Page(targets=tuple(pages), notice=notice)


def make_page(
    targets: TargetsLike = (),
    *,
    registry: RegistryLike | None = None,
    options: CheckOptions | None = None,
    against: str | None = None,
    statistics: bool = False,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Page:
    """Check targets, and make the content of a page about them: see :func:`tfrecreg.report`."""
    if against is not None:
        named = named_targets(targets)
        if len(named) != 1 or not isinstance(find_built(named[0], registry), Resolved):
            raise UsageError("`--against` compares one build or release with another")
        resolve_in(registry, against)
    if statistics:
        options = replace(options or CheckOptions(), against=against)
        if missing := missing_tfdv():
            progress.note(f"anomalies are left out: {missing.message}: {missing.hint}")
        else:
            options = replace(options, also=(*options.also, "statistics"))
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
        reports, registry=registry, against=against, engine=engine, progress=progress
    )


def _no_images(surveyed: Sequence[_Surveyed]) -> str:
    """The reason why images cannot be shown; empty if they can."""
    if any(survey.sizes for each in surveyed for survey in each.survey.splits.values()):
        try:
            require_pillow("decoding images")
        except MissingExtraError as error:
            return f"{error.message}: {error.hint}"
    return ""


def _page_of(report: Report, surveyed: _Surveyed, notice: str) -> TargetPage:
    target, surveys = surveyed.target, surveyed.survey.splits
    splits = {name: surveys[name] for name in sorted(surveys, key=in_reading_order)}
    provenance = provenance_of(_resolved(target)) if target.home is not None else None
    history = provenance.history if provenance is not None else ()
    labels = {**class_names(splits.values()), **target.labels}
    stats, problem = _statistics(report, surveyed.statistics)
    features, more = page_features(stats, _FEATURES) if stats is not None else ((), 0)
    return TargetPage(
        report=report,
        figures=tuple(figures_of(report, labels, splits)),
        charts=tuple(charts_of(target.manifest, labels, splits, history)),
        findings=tuple(_findings(report, target, notice)),
        galleries=() if notice else tuple(_galleries(target, splits)),
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


def _statistics(report: Report, made: StatsOfCheck) -> tuple[Stats | None, str]:
    """The statistics of a target, or None and the reason.

    The reason is empty if the target has no Examples, or if it was not read completely.
    """
    if report.status == "error":
        return None, ""
    try:
        return made.result(), ""
    except RefusedError as error:
        return None, error.message
    except UsageError:
        return None, ""


def _findings(
    report: Report, target: Target | None = None, notice: str = ""
) -> Iterator[PageFinding]:
    """Yield the findings. If the target was read, a finding's first locations have records."""
    judged: list[tuple[Finding, Waiver | None]] = [(each, None) for each in report.findings]
    judged += zip(report.waived, report.waivers, strict=False)
    judged = judged[:_FINDINGS]
    records: dict[PagePlace, PageRecord] = {}
    if target is not None:
        places = [
            PagePlace(location.shard, location.record)
            for finding, _ in judged
            for location in finding.locations[:_PLACES]
            if location.shard is not None and location.record is not None
        ]
        records = read_records(target, list(dict.fromkeys(places))[:_RECORDS])
    for finding, waiver in judged:
        code = code_named(finding.code)
        locations = []
        for location in finding.locations:
            number = -1 if location.record is None else location.record
            place = PagePlace(location.shard or "", number)
            record = records.get(place)
            if record is not None:  # the page reports only once what all records lack
                problem = record.problem.removesuffix(notice).removesuffix("; ")
                record = replace(record, problem=problem)
            command = _command(target, place) if target is not None and number >= 0 else ""
            locations.append(PageLocation(location=location, record=record, command=command))
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


def _galleries(target: Target, splits: Mapping[str, Survey]) -> Iterator[Gallery]:
    for split, survey in islice(splits.items(), _SPLITS):
        picks = [PagePlace(pick.shard, pick.record) for pick in _sample(survey)]
        read = read_records(target, picks)
        records = _by_class([read[place] for place in picks if place in read])
        name = f"Sample of {safe(split)}" if split else "Sample"
        note = f"{len(records):,} of {count(survey.records, 'record')}, chosen by a hash of content"
        if any(record.marks for record in records):
            note += ", in order of classes"
        if records:
            yield Gallery(heading=name, records=records, note=note)
    yield from _extremes(target, splits)


def _extremes(target: Target, splits: Mapping[str, Survey]) -> Iterator[Gallery]:
    """A single gallery of all extremes. It shows each record once, tagged with its extremes."""
    whole = Survey()
    for survey in splits.values():
        for name, picks in survey.extremes.items():
            whole.keep_extreme(name, picks)
    tags: dict[PagePlace, list[str]] = {}
    for name, words in EXTREMES.items():
        picks = whole.extremes.get(name, [])
        # If all kept records are equally extreme, none is shown.
        for pick in picks[:_STRIKING]:
            if pick.order < picks[-1].order:
                tags.setdefault(PagePlace(pick.shard, pick.record), []).append(words)
    read = read_records(target, tags)
    shown = [place for place in tags if place in read]
    if shown:
        yield Gallery(
            heading="Extremes",
            records=tuple(read[place] for place in shown),
            tags=tuple(", ".join(tags[place]) for place in shown),
        )


def _sample(survey: Survey) -> list[Pick]:
    """Choose records in rounds, up to a limit, and sort them by class. Each round takes one record
    of each class, and one record regardless of its class.
    """
    classes = [
        picks
        for _, picks in sorted(
            survey.samples.items(), key=lambda each: (each[0] is None, each[0] or 0)
        )
    ]
    chosen: dict[tuple[str, int], tuple[int, Pick]] = {}
    for round_ in range(max(map(len, classes), default=0)):
        for at, picks in enumerate(classes):
            if round_ < len(picks) and len(chosen) < _SAMPLE:
                pick = picks[round_]
                chosen.setdefault((pick.shard, pick.record), (at, pick))
    # Sorting keeps the order of each class.
    return [pick for _, pick in sorted(chosen.values(), key=lambda each: each[0])]


def _by_class(records: Sequence[PageRecord]) -> tuple[PageRecord, ...]:
    """Sort records by their first class. The classes keep the order of their first appearance."""
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


def provenance_of(resolved: Build | Release) -> PageProvenance:
    """The origin and history of a build or release, from its manifest and its dataset."""
    code = {}
    for name in FRAMEWORKS:
        try:
            code[name] = snippet(resolved, name)
        except TfrecregError:
            continue  # the framework does not fit the records, or the bytes are not here
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
