"""A Dask scheduler and workers to kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class Cluster:
    """A scheduler and two workers, which can be killed and replaced, with files in `folder`."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self._env = {**os.environ, "PYTHONWARNINGS": "ignore", **env}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the scheduler, at the same port each time, and workers."""
        self.scheduler = self._process("dask_scheduler", "--port", str(self._port))
        deadline = time.monotonic() + 60
        while not self._listens():
            log = (self.folder / "log").read_text("utf-8", "replace")
            assert time.monotonic() < deadline, log
            assert self.scheduler.poll() is None, log
            time.sleep(0.05)
        for _ in range(2):
            self.add_worker()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def add_worker(self) -> None:
        arguments = ("--nthreads", "1", "--no-nanny", "--death-timeout", "60")
        place = ("--local-directory", str(self.folder))
        self.workers.append(self._process("dask_worker", self.address, *arguments, *place))

    def _process(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--no-dashboard"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env,
                start_new_session=True,
            )

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            self.kill(process)
        self.workers = []


@contextmanager
def cluster(folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """A running cluster, which is killed in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Cluster(folder, env or {})
    try:
        made.start()
        yield made
    finally:
        made.stop()
