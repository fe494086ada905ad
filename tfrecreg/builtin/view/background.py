"""Work beside the answers: the catalog of a target, and functions in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from importlib import import_module
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Literal

from tfrecreg.builtin.query.catalog import CatalogCache, state_of
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.values.errors import FailureError, TfrecregError, UsageError
from tfrecreg.core.values.text import safe, si_bytes
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.pool import interrupts_held

if TYPE_CHECKING:
    from tfrecreg.builtin.query.ask import Questions
    from tfrecreg.builtin.query.connection import Connection

REMOTE_BYTES = 1 << 30
"""Size of a target behind a URL up to which its catalog is made by itself."""
PATIENCE = 2.0
"""Seconds that a question waits for the catalog."""
ANSWER_SECONDS = 60
"""Seconds that the questions of a request take, at most."""
_FAREWELL = 10.0
"""Seconds that the end waits for questions, at most."""
_AGAIN = "start `tfrecreg view` again"


class Stopped(FailureError):
    """The server ends."""


class Asker:
    """A request. Its questions end with it, and after a minute."""

    def __init__(self) -> None:
        self.is_gone = False
        self._until = time.monotonic() + ANSWER_SECONDS

    def expect_here(self) -> None:
        if self.is_gone:
            raise Stopped("the question was given up")

    def expect_in_time(self) -> None:
        """Refuse to go on for nobody, or for too long."""
        self.expect_here()
        if time.monotonic() > self._until:
            raise UsageError(
                f"the answer was not found within {ANSWER_SECONDS} seconds, and the search ended",
                hint="ask for less; `tfrecreg query` searches without a limit",
            )


ASKER: ContextVar[Asker] = ContextVar("ASKER")
"""The request that this thread answers."""


class Counted:
    """A progress that others read. It ends the work when the server ends or the request is gone."""

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

    def stop(self) -> None:
        pass

    def note(self, message: str) -> None:
        pass


class Catalog:
    """The tables of a target, which are there after :meth:`make`. Safe for threads."""

    def __init__(self, target: Target, engine: Engine) -> None:
        self._target = target
        self._engine = engine
        self._questions: Questions | None = None
        self._ended = threading.Event()
        self._changed = threading.Condition()
        self._asking = 0
        self._progress = Counted()
        self._columns: tuple[tuple[str, str], ...] = ()
        self.state: Literal["making", "ready", "unavailable"] = "making"
        self.why = ""
        """Why there is none; escaped."""
        self.notes: tuple[str, ...] = ()
        """What it lacks."""

    def close(self) -> None:
        self._progress.stopping.set()
        with self._changed:
            questions, self._questions = self._questions, None
            self._changed.wait_for(lambda: not self._asking, _FAREWELL)
        if questions is not None:
            questions.close()

    @property
    def is_closed(self) -> bool:
        return self._progress.stopping.is_set()

    def to_json(self, records: int) -> dict[str, Any]:
        done = records if self.state == "ready" else min(self._progress.done, records)
        return {"state": self.state, "done": done, "of": records, "why": self.why}

    @property
    def columns(self) -> tuple[tuple[str, str], ...] | None:
        """Names and types of the columns of `records`; None until they are known."""
        return self._columns if self.state == "ready" else None

    def make(self) -> None:
        """Make it, in a thread; not of a large target behind a URL: that would fetch all of it."""
        remote = [each for each in self._target.shards if not each.storage.is_local]
        try:
            states = [(each, state_of(each)) for each in remote]
            large = sum(state.size for _, state in states if state is not None) > REMOTE_BYTES
            with closing(CatalogCache(self._target)) as cache:
                if large and not all(cache.known_digest(*each) for each in states):
                    raise UsageError(
                        f"a catalog of more than {si_bytes(REMOTE_BYTES)} behind a URL is not "
                        "made unasked",
                        hint=f"`tfrecreg query {self._target.name}` makes it",
                    )
            ask = import_module("tfrecreg.builtin.query.ask")
            questions: Questions = ask.ask_targets(
                [self._target], engine=self._engine, progress=self._progress
            )
            columns = tuple(questions.connection.describe("records"))
            # The first answer imports pandas, by Arrow: nobody should wait for that.
            _, batches = questions.connection.batches("SELECT shard FROM records LIMIT 1")
            for batch in batches:
                batch.column(0).dictionary_encode()
        except TfrecregError as error:
            hint = f": {error.hint}" if error.hint else ""
            self.why, self.state = f"{error.message}{hint}", "unavailable"
        except Exception as error:
            # The viewer goes on without it, and says so.
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
            raise UsageError(
                f"the catalog is being made: {done} are in it",
                hint="conditions and facets work when it is complete",
            )
        with self._changed:
            if self._questions is None:
                raise UsageError(
                    f"there is no catalog: {self.why or 'the viewer ends'}",
                    hint="without it, records are chosen by their split only",
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
            _, batches = connection.batches(sql)
            return [
                row
                for batch in batches
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            ]


class Child:
    """A process that runs functions, one at a time. Started on first use. Safe for threads.

    TensorFlow takes more memory and time to start than the viewer.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._connection: Pipe | None = None
        self._lock = threading.Lock()
        self._closed = False

    def call(
        self,
        function: Callable[..., Any],
        *given: Any,
        report: Callable[[int], None] = lambda _: None,
    ) -> Any:
        """The result of ``function(report, *given)`` in the process."""
        with self._lock:
            try:
                connection = self._connection or self._start()
                connection.send((function, given))
                while True:
                    kind, found = connection.recv()
                    if kind == "done":
                        return found
                    if kind == "error":
                        raise found
                    report(found)
            except (EOFError, OSError) as error:
                self._kill()
                self._connection = None
                raise FailureError("its process ended before it was done", hint=_AGAIN) from error

    def close(self) -> None:
        """End the process, whatever it does."""
        self._closed = True
        self._kill()

    def _start(self) -> Pipe:
        if self._closed:
            raise FailureError("the viewer ends", hint=_AGAIN)
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,))
        with interrupts_held():
            process.start()
        theirs.close()
        self._process, self._connection = process, ours
        return ours

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()
            process.join()


def _serve(connection: Pipe) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # What TensorFlow and its like print as they start is not for the viewer's terminal.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    while True:
        try:
            function, given = connection.recv()
            try:
                answer = "done", function(lambda done: connection.send(("so far", done)), *given)
            except TfrecregError as error:
                answer = "error", error
            except Exception as error:
                what = f"{type(error).__name__}: {safe(str(error), limit=300)}"
                answer = "error", FailureError(what, hint="this is a bug: report it")
            connection.send(answer)
        except (EOFError, OSError):
            return  # the viewer ended
