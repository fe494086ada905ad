"""Makes the catalog of a target, and checks the target, in the background."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfrecreg.builtin.query.ask import Questions, answer_rows, ask_targets
from tfrecreg.builtin.query.catalog import CatalogCache, state_of
from tfrecreg.builtin.view.shards import ViewedShards
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report, location_lines
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.target import check_target
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.errors import FailureError, TfrecregError, UsageError
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.progress import Silent
from tfrecreg.core.values.text import safe, si_bytes
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from tfrecreg.builtin.query.connection import Connection

REMOTE_BYTES = 1 << 30
"""Maximum size of a target behind a URL for which a catalog is made automatically."""
PATIENCE = 2.0
"""Seconds that a question waits for the catalog."""
ANSWER_SECONDS = 60
"""Maximum number of seconds for the questions of a request."""
_FAREWELL = 10.0
"""Maximum number of seconds that shutdown waits for questions."""


class Stopped(FailureError):
    """The server is shutting down, or the client has disconnected."""


class Asker:
    """A request. Its questions are stopped when the client disconnects, or after a minute."""

    def __init__(self) -> None:
        self.is_gone = False
        self._until = time.monotonic() + ANSWER_SECONDS

    def expect_here(self) -> None:
        if self.is_gone:
            raise Stopped("the client disconnected")

    def expect_in_time(self) -> None:
        """Raise if the client has disconnected or the request takes too long."""
        self.expect_here()
        if time.monotonic() > self._until:
            raise UsageError(
                f"no answer within {ANSWER_SECONDS} seconds: "
                "use `tfrecreg query`, which has no time limit"
            )


ASKER: ContextVar[Asker] = ContextVar("ASKER")
"""The request that this thread answers."""


class Counted(Silent):
    """Progress that other threads can read. It stops the work if the server or the request ends."""

    def __init__(self) -> None:
        self.done = 0
        self.of = 0
        self.stopping = threading.Event()

    def start(self, what: str, total: int, unit: str = "records") -> None:
        del what, unit
        self.done, self.of = 0, total

    def advance(self, records: int, size: int) -> None:
        del size
        if self.stopping.is_set():
            raise Stopped("the viewer ends")
        asker = ASKER.get(None)
        if asker is not None:
            asker.expect_here()
        self.done += records


class Background:
    """Work that a thread does while the viewer answers."""

    def __init__(self, target: Target, state: str) -> None:
        self._target = target
        self._progress = Counted()
        self.state = state
        """``ready`` after the work, another word during it or if it failed."""
        self.why = ""
        """The reason why there is no result, as escaped text."""

    def stop(self) -> None:
        self._progress.stopping.set()

    def to_json(self, records: int) -> dict[str, Any]:
        done = records if self.state == "ready" else min(self._progress.done, records)
        return {"state": self.state, "done": done, "of": records, "why": self.why}


class Catalog(Background):
    """The tables of a target, which exist after :meth:`make`. Safe for threads."""

    def __init__(self, target: Target, engine: Engine) -> None:
        super().__init__(target, "making")
        self._engine = engine
        self._questions: Questions | None = None
        self._ended = threading.Event()
        self._changed = threading.Condition()
        self._asking = 0
        self._columns: tuple[tuple[str, str], ...] = ()
        self.notes: tuple[str, ...] = ()
        """What the tables do not contain."""

    def close(self) -> None:
        self.stop()
        with self._changed:
            questions, self._questions = self._questions, None
            self._changed.wait_for(lambda: not self._asking, _FAREWELL)
        if questions is not None:
            questions.close()

    @property
    def is_closed(self) -> bool:
        return self._progress.stopping.is_set()

    @property
    def columns(self) -> tuple[tuple[str, str], ...] | None:
        """Names and types of the columns of `records`; None until they are known."""
        return self._columns if self.state == "ready" else None

    def make(self) -> None:
        """Make the catalog, unless that would fetch a large target from a URL."""
        try:
            states = [(each, state_of(each)) for each in self._target.shards]
            far = (it for each, it in states if it and each.storage.local_path() is None)
            large = sum(it.size for it in far) > REMOTE_BYTES
            with closing(CatalogCache(self._target)) as cache:
                if large and not all(cache.known_digest(*each) for each in states):
                    raise UsageError(
                        f"the shards behind a URL exceed {si_bytes(REMOTE_BYTES)}, so no catalog "
                        f"is made automatically: `tfrecreg query {self._target.name}` makes it"
                    )
            questions = ask_targets([self._target], engine=self._engine, progress=self._progress)
            columns = tuple(questions.connection.describe("records"))
            # Arrow imports pandas for the first answer: no user should wait for that.
            _, batches = questions.connection.batches("SELECT shard FROM records LIMIT 1")
            for batch in batches:
                batch.column(0).dictionary_encode()
        except TfrecregError as error:
            hint = f": {error.hint}" if error.hint else ""
            self.why, self.state = f"{error.message}{hint}", "unavailable"
        except Exception as error:
            # The viewer goes on without the catalog, and reports the reason.
            self.why = f"{type(error).__name__}: {safe(str(error), limit=300)}"
            self.state = "unavailable"
        else:
            with self._changed:
                self._questions, self._columns = questions, columns
                self.notes = questions.notes
            if self._progress.stopping.is_set():
                self.close()
            self.state = "ready"
        self._ended.set()

    @contextmanager
    def asking(self) -> Iterator[Connection]:
        """A connection to the tables, for the questions of one request."""
        if not self._ended.wait(PATIENCE):
            done = f"{self._progress.done:,} of {self._progress.of:,} records"
            raise UsageError(f"the catalog is being made: {done} so far")
        with self._changed:
            if self._questions is None:
                raise UsageError(
                    f"there is no catalog: {self.why or 'the viewer is shutting down'}"
                )
            connection = self._questions.connection.cursor(self._expect_wanted)
            self._asking += 1
        try:
            yield connection
        finally:
            connection.close()
            with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    def _expect_wanted(self) -> None:
        asker = ASKER.get(None)
        if asker is not None:
            asker.expect_in_time()
        if self.is_closed:
            raise Stopped("the viewer ends")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.asking() as connection:
            return list(answer_rows(connection.batches(sql)[1]))


CHECKED_BYTES = 4 << 30
"""Maximum size of a target that is checked when it is opened."""
_SHOWN = 20


class Findings(Background):
    """The report of a target, with its findings as cards. Safe for threads."""

    def __init__(self, target: Target, shards: ViewedShards, jobs: int) -> None:
        super().__init__(target, "checking")
        self._shards = shards
        self._jobs = jobs
        self._report: Report | None = None
        self._about: dict[tuple[str, int], list[Finding]] = {}
        self.codes: dict[str, int] = {}
        """Number of places per code."""
        size = sum(each.size for each in shards.shards)
        if size > CHECKED_BYTES:
            self.state = "none"
            self.why = f"large targets are not checked here: use `tfrecreg check {target.name}`"
        elif any(each.shard and not each.shard.storage.local_path() for each in shards.shards):
            self.state = "none"
            self.why = "a target behind a URL is not checked automatically"

    def make(self) -> None:
        if self.state != "checking":
            return
        home = self._target.home
        config = Registry(home).config if home is not None else Config()
        options = CheckOptions(fail_on="never")
        engine = LocalEngine(self._jobs)
        try:
            report = check_target(
                self._target, config, options, engine=engine, progress=self._progress
            )
        except Exception as error:  # the viewer goes on without a report, and shows the reason
            told = error.message if isinstance(error, TfrecregError) else repr(error)
            self.why, self.state = safe(told, limit=300), "none"
            return
        codes: Counter[str] = Counter()
        for finding in report.findings:
            codes[finding.code] += finding.count
            for place in finding.locations:
                if place.shard is not None and place.record is not None:
                    self._about.setdefault((place.shard, place.record), []).append(finding)
        self._report, self.codes = report, dict(codes)
        self.state = "ready"

    def codes_of(self, shard: str, record: int) -> list[str]:
        return list(dict.fromkeys(each.code for each in self._about.get((shard, record), ())))

    def about(self, shard: str, record: int) -> list[dict[str, Any]]:
        return [self._card(each) for each in self._about.get((shard, record), ())]

    def records(self, codes: Iterable[str]) -> list[int]:
        """The sorted numbers of the records in which findings with these codes are located."""
        wanted = set(codes)
        found = set()
        for (shard, record), findings in self._about.items():
            seen = self._shards.named.get(shard)
            is_meant = any(each.code in wanted for each in findings)
            if is_meant and seen is not None and record < seen.records:
                found.add(self._shards.number(seen.number, record))
        return sorted(found)

    def note(self, codes: Iterable[str]) -> str:
        """A note if findings with these codes do not list all of their places; otherwise empty."""
        wanted, every = set(codes), self._report.findings if self._report is not None else ()
        found = [each for each in every if each.code in wanted and each.locations]
        named, total = sum(len(each.locations) for each in found), sum(each.count for each in found)
        return f"the findings list {named:,} of {total:,} places" if named < total else ""

    def to_json(self, records: int) -> dict[str, Any]:
        findings = self._report.findings if self._report is not None else ()
        return {**super().to_json(records), "cards": [self._card(each) for each in findings]}

    def _card(self, finding: Finding) -> dict[str, Any]:
        known = self._shards.named
        places = finding.locations[:_SHOWN]
        told = tuple(
            each for each in places if each.detail or each.record is None or each.shard not in known
        )
        records = [
            {"shard": known[place.shard].number, "record": place.record}
            for place in places
            if place.shard in known and place.record is not None
        ]
        return {
            "code": finding.code,
            "severity": finding.severity.value,
            "rule": finding.rule,
            "message": safe(finding.message, limit=1000),
            "hint": safe(finding.hint, limit=1000),
            "count": finding.count,
            "named": len(places),
            "records": records,
            "places": list(
                location_lines(replace(finding, locations=told, count=len(told)), _SHOWN)
            ),
        }
