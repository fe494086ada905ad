"""The listing and the examples of a source, made in a new process with another hash seed.

`python -m tfrecreg.testing.other_process FILE` reads what to do from a file and writes the result
beside it. Both are pickled by the parent and by this process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrecreg.core.build.sources.interface import Item, Skipped

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.guarded import GuardedSource


class SourceListing(NamedTuple):
    """What a source says before an example is made, in an order of its own."""

    items: list[Any]
    raw_files: list[Any]
    labels: dict[str, list[str]]
    schema: str
    codecs: dict[str, str]


def list_source(source: GuardedSource) -> SourceListing:
    """The listing of an opened source."""
    return SourceListing(
        items=sorted(source.items(), key=lambda each: (type(each).__name__, *each)),
        raw_files=sorted(source.raw_files()),
        labels={name: list(names) for name, names in source.labels().items()},
        schema=source.schema(),
        codecs=dict(source.codecs()),
    )


def make(source: GuardedSource, item: Item) -> bytes | Skipped:
    """The payload of an item's record, or why there is none."""
    made = source.record(item, {})
    return made if isinstance(made, Skipped) else made.payload


def in_other_process(
    source: GuardedSource, items: Sequence[Item], folder: Path
) -> tuple[SourceListing, list[bytes | Skipped]]:
    """The listing and the records of a source, as another process has them.

    Raises:
        RuntimeError: it failed; with the text of its stderr.
    """
    todo = folder / "todo"
    todo.write_bytes(pickle.dumps((source, list(items))))
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(todo)],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-4000:] or f"exit code {done.returncode}")
    found: tuple[SourceListing, list[bytes | Skipped]] = pickle.loads(todo.read_bytes())
    return found


def _answer(place: str) -> None:
    """Do what the file says, and put the result in its place."""
    todo = Path(place)
    source, items = pickle.loads(todo.read_bytes())
    listing = list_source(source)
    todo.write_bytes(pickle.dumps((tuple(listing), [make(source, item) for item in items])))


if __name__ == "__main__":
    _answer(sys.argv[1])
