"""The files that are adopted, and the names that they get in the build."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tfrecreg.errors import UsageError
from tfrecreg.operations.adopt.request import AdoptRequest, How
from tfrecreg.operations.adopt.splits import deal
from tfrecreg.operations.targets import files_target
from tfrecreg.reference import check_dataset_name
from tfrecreg.registry import Registry, layout
from tfrecreg.scan import Shard, Tally
from tfrecreg.shards import shard_name
from tfrecreg.text import safe
from tfrecreg.validators.names import check_sets

__all__ = ["AdoptPlan", "PlannedFile", "make_plan"]

_PATH = 1000


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One shard that is adopted."""

    shard: Shard
    """The file as it lies, with the split that it is of and its number there."""
    path: str
    """In the build's folder."""
    bytes: int


@dataclass(frozen=True, slots=True)
class AdoptPlan:
    """What an adoption would do."""

    dataset: str
    how: How
    files: tuple[PlannedFile, ...]
    """In order of split and number."""
    base: str
    """The folder that all files lie below, absolute: keys name files from there."""

    def splits(self) -> dict[str, list[PlannedFile]]:
        """The files by split, in order."""
        found: dict[str, list[PlannedFile]] = {}
        for file in self.files:
            found.setdefault(file.shard.split, []).append(file)
        return found


def make_plan(registry: Registry, request: AdoptRequest) -> AdoptPlan:
    """Find the files, and give them their splits and names. Looks at no byte of them.

    Raises:
        UsageError: a bad name, no files, files whose split is not known, or files that lie where
            the way of adopting does not fit.
    """
    check_dataset_name(request.name)
    folder = os.path.realpath(f"{registry.storage.root}/{layout.build_folder(request.name)}")
    paths = request.paths
    if not paths:
        if request.how != "in-place":
            raise UsageError(
                "no files are named",
                hint=f"tfrecreg adopt {request.name} PATH.., files, folders or globs",
            )
        paths = (folder,)
    target = files_target(paths, schema=None, raw=None)
    _expect_places(request, folder, [shard.path for shard in target.shards])
    _expect_whole_sets(target.shards)
    files: list[PlannedFile] = []
    for split, shards in deal(target.shards, request.splits).items():
        for number, shard in enumerate(shards):
            if request.how == "in-place":
                path = os.path.relpath(f"/{shard.path}", folder)
            else:
                path = shard_name(request.name, split, number, len(shards))
            entry = shard.storage.stat(shard.path)
            placed = replace(shard, split=split, number=number)
            files.append(PlannedFile(placed, path, entry.size if entry is not None else 0))
    if request.how == "in-place":
        base = folder
    else:
        base = os.path.commonpath([os.path.dirname(f"/{file.shard.path}") for file in files])  # noqa: PTH120 - a str stays a str
    return AdoptPlan(request.name, request.how, tuple(files), base)


def _expect_whole_sets(shards: Sequence[Shard]) -> None:
    """Of a set whose other shards lie beside the named ones, all have to be named."""
    for each in check_sets(Tally(), shards)[:1]:
        shown = safe(each.subject, limit=_PATH)
        raise UsageError(
            f"{each.of - each.unnamed} of the {each.of} shards of `{shown}` are named, "
            f"{each.unnamed} more lie beside them",
            hint="name all of a set, by its folder or a glob",
        )


def _expect_places(request: AdoptRequest, folder: str, paths: list[str]) -> None:
    """In place, all files lie in the build's folder; otherwise none does, for it is replaced."""
    for path in paths:
        inside = f"/{path}".startswith(f"{folder}/")
        if inside == (request.how == "in-place"):
            continue
        build = layout.build_folder(request.name)
        if inside:
            raise UsageError(
                f"`/{safe(path, limit=_PATH)}` lies in `{build}`, which the build would replace",
                hint=f"tfrecreg adopt {request.name} --in-place makes a build of the files there",
            )
        raise UsageError(
            f"`/{safe(path, limit=_PATH)}` does not lie in `{build}`, where `--in-place` looks",
            hint="move the files there, or leave out `--in-place`: then they are copied",
        )
