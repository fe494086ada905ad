"""Checks targets, surveys their records in the same pass, and fills a page with the results."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest

from tfrecreg.builtin.look.snippets import FRAMEWORKS, snippet
from tfrecreg.builtin.pages.content import (
    Gallery,
    Page,
    PageChange,
    PageDifference,
    PageFinding,
    PageProvenance,
    TargetPage,
    byte_charts,
    class_charts,
    figures_of,
    growth_charts,
    object_charts,
    page_features,
    size_charts,
)
from tfrecreg.builtin.pages.records import PagePlace, PageRecord, read_records
from tfrecreg.builtin.pages.survey import EXTREMES, Survey, SurveyValidator, merged
from tfrecreg.builtin.releases.diff.result import diff
from tfrecreg.builtin.statistics.make import Stats, StatsOfCheck
from tfrecreg.builtin.statistics.tfdv import missing_tfdv
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.images.decoder import require_pillow
from tfrecreg.core.images.svg import Bars
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.plugins.manager import code_named
from tfrecreg.core.registry.data import (
    Build,
    Built,
    Release,
    Resolved,
    TargetsLike,
    resolve,
    resolve_in,
)
from tfrecreg.core.registry.find import find_built, named_targets, target_of
from tfrecreg.core.registry.listing import log
from tfrecreg.core.registry.registry import Registry, RegistryLike
from tfrecreg.core.values.config import Waiver
from tfrecreg.core.values.errors import MissingExtraError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.findings import Finding, Location
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

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


class Surveys:
    """Surveys the records of targets during a check, for a page about the targets."""

    def __init__(self, *, statistics: bool = False) -> None:
        self._statistics = statistics
        self._surveyed: dict[str, tuple[Target, SurveyValidator, StatsOfCheck]] = {}

    def look(self, target: Target) -> list[Validator]:
        """The validators that collect what the page shows about a target."""
        made, validator = StatsOfCheck(target), SurveyValidator()
        self._surveyed[target.name] = target, validator, made
        return [validator, *made.validators]

    def splits(self, target: str) -> Mapping[str, Survey] | None:
        """The surveys of a target's splits; None if the target could not be read."""
        return self._surveyed[target][1].splits if target in self._surveyed else None

    def page(self, reports: Sequence[Report]) -> Page:
        """The content of the page."""
        notice = self._no_images()
        return Page(targets=tuple(self._page_of(each, notice) for each in reports), notice=notice)

    def _no_images(self) -> str:
        """The reason why images cannot be shown; empty if they can."""
        surveys = (each for _, seen, _ in self._surveyed.values() for each in seen.splits.values())
        if any(survey.sizes for survey in surveys):
            try:
                require_pillow("decoding images")
            except MissingExtraError as error:
                return f"{error.message}: {error.hint}"
        return ""

    def _page_of(self, report: Report, notice: str) -> TargetPage:
        if report.target not in self._surveyed:  # it could not be read: the report has the reason
            findings, figures = _findings(report), figures_of(report, {}, Survey())
            return TargetPage(report=report, findings=tuple(findings), figures=tuple(figures))
        target, validator, made = self._surveyed[report.target]
        surveys = validator.splits
        splits = {name: surveys[name] for name in sorted(surveys, key=in_reading_order)}
        whole = merged(splits.values())
        provenance = None
        if target.home is not None:
            provenance = provenance_of(resolve(Registry(target.home), target.reference))
        history = provenance.history if provenance is not None else ()
        labels = {**whole.class_names(), **target.labels}
        stats, problem = _statistics(report, made)
        features, more = page_features(stats, _FEATURES) if stats is not None else ((), 0)
        return TargetPage(
            report=report,
            figures=tuple(figures_of(report, labels, whole)),
            charts=(
                *class_charts(splits, labels),
                *size_charts(whole.sizes),
                *growth_charts(target.manifest, history),
            ),
            findings=tuple(_findings(report, target, notice)),
            galleries=() if notice else tuple(_galleries(target, splits, whole)),
            features=features,
            no_features=problem,
            more_features=more,
            more_charts=(*object_charts(splits), *byte_charts(report, target.manifest)),
            statistics=stats if self._statistics else None,
            provenance=provenance,
        )


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
    sides: tuple[Resolved, Resolved] | None = None
    if against is not None:
        named = named_targets(targets)
        after = find_built(named[0], registry) if len(named) == 1 else None
        if not isinstance(after, Resolved):
            raise UsageError("`--against` compares one build or release with another")
        sides = resolve_in(registry, against), after
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
    page = surveys.page(reports)
    splits = surveys.splits(reports[0].target) if sides else None
    if sides is not None and splits is not None:
        found = difference_of(*sides, progress, surveyed=splits, engine=engine)
        page = replace(page, targets=(replace(page.targets[0], difference=found),))
    return page


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
    """Yield the findings, each with the records at its first places if `target` is given."""
    judged: list[tuple[Finding, Waiver | None]] = [(each, None) for each in report.findings]
    judged += zip(report.waived, report.waivers, strict=False)
    judged = judged[:_FINDINGS]
    records: dict[PagePlace, PageRecord] = {}
    if target is not None:
        wanted = dict.fromkeys(
            place for finding, _ in judged for place in _places(finding.locations[:_PLACES])
        )
        read = read_records(target, list(wanted)[:_RECORDS])
        for place, record in read.items():  # the page reports only once what all records lack
            problem = record.problem.removesuffix(notice).removesuffix("; ")
            records[place] = replace(record, problem=problem)
    for finding, waiver in judged:
        code, places = code_named(finding.code), _places(finding.locations)
        yield PageFinding(
            finding=finding,
            waiver=waiver,
            explanation=code.page if code is not None else "",
            records=tuple(records[place] for place in places if place in records),
            command=_command(target, places[0]) if target is not None and places else "",
        )


def _places(locations: Iterable[Location]) -> list[PagePlace]:
    """The places of the records that the locations name."""
    return [(each.shard or "", each.record) for each in locations if each.record is not None]


def _command(target: Target, place: PagePlace) -> str:
    """The command that prints a record."""
    name, record = place
    shard = shlex.quote(name)
    if target.partial and target.storage is not None:
        where = shlex.quote(f"{target.storage.root}/{name}")
    else:
        where = shard if target.kind == "files" else f"{target.name} --shard {shard}"
    return safe(f"tfrecreg head {where} --at {record}", limit=1000)


def _galleries(target: Target, splits: Mapping[str, Survey], whole: Survey) -> Iterator[Gallery]:
    for split, survey in islice(splits.items(), _SPLITS):
        picks = _sample(survey)
        read = read_records(target, picks)
        records = _by_class([read[place] for place in picks if place in read])
        name = f"Sample of {safe(split)}" if split else "Sample"
        note = f"{len(records):,} of {count(survey.records, 'record')}, chosen by a hash of content"
        if any(record.marks for record in records):
            note += ", in order of classes"
        if records:
            yield Gallery(heading=name, records=records, note=note)
    yield from _extremes(target, whole)


def _extremes(target: Target, whole: Survey) -> Iterator[Gallery]:
    """A single gallery of all extremes. It shows each record once, tagged with its extremes."""
    tags: dict[PagePlace, list[str]] = {}
    for name, words in EXTREMES.items():
        picks = whole.extremes.get(name, [])
        # If all kept records are equally extreme, none is shown.
        for pick in picks[:_STRIKING]:
            if pick.order < picks[-1].order:
                tags.setdefault((pick.shard, pick.record), []).append(words)
    read = read_records(target, tags)
    shown = [place for place in tags if place in read]
    if shown:
        yield Gallery(
            heading="Extremes",
            records=tuple(read[place] for place in shown),
            tags=tuple(", ".join(tags[place]) for place in shown),
        )


def _sample(survey: Survey) -> list[PagePlace]:
    """Choose records in rounds, up to a limit, and sort them by class. Each round takes one record
    of each class, and one record regardless of its class.
    """
    numbers = sorted(survey.samples, key=lambda number: (number is None, number or 0))
    classes = [survey.samples[number] for number in numbers]
    chosen: dict[PagePlace, int] = {}
    for picks in zip_longest(*classes):
        for at, pick in enumerate(picks):
            if pick is not None and len(chosen) < _SAMPLE:
                chosen.setdefault((pick.shard, pick.record), at)
    # Sorting keeps the order of each class.
    return sorted(chosen, key=lambda place: chosen[place])


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


_CHANGES = 12
"""Maximum number of examples per kind of difference."""


def difference_of(
    before: Built,
    after: Built,
    progress: Progress,
    *,
    surveyed: Mapping[str, Survey] | None = None,
    engine: Engine | None = None,
) -> PageDifference:
    """Compare two versions, and read some of the records that differ.

    Reads only records whose bytes are on this machine.
    """
    engine = engine or LocalEngine(1)
    result = diff(before, after, engine=engine, progress=progress)
    first, second = _target(before), _target(after)
    chosen = [each for kind in result.examples.values() for each in kind[:_CHANGES]]
    old = _read(first, [each.from_place for each in chosen])
    new = _read(second, [each.place for each in chosen])
    changes = tuple(
        PageChange(change=each, before=former, after=current)
        for each, former, current in zip(chosen, old, new, strict=True)
    )
    if surveyed is None:
        surveyed = _survey(second, engine) if second is not None else {}
    classes: tuple[Bars, ...] = ()  # before and after
    if first is not None:
        sides = {"before": _survey(first, engine), "after": surveyed}
        whole = {name: merged(splits.values()) for name, splits in sides.items()}
        classes = tuple(class_charts(whole, first.labels))
    return PageDifference(result=result, changes=changes, classes=classes)


def _target(found: Built) -> Target | None:
    try:
        return target_of(found)
    except TfrecregError:
        return None  # the bytes are not here: only indexes are compared


def _read(target: Target | None, places: Sequence[PagePlace | None]) -> list[PageRecord | None]:
    found = read_records(target, filter(None, places)) if target is not None else {}
    return [found.get(place) if place is not None else None for place in places]


def _survey(target: Target, engine: Engine) -> Mapping[str, Survey]:
    validator = SurveyValidator()
    run_scan(target, [validator], engine)
    return validator.splits
