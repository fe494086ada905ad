"""The validator `changes` limits how much may change since the previous version::

[gates.default]
limits.changes = { labels = "1%", removed = 0 }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from tfrecreg.builtin.releases.audit_validator import Ignoring
from tfrecreg.builtin.releases.diff.result import diff_sides
from tfrecreg.builtin.releases.diff.verdict import previous_of
from tfrecreg.core.check.scan.interface import Shard, Target, Validator
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.side import side_of
from tfrecreg.core.values.codes import REG014, CodeList
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.text import count
from tfrecreg.core.values.typed_values import SkipLimit

_Limit = Annotated[SkipLimit, SkipLimit.parse]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLimits:
    """`[gates.<gate>.limits.changes]`: each limit is a number of examples, or a share of the
    previous version's examples.
    """

    labels: _Limit | None = None
    """Examples with another label."""
    changed: _Limit | None = None
    """Examples whose key is the same but whose record differs."""
    removed: _Limit | None = None
    """Examples that were removed."""
    added: _Limit | None = None
    """Examples that were added."""
    moved: _Limit | None = None
    """Examples that moved to another split."""


class ChangesValidator(Validator):
    """Compares a build or release with the previous version, example by example."""

    name = "changes"
    codes: Sequence[Code] = CodeList("REG014")
    Options = ChangeLimits

    def __init__(self) -> None:
        self._limits = ChangeLimits()

    def applies(self, target: Target) -> str | None:
        if target.home is None or target.manifest is None:
            return "it does not belong to a registry, so it has no previous version"
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Ignoring]:
        del target
        self._limits = read_limits(ChangeLimits, options, self.name)
        return Ignoring

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, None]]
    ) -> Iterator[Finding | Measure]:
        del parts
        assert target.home is not None
        found = resolve(Registry(target.home), target.reference)
        before = previous_of(found)
        if before is None:
            return
        result = diff_sides(side_of(before), side_of(found))
        if not result.known or result.unread:
            why = result.unread_reason or "indexes are not on this machine"
            raise FailureError(
                f"the changes since `{before.name}` cannot be counted: {why}", hint=result.hint
            )
        tally, examples = Tally(), result.before.records
        for kind, changed in (*result.totals.items(), ("labels", result.relabelled)):
            limit: SkipLimit | None = getattr(self._limits, kind, None)
            yield Measure(f"changes.{kind}", changed, f"{changed:,}")
            if limit is None or limit.allows(changed, examples):
                continue
            what = count(changed, "label") if kind == "labels" else count(changed, "example")
            message = (
                f"{what} {'changed' if kind == 'labels' else kind} since `{before.name}`, "
                f"which has {count(examples, 'example')}; the limit is {limit}"
            )
            tally.add(REG014, message, None, subject=kind, count=changed)
        yield from tally.findings(target.dataset)
