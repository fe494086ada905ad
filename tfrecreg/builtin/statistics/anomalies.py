"""The `statistics` validator: TFDV's anomalies of whole splits, in TFDV's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tfrecreg.builtin.statistics.collect import make_visitor
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.part import StatisticsPart, TooManyFeatures
from tfrecreg.builtin.statistics.tfdv import Anomaly, judge_statistics, missing_tfdv
from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.schema.environments import EnvironmentOptions, environment_options
from tfrecreg.core.schema.proto import parse_schema, schema_message
from tfrecreg.core.schema.roles.payload_kinds import no_schema_fits
from tfrecreg.core.values.codes import CORE_CODES, SCH199, CodeList
from tfrecreg.core.values.codes.pages import anomaly_code
from tfrecreg.core.values.errors import MissingExtraError
from tfrecreg.core.values.findings import Code, Finding, Location, Measure, Severity, fingerprint
from tfrecreg.core.values.text import safe

_UNEXPECTED_TYPE = 70
_TOO_MANY = 98


class StatisticsValidator(Validator):
    """Computes the statistics of each split and compares them with the schema, as TFDV does.

    Its options are :class:`EnvironmentOptions`.
    """

    name = "statistics"
    Options = EnvironmentOptions
    codes: Sequence[Code] = CodeList("SCH1*")

    def __init__(self) -> None:
        self._environment: str | None = None
        self._environments: Mapping[str, str] = {}
        self._schema: Any = None

    def applies(self, target: Target) -> str | None:
        """None if the target has a schema of Examples and TFDV is installed."""
        if target.schema is None:
            return no_schema_fits(target) or "no schema: name one with --schema"
        return no_schema_fits(target) or expect_tfdv()

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """Read the schema."""
        self._environment, self._environments = environment_options(self.name, options)
        path = target.schema_path or "schema"
        self._schema = schema_message(parse_schema(target.schema or "", path))
        wanted = StatisticsOptions(schema=target.schema, schema_path=path)
        return partial(make_visitor, wanted)

    def merge(self, part: StatisticsPart, more: StatisticsPart) -> StatisticsPart:
        """Merge the parts of two adjacent shards: see
        :meth:`tfrecreg.core.check.scan.Validator.merge`."""
        part.merge(more)
        return part

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, StatisticsPart]]
    ) -> Iterator[Finding | Measure]:
        total = 0
        for split, part in by_split(parts).items():
            total += part.examples
            if isinstance(part.conflict, TooManyFeatures):
                yield _finding(target, split, Anomaly("", _TOO_MANY, False, str(part.conflict)))
            elif part.conflict is not None:
                one, other = part.conflict.types
                text = f"{one} values in some examples and {other} values in others"
                anomaly = Anomaly(part.conflict.feature, _UNEXPECTED_TYPE, False, text)
                yield _finding(target, split, anomaly)
            elif part.examples:
                environment = self._environments.get(split, self._environment)
                found = judge_statistics(part.proto(), self._schema, environment=environment)
                for anomaly in found:
                    yield _finding(target, split, anomaly)
        text = f"{total:,} examples judged" if total else "no Examples to judge"
        yield Measure("statistics.examples", total, text)


def expect_tfdv() -> str | None:
    """None if TFDV is installed, else why it is not available for this Python."""
    missing = missing_tfdv()
    if isinstance(missing, MissingExtraError):
        raise missing
    return None if missing is None else f"{missing.message}: {missing.hint}"


def by_split(parts: Iterable[tuple[Shard, StatisticsPart]]) -> dict[str, StatisticsPart]:
    """One part for each split, in order of their names."""
    found: dict[str, StatisticsPart] = {}
    for shard, part in parts:
        if shard.split in found:
            found[shard.split].merge(part)
        else:
            found[shard.split] = part
    return dict(sorted(found.items()))


def _finding(target: Target, split: str, anomaly: Anomaly) -> Finding:
    code = CORE_CODES.get(anomaly_code(anomaly.number), SCH199)
    about = f"`{safe(anomaly.feature)}`: " if anomaly.feature else ""
    text = safe(" ".join(anomaly.text.split()), limit=1000).rstrip(". ")
    return Finding(
        code=code.code,
        rule=code.rule,
        severity=Severity.WARNING if anomaly.warning else code.severity,
        message=f"{about}{text}",
        hint=code.hint,
        fingerprint=fingerprint(
            code.code, dataset=target.dataset, split=split, feature=anomaly.feature
        ),
        count=1,
        locations=(Location(split=split or None, feature=anomaly.feature or None),),
    )
