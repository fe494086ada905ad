"""The engine over a Beam runner: ``Create | Reshuffle | Map``, a pipeline for each batch of tasks.

Neither a sink nor a GroupByKey of records is used. Work and outcomes are files in a folder or a
bucket that the command and the workers share: the elements of a pipeline are their numbers only.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tfrecreg.api import (
    EngineRequest,
    Exchange,
    FailureError,
    RemoteEngine,
    StorageError,
    UsageError,
    did_you_mean,
    engine_failed,
    new_exchange,
    perform_work,
    safe,
    usable_cores,
)

_BATCH = 256
"""Tasks of one pipeline: starting one takes seconds, and waiting tasks are on disk."""
_WORKER = (
    "import os, pathlib, sys; pathlib.Path(sys.argv[1], f'{os.getpid()}.worker').touch(); "
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "import logging; logging.disable(logging.CRITICAL); "
    "from apache_beam.runners.worker.sdk_worker_main import main; main([])"
)
"""The program of a worker process on this machine. Beam's own logs every step to stderr, and ends
at ^C, which is the command's to handle. Its file names its process, because Beam waits for ever for
a worker that was killed.
"""
_PATIENCE = 5.0
"""Seconds for a pipeline to end after its workers."""
_LONGEST = 0.25
"""Maximum seconds between looks for an outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamOptions:
    """The options of ``--engine beam`` that are not Beam's own."""

    runner: str | None = None
    """Name of a Beam runner, such as `FlinkRunner`; none for the one of this machine."""
    folder: str | None = None
    """Folder, or URL of one in a bucket, that this machine and the workers share, for tasks and
    their outcomes; none for `TMPDIR`."""
    batch: int | None = None
    """Tasks of one pipeline; none for 256."""

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise ValueError(f"`batch` should be at least 1, found {self.batch}")
        if self.runner is not None and self.folder is None:
            raise ValueError(
                "`runner` needs `folder`, a folder or bucket that this machine and the workers "
                "share"
            )
        if self.runner is None and self.folder is not None and "://" in self.folder:
            raise ValueError("`folder` should be a path where no `runner` is named, found a URL")


class BeamEngine(RemoteEngine[int]):
    """Runs tasks by pipelines of a Beam runner.

    Closing waits for tasks that run in this process: a pipeline cannot end them.
    """

    Options = BeamOptions
    takes_any_option = True

    def __init__(self, request: EngineRequest) -> None:
        super().__init__(request)
        self._options: BeamOptions = request.options
        self._exchange: Exchange | None = None
        self._numbers = 0
        self._waiting: list[int] = []
        self._sent: set[int] = set()
        """Tasks whose work is there."""
        self._pipeline: _Pipeline | None = None
        self._settings: Any = None

    def connect(self) -> None:
        self._settings = self._pipeline_options()
        try:
            self._exchange = new_exchange(self._options.folder, "beam")
        except OSError as error:
            raise UsageError(
                f"no folder can be made in `{safe(self._options.folder or tempfile.gettempdir())}`:"
                f" {error.strerror}",
                hint="`--engine-option folder=DIR` names a folder that the workers share",
            ) from error

    def greet(self, work: bytes) -> tuple[()]:
        """None: a pipeline takes long to start, and every task compares versions first."""
        del work
        return ()

    def _pipeline_options(self) -> Any:
        _import_quietly()
        from apache_beam.options.pipeline_options import PipelineOptions

        passed = dict(self.request.others)
        if self._options.runner is None:
            passed.setdefault("direct_num_workers", self.workers())
        known = PipelineOptions([]).get_all_options()
        for name in passed:
            if name not in known:
                raise UsageError(
                    f"the option `{safe(name, limit=60)}` of `beam` is neither its own nor a "
                    f"pipeline option{did_you_mean(name, known)}",
                    hint="`tfrecreg plugins show beam` lists its own; Beam documents the others",
                )
        flags = [f"--{name}={value}" for name, value in passed.items() if not _is_flag(value)]
        flags += [f"--{name}" for name, value in passed.items() if _is_flag(value)]
        try:
            return PipelineOptions(flags)
        except SystemExit as error:  # its parser has printed why
            raise UsageError(
                "Beam refuses the pipeline options", hint="its own message is above"
            ) from error

    def disconnect(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        exchange, self._exchange = self._exchange, None
        self._waiting = []
        if exchange is not None:
            # Workers do not begin missing tasks. Files that a store does not remove now stay.
            with contextlib.suppress(StorageError):
                for number in sorted(self._sent):
                    exchange.drop(_name(number, "work"))
        self._sent.clear()
        if pipeline is not None:
            pipeline.stop()
        if exchange is not None:
            exchange.end()

    def workers(self) -> int:
        if self.request.jobs is not None:
            return self.request.jobs
        return 1 if self._options.runner is None else usable_cores()

    def ahead(self) -> int:
        return self._options.batch or max(_BATCH, super().ahead())

    def submit(self, work: bytes) -> int:
        assert self._exchange is not None
        self._numbers += 1
        self._exchange.put(_name(self._numbers, "work"), work)
        self._waiting.append(self._numbers)
        self._sent.add(self._numbers)
        return self._numbers

    def result(self, handle: int) -> bytes:
        exchange, name = self._exchange, _name(handle, "outcome")
        assert exchange is not None
        pause = exchange.pause
        while (outcome := exchange.get(name)) is None:
            if self._pipeline is None or self._pipeline.has_ended(handle):
                waiting, self._waiting = self._waiting, []
                runner = self._options.runner or _direct(self.workers(), exchange.place)
                self._pipeline = _Pipeline(exchange, waiting, runner, self._settings)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        exchange.drop(name)
        self._withdraw(handle)
        return outcome

    def _withdraw(self, number: int) -> None:
        if self._exchange is not None and number in self._sent:
            self._sent.remove(number)
            self._exchange.drop(_name(number, "work"))

    def cancel(self, handles: Sequence[int]) -> None:
        if self._exchange is None:
            return
        for handle in handles:
            self._withdraw(handle)
        self._waiting = []
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.stop()


class _Pipeline:
    """One pipeline over some numbers, in a thread, because some runners block until its end."""

    def __init__(
        self, exchange: Exchange, numbers: Sequence[int], runner: Any, settings: Any
    ) -> None:
        self._exchange, self._numbers = exchange, frozenset(numbers)
        self._runner, self._settings = runner, settings
        self._error: BaseException | None = None
        self._lost = 0.0
        for former in self._worker_files():
            former.unlink()
        self._result: Any = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        with BeamEngine.interrupts_held():  # this process handles ^C, not its workers
            self._thread.start()

    def _run(self) -> None:
        try:
            beam: Any = import_module("apache_beam")
            pipeline = beam.Pipeline(runner=self._runner, options=self._settings)
            numbers = pipeline | beam.Create(sorted(self._numbers))
            function = partial(perform_file, self._exchange.place)
            _ = numbers | beam.Reshuffle() | beam.Map(function)
            self._result = pipeline.run()
            self._result.wait_until_finish()
        except BaseException as error:
            self._error = error

    def has_ended(self, number: int) -> bool:
        """Whether it is done, so that the next may start."""
        if self._thread.is_alive():
            self._expect_workers()
            return False
        if self._exchange.has(_name(number, "outcome")):
            return False  # written between two looks
        if self._error is not None:
            error = self._error
            raise engine_failed("beam", "failed", error, hint=BeamEngine.RERUN) from error
        if number in self._numbers:
            raise FailureError(
                "a Beam pipeline ended and left no outcome in "
                f"`{safe(self._exchange.place, limit=1000)}`",
                hint="`--engine-option folder=DIR` names a folder or bucket that the workers share",
            )
        return True

    def _expect_workers(self) -> None:
        """Raise if a worker process of this machine ended and the pipeline goes on."""
        workers = [int(path.stem) for path in self._worker_files()]
        if all(map(_is_running, workers)):
            return
        self._lost = self._lost or time.monotonic()
        if time.monotonic() - self._lost < _PATIENCE:
            return  # it may be at its end
        for worker in filter(_is_running, workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        raise FailureError(
            "a Beam worker process ended before its tasks were done", hint=BeamEngine.RERUN
        )

    def _worker_files(self) -> list[Path]:
        """Those that workers of this machine leave; other runners have none."""
        return list(Path(self._exchange.place).glob("*.worker"))

    def stop(self) -> None:
        """Cancel it, and wait until its tasks have ended."""
        if self._lost:
            return  # its thread waits for a worker that was killed
        with contextlib.suppress(Exception):
            if self._result is not None and self._thread.is_alive():
                self._result.cancel()
        self._thread.join()


def perform_file(place: str, number: int) -> None:
    """In a worker: do the work of that number, unless it was cancelled or is done."""
    exchange = Exchange(place)
    if not exchange.is_there():
        raise FileNotFoundError(f"the worker does not see the folder {place}")
    outcome = _name(number, "outcome")
    work = exchange.get(_name(number, "work"))
    if work is not None and not exchange.has(outcome):
        done = perform_work(work)
        if exchange.is_there():  # else the command has ended, and would not remove it
            exchange.put(outcome, done)


def _name(number: int, ending: str) -> str:
    return f"{number:08d}.{ending}"


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _direct(workers: int, folder: str) -> Any:
    """The runner of this machine: in this process, or with worker processes.

    Named, because Beam's DirectRunner may download another one.
    """
    runners: Any = import_module("apache_beam.runners.portability.fn_api_runner")
    if workers == 1:
        return runners.FnApiRunner()
    environments: Any = import_module("apache_beam.transforms.environments")
    command = "exec " + shlex.join([sys.executable, "-W", "ignore", "-c", _WORKER, folder])
    processes = environments.SubprocessSDKEnvironment(command)
    return runners.FnApiRunner(default_environment=processes)


def _import_quietly() -> None:
    """Import Beam, whose dependencies warn of other packages when they are imported."""
    disabled, handlers = logging.root.manager.disable, list(logging.root.handlers)
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module("apache_beam")
    finally:
        logging.disable(disabled)
        logging.root.handlers[:] = handlers
    # What it logs when a pipeline fails is in our error.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)


def _is_flag(value: object) -> bool:
    return value is True or value == "true"
