"""The validator `questions` checks whether answers meet the expectations of a gate.

The check makes the catalogs while it reads the records, because it never trusts the cache. At the
end, it deletes these catalogs. If none of `equals`, `at_least` and `at_most` is given, the answer
must have no rows.
"""

from __future__ import annotations

import heapq
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Meta

from tfrecreg.builtin.query.ask import (
    PREVIOUS,
    Questions,
    answer_rows,
    ask_catalogs,
    plain_value,
    previous_of,
)
from tfrecreg.builtin.query.catalog import ShardCatalog, expect_tfrecord, kept_in
from tfrecreg.builtin.query.connection import Connection
from tfrecreg.builtin.query.rows import CatalogPart, CatalogVisitor
from tfrecreg.core.check.scan.interface import Need, Shard, Target, Validator
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.codes import QRY001, CodeList
from tfrecreg.core.values.config import CONFIG_NAME
from tfrecreg.core.values.errors import FailureError, TfrecregError
from tfrecreg.core.values.findings import (
    MAX_LOCATIONS,
    Code,
    Finding,
    Location,
    Measure,
    Severity,
    fingerprint,
)
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import KeyPath, read_table

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""A bare TOML key. Fingerprints contain the name, and the globs of waivers match it."""


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("should be a number")
    return value


def _scalar(value: object) -> str | bool | int | float:
    return value if isinstance(value, str | bool) else _number(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """`[gates.<gate>.expect.<name>]`."""

    query: Annotated[str, Meta(min_length=1)]
    """One SELECT."""
    equals: Annotated[Any, _scalar] = None
    """Expected value of the last column in each row: a number, a string or a boolean."""
    at_least: Annotated[Any, _number] = None
    at_most: Annotated[Any, _number] = None
    severity: Severity = Severity.ERROR
    message: str = ""
    """The expectation in words. Messages begin with it."""

    def __post_init__(self) -> None:
        bounds = (self.at_least, self.at_most)
        if self.equals is not None and bounds != (None, None):
            raise ValueError("has `equals` and a limit: give one of them")
        if None not in bounds and self.at_least > self.at_most:
            raise ValueError("has an `at_least` above its `at_most`")
        if not self.query.strip():
            raise ValueError("has an empty `query`")

    @property
    def compares(self) -> bool:
        """Whether the last column of each row is compared. If not, the answer must have no rows."""
        return (self.equals, self.at_least, self.at_most) != (None, None, None)

    @property
    def expected(self) -> str:
        """The expected value, in words."""
        if self.equals is not None:
            return value_words(self.equals, exact=True)
        low, high = (value_words(each, exact=True) for each in (self.at_least, self.at_most))
        if self.at_least is None or self.at_most is None:
            return f"at least {low}" if self.at_most is None else f"at most {high}"
        return f"{low} to {high}"

    def holds(self, value: object) -> bool:
        """Whether a value of the last column meets the expectation. NULL and NaN never meet it."""
        if isinstance(value, Decimal):
            value = plain_value(value)
        if self.equals is not None:
            # In Python true equals 1.
            alike = isinstance(value, bool) == isinstance(self.equals, bool)
            return alike and bool(value == self.equals)
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            return False
        low, high = self.at_least, self.at_most
        return (low is None or value >= low) and (high is None or value <= high)


def where_expected(name: str) -> KeyPath:
    """The place of an expectation in the configuration, for messages."""
    return KeyPath(CONFIG_NAME, "expect", name)


def read_expectations(tables: Mapping[str, Any]) -> dict[str, Expectation]:
    """The expectations of a gate, sorted by name."""
    found: dict[str, Expectation] = {}
    for name in sorted(tables):
        path = where_expected(name)
        if not _NAME.fullmatch(name):
            raise path.error("should have a name of letters, digits, `-` and `_`")
        found[name] = read_table(Expectation, tables[name], path)
    return found


def value_words(value: object, *, exact: bool = False) -> str:
    """A value of an answer, short and escaped."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, float):
        return repr(value) if exact else f"{value:.7g}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str):
        return f"`{safe(value, limit=60)}`"
    return safe(str(value), limit=60)


_PLACES = {"split": str, "shard": str, "key": str, "feature": str, "record": int, "offset": int}
_DETAILS = 8
"""Maximum number of other columns that are shown with the place of a row."""


class QuestionsValidator(Validator):
    """Compares the answers to the questions of a gate with the expected answers."""

    name = "questions"
    codes: Sequence[Code] = CodeList("QRY*")
    needs = Need.DIGESTS

    def __init__(self) -> None:
        self._expected: dict[str, Expectation] = {}
        self._previous: Target | None = None
        self._of_previous: list[str] = []

    def begin(
        self, target: Target, options: Mapping[str, Any]
    ) -> Callable[[Shard], CatalogVisitor]:
        """Read the expectations before any record is read."""
        self._expected = read_expectations(options)
        self._previous, self._of_previous = None, []
        if not self._expected:
            raise where_expected("NAME").error("is missing: the gate asks no question")
        connection = Connection(threads=1)
        try:
            connection.lock((), ())
            for name, each in self._expected.items():
                with _about(name):
                    connection.expect_select(each.query)
                    if connection.names_table(each.query, PREVIOUS):
                        self._of_previous.append(name)
            if self._of_previous:
                self._previous = previous_of(target)
        finally:
            connection.close()
        return CatalogVisitor

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, CatalogPart]]
    ) -> Iterator[Finding | Measure]:
        unjudged = self._of_previous if self._previous is None else []
        judged = {name: each for name, each in self._expected.items() if name not in unjudged}
        with tempfile.TemporaryDirectory(prefix="tfrecreg-expect-") as folder:
            catalogs = []
            for shard, part in parts:
                expect_tfrecord(safe(shard.name, limit=1000), part, FailureError)
                kept = kept_in(LocalStorage(folder), part)
                catalogs.append(ShardCatalog(shard, kept, None))
            with ask_catalogs(target, catalogs, self._previous) as questions:
                broken = 0
                for name, each in judged.items():
                    with _about(name):
                        finding = _judged(name, each, questions, target)
                    if finding is not None:
                        broken += 1
                        yield finding
                every = len(judged)
                yield Measure("questions.held", every - broken, f"{every - broken} of {every} hold")
                asked = "\n".join(each.query for each in judged.values())
                notes = [*questions.notes_on(asked)]
                if unjudged:
                    names = ", ".join(f"`{each}`" for each in unjudged)
                    notes.append(f"{names}: `{target.name}` has no earlier release")
                if notes:
                    yield Measure("questions.lacks", len(notes), "; ".join(notes))


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Add the name of the expectation to errors."""
    try:
        yield
    except TfrecregError as error:
        raise where_expected(name).error(
            f"cannot be asked: {error.message}", hint=error.hint
        ) from error


def _judged(
    name: str, expected: Expectation, questions: Questions, target: Target
) -> Finding | None:
    """The finding about a question; None if the answer is as expected."""
    schema, batches = questions.connection.batches(expected.query)
    columns = list(schema.names)
    rows = [0, 0]
    first: list[object] = []
    shards = {each.name for each in target.shards}

    def places() -> Iterator[Location]:
        for values in answer_rows(batches):
            row = dict(zip(columns, values, strict=True))
            rows[0] += 1
            if expected.compares and expected.holds(row[columns[-1]]):
                continue
            rows[1] += 1
            if not first:
                first.append(row[columns[-1]])
            yield _place(row, columns, shards, compares=expected.compares)

    located = heapq.nsmallest(MAX_LOCATIONS, places(), key=Location.order)
    every, broken = rows
    if expected.compares and not every:
        broken, said = 1, f"expected {expected.expected}, found no row"
    elif not broken:
        return None
    elif not expected.compares:
        said = f"expected no row, found {broken:,}"
    elif every == 1:
        said = f"expected {expected.expected}, found {value_words(first[0], exact=True)}"
    else:
        said = f"expected {expected.expected}, which {broken:,} of {every:,} rows break"
    if every == 1 and located == [Location(detail=f"found {value_words(first[0])}")]:
        located = []  # the message has the value
    title = f"{safe(expected.message, limit=300)}; " if expected.message else ""
    return Finding(
        code=QRY001.code,
        rule=QRY001.rule,
        severity=expected.severity,
        message=f"`{name}`: {title}{said}",
        hint=QRY001.hint,
        fingerprint=fingerprint(QRY001.code, dataset=target.dataset, subject=name),
        count=broken,
        locations=tuple(located),
    )


def _place(
    row: Mapping[str, Any], columns: Sequence[str], shards: set[str], *, compares: bool
) -> Location:
    """The place of a row, from columns like `shard` or `record`. Other columns become details."""
    place: dict[str, Any] = {}
    others = list(columns)
    if compares:
        others.pop()
    for name, kind in _PLACES.items():
        is_known = name != "shard" or row.get(name) in shards
        has_shard = kind is str or "shard" in place  # which a number needs
        if name in others and is_known and has_shard and type(row[name]) is kind:
            place[name] = row[name]
            others.remove(name)
    told = [f"found {value_words(row[columns[-1]])}"] if compares else []
    told += (f"{safe(each, limit=60)} {value_words(row[each])}" for each in others[:_DETAILS])
    told += ["…"] if len(others) > _DETAILS else []
    return Location(**place, detail=", ".join(told) or None)
