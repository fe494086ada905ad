"""Commands that use the S3 server of `s3_support`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from package_support import CHECKOUT
from s3_support import ENVIRONMENT, SECRET
from warm_support import Warm


def command(*arguments: str, port: int, cwd: Path, **more: str) -> Warm | subprocess.Popen[str]:
    """A command in a process of its own, which reaches the S3 server at a port."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        **ENVIRONMENT,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'plugins'}",
        "HOME": str(cwd.parent),
        "XDG_CACHE_HOME": str(cwd.parent / "cache"),
        **more,
    }
    if arguments[0] != "-c":
        return Warm(list(arguments), environment, cwd)
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(process: Warm | subprocess.Popen[str], code: int = 0) -> str:
    """The output of a command; its exit code has to be `code`."""
    out, err = process.communicate(timeout=200)
    assert "Traceback" not in err, err
    assert SECRET not in out + err
    assert process.returncode == code, err
    return out if code == 0 else err


def run(*arguments: str, port: int, cwd: Path, code: int = 0, **more: str) -> str:
    return ended(command(*arguments, port=port, cwd=cwd, **more), code)
