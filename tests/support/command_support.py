"""A command in this process."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from deed_support import Deed

from tfrecreg.cli.main import main


def at_command_line(deed: Deed) -> Any:
    """Run the command; its exit code and output."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(deed.arguments())
    return {"code": code, "err": err.getvalue()}
