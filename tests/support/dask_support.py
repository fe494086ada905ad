"""A Dask scheduler and workers to kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0
"""Seconds for a process to start."""


class Cluster:
    """A scheduler and its workers; any of them can be killed and replaced.

    Args:
        folder: of their files.
        env: environment of all.
    """

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._env = {**os.environ, "PYTHONWARNINGS": "ignore", **(env or {})}
        self._number = 0
        self.port = 0
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start(self, workers: int = 2) -> None:
        """Start the scheduler, at the port of the one before, and workers."""
        self._number += 1
        file = self.folder / f"scheduler-{self._number}.json"
        arguments = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        arguments += ["--scheduler-file", str(file)]
        self.scheduler = self._process("dask_scheduler", *arguments)
        deadline = time.monotonic() + PATIENCE
        while not (file.exists() and file.stat().st_size):
            assert time.monotonic() < deadline, self.log()
            assert self.scheduler.poll() is None, self.log()
            time.sleep(0.05)
        self.port = int(json.loads(file.read_text())["address"].rpartition(":")[2])
        for _ in range(workers):
            self.add_worker()

    def add_worker(self, env: Mapping[str, str] | None = None) -> None:
        arguments = [self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        arguments += ["--host", "127.0.0.1", "--death-timeout", "60"]
        arguments += ["--local-directory", str(self.folder)]
        worker = self._process("dask_worker", *arguments, env=env)
        self.workers.append(worker)

    def _process(
        self,
        module: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**self._env, **(env or {})},
                start_new_session=True,
            )

    def kill(self, process: subprocess.Popen[bytes] | None) -> None:
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            if process is not None:
                self.kill(process)
        self.workers = []

    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")


@contextmanager
def cluster(
    folder: Path,
    workers: int = 2,
    env: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """A running cluster, which is killed in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Cluster(folder, env)
    try:
        made.start(workers)
        yield made
    finally:
        made.stop()
