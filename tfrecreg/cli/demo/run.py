"""The whole workflow on generated data, step by step."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfrecreg.builtin.releases.release import ReleaseRequest, ReleaseResult, release
from tfrecreg.cli.demo.digits import write_digits
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.build.run import build_from_source
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import InitResult, init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine

NAME = "digits"
"""The dataset of the demo."""

_TRAIN, _TEST, _SHARDS = 2000, 400, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStep:
    """One thing that the demo did."""

    title: str
    command: str
    """Command that a user would type; empty for a preparation by the demo itself."""
    result: InitResult | BuildResult | ReleaseResult | Report | None


def demo_folder(folder: str | None) -> Path:
    """The folder to work in: the one that is named, if it is free, or a new temporary one."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="tfrecreg-demo-"))
    path = Path(folder).absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(
            f"`{safe(str(path))}` is not an empty folder",
            hint="name another folder; existing files are not overwritten",
        )
    return path


def run_demo(folder: Path, engine: Engine) -> Iterator[DemoStep]:
    """Draw digits, build, release and check them, then damage a copy of a shard and find it."""
    initialised = init(folder, nested=True)
    raw = LocalStorage(folder / "raw")
    write_digits(raw, train=_TRAIN, test=_TEST, seed=1)
    title = f"{_TRAIN + _TEST} digits were drawn into raw/, in MNIST's own format"
    yield DemoStep(title=title, command="", result=None)
    command = f"tfrecreg init {folder}"
    yield DemoStep(title="A folder becomes a registry", command=command, result=initialised)
    registry = open_registry(folder)
    request = BuildRequest(
        name=NAME, source="mnist", raw=str(folder / "raw"), policy=ShardPolicy(shards=_SHARDS)
    )
    built = build_from_source(registry, request, engine=engine)
    command = f"tfrecreg build {NAME} --source mnist --raw raw --shards {_SHARDS}"
    yield DemoStep(title="Raw data become sharded TFRecords", command=command, result=built)
    registry = open_registry(folder)
    released = release(registry, ReleaseRequest(name=NAME, version="1.0.0"), engine=engine)
    command = f"tfrecreg release {NAME} --version 1.0.0"
    yield DemoStep(title="The build is frozen under a number", command=command, result=released)
    reference = f"{NAME}@1.0.0"
    (report,) = check([reference], registry=str(folder), engine=engine)
    command = f"tfrecreg check {reference}"
    yield DemoStep(title="Every byte is checked", command=command, result=report)
    copies = _damaged_copies(folder, built)
    (report,) = check([copies], registry=str(folder), engine=engine)
    title = "One bit of a copy of a shard is flipped, and found"
    yield DemoStep(title=title, command=f"tfrecreg check {copies}", result=report)


def _damaged_copies(folder: Path, built: BuildResult) -> str:
    """A folder with copies of the test shards, one bit flipped in the middle of the first."""
    copies = LocalStorage(folder / "damaged")
    names = [shard.path for shard in built.manifest.shards if shard.split == "test"]
    for name in names:
        data = bytearray((folder / built.folder / name).read_bytes())
        if name == names[0]:
            data[len(data) // 2] ^= 0x10
        with copies.create(name) as writer:
            writer.write(bytes(data))
    return copies.root
