"""Runs tasks on a Beam runner, with a pipeline ``Create | Reshuffle | Map`` per batch of tasks.

It uses neither sinks nor a GroupByKey of records. Tasks and outcomes are files in a folder that the
command and the workers share, so the elements of a pipeline are only the numbers of tasks.
"""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from tfrecreg.api import ExecutorEngine, FailureError, UsageError, did_you_mean, safe, usable_cores
from tfrecreg.core.workers.pool import interrupts_held

_BATCH = 256
"""Tasks per pipeline. Starting a pipeline takes seconds, and waiting tasks take disk space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamOptions:
    """The options of ``--engine beam`` that are not Beam's own."""

    runner: str | None = None
    """Name of a Beam runner, such as `FlinkRunner`. Default: the runner in this process."""
    folder: str | None = None
    """Folder that this machine and the workers share, for tasks and outcomes. Default: `TMPDIR`."""
    batch: int | None = None
    """Number of tasks per pipeline. Default: 256."""

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise ValueError(f"`batch` should be at least 1, found {self.batch}")
        if self.runner is not None and self.folder is None:
            raise ValueError(
                "`runner` needs `folder`: a folder that this machine and the workers share"
            )
        if self.folder is not None and not os.access(self.folder, os.W_OK | os.X_OK):
            raise ValueError(f"`folder` should be a writable folder, found {self.folder}")


class BeamEngine(ExecutorEngine):
    """Runs tasks in pipelines of a Beam runner.

    Closing it waits for tasks that run in this process, because a pipeline cannot stop them.
    """

    Options = BeamOptions
    takes_any_option = True
    interval = 0.05
    _pipelines: _Pipelines

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        with warnings.catch_warnings():  # Beam's dependencies warn
            warnings.simplefilter("ignore")
            logging.disable()
            try:
                import_module("apache_beam")
            finally:
                logging.disable(logging.NOTSET)
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # our error has the reason
        runner, parent = self.request.options.runner, self.request.options.folder
        settings = self._pipeline_options()
        if runner is None:  # named, because Beam's DirectRunner may download another runner
            module: Any = import_module("apache_beam.runners.portability.fn_api_runner")
            runner = module.FnApiRunner()
        made = TemporaryDirectory(prefix="tfrecreg-beam-", dir=parent, ignore_cleanup_errors=True)
        with made as folder, _Pipelines(Path(folder).absolute(), runner, settings) as pipelines:
            self._pipelines = pipelines
            yield pipelines

    def _pipeline_options(self) -> Any:
        module: Any = import_module("apache_beam.options.pipeline_options")
        known = module.PipelineOptions([]).get_all_options()
        passed = {
            name: True if value == "true" else value for name, value in self.request.others.items()
        }
        for name in passed.keys() - known:
            raise UsageError(
                f"`{safe(name, limit=60)}` is neither an option of the engine `beam` nor a Beam "
                f"pipeline option{did_you_mean(name, known)}"
            )
        return module.PipelineOptions.from_dictionary(passed)

    def workers(self) -> int:
        return 1 if self.request.options.runner is None else usable_cores()

    def ahead(self) -> int:
        return self.request.options.batch or max(_BATCH, super().ahead())

    def watch(self) -> None:
        self._pipelines.advance()

    def cancel(self, futures: Sequence[Future[bytes]]) -> None:
        super().cancel(futures)
        self._pipelines.shutdown()


class _Pipelines(Executor):
    """Runs one pipeline after the other on the waiting tasks. Each runs in a thread, because some
    runners block until the end. Futures get their results in :meth:`advance`.
    """

    def __init__(self, folder: Path, runner: Any, settings: Any) -> None:
        self._folder, self._runner, self._settings = folder, runner, settings
        self._numbers = count()
        self._futures: dict[int, Future[Any]] = {}
        """The futures of tasks that have no outcome yet, by number."""
        self._sent: set[int] = set()
        """Numbers of the tasks of the running or most recent pipeline."""
        self._thread: Thread | None = None
        self._result: Any = None
        self._error: BaseException | None = None

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        number = next(self._numbers)
        work = pickle.dumps(partial(function, *given, **named))
        (self._folder / f"{number}.work").write_bytes(work)
        self._futures[number] = Future()
        return self._futures[number]

    def advance(self) -> None:
        """Collect the available outcomes, and start the next pipeline if the last one has ended."""
        is_running = self._thread is not None and self._thread.is_alive()  # read before outcomes
        for outcome in self._folder.glob("*.outcome"):
            (self._folder / f"{outcome.stem}.work").unlink(missing_ok=True)
            future = self._futures.pop(int(outcome.stem), None)
            if future is not None:  # otherwise the task ran twice
                future.set_result(pickle.loads(outcome.read_bytes()))
            outcome.unlink()
        if is_running:
            return
        if self._error is not None:
            raise self._error
        if self._sent & self._futures.keys():
            raise FailureError(
                "a Beam pipeline ended, but the outcomes of some tasks are missing in "
                f"`{safe(str(self._folder))}`",
                hint="with `runner`, `folder` should be a folder that the workers share",
            )
        self._sent = set(self._futures)
        self._thread = Thread(target=self._run, args=(sorted(self._sent),), daemon=True)
        with interrupts_held():  # only this process handles ^C
            self._thread.start()

    def _run(self, numbers: list[int]) -> None:
        try:
            beam: Any = import_module("apache_beam")
            pipeline = beam.Pipeline(runner=self._runner, options=self._settings)
            task = partial(perform_file, str(self._folder))
            _ = pipeline | beam.Create(numbers) | beam.Reshuffle() | beam.Map(task)
            self._result = pipeline.run()
            self._result.wait_until_finish()
        except BaseException as error:
            self._error = error

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Cancel the pipeline, wait until its tasks have ended, and then accept new tasks."""
        del wait, cancel_futures
        for work in self._folder.glob("*.work"):
            work.unlink()  # workers do not begin missing tasks
        if self._thread is not None:
            with suppress(Exception):
                self._result.cancel()
            self._thread.join()
        self._futures, self._sent = {}, set()
        self._thread, self._result, self._error = None, None, None


def perform_file(folder: str, number: int) -> None:
    """Run the task with that number in a worker, unless it was cancelled or is done."""
    place = Path(folder)
    with suppress(FileNotFoundError):  # it was cancelled, or the command has ended
        work = pickle.loads((place / f"{number}.work").read_bytes())
        part = place / f"{number}.{os.urandom(8).hex()}"
        part.write_bytes(pickle.dumps(work()))
        part.rename(place / f"{number}.outcome")
