"""Publishing from many processes at once.

Run as a program it is one of them: it waits for a line on its standard input, then builds and
releases again and again, and prints each result as a line of JSON. It syncs nothing: no power is
lost here.
"""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from system_support import System, installed

_IMAGES = 3


@dataclass(frozen=True)
class Said:
    """The result of one publication."""

    dataset: str
    turn: Turn
    code: int
    """0 if it was released, else the exit code of the error."""
    text: str
    """The version, or the error's message."""
    hint: str = ""
    digest: str = ""
    content: str = ""


@dataclass(frozen=True)
class Turn:
    """Identifies a publication: the process's number, and how many it made before."""

    process: int
    number: int


def images(turn: Turn) -> list[bytes]:
    """Images that no other publication has: noise, 784 bytes each."""
    rng = random.Random(f"{turn.process} {turn.number}")
    return [rng.randbytes(784) for _ in range(_IMAGES)]


def write_raw(folder: Path, turn: Turn) -> None:
    """These images under the names of MNIST's files."""
    folder.mkdir(parents=True)
    pixels = struct.pack(">IIII", 0x803, _IMAGES, 28, 28) + b"".join(images(turn))
    labels = struct.pack(">II", 0x801, _IMAGES) + bytes(_IMAGES)
    (folder / "train-images-idx3-ubyte").write_bytes(pixels)
    (folder / "train-labels-idx1-ubyte").write_bytes(labels)


def all_at_once(
    root: Path, datasets: list[str], count: int, versions: str, *, shared: bool = False
) -> list[Said]:
    """The results of a process for each named dataset, with `count` publications each.

    Args:
        root: of the registry.
        datasets: a process each; a name may occur several times.
        count: publications of each process.
        versions: ``auto``, or ``major`` for the numbers 1.0.0, 2.0.0 and so on.
        shared: whether each begins its next publication only when all made this one.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "publish_support", str(root)]
    children = [
        subprocess.Popen(
            [*command, name, str(number), str(count), versions],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for number, name in enumerate(datasets)
    ]
    said: list[Said] = []
    try:
        for child in children:  # imports are done, and raw data written
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for _ in range(count if shared else 1):
            for child in children:
                assert child.stdin is not None
                child.stdin.write("go\n" * (1 if shared else count))
                child.stdin.flush()
            for child in children:
                assert child.stdout is not None
                lines = [child.stdout.readline() for _ in range(1 if shared else count)]
                said += [_parsed(line) for line in lines]
    finally:
        for child in children:
            if sys.exc_info()[0] is not None:
                child.kill()
            child.communicate()
    assert [child.returncode for child in children] == [0] * len(children)
    return said


def _parsed(line: str) -> Said:
    found: dict[str, Any] = json.loads(line)
    return Said(**{**found, "turn": Turn(**found["turn"])})


def _publish(root: Path, name: str, turn: Turn, versions: str) -> dict[str, Any]:
    from tfrecreg.builtin.releases.release import publish
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.registry.registry import open_registry
    from tfrecreg.core.values.errors import TfrecregError

    request = BuildRequest(
        name=name, source="mnist", raw=str(_raw(root, turn)), options={"encoding": "raw"}
    )
    version = None if versions == "auto" else f"{turn.number + 1}.0.0"
    try:
        built, released = publish(open_registry(root), request, version)
    except TfrecregError as error:
        return {"code": error.exit_code, "text": error.message, "hint": error.hint}
    assert built.manifest.content == released.manifest.content
    return {
        "code": 0,
        "text": str(released.version),
        "digest": released.manifest.digest,
        "content": released.manifest.content,
    }


def _raw(root: Path, turn: Turn) -> Path:
    return root.parent / f"raw-{turn.process}-{turn.number}"


def _main() -> None:
    root, name, process, count, versions = sys.argv[1:]
    turns = [Turn(int(process), number) for number in range(int(count))]
    for turn in turns:
        write_raw(_raw(Path(root), turn), turn)
    import tfrecreg.builtin.releases.release  # so that all begin together

    del tfrecreg
    print("ready", flush=True)
    with installed(System()):
        for turn in turns:
            sys.stdin.readline()
            made = _publish(Path(root), name, turn, versions)
            said = {"process": turn.process, "number": turn.number}
            print(json.dumps({"dataset": name, "turn": said, **made}), flush=True)


if __name__ == "__main__":
    _main()
