"""The files to adopt: splits, order, names, and what other tools left beside them."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Literal

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.model import DeclaredFeature
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.foreign.folders import check_sets, descriptions, shard_sets
from tfrecreg.core.registry.foreign.tfds import (
    FEATURES_NAME,
    INFO_NAME,
    NotTfdsError,
    TfdsInfo,
    is_unfinished,
    read_features,
)
from tfrecreg.core.registry.manifest import SCHEMA_NAME
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.schemas import find_schema
from tfrecreg.core.registry.shardset.target import files_target, read_schema_file
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.paths import is_url, without_secrets
from tfrecreg.core.values.config import DatasetConfig
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.reference import check_dataset_name
from tfrecreg.core.values.shards import ShardName, normal_splits, parse_shard_name, shard_name
from tfrecreg.core.values.text import safe

_PATH = 1000
_MOST_TEXT = 10_000
_OF_CONFIG = ("license", "description", "citation")
"""What the file of a dataset has a key for."""


@dataclass(slots=True)
class FilesBeside:
    """What lies beside the shards of an adoption."""

    infos: list[tuple[TfdsInfo, list[Shard]]] = field(default_factory=list)
    """Descriptions of TFDS, each with the shards in its folder."""
    features: dict[str, DeclaredFeature] = field(default_factory=dict)
    """What they, or the user, say of features, by flat name."""
    notes: list[str] = field(default_factory=list)
    """What was found, used and not read: one line each."""

    def splits(self) -> dict[str, str]:
        """The split of each shard that a description lists, by path."""
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
        """License, description, citation and so on, by the keys of a dataset's file; those that it
        has none for come under a key of their own: ``version``, ``homepage``, ``doi``.
        """
        if not self.infos:
            return {}
        first = self.infos[0][0]
        found = {
            "license": first.license.strip(),
            "description": first.description.strip(),
            "citation": first.citation.strip(),
            "version": first.version,
            "homepage": first.urls[0] if first.urls else "",
            "doi": first.doi,
        }
        return {name: text for name, text in found.items() if text}


def without_unfinished(shards: Sequence[Shard]) -> tuple[list[Shard], list[str]]:
    """Leave out what TFDS did not finish to write, and say so.

    Unfinished files are left out, and an unfinished folder beside a finished one. Of an unfinished
    folder alone the splits are taken of which all shards are there.
    """
    notes: list[str] = []
    whole: list[Shard] = []
    for shard in shards:
        name = shard.path.rpartition("/")[2]
        if is_unfinished(name):
            notes.append(f"left out as unfinished: `{safe(shard.name, limit=_PATH)}`")
        else:
            whole.append(shard)
    started = [shard for shard in whole if _folder(shard)]
    finished = [shard for shard in whole if not _folder(shard)]
    if started and finished:
        folders = sorted({_folder(shard) for shard in started})
        notes += [f"left out as unfinished: the folder `{safe(each)}`" for each in folders]
        whole = finished
    elif started:
        parts = {shard.path for shard in _parts_of_sets(started, notes)}
        whole = [shard for shard in started if shard.path not in parts]
    if not whole:
        raise UsageError(
            f"TensorFlow Datasets did not finish any split here: {'; '.join(notes[:3])}",
            hint="`download_and_prepare` makes the dataset again; `--split` names single files",
        )
    return whole, notes


def _folder(shard: Shard) -> str:
    """The name of the unfinished folder that a shard is in; empty without one."""
    parts = shard.path.split("/")[:-1]
    return next((part for part in parts if is_unfinished(part)), "")


def _parts_of_sets(shards: Sequence[Shard], notes: list[str]) -> Iterator[Shard]:
    """The shards of sets of which some are missing."""
    for subject, members in shard_sets(shards):
        of = members[0][1].of
        there = {name.number for _, name in members}
        missing = [number for number in range(of or 0) if number not in there]
        if missing:
            named = ", ".join(f"{number:05d}" for number in missing[:5])
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            notes.append(
                f"left out as unfinished: {len(members)} of the {of} shards of "
                f"`{safe(subject, limit=_PATH)}`; missing: {named}{more}"
            )
            yield from (shard for shard, _ in members)


def look_beside(
    shards: Sequence[Shard], pixels: Iterable[tuple[str, tuple[int, int, int]]]
) -> FilesBeside:
    """Read the descriptions in the folders of the shards."""
    found = descriptions(shards)
    beside = FilesBeside(infos=found.infos, notes=found.notes)
    for info, members in found.infos:
        try:
            features = read_features(members[0].storage, members[0].path.rpartition("/")[0])
        except NotTfdsError as error:
            shown = safe(info.path.removesuffix(INFO_NAME), limit=_PATH)
            beside.notes.append(f"`{shown}{FEATURES_NAME}` is not used: {error}")
            continue
        if features is None:
            continue
        for name in features.unknown[:5]:
            beside.notes.append(f"`{FEATURES_NAME}` declares `{safe(name)}` of an unknown kind")
        beside.features.update(features.features)
    for name, size in pixels:
        known = beside.features.get(name) or DeclaredFeature(None)
        beside.features[name] = replace(known, pixels=size, is_image=False)
    return beside


def schema_beside(shards: Sequence[Shard]) -> str | None:
    """The path of a `schema.pbtxt` of TFX: in the folder of all shards, or of their splits."""
    folders = {shard.path.rpartition("/")[0] for shard in shards}
    above = {folder.rpartition("/")[0] for folder in folders}
    places = [*folders] if len(folders) == 1 else []
    places += above if len(above) == 1 else []
    for folder in places:
        path = f"{folder}/{SCHEMA_NAME}"
        if shards[0].storage.stat(path) is not None:
            return f"/{path}"
    return None


def terms_lines(terms: Mapping[str, str], config: DatasetConfig, path: str) -> Iterator[str]:
    """What the description says about the dataset, and the lines of TOML that keep it."""
    missing = {
        key: text for key, text in terms.items() if key in _OF_CONFIG and not getattr(config, key)
    }
    rest = {key: text for key, text in terms.items() if key not in _OF_CONFIG}
    if rest:
        yield "the description beside the shards: " + ", ".join(
            f"{key} {safe(text, limit=200)}" for key, text in rest.items()
        )
    if missing:
        yield f"to keep what it says, add to `{path}`:"
        for key, text in missing.items():
            yield f"{key} = {_toml(text)}"


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def _toml(text: str) -> str:
    """A string of TOML on one line, without a character that a terminal would act on."""
    text = text[:_MOST_TEXT].encode("utf-8", "replace").decode("utf-8")
    shown = (_ESCAPES.get(each) or _shown(each) for each in text)
    return f'"{"".join(shown)}"'


def _shown(character: str) -> str:
    return character if character.isprintable() else f"\\U{ord(character):08X}"


How = Literal["copy", "link", "in-place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRequest:
    """Settings of an adoption."""

    name: str
    """Name of the dataset."""
    paths: tuple[str, ...] = ()
    """Files, globs, folders (every shard below them) and ``prefix@N`` sets, relative to the
    current folder. Empty with ``in-place``: all that is in the build's folder."""
    how: How = "copy"
    """``copy``: the build has bytes of its own. ``link``: hard links, so that writing into the
    files changes the build as well; copies where links are impossible. ``in-place``: the files are
    already in ``data/<name>`` and stay unchanged, including names.
    """
    splits: tuple[tuple[str, str], ...] = ()
    """Split, and glob over its files; it takes precedence over names."""
    schema: str | None = None
    """A schema's file or a reference; None for the dataset's own, or one that is drafted."""
    raw: str | None = None
    """Folder of the raw data that the records were made from, to judge the size by; None for the
    `raw` of the dataset, if it has one."""
    key: str | None = None
    """The feature whose value is the key of a record; None for file and number."""
    labels: tuple[tuple[str, str], ...] = ()
    """Feature and file of its class names; overrides files beside the shards."""
    pixels: tuple[tuple[str, tuple[int, int, int]], ...] = ()
    """Features that hold the pixels of an image, row by row, with height, width and channels."""


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """The schema that the records are checked against."""

    text: str
    path: str
    """Original path, for messages."""
    is_new: bool
    """Whether the dataset has it from now on."""
    judges: bool
    """Whether it has features to judge records by."""


def known_schema(registry: Registry, request: AdoptRequest, plan: AdoptPlan) -> KnownSchema | None:
    """The schema that was named, or the dataset's own, or one of TFX that lies beside the files;
    None to draft one.
    """
    own = registry.dataset(request.name).schema_text()
    path = registry.dataset(request.name).schema_path
    if request.schema is not None:
        text, where = find_schema(request.schema, registry=registry.storage.root)
        if own is not None and own != text:
            raise UsageError(
                f"`{request.name}` already has the schema `{path}`, and `{safe(where)}` differs",
                hint=f"replace `{path}`, or leave out `--schema`",
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
"""Split of a single set without a split in its names."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class _File:
    shard: Shard
    name: ShardName | None
    folder: str

    @property
    def group(self) -> tuple[str, str]:
        """What the files of one set have in common."""
        return self.folder, self.name.stem if self.name is not None else self.base

    @property
    def base(self) -> str:
        return self.shard.path.rpartition("/")[2]

    def order(self) -> tuple[tuple[str, str], int, bytes]:
        number = self.name.number if self.name is not None else 0
        return self.group, number, os.fsencode(self.base)


def deal(
    shards: Iterable[Shard],
    rules: Sequence[tuple[str, str]],
    listed: Mapping[str, str] | None = None,
) -> dict[str, list[Shard]]:
    """The files by split, in order of the split's name; in a split by set and number."""
    for split, _ in rules:
        if not _NAME.fullmatch(split):
            raise UsageError(
                f"`{safe(split)}` is not a split name: expected letters, digits and `_`",
                hint="--split NAME=GLOB, such as --split train='a-*.tfrecord'",
            )
    files = [_file(shard) for shard in shards]
    said = _by_rules(files, rules)
    found = {**(listed or {}), **said}
    rest = [file for file in files if file.shard.path not in found]
    found |= _by_names(rest, alone=not found)
    splits: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        splits[found[file.shard.path]].append(file)
    return {
        split: [file.shard for file in sorted(splits[split], key=_File.order)]
        for split in sorted(splits)
    }


def _file(shard: Shard) -> _File:
    folder, _, base = shard.path.rpartition("/")
    return _File(shard, parse_shard_name(base), folder)


def _by_rules(files: Sequence[_File], rules: Sequence[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for split, glob in rules:
        taken = [file for file in files if PurePosixPath(file.shard.path).match(glob)]
        if not taken:
            raise UsageError(
                f"`--split {safe(split)}={safe(glob)}` fits none of the {len(files)} files",
                hint="a glob without a slash matches file names; quote it for the shell",
            )
        for file in taken:
            if found.setdefault(file.shard.path, split) != split:
                raise UsageError(
                    f"`{safe(file.shard.name, limit=_PATH)}` is of the split "
                    f"`{safe(found[file.shard.path])}` and of `{safe(split)}`, according "
                    "to `--split`",
                    hint="each file must match only one glob",
                )
    return found


def _by_names(files: Sequence[_File], *, alone: bool) -> dict[str, str]:
    """Splits by names and folders; `alone` if the request names no split."""
    owner: dict[str, _File] = {}
    found: dict[str, str] = {}
    sets = {file.group for file in files}
    for file in files:
        split = file.shard.split
        if not split and alone and len(sets) == 1:
            split = _DEFAULT_SPLIT
        if not split:
            raise UsageError(
                f"no split is known for `{safe(file.shard.name, limit=_PATH)}`",
                hint=f"name it with --split NAME=GLOB, such as --split train='{safe(file.base)}'",
            )
        split = re.sub(r"[^A-Za-z0-9_]", "_", split)
        first = owner.setdefault(split, file)
        if first.group != file.group:
            raise UsageError(
                f"`{safe(first.shard.name, limit=_PATH)}` and "
                f"`{safe(file.shard.name, limit=_PATH)}` belong to two sets, and both would be the "
                f"split `{safe(split)}`",
                hint=f"if they are one split: --split {safe(split)}=GLOB; else give each its "
                "own name",
            )
        found[file.shard.path] = split
    return found


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One shard that is adopted."""

    shard: Shard
    """The file as stored, with its split and its number there."""
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
    """The folder that all files are below, absolute: keys name files from there."""
    beside: FilesBeside = field(default_factory=FilesBeside)
    """What other tools left beside the files."""

    def splits(self) -> dict[str, list[PlannedFile]]:
        """The files by split, in order."""
        found: dict[str, list[PlannedFile]] = {}
        for file in self.files:
            found.setdefault(file.shard.split, []).append(file)
        return found


def plan_adoption(registry: Registry, request: AdoptRequest) -> AdoptPlan:
    """Find the files, and give them their splits and names. Looks at no byte of them."""
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
    for path in paths:
        if is_url(path):
            raise UsageError(
                f"`{safe(without_secrets(path), limit=_PATH)}` is a URL, and only local files are "
                "adopted",
                hint="copy the files first; `tfrecreg check` reads them where they lie",
            )
    target = files_target(paths)
    _expect_places(request, folder, [shard.path for shard in target.shards])
    named, left_out = target.shards, list[str]()
    if not request.splits:
        named, left_out = without_unfinished(named)
    _expect_whole_sets(named)
    beside = look_beside(named, request.pixels)
    beside.notes[:0] = left_out
    files: list[PlannedFile] = []
    dealt = deal(named, request.splits, beside.splits())
    if not request.splits and _is_guess(named, dealt, beside):
        beside.notes.append(
            f"no name says a split: all files are `{_DEFAULT_SPLIT}`; --split NAME=GLOB names it"
        )
    for split, shards in dealt.items():
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
    return AdoptPlan(request.name, request.how, tuple(files), base, beside)


def _is_guess(
    named: Sequence[Shard], dealt: Mapping[str, Sequence[Shard]], beside: FilesBeside
) -> bool:
    """Whether the split of the files is the default one, as nothing names another."""
    said = any(shard.split for shard in named)
    return list(dealt) == [_DEFAULT_SPLIT] and not said and not beside.splits()


def _expect_whole_sets(shards: Sequence[Shard]) -> None:
    """Raise if only part of a sharded set is named while the rest is in the same folder."""
    for each in check_sets(Tally(), shards)[:1]:
        shown = safe(each.subject, limit=_PATH)
        raise UsageError(
            f"{each.of - each.unnamed} of the {each.of} shards of `{shown}` are named, "
            f"{each.unnamed} more are in the same folder",
            hint="name the whole set, by its folder or a glob",
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
                f"`/{safe(path, limit=_PATH)}` is in `{build}`, which the build would replace",
                hint=f"tfrecreg adopt {request.name} --in-place makes a build of the files there",
            )
        raise UsageError(
            f"`/{safe(path, limit=_PATH)}` is not in `{build}`, where `--in-place` looks",
            hint="move the files there, or leave out `--in-place`: then they are copied",
        )
