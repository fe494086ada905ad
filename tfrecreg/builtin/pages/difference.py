"""The difference of two builds or releases, with the records that differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tfrecreg.builtin.pages.budget import Budget
from tfrecreg.builtin.pages.charts import class_charts
from tfrecreg.builtin.pages.content import PageChange, PageDifference
from tfrecreg.builtin.pages.records import PagePlace, PageRecord, read_records
from tfrecreg.builtin.pages.survey import Survey, SurveyValidator
from tfrecreg.builtin.releases.diff.result import RecordDiff
from tfrecreg.builtin.releases.diff.run import diff
from tfrecreg.core.check.scan.indexes import index_of
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.images.drawing.charts import Bars
from tfrecreg.core.registry.shardset.find import Built
from tfrecreg.core.registry.shardset.target import target_of
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_CHANGES = 12
"""Examples of each kind of difference."""


def difference_of(
    before: Built,
    after: Built,
    budget: Budget,
    progress: Progress,
    *,
    surveyed: Mapping[str, Survey] | None = None,
    engine: Engine | None = None,
) -> PageDifference:
    """Compare two versions, and read some of the records that differ.

    Records are read where the bytes of their side are on this machine.
    """
    engine = engine or LocalEngine(1)
    result = diff(before, after, engine=engine, progress=progress)
    first, second = _target(before), _target(after)
    chosen = [each for kind in result.examples.values() for each in kind[:_CHANGES]]
    gone = [each for each in chosen if each.kind == "removed"]
    here = [each for each in chosen if each.kind != "removed"]
    old = _read(first, {_place(first, each): _key(each) for each in gone}, budget)
    new = _read(second, {_place(second, each): _key(each) for each in here}, budget)
    known = [each for each in here if each.kind != "added"]
    old |= _read(first, _places_of(first, {_key_before(each) for each in known}), budget)
    changes = tuple(
        PageChange(
            change=each,
            before=old.get(_key(each) if each.kind == "removed" else _key_before(each)),
            after=new.get(_key(each)) if each.kind != "removed" else None,
        )
        for each in chosen
    )
    if surveyed is None:
        surveyed = _survey(second, engine) if second is not None else {}
    classes = _balance(_survey(first, engine), surveyed, first.labels) if first is not None else ()
    return PageDifference(result=result, changes=changes, classes=classes)


_Key = tuple[str, str]
"""Split and key of an example."""


def _key(change: RecordDiff) -> _Key:
    return change.split, change.key


def _key_before(change: RecordDiff) -> _Key:
    return change.from_split or change.split, change.from_key or change.key


def _target(found: Built) -> Target | None:
    try:
        return target_of(found)
    except TfrecregError:
        return None  # its bytes are not here: only indexes are compared


def _place(target: Target | None, change: RecordDiff) -> PagePlace:
    shards = target.shards if target is not None else ()
    names = {shard.name.rpartition("/")[2]: shard.name for shard in shards}
    return PagePlace(names.get(change.shard, change.shard), change.record)


def _places_of(target: Target | None, wanted: Collection[_Key]) -> dict[PagePlace, _Key]:
    """The places of examples, by the indexes."""
    found: dict[PagePlace, _Key] = {}
    for shard in target.shards if target is not None and wanted else ():
        index = index_of(shard)
        for number in range(len(index) if index is not None else 0):
            assert index is not None
            if (shard.split, index.key(number)) in wanted:
                found[PagePlace(shard.name, number)] = (shard.split, index.key(number))
    return found


def _read(
    target: Target | None, places: Mapping[PagePlace, _Key], budget: Budget
) -> dict[_Key, PageRecord]:
    found = read_records(target, places) if target is not None else {}
    spent = {places[place]: budget.spend(record) for place, record in found.items()}
    return {key: record for key, record in spent.items() if record is not None}


def _survey(target: Target, engine: Engine) -> dict[str, Survey]:
    validator = SurveyValidator()
    run_scan(target, [validator], engine)
    return validator.splits


def _balance(
    first: Mapping[str, Survey], second: Mapping[str, Survey], labels: Mapping[str, Sequence[str]]
) -> tuple[Bars, ...]:
    """Classes before and after."""
    sides = {"before": Survey(), "after": Survey()}
    for side, surveys in zip(sides.values(), (first, second), strict=True):
        for each in surveys.values():
            for feature, counts in each.classes.items():
                side.count_classes(feature, counts)
    return tuple(class_charts(sides, labels))
