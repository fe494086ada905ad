"""Beam's job server and a pool of workers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path


def free_port() -> int:
    """A free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _serving(
    folder: Path, module: str, port: int, *command: str, env: Mapping[str, str]
) -> Iterator[None]:
    """A server of Beam, from when it listens until the end."""
    with (folder / f"{module.rpartition('.')[2]}.log").open("wb") as log:
        # The pool starts its workers with the `python` of the path.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        server = subprocess.Popen(
            [*command],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": path, **env},
        )
        try:
            while True:
                assert server.poll() is None, Path(log.name).read_text()
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield
        finally:
            server.terminate()
            server.wait(20)


@contextlib.contextmanager
def job_server(
    folder: Path,
    shared: str,
    env: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, ...]]:
    """Options of commands that send their pipelines to the server.

    Args:
        folder: of logs.
        shared: folder or URL for tasks and outcomes.
        env: more of the environment of the workers.
    """
    jobs, workers = free_port(), free_port()
    server = "apache_beam.runners.portability.local_job_service_main"
    pool = "apache_beam.runners.worker.worker_pool_main"
    python = (sys.executable, "-m")
    with (
        _serving(folder, server, jobs, *python, server, "--port", str(jobs), env={}),
        _serving(
            folder,
            pool,
            workers,
            *python,
            pool,
            f"--service_port={workers}",
            env=env or {},
        ),
    ):
        given = {
            "runner": "PortableRunner",
            "job_endpoint": f"localhost:{jobs}",
            "environment_type": "EXTERNAL",
            "environment_config": f"localhost:{workers}",
            "folder": shared,
        }
        pairs = [f"--engine-option={name}={value}" for name, value in given.items()]
        yield "--engine", "beam", "--jobs", "2", *pairs
