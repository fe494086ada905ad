"""Keeps the numbers of selected records under short names, and lists the records in files."""

from __future__ import annotations

import csv
import io
import json
import shlex
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.query.catalog import shown_text, sql_name, sql_text
from tfrecreg.builtin.view.background import Catalog
from tfrecreg.builtin.view.shards import ViewedShards
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import did_you_mean

if TYPE_CHECKING:
    from tfrecreg.builtin.view.browsed import Browsed

NumberArray = npt.NDArray[np.int64]
"""Record numbers in a target."""
_KEPT_BYTES = 48 << 20
"""Maximum size in bytes of all kept selections together."""
_CHOICES = 10_000
"""Maximum number of selections that can be computed again. Each text in the search box is one."""
_PLACES = 20_000
"""Maximum number of records that an SQL condition can list one by one."""
_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class ViewChoice:
    """The criteria of a selection."""

    split: str = ""
    """Empty for all splits."""
    where: tuple[str, ...] = ()
    """SQL conditions. A selected record meets all of them."""
    sort: str = ""
    """The column to sort by; empty to keep the order of the target."""
    descending: bool = False
    findings: tuple[str, ...] = ()
    """Codes of findings. Only records with one of these findings are selected."""
    changed_since: str = ""
    """A version. Only records that are new or changed since then are selected."""

    @property
    def name(self) -> str:
        """A short name for the choice; empty for the choice of all records in their usual order."""
        if self == ViewChoice():
            return ""
        return blake3(repr(self).encode("utf-8", "replace")).hexdigest(8)

    @property
    def condition(self) -> str:
        """All conditions joined into one; empty without conditions."""
        return all_of(self.where)


def all_of(conditions: Sequence[str]) -> str:
    """Several conditions as one."""
    if len(conditions) == 1:
        return conditions[0]
    # A line feed ends a comment in a condition.
    return " AND ".join(f"({each}\n)" if "--" in each else f"({each})" for each in conditions)


@dataclass(frozen=True, slots=True)
class ChosenRecords:
    """Chosen records."""

    choice: ViewChoice
    numbers: npt.NDArray[np.int64] | range = field(repr=False)
    """Numbers of the records, in the order of the selection."""

    def __len__(self) -> int:
        return len(self.numbers)


class Selections:
    """The selections of a target. Safe for threads."""

    def __init__(self, shards: ViewedShards, catalog: Catalog) -> None:
        self._shards = shards
        self._catalog = catalog
        self._kept: OrderedDict[str, ChosenRecords] = OrderedDict()
        self._choices: OrderedDict[str, ViewChoice] = OrderedDict()
        self._lock = threading.Lock()
        self._starts = {shown_text(each.name): shards.starts[each.number] for each in shards.shards}

    def get(self, name: str) -> ChosenRecords:
        """The selection with that name. It is computed again if it was dropped."""
        if not name:
            return ChosenRecords(ViewChoice(), range(len(self._shards)))
        with self._lock:
            choice = self._choices.get(name)
            if choice is not None:
                self._choices.move_to_end(name)
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        if choice is None or choice.findings or choice.changed_since:
            raise UsageError(f"there is no selection `{name}`")
        return self.select(choice)

    def select(self, choice: ViewChoice, among: Sequence[NumberArray] = ()) -> ChosenRecords:
        name = choice.name
        with self._lock:
            found = self._kept.get(name)
        if found is not None and not choice.changed_since:  # `t@latest` may be another version now
            return found
        asks = bool(choice.where or choice.sort)
        numbers = self._asked(choice) if asks else self._of_split(choice.split)
        for wanted in among:
            numbers = np.asarray(numbers, np.int64)
            numbers = numbers[np.isin(numbers, wanted)]
        made = ChosenRecords(choice, numbers)
        if name:
            self._keep(name, made)
        return made

    def sql(self, selection: ChosenRecords) -> str:
        """The SQL condition that selects exactly these records. Empty text selects all records."""
        choice = selection.choice
        parts = [f"(\n{each}\n)" for each in choice.where]
        if choice.split:
            parts.append(f"split IN ({sql_text(choice.split)})")
        if choice.findings or choice.changed_since:
            if len(selection) > _PLACES:
                raise UsageError(f"{len(selection):,} records are too many for facets")
            places = map(self._shards.place, map(int, selection.numbers))
            rows = [f"({sql_text(seen.name)}, {record})" for seen, record in places]
            parts.append(f"(shard, record) IN ({', '.join(rows)})" if rows else "false")
        return " AND ".join(parts)

    def _keep(self, name: str, made: ChosenRecords) -> None:
        with self._lock:
            self._kept[name], self._choices[name] = made, made.choice
            while len(self._choices) > _CHOICES:
                oldest, _ = self._choices.popitem(last=False)
                self._kept.pop(oldest, None)
            held = sum(_bytes(each) for each in self._kept.values())
            while held > _KEPT_BYTES and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                held -= _bytes(dropped)

    def _of_split(self, split: str) -> range:
        if not split:
            return range(len(self._shards))
        known = self._shards.splits
        if split not in known:
            raise UsageError(f"there is no split `{split}`{did_you_mean(split, known)}")
        # The shards are ordered by split, so those of one split follow each other.
        first, last = known[split][0].number, known[split][-1].number
        return range(self._shards.starts[first], self._shards.starts[last + 1])

    def _asked(self, choice: ViewChoice) -> npt.NDArray[np.int64]:
        self._of_split(choice.split)
        condition = self.sql(ChosenRecords(ViewChoice(choice.split, choice.where), range(0)))
        sql = "SELECT shard, record FROM records"
        if condition:
            sql = f"{sql} WHERE {condition}"
        if choice.sort:
            with self._catalog.asking() as connection:
                columns = dict(connection.describe("records"))
            if choice.sort not in columns:
                near = did_you_mean(choice.sort, columns)
                raise UsageError(f"there is no column `{choice.sort}`{near}")
            way = "DESC" if choice.descending else "ASC"
            sql += f" ORDER BY {sql_name(choice.sort)} {way} NULLS LAST, split, shard, record"
        parts: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
        with self._catalog.asking() as connection:
            for each in choice.where:
                connection.expect_condition(each)
            _, batches = connection.batches(sql)
            for batch in batches:
                names = batch.column(0).dictionary_encode()
                starts = np.array(
                    [self._starts[name] for name in names.dictionary.to_pylist()], np.int64
                )
                records = _array(batch.column(1), np.int64)
                parts.append(starts[_array(names.indices, np.int32)] + records)
        numbers = np.concatenate(parts)
        return numbers if choice.sort else np.sort(numbers)


def _array(column: Any, kind: type[np.signedinteger[Any]]) -> npt.NDArray[Any]:
    """The numbers of a column. The column must not contain nulls. Arrow's method is not used,
    because it imports pandas.
    """
    return np.frombuffer(column.buffers()[1], kind)[column.offset :][: len(column)]


def _bytes(selection: ChosenRecords) -> int:
    return 0 if isinstance(selection.numbers, range) else selection.numbers.nbytes


def command_line(target: str, choice: ViewChoice) -> str:
    """The command that prints the same records in a terminal."""
    words = ["tfrecreg", "head", target]
    words += ["--split", choice.split] if choice.split else []
    words += ["--where", choice.condition] if choice.where else []
    return shlex.join(words)


def python_line(target: str, splits: Iterable[str], choice: ViewChoice) -> str:
    """The line of Python that opens the same records."""
    chosen = choice.split or "+".join(splits)
    words = [repr(target)]
    words += [repr(chosen)] if chosen else []
    words += [f"where={choice.condition!r}"] if choice.where else []
    return f"tfrecreg.data_source({', '.join(words)})"


def keys(browsed: Browsed, selection: ChosenRecords) -> Iterator[bytes]:
    """Yield a CSV file in parts, with a row per record."""
    yield b"split,key,shard,record\n"
    for at in range(0, len(selection), _ROWS):
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        for number in selection.numbers[at : at + _ROWS]:
            seen, record = browsed.shards.place(int(number))
            key = browsed.shards.key(int(number))
            rows.writerow((seen.split, "" if key is None else key, seen.name, record))
        yield text.getvalue().encode("utf-8", "surrogateescape")


def derives(browsed: Browsed, choice: ViewChoice) -> bool:
    """Whether a derived dataset can select exactly these records."""
    target = browsed.target
    return bool(
        target.home is not None
        and target.manifest is not None
        and not target.partial
        and not choice.findings
        and not choice.changed_since
    )


def derived(browsed: Browsed, choice: ViewChoice) -> str:
    """The text of `datasets/NAME.toml` for a dataset derived from a selection."""
    if not derives(browsed, choice):
        raise UsageError("no dataset can be derived from this selection")
    parts = [*choice.where]
    if choice.split:
        parts.append(f"split IN ({sql_text(choice.split)})")
    lines = [
        "# Save it as datasets/NAME.toml; `tfrecreg build NAME` builds the dataset.",
        'source = "tfrecreg"',
        "",
        "[options]",
        f"inputs = [{_text(browsed.target.reference)}]",
    ]
    if parts:
        lines.append(f"where = {_text(all_of(parts))}")
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    plain = value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
