"""Imports each module in a process that has imported nothing of the project before.

Run as ``python -W error import_alone.py < request``. Starting an interpreter costs more than most
modules do, so one that has imported nothing forks for each of them. The request is JSON: `path`,
folders to import from; `modules`, the names. The answer is JSON: each module that fails, to what
it printed.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from importlib import import_module

LIBRARIES = ("numpy", "msgspec", "click", "jinja2", "tensorflow_metadata.proto.v0.schema_pb2")
"""Imported before the forks, because many modules import them."""


def alone(name: str) -> str:
    """What importing the module said: nothing, if all is well."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        code = 1
        try:
            module = import_module(name)
            for public in getattr(module, "__all__", ()):
                getattr(module, public)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return said or (f"ended with the status {status}" if status else "")


def main() -> None:
    request = json.load(sys.stdin)
    for name in LIBRARIES:
        import_module(name)
    sys.path[:0] = request["path"]
    # TensorFlow, which a few modules import, brings modules that warn.
    warnings.filterwarnings("ignore", module=r"(?!tfrecreg)")
    failed = {name: said for name in request["modules"] if (said := alone(name))}
    json.dump(failed, sys.stdout)


if __name__ == "__main__":
    main()
