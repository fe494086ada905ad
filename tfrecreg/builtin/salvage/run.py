"""The operation: find damaged shards, write their undamaged records, and mark the folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfrecreg.builtin.salvage.model import SalvageResult, ShardResult
from tfrecreg.builtin.salvage.original import UnreadableShardError, read_locally
from tfrecreg.builtin.salvage.shard import DOUBTFUL, QUARANTINE, missing_shard, salvage_shard
from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.data import Built, TargetsLike
from tfrecreg.core.registry.find import (
    bare_files,
    find_reference,
    listed_shards,
    named_targets,
    target_of,
)
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.manifest import MANIFEST_NAME, SALVAGE_NAME, Manifest, parse_manifest
from tfrecreg.core.registry.registry import RegistryLike, find_registry, open_registry
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.raw import storage_at
from tfrecreg.core.values.errors import RefusedError, StorageError, TfrecregError, UsageError
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.context import Context, Travelling
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from typing_extensions import Unpack


def salvage(
    targets: TargetsLike, output: str | os.PathLike[str], **context: Unpack[Context]
) -> SalvageResult:
    """Write the undamaged records of damaged shards into a new folder. The originals are only read.

    For each shard, the folder gets two files: a clean shard of the same name, and the bytes that
    were cut out (``NAME.quarantine``). ``salvage.json`` marks the folder: `check` finds SHD009 for
    each changed shard. The folder appears when everything in it is written and synced.
    """
    registry, engine, progress = Travelling(**context)
    engine = engine or LocalEngine(1)
    named = named_targets(targets)
    if not named:
        raise UsageError("there is no target to salvage")
    root = registry if registry is not None else find_registry()
    opened = open_registry(root) if root is not None else None
    path = free_folder(output, opened)
    found = find_shards(named, registry, engine)
    require_elsewhere(path, found)
    shown = " ".join(map(str, named))
    if not found.shards and not found.missing:
        return SalvageResult(target=shown, output="", passed=found.passed, shards=())
    with new_folder(path, "salvage") as stage:
        results = engine.map(
            partial(salvage_one, stage=stage),
            found.shards,
            cost=lambda _, each: (
                each.kept + each.repaired,
                0 if each.original is None else each.original.bytes,
            ),
            label="salvaging",
            total=sum(shard.entry.records for shard in found.shards if shard.entry is not None),
            progress=progress,
        )
        remove_leftovers(stage)
        results += map(missing_shard, found.missing)
        result = SalvageResult(
            target=shown, output=str(path), passed=found.passed, shards=tuple(results)
        )
        _require_some(result)
        document = json.dumps(result.report(), indent=2, ensure_ascii=True) + "\n"
        with stage.create(SALVAGE_NAME) as writer:
            writer.write(document.encode("ascii"))
    return result


def salvage_one(shard: Shard, *, stage: Storage) -> ShardResult:
    """Salvage one shard in a worker. It may run twice for a shard, even at the same time."""
    name = os.path.basename(shard.path)  # noqa: PTH119 - a str stays a str
    try:
        with read_locally(shard, stage) as local:
            return salvage_shard(local, name, stage)
    except UnreadableShardError as error:
        return ShardResult(name=name, status="unreadable", reason=error.message, exact=False)


def _require_some(result: SalvageResult) -> None:
    """Refuse a result without a clean shard, because its folder would be useless."""
    if any(shard.clean is not None for shard in result.shards):
        return
    first = min(result.shards, key=lambda shard: _WORST.index(shard.status))
    more = f", nor is any of {len(result.shards) - 1} others" if len(result.shards) > 1 else ""
    name = safe(first.name)
    if first.status == "unreadable":
        raise StorageError(f"nothing was salvaged: {first.reason}")
    if first.status == "refused":
        raise RefusedError(f"`{name}` is not a TFRecord{more}: {first.reason}")
    raise RefusedError(
        f"`{name}` is missing{more}: nothing is left to salvage",
        hint="`tfrecreg repair REF` rebuilds it from the raw data",
    )


_WORST = ("unreadable", "refused", "missing", "salvaged", "sound")


@dataclass(frozen=True, slots=True)
class Found:
    """The shards to salvage."""

    shards: tuple[Shard, ...]
    """Existing shards, in the order in which they were named."""
    missing: tuple[Shard, ...]
    """Shards that a manifest lists but that do not exist."""
    passed: int
    """Number of shards that match their manifest."""
    folders: frozenset[Path]
    """The local folders that the user named, each with everything in it."""


def find_shards(
    targets: Sequence[str | Built], registry: RegistryLike | None, engine: Engine
) -> Found:
    """Find the shards that `targets` select."""
    found = [
        (each if isinstance(each, Built) else find_reference(each, registry)) or each
        for each in targets
    ]
    here: list[Shard] = []
    missing: list[Shard] = []
    passed = 0
    for each in found:
        if isinstance(each, Built):
            target = target_of(each)
            same = engine.map(is_named, target.shards)
            damaged = [
                shard for shard, is_same in zip(target.shards, same, strict=True) if not is_same
            ]
            passed += len(target.shards) - len(damaged)
            here += damaged
            missing += _missing(each.manifest, each.storage(to_check=True))
    files = [each for each in found if isinstance(each, str)]
    paths = [Path(os.path.expanduser(each)) for each in files]  # noqa: PTH111 - never raises
    folders = frozenset(path.resolve() for path in paths if path.is_dir())
    if files:
        bare = _with_company(bare_files(files).shards)
        here += bare
        for folder in sorted(_folders(bare)):
            manifest = _manifest(str(folder))
            if manifest is not None and folders.intersection((folder, *folder.parents)):
                missing += _missing(manifest, storage_at(str(folder)))
    _require_distinct([*here, *missing])
    return Found(tuple(here), tuple(missing), passed, folders)


def require_elsewhere(output: Path, found: Found) -> None:
    """Refuse an output folder in three cases: it holds the originals, it is inside a folder whose
    manifest lists every file, or the next salvage of the same targets would read it.
    """
    shards = (*found.shards, *found.missing)
    for folder in sorted(_folders(shards).union(found.folders)):
        closed = folder in found.folders or (folder / MANIFEST_NAME).exists()
        if output == folder or (closed and output.is_relative_to(folder)):
            where = "is" if output == folder else "is in"
            raise UsageError(f"`{output}` {where} the folder of the originals")


def _place(shard: Shard) -> tuple[str, str]:
    """The shard's folder (a path or a URL), and its name there."""
    local = shard.storage.local_path(shard.path)
    if local is None:
        return os.path.split(f"{shard.storage.root}/{shard.path}")
    folder, name = os.path.split(local)
    return os.path.realpath(folder), name


def _folders(shards: Iterable[Shard]) -> set[Path]:
    return {Path(_place(each)[0]) for each in shards}


def is_named(shard: Shard) -> bool:
    """Whether the shard matches its manifest. A shard that cannot be read is damaged."""
    if shard.entry is None:
        return False
    try:
        return hash_file(shard.storage, shard.path)[1] == shard.entry.blake3
    except TfrecregError:
        return False


def _missing(manifest: Manifest, storage: Readable) -> Iterator[Shard]:
    def exists(path: str) -> bool:
        return storage.stat(path) is not None

    return listed_shards(manifest, storage, lambda entry: not exists(entry.path), exists)


def _with_company(shards: Sequence[Shard]) -> list[Shard]:
    """Bare files, each with its index and manifest entry if these are in their usual places."""
    manifests: dict[str, Manifest | None] = {}
    found = []
    for shard in shards:
        folder, name = _place(shard)
        if folder not in manifests:
            manifests[folder] = _manifest(folder)
        manifest = manifests[folder]
        listed = manifest.shards if manifest is not None else []
        entry = next((each for each in listed if each.path == name), None)
        index = f"index/{name}.index"
        storage = storage_at(folder)
        declared: Literal["none", "gzip"] | None = None
        if manifest is not None and entry is not None:
            declared = manifest.compression
            index = entry.index or index
        found.append(
            replace(
                shard,
                storage=storage,
                path=name,
                declared=declared,
                entry=entry,
                index=index if storage.stat(index) is not None else None,
            )
        )
    return found


def _manifest(folder: str) -> Manifest | None:
    """The manifest in `folder`; None if it is invalid."""
    try:
        return parse_manifest(storage_at(folder).read(MANIFEST_NAME), MANIFEST_NAME)
    except TfrecregError:
        return None


def _require_distinct(shards: Sequence[Shard]) -> None:
    taken: dict[str, str] = {SALVAGE_NAME: "the report"}
    for shard in shards:
        name = _place(shard)[1]
        for each in (name, name + QUARANTINE, name + DOUBTFUL):
            if each in taken:
                raise UsageError(
                    f"`{shard.name}` and `{taken[each]}` would become the same file: salvage each "
                    "into its own folder"
                )
            taken[each] = shard.name
