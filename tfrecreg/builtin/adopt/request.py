"""Finds the shards to adopt, with splits, order and names, and other tools' files beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Literal

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.model import DeclaredFeature
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.find import bare_files, read_schema_file
from tfrecreg.core.registry.foreign.folders import check_sets, descriptions
from tfrecreg.core.registry.foreign.tfds import (
    FEATURES_NAME,
    NotTfdsError,
    TfdsInfo,
    is_unfinished,
    read_features,
)
from tfrecreg.core.registry.manifest import SCHEMA_NAME
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.schemas import find_schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.paths import expect_no_url
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.reference import check_dataset_name
from tfrecreg.core.values.shards import normal_splits, parse_shard_name, shard_name
from tfrecreg.core.values.text import safe

_PATH = 1000


@dataclass(slots=True)
class FilesBeside:
    """Files of other tools next to the shards of an adoption."""

    infos: list[tuple[TfdsInfo, Sequence[Shard]]] = field(default_factory=list)
    """Descriptions that TFDS wrote, each with the shards in its folder."""
    features: dict[str, DeclaredFeature] = field(default_factory=dict)
    """Declarations from these files or from the user, by flat feature name."""
    notes: list[str] = field(default_factory=list)
    """One line per file or folder that is used, left out or unreadable."""

    def splits(self) -> dict[str, str]:
        """The split of each shard that a description lists, by the path of the shard."""
        found: dict[str, str] = {}
        for info, shards in self.infos:
            normal = normal_splits(split.name for split in info.splits)
            names = {
                name: normal[split.name] for split in info.splits for name in info.files(split)
            }
            for shard in shards:
                split = names.get(shard.path.rpartition("/")[2])
                if split is not None:
                    found[shard.path] = split
        return found

    def terms(self) -> dict[str, str]:
        """License, description, citation, ``version``, ``homepage`` and ``doi``. The keys are the
        same as in the file of a dataset.
        """
        if not self.infos:
            return {}
        first = self.infos[0][0]
        found = {
            "license": first.redistribution_info.license.strip(),
            "description": first.description.strip(),
            "citation": first.citation.strip(),
            "version": first.version,
            "homepage": next(iter(first.location.urls), ""),
            "doi": first.doi,
        }
        return {name: text for name, text in found.items() if text}


def without_unfinished(shards: Sequence[Shard]) -> tuple[list[Shard], list[str]]:
    """Leave out files and folders that TFDS did not finish. Returns a note on each."""
    notes: dict[str, None] = {}
    whole: list[Shard] = []
    for shard in shards:
        *folders, name = shard.path.split("/")
        folder = next((part for part in folders if is_unfinished(part)), "")
        if folder:
            notes[f"left out as unfinished: the folder `{safe(folder)}`"] = None
        elif is_unfinished(name):
            notes[f"left out as unfinished: `{safe(shard.name, limit=_PATH)}`"] = None
        else:
            whole.append(shard)
    if not whole:
        raise UsageError(
            f"TensorFlow Datasets did not finish any split here: {'; '.join([*notes][:3])}"
        )
    return whole, [*notes]


def look_beside(
    shards: Sequence[Shard], pixels: Iterable[tuple[str, tuple[int, int, int]]]
) -> FilesBeside:
    """Read the descriptions in the folders of the shards."""
    infos, notes = descriptions(shards)
    beside = FilesBeside(infos=infos, notes=notes)
    for _, members in infos:
        try:
            features = read_features(members[0].storage, members[0].path.rpartition("/")[0])
            beside.features.update(features or {})
        except NotTfdsError as error:
            shown = safe(members[0].path.rpartition("/")[0], limit=_PATH)
            beside.notes.append(f"`/{shown}/{FEATURES_NAME}` is not used: {error}")
    for name, size in pixels:
        known = beside.features.get(name) or DeclaredFeature(None)
        beside.features[name] = replace(known, pixels=size, is_image=False)
    return beside


def schema_beside(shards: Sequence[Shard]) -> str | None:
    """The path of TFX's `schema.pbtxt`: in the shards' own folder, or one level above."""
    folders = {shard.path.rpartition("/")[0] for shard in shards}
    above = {folder.rpartition("/")[0] for folder in folders}
    places = [*folders] if len(folders) == 1 else []
    places += above if len(above) == 1 else []
    for folder in places:
        path = f"{folder}/{SCHEMA_NAME}".removeprefix("/")
        if shards[0].storage.stat(path) is not None:
            return f"/{path}"
    return None


How = Literal["copy", "link", "in-place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRequest:
    """The arguments of :meth:`tfrecreg.Dataset.adopt`."""

    name: str
    paths: tuple[str, ...] = ()
    how: How = "copy"
    splits: tuple[tuple[str, str], ...] = ()
    schema: str | None = None
    raw: str | None = None
    key: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    pixels: tuple[tuple[str, tuple[int, int, int]], ...] = ()


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """The schema that the records are checked against."""

    text: str
    path: str
    """Original path, for messages."""
    is_new: bool
    """Whether this schema becomes the dataset's own."""
    judges: bool
    """Whether this schema declares features that records can be checked against."""


def known_schema(registry: Registry, request: AdoptRequest, plan: AdoptPlan) -> KnownSchema | None:
    """The schema in the request, or else the dataset's own schema, or else the schema that TFX
    wrote next to the files. None means that a schema has to be drafted.
    """
    own = registry.dataset(request.name).schema_text()
    path = registry.dataset(request.name).schema_path
    if request.schema is not None:
        text, where = find_schema(request.schema, registry=registry.storage.root)
        if own is not None and own != text:
            raise UsageError(
                f"`{request.name}` already has the schema `{path}`, but `{where}` differs"
            )
    elif own is not None:
        text, where = own, path
    elif plan.how != "in-place" and (beside := schema_beside([e.shard for e in plan.files])):
        text, where = read_schema_file(beside), beside
    else:
        return None
    schema = parse_schema(text, where)
    return KnownSchema(text, where, is_new=own is None, judges=bool(schema.features))


_DEFAULT_SPLIT = "train"
"""The files get this split if they form a single set and their names contain no split."""


def _set_and_number(shard: Shard) -> tuple[tuple[str, str], int]:
    """The set that a file belongs to, as folder and name, and the file's number in this set."""
    folder, _, base = shard.path.rpartition("/")
    name = parse_shard_name(base)
    return ((folder, base), 0) if name is None else ((folder, name.stem), name.number)


def deal(
    shards: Sequence[Shard],
    rules: Sequence[tuple[str, str]],
    listed: Mapping[str, str] | None = None,
) -> dict[str, list[Shard]]:
    """The files by split. Splits are sorted by name, and their files by set and number."""
    found = {**(listed or {}), **_by_rules(shards, rules)}
    rest = [shard for shard in shards if shard.path not in found]
    found |= _by_names(rest, alone=not found)
    ordered = sorted(shards, key=lambda each: (_set_and_number(each), os.fsencode(each.path)))
    splits: dict[str, list[Shard]] = {split: [] for split in sorted(found.values())}
    for shard in ordered:
        splits[found[shard.path]].append(shard)
    return splits


def _by_rules(shards: Sequence[Shard], rules: Sequence[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for split, glob in rules:
        # `.` and `/` have no name, and `match` refuses them.
        named = shards if PurePosixPath(glob).name else ()
        taken = [shard for shard in named if PurePosixPath(f"/{shard.path}").match(glob)]
        if not taken:
            raise UsageError(f"`--split {split}={glob}` matches none of the {len(shards)} files")
        for shard in taken:
            if (other := found.setdefault(shard.path, split)) != split:
                raise UsageError(
                    f"`{shard.name}` is in the split `{other}` and in `{split}`, according to "
                    "`--split`"
                )
    return found


def _by_names(shards: Sequence[Shard], *, alone: bool) -> dict[str, str]:
    """The split of each file, according to its name. `alone` means that `shards` are all the
    files of the adoption."""
    owner: dict[str, Shard] = {}
    found: dict[str, str] = {}
    sets = {shard.path: _set_and_number(shard)[0] for shard in shards}
    default = _DEFAULT_SPLIT if alone and len({*sets.values()}) == 1 else ""
    for shard in shards:
        split = shard.split or default
        if not split:
            base = shard.path.rpartition("/")[2]
            raise UsageError(
                f"no split is known for `{shard.name}`",
                hint=f"name the split: `--split NAME=GLOB`, such as `--split train='{base}'`",
            )
        split = re.sub(r"[^A-Za-z0-9_]", "_", split)
        first = owner.setdefault(split, shard)
        if sets[first.path] != sets[shard.path]:
            raise UsageError(
                f"`{first.name}` and `{shard.name}` belong to different sets, but both would be in "
                f"the split `{split}`: name splits with `--split NAME=GLOB`"
            )
        found[shard.path] = split
    return found


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One adopted shard."""

    shard: Shard
    """The existing file, with its split and its number in the split."""
    path: str
    """Path in the build's folder."""
    bytes: int


@dataclass(frozen=True, slots=True)
class AdoptPlan:
    """Plan of an adoption."""

    dataset: str
    how: How
    files: tuple[PlannedFile, ...]
    """Files in order of split and number."""
    base: str
    """Absolute path of the folder with all files. File names in keys are relative to it."""
    beside: FilesBeside = field(default_factory=FilesBeside)
    """Files of other tools next to the shards."""

    def splits(self) -> dict[str, list[PlannedFile]]:
        """The files by split, in order."""
        found: dict[str, list[PlannedFile]] = {}
        for file in self.files:
            found.setdefault(file.shard.split, []).append(file)
        return found


def plan_adoption(registry: Registry, request: AdoptRequest) -> AdoptPlan:
    """Find the files, and decide their splits and names, without reading them."""
    check_dataset_name(request.name)
    folder = os.path.realpath(f"{registry.storage.root}/{layout.build_folder(request.name)}")
    paths = request.paths
    if not paths:
        if request.how != "in-place":
            raise UsageError("no files are named")
        paths = (folder,)
    for path in paths:
        expect_no_url(path, "only local files are adopted: copy them first")
    named: Sequence[Shard] = bare_files(paths).shards
    _expect_places(request, folder, [shard.path for shard in named])
    left_out: list[str] = []
    if not request.splits:
        named, left_out = without_unfinished(named)
    for each in check_sets(Tally(), named)[:1]:
        raise UsageError(
            f"only {each.of - each.unnamed} of the {each.of} shards of `{each.subject}` would be "
            f"adopted, although the same folder has {each.unnamed} more"
        )
    beside = look_beside(named, request.pixels)
    files: list[PlannedFile] = []
    beside.notes[:0] = left_out
    dealt = deal(named, request.splits, beside.splits())
    for split, shards in dealt.items():
        for number, shard in enumerate(shards):
            path = shard_name(request.name, split, number, len(shards))  # refuses odd names
            if request.how == "in-place":
                path = os.path.relpath(f"/{shard.path}", folder)
            entry = shard.storage.stat(shard.path)
            placed = replace(shard, split=split, number=number)
            files.append(PlannedFile(placed, path, entry.size if entry is not None else 0))
    if request.how == "in-place":
        base = folder
    else:
        base = os.path.commonpath([os.path.dirname(f"/{file.shard.path}") for file in files])  # noqa: PTH120 - a str stays a str
    return AdoptPlan(request.name, request.how, tuple(files), base, beside)


def _expect_places(request: AdoptRequest, folder: str, paths: list[str]) -> None:
    """``in-place`` refuses files outside the build's folder; other ways refuse files inside it."""
    for path in paths:
        inside = f"/{path}".startswith(f"{folder}/")
        if inside == (request.how == "in-place"):
            continue
        build = layout.build_folder(request.name)
        if inside:
            raise UsageError(
                f"`/{path}` is in the folder `{build}`, and the new build would replace this "
                "folder: use `--in-place`"
            )
        raise UsageError(f"`/{path}` is not in `{build}`, so `--in-place` cannot adopt it")
