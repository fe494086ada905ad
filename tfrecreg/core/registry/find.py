"""Finds the :class:`~tfrecreg.core.registry.data.Data` that a user named, and converts the data to
the :class:`~tfrecreg.core.check.scan.interface.Target` that validators judge.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.registry.data import (
    Build,
    Built,
    Data,
    Files,
    FolderBuild,
    Release,
    TargetLike,
    TargetsLike,
    resolve,
    resolve_folder,
)
from tfrecreg.core.registry.files import (
    find_all,
    left_out_line,
    names_folder,
    raw_totals,
    splits_of_places,
)
from tfrecreg.core.registry.foreign.labels import LabelsBeside
from tfrecreg.core.registry.manifest import (
    LEDGER_NAME,
    MANIFEST_NAME,
    SCHEMA_NAME,
    Manifest,
    ShardEntry,
    is_own_manifest,
    parse_manifest,
)
from tfrecreg.core.registry.registry import Registry, RegistryLike, find_registry, open_registry
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.paths import looks_remembered, named_url, query_of
from tfrecreg.core.storage.raw import absolute_place, storage_at
from tfrecreg.core.storage.words import BareFile
from tfrecreg.core.values.errors import MissingFileError, NoSuchNameError, StorageError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import looks_like_reference, parse_reference
from tfrecreg.core.values.text import safe

_FIRST_SHARDS, _FIRST_RECORDS = 4, 100
"""How many shards, and records of each, the search for the feature of a label map reads."""
_NAMED = 3


def named_targets(targets: TargetsLike, *, once: bool = True) -> list[str | Built]:
    """The targets. Each path is converted to text, and the query of each URL is removed."""
    several = [targets] if isinstance(targets, str | os.PathLike | Built) else targets
    named = (each if isinstance(each, Built) else named_url(os.fsdecode(each)) for each in several)
    return list(dict.fromkeys(named) if once else named)


def find_data(words: TargetsLike, registry: RegistryLike | None = None) -> list[Data]:
    """The data that `words` stand for. The named builds and releases come first. Files follow: one
    element for the files of each build, and one element for all files without a build.
    """
    found: list[Data] = []
    files: list[str] = []
    for word in named_targets(words):
        built = find_built(word, registry)
        if built is not None:
            found.append(built)
        else:
            files.append(str(word))
    return [*found, *files_by_build(files)] if files else found


def find_one(word: TargetLike, registry: RegistryLike | None = None) -> Data:
    """The data named by one word. If its shards are in several folders, no manifest is used."""
    found = find_data(word, registry)
    if len(found) == 1:
        return found[0]
    bare = bare_files([str(each) for each in named_targets(word)])
    several = f"`{bare.name}` has shards of several folders, so the folders' manifests are not used"
    return replace(bare, notes=(*bare.notes, several))


def find_target(
    word: TargetLike, *, registry: RegistryLike | None = None, schema: str | None = None
) -> Target:
    return target_of(find_one(word, registry), schema=schema)


def expect_built(word: TargetLike, registry: RegistryLike | None = None) -> Built:
    """The build or release named by `word`. Other data are refused."""
    (named,) = named_targets(word)
    found = find_built(named, registry)
    if found is None:
        raise UsageError(f"`{named}` is not a build or a release: a diff needs a manifest")
    return found


def find_built(word: str | Built, registry: RegistryLike | None = None) -> Built | None:
    """The build or release named by `word`; None if `word` stands for files.

    If a dataset ``mnist`` exists, ``mnist`` means the dataset, and ``./mnist`` means a file. The
    folder of a registry's build or release means this build or release. Any other folder with a
    manifest means the build that this manifest describes.
    """
    if isinstance(word, Built):
        return word
    found = find_reference(word, registry)
    if found is not None or not names_folder(word):
        return found
    opened = registry if isinstance(registry, Registry) else None
    folder = storage_at(word)
    return resolve_folder(folder, opened) or _folder_build(word, folder, [])


def find_reference(word: str, registry: RegistryLike | None) -> Build | Release | None:
    """Like :func:`find_built`, but returns None for the path of a folder."""
    if not looks_like_reference(word):
        return None
    root = registry if registry is not None else find_registry()
    if root is None:
        if os.path.lexists(word):
            return None
        raise NoSuchNameError(
            f"there is no file `{word}`, and no registry here to look it up in",
            hint="`-C DIR`, in Python `registry=DIR`, names a registry",
        )
    opened = open_registry(root)
    is_file = os.path.lexists(word) and parse_reference(word).name not in opened.dataset_names()
    return None if is_file else resolve(opened, word)


def _folder_build(name: str, storage: Readable, notes: list[str]) -> FolderBuild | None:
    where = f"{storage.root}/{MANIFEST_NAME}"
    shown = safe(where, limit=1000)
    try:
        data = storage.read(MANIFEST_NAME)
    except MissingFileError:
        # A store is not asked: that would be two more requests each time its files are opened.
        if not storage.may_refuse() and storage.stat(LEDGER_NAME) is not None:
            notes.append(
                f"`{shown}` is missing, although the folder has a `{LEDGER_NAME}`: only the shards "
                "are checked"
            )
        return None
    if not is_own_manifest(data) and storage.stat(LEDGER_NAME) is None:
        notes.append(f"`{shown}` is not used: it is not a manifest of tfrecreg")
        return None
    return FolderBuild(safe(name, limit=1000), parse_manifest(data, where), storage)


def bare_files(words: Sequence[str]) -> Files:
    """The files named by `words`, without their manifests."""
    left_out: list[str] = []
    shards = tuple(_numbered(find_all(words, left_out), {}))
    notes = (left_out_line(left_out),) if left_out else ()
    return Files(display_name(words), tuple(words), shards, notes=notes)


@looks_remembered()
def files_by_build(words: Sequence[str]) -> list[Data]:
    """The files named by `words`: those of each build, then all files without a build."""
    bare = bare_files(words)
    told: list[str] = []
    folders: dict[tuple[str, str], list[Shard]] = {}
    for shard in bare.shards:
        folders.setdefault((shard.storage.root, shard.path.rpartition("/")[0]), []).append(shard)
    builds = [(_build_of(shards, told), tuple(shards)) for shards in folders.values()]
    found: list[Files] = []
    above = [f"{absolute_place(each).rstrip('/')}/" for each in words if names_folder(each)]
    for build, shards in builds:
        if build is None:
            continue
        folder = f"{absolute_place(shards[0].name.rpartition('/')[0])}/"
        name = bare.name if len(builds) == 1 else display_name([each.name for each in shards])
        found.append(Files(name, bare.words, shards, build, whole=folder.startswith((*above,))))
    of_builds = {id(shard) for each in found for shard in each.shards}
    rest = tuple(shard for shard in bare.shards if id(shard) not in of_builds)
    if rest:
        name = bare.name if not found else display_name([each.name for each in rest])
        found.append(Files(name, bare.words, rest, notes=(*bare.notes, *told)))
    else:
        found[-1] = replace(found[-1], notes=bare.notes)
    return [*found]


def _build_of(shards: Sequence[Shard], notes: list[str]) -> Built | None:
    name = shards[0].name
    if query_of(name):
        return None  # the signature of this URL is not valid for other files
    folder = storage_at(os.path.dirname(name) or os.curdir)  # noqa: PTH120 - a str stays a str
    try:
        return resolve_folder(folder) or _folder_build(name.rpartition("/")[0], folder, notes)
    except StorageError as error:
        if not folder.may_refuse():
            raise
        notes.append(f"`{MANIFEST_NAME}` next to the shards is not used: {error.message}")
        return None


def display_name(words: Sequence[str]) -> str:
    """The first three of `words`, and the number of the others. A glob may stand for many words."""
    shown = " ".join(safe(word) for word in words[:_NAMED])
    more = len(words) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def target_of(
    data: Data,
    *,
    schema: str | None = None,
    raw: str | None = None,
    progress: Progress = SILENT,
) -> Target:
    """The target that validators judge. A schema file `schema` replaces the data's own schema."""
    text, path = (
        (read_schema_file(schema), schema)
        if schema is not None
        else (data.schema, data.schema_path)
    )
    build: Data | None = data
    notes: tuple[str, ...] = ()
    shards: tuple[Shard, ...] = ()
    is_part = False
    if isinstance(data, Files):
        build, notes, shards, is_part = data.build, data.notes, data.shards, not data.whole
    if isinstance(build, Built):
        if isinstance(build, FolderBuild):
            notes = (_basis(text, schema), *notes)
        named = [each.path.rpartition("/")[2] for each in shards] if is_part else None
        target = build_target(build.manifest, build.storage(to_check=True), text, path, named)
        home = build.registry.storage if build.registry is not None else None
        target = replace(target, name=data.name, kind=build.kind, home=home)
    else:
        target = Target(
            name=data.name,
            kind="files",
            dataset="",
            shards=shards,
            storage=None,
            manifest=None,
            schema=text,
            schema_path=path,
            raw=None,
            beside=labels_beside(shards),
        )
    size = raw_totals(raw, progress) if raw is not None else target.raw
    return replace(target, raw=size, raw_folder=raw, notes=notes)


def _basis(text: str | None, given: str | None) -> str:
    """A note that says against which manifest and schema a build without a registry is checked."""
    basis = f"checked against the `{MANIFEST_NAME}`"
    if given is not None:
        return f"{basis} in its folder and the schema that you named"
    if text is None:
        return (
            f"{basis} in its folder, but against no schema, because the folder has no "
            f"`{SCHEMA_NAME}`: name one with `--schema`"
        )
    return f"{basis} and the `{SCHEMA_NAME}` in its folder"


def listed_shards(
    manifest: Manifest,
    storage: Readable,
    wanted: Callable[[ShardEntry], bool],
    has: Callable[[str], bool] = bool,
) -> Iterator[Shard]:
    """The wanted shards of a manifest, each with its index if the index exists."""
    numbers: dict[str, int] = {}
    for entry in manifest.shards:
        number = numbers[entry.split] = numbers.get(entry.split, -1) + 1
        if wanted(entry):
            yield Shard(
                split=entry.split,
                number=number,
                name=entry.path,
                storage=storage,
                path=entry.path,
                declared=manifest.compression,
                entry=entry,
                index=entry.index if entry.index and has(entry.index) else None,
            )


def build_target(
    manifest: Manifest,
    storage: Readable,
    schema: str | None,
    schema_path: str | None,
    named: Collection[str] | None = None,
) -> Target:
    """The target for the build in the folder `storage`. `named` has the shards that the user named,
    even shards that `manifest` does not list. None selects all listed shards.
    """
    present = storage.listing() if named is None else None

    def exists(path: str) -> bool:
        return storage.stat(path) is not None if present is None else path in present

    # The `manifest` validator reports missing shards.
    wanted = exists if named is None else frozenset(named).__contains__
    shards = listed_shards(manifest, storage, lambda entry: wanted(entry.path), exists)
    counts = Counter(entry.split for entry in manifest.shards)
    numbers = {split: count - 1 for split, count in counts.items()}
    listed = {entry.path for entry in manifest.shards}
    strange = [BareFile(storage, path, path) for path in set(named or ()) - listed]
    return Target(
        name=manifest.dataset,
        kind="build",
        dataset=manifest.dataset,
        shards=(*shards, *_numbered(strange, numbers)),
        storage=storage,
        manifest=manifest,
        schema=schema,
        schema_path=schema_path,
        # The manifest's totals are for the whole build.
        raw=manifest.raw if manifest.raw.files and named is None else None,
        partial=named is not None,
    )


def _numbered(files: Collection[BareFile], numbers: dict[str, int]) -> list[Shard]:
    shards: list[Shard] = []
    splits = zip(splits_of_places([each.place for each in files]), files, strict=True)
    for split, file in sorted(splits, key=lambda each: (each[0], os.fsencode(each[1].place))):
        number = numbers[split] = numbers.get(split, -1) + 1
        shards.append(Shard(split, number, file.name, file.storage, file.path))
    return shards


def labels_beside(shards: Sequence[Shard]) -> LabelsBeside:
    """The label maps next to shards without a manifest."""
    places = dict.fromkeys((each.storage, each.path.rpartition("/")[0]) for each in shards)
    return LabelsBeside(tuple(places), partial(_first_features, tuple(shards)))


def _first_features(shards: Sequence[Shard]) -> frozenset[str]:
    """The names of the features in the first records of the first shards."""
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


def read_schema_file(path: str) -> str:
    """The text of a schema; bytes that are not UTF-8 are replaced, and the parser reports them."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"the schema `{path}` cannot be read: {error.strerror}",
            hint="name a dataset, a release or a `.pbtxt` file",
        ) from None
