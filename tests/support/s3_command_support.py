"""Commands that use the S3 server of `s3_support`, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from package_support import CHECKOUT
from radosgw_support import ENVIRONMENT, SECRET


def command(*arguments: str, port: int, cwd: Path, **more: str) -> subprocess.Popen[str]:
    """A command, or a program after `-c`, that reaches the S3 server at a port."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        **ENVIRONMENT,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'plugins'}",
        "HOME": str(cwd.parent),
        "XDG_CACHE_HOME": str(cwd.parent / "cache"),
        **more,
    }
    program = () if arguments[0] == "-c" else ("-m", "tfrecreg")
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        env=environment,
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    """The output of a command, or its errors if `code`, its exit code, is not 0."""
    out, err = process.communicate(timeout=200)
    assert "Traceback" not in err, err
    assert SECRET not in out + err
    assert process.returncode == code, err
    return out if code == 0 else err


def run(*arguments: str, port: int, cwd: Path, code: int = 0, **more: str) -> str:
    return ended(command(*arguments, port=port, cwd=cwd, **more), code)
