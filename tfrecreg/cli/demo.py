"""`tfrecreg demo`: the whole workflow on generated data, step by step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import UsageError

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("demo")
@click.argument("folder", metavar="[DIR]", required=False, shell_complete=complete.folders)
@click.option(
    "--files",
    is_flag=True,
    help="Only write the small files that the guides begin with, in seven folders.",
)
@jobs_option
def command(session: Session, folder: str | None, files: bool, engine: Engine) -> None:
    """Run the whole workflow on generated sample data.

    The demo draws digits. It builds a dataset from them, releases the dataset and checks it. Then
    it damages a copy of a shard, and finds the damage. DIR is an empty or new folder. Without DIR,
    the demo makes a temporary folder and keeps it. Nothing is downloaded.
    """
    if files:
        _write_files(session, folder or ".")
        return
    from tfrecreg.core.registry.init import init

    session.warn_of_broken_plugins()
    path = demo_folder(folder)
    init(path, nested=True)
    steps = []
    before = Path.cwd()
    os.chdir(path)  # paths are shown as a user types them in this folder
    try:
        for title, typed, show in run_demo(session, path, engine):
            steps.append({"title": title, "command": typed})
            if not session.as_json:
                _print_step(session, title, typed, show)
    finally:
        os.chdir(before)
    if not session.printed_json({"folder": str(path), "steps": steps}):
        _print_next(session, str(path))


def _write_files(session: Session, folder: str) -> None:
    from tfrecreg.cli.guide_files import FOLDERS, write_guide_files

    write_guide_files(Path(folder))
    if not session.printed_json({"folder": folder, "files": FOLDERS}):
        for name, what in FOLDERS.items():
            session.out.print(f"{name + '/':13} {what}")


def _print_step(session: Session, title: str, typed: str, show: Callable[[], object]) -> None:
    from tfrecreg.core.terminal.console import line

    session.out.print(line(("# ", "dim"), (title, "bold")))
    if typed:
        session.out.print(line(("$ ", "dim"), (typed, "bold green")))
    show()
    session.out.print("")


def _print_next(session: Session, folder: str) -> None:
    from tfrecreg.core.terminal.console import line

    session.out.print(line(("What to try next", "bold")))
    for text in (
        f"cd {folder}",
        "tfrecreg head digits@1.0.0 -n 1          # show a record",
        "tfrecreg schema show digits --format tf  # how TensorFlow parses it",
        "tfrecreg explain CRC002                  # explain that finding",
        "tfrecreg check YOUR/FILES/*.tfrecord     # your own files; needs no registry",
    ):
        session.out.print(line("  ", (text, "green")))


NAME = "digits"
"""The dataset of the demo."""

_TRAIN, _TEST, _SHARDS = 2000, 400, 2


def demo_folder(folder: str | None) -> Path:
    """Return `folder`, which must be empty or absent. If it is None, make a temporary folder."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="tfrecreg-demo-"))
    path = Path(folder).absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"`{path}` is not an empty folder")
    return path


def run_demo(
    session: Session, folder: Path, engine: Engine
) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Draw, build, release and check digits, then damage a copy of a shard and find the damage.

    Yield the title of each step, the command that a user would type for it, and a function that
    prints its result. If the demo prepares something itself, the command is empty.
    """
    from tfrecreg.builtin.releases.commands import print_release
    from tfrecreg.builtin.releases.release import ReleaseRequest, release
    from tfrecreg.cli.digits import write_digits
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.build.run import build_from_source
    from tfrecreg.core.check.run import check
    from tfrecreg.core.registry.registry import open_registry
    from tfrecreg.core.storage.local import LocalStorage
    from tfrecreg.core.terminal.catalog import print_manifest
    from tfrecreg.core.terminal.console import line
    from tfrecreg.core.terminal.findings import print_report
    from tfrecreg.core.values.shards import ShardPolicy

    out = session.out
    raw = LocalStorage(folder / "raw")
    write_digits(raw, train=_TRAIN, test=_TEST, seed=1)
    title = f"{_TRAIN + _TEST} digits were drawn into raw/, in MNIST's own format"
    yield title, "", lambda: None
    entered = line(("$ ", "dim"), (f"cd {folder}", "bold green"))
    yield "A folder becomes a registry", f"tfrecreg init {folder}", partial(out.print, entered)
    registry = open_registry(folder)
    request = BuildRequest(
        name=NAME, source="mnist", raw=str(folder / "raw"), policy=ShardPolicy(shards=_SHARDS)
    )
    built = build_from_source(registry, request, engine=engine)
    command = f"tfrecreg build {NAME} --source mnist --raw raw --shards {_SHARDS}"
    title = f"built {NAME}, in {built.folder}"
    show = partial(print_manifest, out, title, built.folder, built.manifest, brief=True)
    yield "Raw data become sharded TFRecords", command, show
    registry = open_registry(folder)
    released = release(registry, ReleaseRequest(name=NAME, version="1.0.0"), engine=engine)
    command = f"tfrecreg release {NAME} --version 1.0.0"
    yield "The build is frozen under a number", command, partial(print_release, session, released)
    reference = f"{NAME}@1.0.0"
    (report,) = check([reference], registry=str(folder), engine=engine)
    yield "Every byte is checked", f"tfrecreg check {reference}", partial(print_report, out, report)
    copies = LocalStorage(folder / "damaged")
    names = [shard.path for shard in built.manifest.shards if shard.split == "test"]
    for name in names:
        data = bytearray((folder / built.folder / name).read_bytes())
        if name == names[0]:
            data[len(data) // 2] ^= 0x10
        with copies.create(name) as writer:
            writer.write(bytes(data))
    (report,) = check(["damaged"], registry=str(folder), engine=engine)
    title = "One bit of a copy of a shard is flipped, and found"
    yield title, "tfrecreg check damaged", partial(print_report, out, report)
