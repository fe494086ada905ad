"""Commands in child processes of a process that has imported s3fs.

What a command does is the same: the fork takes the environment, the folder and the output that it
is given, runs `python -m tfrecreg`, and ends as any process does. On sys.path by `pythonpath` in
pyproject.toml; run as a program, this file is the process that forks.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from functools import cache
from importlib import import_module
from pathlib import Path

from package_support import CHECKOUT

_LENGTH = struct.Struct("<I")


class Warm:
    """A command that runs, with as much of `subprocess.Popen` as its tests use."""

    def __init__(self, arguments: list[str], environment: dict[str, str], cwd: Path) -> None:
        self.args = arguments
        self.returncode: int | None = None
        self._waiting = threading.Lock()
        (out, err, status), theirs = zip(*(os.pipe() for _ in range(3)), strict=True)
        self._out, self._err, self._status = os.fdopen(out), os.fdopen(err), os.fdopen(status)
        request = json.dumps([arguments, environment, str(cwd)]).encode()
        server = _server()
        socket.send_fds(server, [_LENGTH.pack(len(request))], theirs)
        server.sendall(request)
        for each in theirs:
            os.close(each)
        self.pid = int(self._status.readline())

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        """As :meth:`wait`; None while it runs."""
        ended = self.returncode is not None or select.select([self._status], [], [], 0)[0]
        return self.wait() if ended else None

    def wait(self) -> int:
        """Its exit code, or a signal's number below zero."""
        with self._waiting:
            if self.returncode is None:
                self.returncode = int(self._status.readline())
                self._status.close()
        return self.returncode

    def communicate(self, timeout: float = 600) -> tuple[str, str]:
        """Its output; it is killed if it does not end in so many seconds."""
        killer = threading.Timer(timeout, self.send_signal, [signal.SIGKILL])
        killer.start()
        said: list[str] = []
        errors = threading.Thread(target=lambda: said.append(self._err.read()))
        errors.start()
        with self._out, self._err:
            out = self._out.read()
            errors.join()
        self.wait()
        killer.cancel()
        return out, said[0]


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair()
    path = os.pathsep.join(map(str, (CHECKOUT, CHECKOUT / "plugins", CHECKOUT / "tests/support")))
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def main() -> None:
    """Fork for each request: a process that waits for the command, which is another fork."""
    for name in ("s3fs", "tfrecreg.cli.app", "tfrecreg.core.build", "multiprocessing"):
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    requests = socket.socket(fileno=int(sys.argv[1]))
    while True:
        head, descriptors, _, _ = socket.recv_fds(requests, _LENGTH.size, 3)
        if not head:
            return
        (left,) = _LENGTH.unpack(head)
        request = b""
        while len(request) < left:
            request += requests.recv(left - len(request))
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            out, err, status = descriptors
            child = os.fork()
            if child == 0:
                os.close(status)
                os.dup2(out, 1)
                os.dup2(err, 2)
                _become(out, err, *json.loads(request))
                return
            for each in (out, err):
                os.close(each)
            os.write(status, b"%d\n" % child)
            _, ended = os.waitpid(child, 0)
            os.write(status, b"%d\n" % os.waitstatus_to_exitcode(ended))
            os._exit(0)
        for each in descriptors:
            os.close(each)


def _become(
    out: int, err: int, arguments: list[str], environment: dict[str, str], cwd: str
) -> None:
    os.close(out)
    os.close(err)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:] = [cwd, *(each for each in sys.path if each != str(CHECKOUT / "tests/support"))]
    sys.argv[1:] = arguments
    runpy.run_module("tfrecreg", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
