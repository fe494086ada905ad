"""The records that a condition selects, as a page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfrecreg.engines.interface import Engine
from tfrecreg.engines.local import LocalEngine
from tfrecreg.pages.survey import Pick, Survey, SurveyValidator
from tfrecreg.progress import Progress
from tfrecreg.scan.conditions import chosen_records, visit_records
from tfrecreg.scan.interface import Target
from tfrecreg.statistics.make import Stats, stats_of
from tfrecreg.text import safe

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PageSelection:
    """The records of a target for which a condition holds. Each use reads them, and no others."""

    target: Target
    where: str
    engine: Engine | None
    progress: Progress

    def survey(self) -> SurveyValidator:
        """The survey of these records."""
        made, engine = SurveyValidator(), self.engine or LocalEngine(1)
        with chosen_records(
            self.target, self.where, engine=engine, progress=self.progress
        ) as numbers:
            of_name = {
                shard.name: each for shard, each in zip(self.target.shards, numbers, strict=True)
            }
            parts = visit_records(
                self.target,
                self.where,
                made.begin(self.target, {}),
                engine,
                self.progress,
                doing="surveying",
            )
            for shard, part in parts:
                _renumber(part, of_name)
                whole = made.splits.get(shard.split)
                made.splits[shard.split] = part if whole is None else whole.merge(part)
        return made

    def result(self) -> Stats:
        """The statistics of these records."""
        return stats_of(self.target, where=self.where, engine=self.engine, progress=self.progress)

    def note(self, surveyed: SurveyValidator) -> str:
        """What the page says of it."""
        found = sum(each.records for each in surveyed.splits.values())
        every = "1 record" if found == 1 else f"{found:,} records"
        return (
            f"Images, charts and statistics are of the {every} WHERE "
            f"{safe(self.where.strip(), limit=1000)}. The verdict, the findings and sizes in bytes "
            "are of all records."
        )


def _renumber(survey: Survey, numbers: dict[str, _Numbers]) -> None:
    """Replace positions among the selected records of a shard by their numbers in it."""

    def numbered(picks: Sequence[Pick]) -> list[Pick]:
        return [each._replace(record=int(numbers[each.shard][each.record])) for each in picks]

    survey.samples = {name: numbered(picks) for name, picks in survey.samples.items()}
    survey.extremes = {name: numbered(picks) for name, picks in survey.extremes.items()}
