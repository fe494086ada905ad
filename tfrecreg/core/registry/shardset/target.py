"""The target of a build, a release or files: shards with their manifest and schema.

The size of raw data, as they lie and without whole-file compression: the base of inflation.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfrecreg.core.check.scan.interface import RawSize, Shard, Target
from tfrecreg.core.registry.foreign.labels import LabelsBeside
from tfrecreg.core.registry.lookup import resolve_folder
from tfrecreg.core.registry.manifest import MANIFEST_NAME, SCHEMA_NAME, Manifest, RawTotals
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.files import (
    BareFile,
    files_below,
    find_all,
    left_out_line,
    names_folder,
)
from tfrecreg.core.registry.shardset.find import (
    Built,
    FolderBuild,
    TargetLike,
    find,
    folder_build,
    named_targets,
)
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.paths import is_web, list_through_links, looks_remembered, query_of
from tfrecreg.core.storage.raw import RawStorage, absolute_place, raw_storage, storage_at
from tfrecreg.core.values.errors import MissingFileError, StorageError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress, counting
from tfrecreg.core.values.shards import (
    folder_split,
    is_split_word,
    normal_split,
    normal_splits,
    parse_shard_name,
)
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.interface import RawFile

_WHERE = (
    "name the folder that the raw files lie in, with `--raw` or as the `raw` of the dataset in its "
    "file in `datasets/`"
)


def total_raw(files: Iterable[RawFile]) -> RawSize:
    """The sum over the raw files of a source."""
    stored = decoded = 0
    for file in files:
        stored += file.stored
        decoded += file.decoded
    return RawSize(stored, decoded)


def measure_raw(folder: str, progress: Progress = SILENT) -> RawSize:
    """The size of :func:`raw_totals`."""
    totals = raw_totals(folder, progress)
    return RawSize(totals.stored, totals.decoded)


def raw_totals(folder: str, progress: Progress = SILENT) -> RawTotals:
    """Every file below `folder`, for any source.

    A link counts as the file or folder that it leads to: raw data are often links into a cache.
    A folder counts once, however many links lead to it. Behind a URL, only files whose names end in
    `.gz` are looked into.
    """
    storage = raw_storage(folder)
    entry = storage.stat("")
    if not storage.is_local:
        storage.expect_folder()
    elif entry is None or entry.kind != "dir":
        raise UsageError(f"there is no folder `{safe(folder)}` of raw data", hint=_WHERE)
    files = list(_raw_files(storage, progress))
    size = total_raw(files)
    if size.stored == 0:
        raise UsageError(f"the folder `{safe(folder)}` of raw data is empty", hint=_WHERE)
    return RawTotals(files=len(files), stored=size.stored, decoded=size.decoded)


def _raw_files(storage: RawStorage, progress: Progress) -> Iterator[RawFile]:
    from tfrecreg.core.build.sources.interface import RawFile
    from tfrecreg.core.records.gzip_access import decoded_size

    with counting(progress, "measuring raw data", "files") as ticker:
        for entry in list_through_links(storage):
            if entry.kind == "link":
                raise MissingFileError(
                    f"`{safe(f'{storage.root}/{entry.path}', limit=4096)}` is a symbolic link that "
                    "leads nowhere",
                    hint="correct the link; `dvc checkout` or `dvc pull` restores the target of "
                    "a link into DVC's cache",
                )
            if entry.kind == "file":
                looked_into = storage.is_local or entry.path.lower().endswith(".gz")
                decoded = decoded_size(storage, entry.path) if looked_into else None
                yield RawFile(entry.path, entry.size, entry.size if decoded is None else decoded)
                ticker.add(1, entry.size)


def find_target(
    word: TargetLike | FolderBuild,
    *,
    registry: RegistryLike | None = None,
    schema: str | None = None,
) -> Target:
    """What one word names, as a target."""
    found: Built | str
    if isinstance(word, FolderBuild):
        found = word
    else:
        (named,) = named_targets(word)
        found = find(named, registry)
    if not isinstance(found, str):
        return target_of(found, schema=schema)
    targets = files_targets([found], schema=schema)
    if len(targets) == 1:
        return targets[0]
    bare = files_target([found], schema=schema)
    several = f"`{bare.name}` has shards of several folders, whose manifests are not used together"
    return replace(bare, notes=(*bare.notes, several))


def target_of(
    found: Built,
    *,
    schema: str | None = None,
    raw: str | None = None,
    name: str | None = None,
    named: Collection[str] | None = None,
    progress: Progress = SILENT,
) -> Target:
    """A build or a release."""
    text, path = (
        (read_schema_file(schema), schema)
        if schema is not None
        else (found.schema, found.schema_path)
    )
    made = build_target(
        found.manifest,
        found.storage(to_check=True),
        name=found.name if name is None else name,
        kind=found.kind,
        schema=text,
        schema_path=path,
        raw=measure_raw(raw, progress) if raw is not None else None,
        raw_folder=raw,
        home=found.registry.storage if found.registry is not None else None,
        named=named,
    )
    if named is not None:
        # The raw data belong to the whole build.
        made = replace(made, partial=True, raw=made.raw if raw is not None else None)
    if isinstance(found, FolderBuild):
        made = replace(made, notes=(_basis(text, schema),))
    return made


def _basis(text: str | None, given: str | None) -> str:
    """The note on what a build outside of a registry is judged by."""
    if given is not None:
        return f"judged by the `{MANIFEST_NAME}` in its folder, and the schema that was named"
    if text is None:
        return (
            f"judged by the `{MANIFEST_NAME}` in its folder, and by no schema: there is no "
            f"`{SCHEMA_NAME}` beside it, name one with `--schema`"
        )
    return f"judged by the `{MANIFEST_NAME}` and the `{SCHEMA_NAME}` in its folder"


def build_target(
    manifest: Manifest,
    storage: Readable,
    *,
    name: str,
    kind: Literal["build", "release"],
    schema: str | None,
    schema_path: str | None,
    raw: RawSize | None = None,
    raw_folder: str | None = None,
    home: Storage | None = None,
    named: Collection[str] | None = None,
) -> Target:
    """A folder that a manifest describes; `storage` is rooted at it.

    `named` are the existing shards that were named, listed or not; None for all that are listed.
    """
    present = files_below(storage) if named is None else None

    def exists(path: str) -> bool:
        return storage.stat(path) is not None if present is None else path in present

    shards: list[Shard] = []
    numbers: dict[str, int] = {}
    for entry in manifest.shards:
        number = numbers[entry.split] = numbers.get(entry.split, -1) + 1
        if not exists(entry.path) if named is None else entry.path not in named:
            continue  # the `manifest` validator reports it
        index = entry.index if entry.index and exists(entry.index) else None
        shards.append(
            Shard(
                split=entry.split,
                number=number,
                name=entry.path,
                storage=storage,
                path=entry.path,
                declared=manifest.compression,
                entry=entry,
                index=index,
            )
        )
    listed = {entry.path for entry in manifest.shards}
    strange = [BareFile(storage, path, path) for path in set(named or ()) - listed]
    if raw is None and manifest.raw.files:
        raw = RawSize(manifest.raw.stored, manifest.raw.decoded)
    return Target(
        name=name,
        kind=kind,
        dataset=manifest.dataset,
        shards=(*shards, *_numbered(strange, numbers)),
        storage=storage,
        manifest=manifest,
        schema=schema,
        schema_path=schema_path,
        raw=raw,
        raw_folder=raw_folder,
        home=home,
    )


def _numbered(files: Collection[BareFile], numbers: dict[str, int]) -> list[Shard]:
    """Shards without a manifest, in order of split and place."""
    shards: list[Shard] = []
    splits = zip(_splits_of([each.place for each in files]), files, strict=True)
    for split, file in sorted(splits, key=lambda each: (each[0], os.fsencode(each[1].place))):
        number = numbers[split] = numbers.get(split, -1) + 1
        shards.append(Shard(split, number, file.name, file.storage, file.path))
    return shards


def _splits_of(places: Sequence[str]) -> list[str]:
    """The split of each file: that of its name, else that of its folder or of one above; empty
    without one.

    A folder ``test`` is a split. ``my_test``, and a folder above, are one if there is another split
    beside it. TFX's ``Split-test`` always is.
    """
    folders = [tuple(each.split("/")[:-1]) for each in places]
    beside: dict[tuple[str, ...], set[str]] = {}
    for folder in dict.fromkeys(folders):
        for at, name in enumerate(folder):
            if split := folder_split(name):
                beside.setdefault(folder[:at], set()).add(normal_split(split))

    def said(folder: tuple[str, ...]) -> str:
        for at in reversed(range(len(folder))):
            own = at == len(folder) - 1 and is_split_word(folder[at])
            split = folder_split(folder[at])
            if split and (own or len(beside[folder[:at]]) > 1):
                return split
        return ""

    known = {each: folder_split(each[-1], tfx=True) or said(each) for each in set(folders) if each}
    normal = normal_splits(set(known.values()))
    names = (parse_shard_name(each.rpartition("/")[2]) for each in places)
    return [
        (name.split if name is not None else None) or normal.get(known.get(folder, ""), "")
        for name, folder in zip(names, folders, strict=True)
    ]


def files_target(
    words: Sequence[str],
    *,
    schema: str | None = None,
    raw: str | None = None,
    progress: Progress = SILENT,
) -> Target:
    """Bare files: paths, globs, folders (every shard below them) and ``prefix@N`` shard sets.

    Each may be a URL.
    """
    left_out: list[str] = []
    shards = tuple(_numbered(find_all(words, left_out), {}))
    return Target(
        name=display_name(words),
        kind="files",
        dataset="",
        shards=shards,
        storage=None,
        manifest=None,
        schema=read_schema_file(schema) if schema is not None else None,
        schema_path=schema,
        raw=measure_raw(raw, progress) if raw is not None else None,
        raw_folder=raw,
        notes=(left_out_line(left_out),) if left_out else (),
        beside=labels_beside(shards),
    )


def labels_beside(shards: Sequence[Shard]) -> LabelsBeside:
    """The label maps beside bare files."""
    folders: dict[tuple[str, str], tuple[Readable, str]] = {}
    for shard in shards:
        folder = shard.path.rpartition("/")[0]
        if not is_web(shard.storage.root):  # which need not list what they have
            folders.setdefault((shard.storage.root, folder), (shard.storage, folder))
    return LabelsBeside(tuple(folders.values()), partial(_first_features, tuple(shards)))


def _first_features(shards: Sequence[Shard]) -> frozenset[str]:
    """The features of the first records of the first shards that have any."""
    from tfrecreg.core.records.batch import RecordBatch
    from tfrecreg.core.records.reader import scan

    found: set[str] = set()
    for shard in shards[:_FIRST_SHARDS]:
        with suppress(StorageError), closing(scan(shard.storage, shard.path)) as events:
            batch = next((each for each in events if isinstance(each, RecordBatch)), None)
            if batch is not None and batch.whole:
                for position in range(min(len(batch), _FIRST_RECORDS)):
                    found.update(batch.example(position) or ())
    return frozenset(found)


@looks_remembered()
def files_targets(
    words: Sequence[str],
    *,
    schema: str | None = None,
    raw: str | None = None,
    progress: Progress = SILENT,
) -> list[Target]:
    """Files, each judged by the manifest in its folder: a target for each build that has some of
    them, and one for all others.
    """
    bare = files_target(words, schema=schema, raw=raw, progress=progress)
    told: list[str] = []
    folders: dict[tuple[str, str], list[Shard]] = {}
    for shard in bare.shards:
        folders.setdefault((shard.storage.root, shard.path.rpartition("/")[0]), []).append(shard)
    builds = [(_build_of(shards, told), shards) for shards in folders.values()]
    rest = {id(shard) for build, shards in builds if build is None for shard in shards}
    targets = []
    above = [absolute_place(each) for each in words if names_folder(each)]
    for build, shards in builds:
        if build is None:
            continue
        named: list[str] | None = [each.path.rpartition("/")[2] for each in shards]
        name = bare.name if len(builds) == 1 else display_name([each.name for each in shards])
        folder = shards[0].name.rpartition("/")[0]
        if any(f"{absolute_place(folder)}/".startswith(f"{each.rstrip('/')}/") for each in above):
            named = None  # a folder that contains the build was named
            name = build.name
        targets.append(
            target_of(build, schema=schema, raw=raw, name=name, named=named, progress=progress)
        )
    if rest:
        shards = [shard for shard in bare.shards if id(shard) in rest]
        name = bare.name if not targets else display_name([each.name for each in shards])
        notes = (*bare.notes, *told)
        targets.append(replace(bare, shards=tuple(shards), name=name, notes=notes))
    else:
        targets[-1] = replace(targets[-1], notes=(*targets[-1].notes, *bare.notes))
    return targets


_FIRST_SHARDS, _FIRST_RECORDS = 4, 100
"""The records whose features show which of them a label map is for."""
_NAMED = 3
"""Maximum number of files or globs in the display name of a target."""


def display_name(words: Sequence[str]) -> str:
    """The name of a target of files: the first arguments, for a shell may have expanded a glob."""
    shown = " ".join(safe(word) for word in words[:_NAMED])
    more = len(words) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def read_schema_file(path: str) -> str:
    """The text of a schema; bytes that are not UTF-8 are replaced, and the parser says where."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"the schema `{safe(path)}` cannot be read: {error.strerror}",
            hint="name a dataset, a release or a `.pbtxt` file",
        ) from None


def _build_of(shards: Sequence[Shard], notes: list[str]) -> Built | None:
    """The build that has some files of one folder."""
    first = shards[0]
    above = first.name.rpartition("/")[0]
    if not first.storage.is_local:
        if query_of(first.name):
            return None  # the signature of this URL is not valid for others
        try:
            folder = first.storage.below(first.path.rpartition("/")[0])
            return folder_build(above, folder, notes)
        except StorageError as error:
            # A store may refuse access to files that were not named.
            notes.append(f"`{MANIFEST_NAME}` beside the shards is not used: {error.message}")
            return None
    path = os.path.dirname(first.name) or os.curdir  # noqa: PTH120 - a str stays a str
    try:
        return resolve_folder(path) or folder_build(above, storage_at(path), notes)
    except StorageError:
        if os.access(path, os.X_OK):
            raise
        return None  # the folder is closed, and so are its shards: the scan reports each of them
