"""Publishing from many processes at once. Nothing is synced: no power is lost here."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from child_support import Child
from system_support import System, installed

from tfrecreg.builtin.releases.release import publish
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import TfrecregError


class Said(NamedTuple):
    dataset: str
    images: range
    code: int
    """0 if it was released, else the exit code of the error."""
    text: str
    """The version, or the error's message."""
    hint: str = ""
    digest: str = ""
    content: str = ""


def image(number: int) -> bytes:
    """784 bytes of noise, which no other number has."""
    return random.Random(number).randbytes(784)


def write_raw(folder: Path, numbers: Iterable[int]) -> None:
    """These images under the names of MNIST's files."""
    folder.mkdir()
    images = [image(number) for number in numbers]
    pixels = struct.pack(">IIII", 0x803, len(images), 28, 28) + b"".join(images)
    labels = struct.pack(">II", 0x801, len(images)) + bytes(len(images))
    (folder / "train-images-idx3-ubyte").write_bytes(pixels)
    (folder / "train-labels-idx1-ubyte").write_bytes(labels)


def all_at_once(
    root: Path, datasets: list[str], count: int, *, same_numbers: bool = False
) -> list[Said]:
    """The results of a process for each named dataset, with `count` publications each.

    Each process begins its next publication when all processes made this one. With `same_numbers`
    these have the numbers 1.0.0, 2.0.0 and so on.
    """

    def publishing(process: int, name: str, tell: Callable[..., None]) -> list[Said]:
        found = []
        with installed(System()):
            for number in range(count):
                tell("ready", wait=True)
                version = f"{number + 1}.0.0" if same_numbers else None
                found.append(_publish(root, name, 3 * (process * count + number), version))
        return found

    children = [Child(partial(publishing, *each)) for each in enumerate(datasets)]
    for _ in range(count):
        assert [each.told() for each in children] == ["ready"] * len(children)
        for each in children:
            each.go_on()
    said: list[Said] = []
    for child in children:
        ended = child.join()
        assert ended.failure is None, ended.failure.trace
        said += ended.value
    return said


def _publish(root: Path, name: str, first: int, version: str | None) -> Said:
    """Publish three images, the first of which has that number."""
    raw, images = root.parent / f"raw-{first}", range(first, first + 3)
    write_raw(raw, images)
    options = {"encoding": "raw"}
    request = BuildRequest(name=name, source="mnist", raw=str(raw), options=options)
    try:
        built, released = publish(open_registry(root), request, version)
    except TfrecregError as error:
        return Said(name, images, error.exit_code, error.message, error.hint)
    made = released.manifest
    assert built.manifest.content == made.content
    return Said(name, images, 0, str(released.version), "", made.digest, made.content)
