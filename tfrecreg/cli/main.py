"""The entry point: errors that a user can cause become one line, a hint and an exit code. With
`TFRECREG_DEBUG=1` their traceback follows.

Any other exception is a bug. Its traceback is printed, and the exit code is 3.
"""

from __future__ import annotations

import _thread
import errno
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress

import click

from tfrecreg.cli.app import app
from tfrecreg.core.plugins import guard
from tfrecreg.core.terminal.session import COMPLETE, Session
from tfrecreg.core.terminal.streams import settle, watch_streams, write_failure
from tfrecreg.core.values.errors import FailureError, RefusedError, TfrecregError, causes
from tfrecreg.core.values.text import safe

_INTERRUPTED = 130
_INTERRUPTS = (KeyboardInterrupt, click.exceptions.Abort)
_CLOSED_PIPE = 141
"""The exit code of a program that was ended by SIGPIPE."""
_GC_OBJECTS = 60_000
"""Number of new objects after which Python looks for garbage, instead of 700."""


def run() -> None:
    # The imports of a command make some 55,000 objects, none of which is garbage.
    gc.set_threshold(_GC_OBJECTS)
    # NumPy's matrix library starts a thread per processor, which takes longer than all
    # other imports of a small command. Nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = sys.argv[1:]
    sys.unraisablehook = _repeat_interrupt
    watch_streams()
    try:
        code = main(arguments)
    except SystemExit as error:  # raised by a plugin
        code = error.code if isinstance(error.code, int) else 3
    except Exception:
        with suppress(OSError):  # stderr may be full
            traceback.print_exc()
        code = 3
    if settle() is not None:
        code = max(code, FailureError.exit_code)
    # When Python exits, it looks for garbage again, which took a seventh of a small check.
    gc.freeze()
    sys.exit(code)


def _repeat_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Send ^C again if it came during a `__del__`, where Python reports and then forgets it."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        # `threading.Thread` takes a lock that the interrupted code may hold.
        _thread.start_new_thread(_interrupt_soon, ())
    else:
        sys.__unraisablehook__(lost)


def _interrupt_soon() -> None:
    time.sleep(0.01)  # until the `__del__` has ended
    os.kill(os.getpid(), signal.SIGINT)


def main(arguments: Sequence[str]) -> int:
    try:
        code = _main(arguments)
        sys.stdout.flush()
    except (OSError, SystemExit):  # click and rich exit if a pipe was closed
        failure = write_failure()
        if failure is None:
            raise
        settle()
        if isinstance(failure, BrokenPipeError):
            return _CLOSED_PIPE
        with suppress(OSError):
            _print_error(
                f"error: cannot write the output: {os.strerror(failure.errno or errno.EIO)}",
                "write the output to another place, or free some space",
            )
            guard.traced(failure)
        return FailureError.exit_code
    return code


def _main(arguments: Sequence[str]) -> int:
    session = Session()
    if COMPLETE in os.environ:
        from tfrecreg.cli.completion import register

        register()
    try:
        code = app.main(
            list(arguments),
            prog_name="tfrecreg",
            standalone_mode=False,
            obj=session,
            complete_var=COMPLETE,
        )
    except TfrecregError as error:
        return _refuse(session, arguments, error)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _misused(session, arguments, error)
    except (KeyboardInterrupt, Exception) as error:
        # Python 3.10 and 3.11 raise a `RuntimeError` instead while a class is defined.
        if not any(isinstance(each, _INTERRUPTS) for each in causes(error)):
            raise
        _print_error("error: interrupted", "")
        guard.traced(error)
        _document(session, arguments, "interrupted", "", _INTERRUPTED, [])
        return _INTERRUPTED
    return code if isinstance(code, int) else 0


def _refuse(session: Session, arguments: Sequence[str], error: TfrecregError) -> int:
    findings = error.findings if isinstance(error, RefusedError) else ()
    if findings:
        from tfrecreg.core.terminal.console import stderr
        from tfrecreg.core.terminal.findings import print_findings

        print_findings(stderr(), findings)
    if not any(finding.message == error.message for finding in findings):
        _print_error(f"error: {error.message}", error.hint)
    guard.traced(error)
    _document(session, arguments, error.message, error.hint, error.exit_code, findings)
    return error.exit_code


def _misused(session: Session, arguments: Sequence[str], error: click.ClickException) -> int:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.BadParameter) and ctx is not None and error.param is not None:
        source = ctx.get_parameter_source(error.param.name or "")
        if source is click.core.ParameterSource.ENVIRONMENT:
            error.param_hint = f"the environment variable '{error.param.envvar}'"
    hint = f"{ctx.command_path} --help" if ctx is not None else ""
    message = " ".join(error.format_message().split()).rstrip(".")
    known = [opt for each in ctx.command.params for opt in each.opts] if ctx is not None else []
    if isinstance(error, click.NoSuchOption) and "--option" in known and not error.possibilities:
        name = safe(error.option_name.lstrip("-"), limit=40).replace("-", "_")
        hint += f"; to set an option of a source or a format, use `--option {name}=VALUE`"
    _print_error(f"error: {safe(message, limit=400)}", hint)
    guard.traced(error)
    _document(session, arguments, message, hint, 2, [])
    return 2


def _print_error(message: str, hint: str) -> None:
    from rich.text import Text

    from tfrecreg.core.terminal.console import line, stderr

    console = stderr()
    head, colon, rest = message.partition(":")
    console.print(line((head + colon, "bold red"), rest))
    if hint:
        # The hint is often a command to copy, so only the terminal itself may wrap it.
        console.print(Text.assemble(("hint:", "cyan"), f" {hint}"))


def _document(
    session: Session,
    arguments: Sequence[str],
    message: str,
    hint: str,
    code: int,
    findings: Sequence[object],
) -> None:
    """With `--json`, print one document for any error."""
    # If arguments do not parse, `--json` may not have been read yet.
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if session.reported or not (session.as_json or "--json" in options):
        return
    status = "fail" if code == 1 else "error"
    error = {"message": message, "hint": hint, "exit_code": code}
    session.print_json({"status": status, "error": error, "findings": findings})
