"""The builds that folders hold: who names a folder, or files in it, means what its manifest lists.

A folder of a registry is the build or release that a reference names. Any other folder with a
manifest, such as a copy or one behind a URL, is judged by that manifest and the schema beside it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from blake3 import blake3

from tfrecreg.errors import ManifestError, MissingFileError, StorageError
from tfrecreg.manifest.file import is_own_manifest, parse_manifest
from tfrecreg.manifest.model import LEDGER_NAME, MANIFEST_NAME, SCHEMA_NAME, Manifest
from tfrecreg.operations.raw_sizes import measure_raw
from tfrecreg.operations.targets import (
    TargetLike,
    build_target,
    display_name,
    files_target,
    find,
    named_targets,
    names_folder,
    read_schema_file,
    reference_target,
)
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry.lookup import Resolved, resolve_folder
from tfrecreg.registry.registry import RegistryLike
from tfrecreg.scan.interface import Shard, Target
from tfrecreg.storage.interface import Readable
from tfrecreg.storage.locations import absolute_place, storage_at
from tfrecreg.storage.urls import query_of
from tfrecreg.text import safe


@dataclass(frozen=True, slots=True)
class FolderBuild:
    """A build in a folder."""

    manifest: Manifest
    storage: Readable
    """Rooted at the folder."""
    resolved: Resolved | None
    """What it is in the registry that the folder belongs to."""

    def target(
        self,
        name: str,
        *,
        schema: str | None,
        raw: str | None = None,
        shards: Sequence[str] | None = None,
        progress: Progress = SILENT,
    ) -> Target:
        """The build as a target.

        Args:
            name: of the target, escaped.
            schema: path of a schema to check against instead of its own.
            raw: folder of raw data to measure.
            shards: the files that were named; None for all.
            progress: updated for the raw files that are measured.

        Raises:
            ManifestError: the schema in the folder is not the one that the manifest names.
            UsageError: a path does not exist.
        """
        text, path = self._schema(schema)
        made = build_target(
            self.manifest,
            self.storage,
            name=name,
            kind="build" if self.resolved is None else self.resolved.kind,
            schema=text,
            schema_path=path,
            raw=measure_raw(raw, progress) if raw is not None else None,
            raw_folder=raw,
            home=self.resolved.registry.storage if self.resolved is not None else None,
            named=shards,
        )
        if shards is not None:
            # The raw data are those of the whole build.
            made = replace(made, partial=True, raw=made.raw if raw is not None else None)
        if self.resolved is None:
            made = replace(made, notes=(self._basis(text, schema),))
        return made

    def _schema(self, path: str | None) -> tuple[str | None, str | None]:
        if path is not None:
            return read_schema_file(path), path
        if self.resolved is not None:
            return self.resolved.schema, self.resolved.schema_path
        return schema_beside(self.manifest, self.storage) or (None, None)

    def _basis(self, text: str | None, given: str | None) -> str:
        if given is not None:
            return f"judged by the `{MANIFEST_NAME}` in its folder, and the schema that was named"
        if text is None:
            return (
                f"judged by the `{MANIFEST_NAME}` in its folder, and by no schema: there is no "
                f"`{SCHEMA_NAME}` beside it, name one with `--schema`"
            )
        return f"judged by the `{MANIFEST_NAME}` and the `{SCHEMA_NAME}` in its folder"


def build_in_folder(
    argument: str,
    *,
    schema: str | None,
    raw: str | None = None,
    progress: Progress = SILENT,
) -> Target | None:
    """The build in the folder that a path or a URL names; None for anything else.

    Args:
        argument: a path or a URL.
        schema: path of a schema to check against; None for that in the folder, if there is one.
        raw: folder of raw data to measure.
        progress: updated for the raw files that are measured.

    Raises:
        ManifestError: the manifest there is damaged, or the schema is not the one that it names.
        NewerFormatError: a newer tfrecreg wrote the manifest.
        StorageError: the folder cannot be read.
    """
    if not names_folder(argument):
        return None
    found = _build_at(storage_at(argument), [])
    if found is None:
        return None
    name = safe(argument, limit=1000)
    return found.target(name, schema=schema, raw=raw, progress=progress)


def files_targets(
    patterns: Sequence[str],
    *,
    schema: str | None,
    raw: str | None,
    progress: Progress = SILENT,
) -> list[Target]:
    """Files, each judged by the manifest in its folder: a target for each build that has some of
    them, and one for all others.

    Args:
        patterns: as for :func:`files_target`.
        schema: path of a schema to check against instead of those of the builds.
        raw: folder of raw data to measure.
        progress: updated for the raw files that are measured.

    Raises:
        UsageError: a pattern matches nothing.
        ManifestError: a manifest is damaged, or a schema is not the one that it names.
        NewerFormatError: a newer tfrecreg wrote a manifest.
        StorageError: a store cannot be asked.
    """
    bare = files_target(patterns, schema=schema, raw=raw, progress=progress)
    told: list[str] = []
    folders: dict[tuple[str, str], list[Shard]] = {}
    for shard in bare.shards:
        folders.setdefault((shard.storage.root, shard.path.rpartition("/")[0]), []).append(shard)
    found = [(_build_of(shards, told), shards) for shards in folders.values()]
    rest = {id(shard) for build, shards in found if build is None for shard in shards}
    targets = []
    above = [absolute_place(each) for each in patterns if names_folder(each)]
    for build, shards in found:
        if build is None:
            continue
        paths: list[str] | None = [each.path.rpartition("/")[2] for each in shards]
        name = bare.name if len(found) == 1 else display_name([each.name for each in shards])
        folder = shards[0].name.rpartition("/")[0]
        if any(f"{absolute_place(folder)}/".startswith(f"{each.rstrip('/')}/") for each in above):
            paths = None  # a folder that contains the build was named
            name = safe(folder, limit=1000) if build.resolved is None else build.resolved.name
        targets.append(build.target(name, schema=schema, raw=raw, shards=paths, progress=progress))
    if rest:
        shards = [shard for shard in bare.shards if id(shard) in rest]
        name = bare.name if not targets else display_name([each.name for each in shards])
        targets.append(replace(bare, shards=tuple(shards), name=name, notes=tuple(told)))
    return targets


def find_target(
    argument: TargetLike, *, registry: RegistryLike | None = None, schema: str | None = None
) -> Target:
    """What one argument names, as a target.

    Raises:
        UsageError: it does not exist.
        ManifestError: the manifest of what it names is damaged.
    """
    (named,) = named_targets(argument)
    found = find(named, registry)
    if isinstance(found, Resolved):
        return reference_target(found, schema=schema, raw=None)
    build = build_in_folder(found, schema=schema)
    if build is not None:
        return build
    targets = files_targets([found], schema=schema, raw=None)
    if len(targets) == 1:
        return targets[0]
    bare = files_target([found], schema=schema, raw=None)
    several = f"`{bare.name}` has shards of several folders, whose manifests are not used together"
    return replace(bare, notes=(several,))


def manifest_in(storage: Readable, notes: list[str]) -> Manifest | None:
    """The manifest in the folder that `storage` is rooted at; None without one.

    Args:
        storage: of the folder.
        notes: receives a line if a file that only looks like one, or like the rest of a build, is
            there.

    Raises:
        ManifestError: the manifest is damaged.
        NewerFormatError: a newer tfrecreg wrote it.
        StorageError: it cannot be read.
    """
    where = f"{storage.root}/{MANIFEST_NAME}"
    shown = safe(where, limit=1000)
    try:
        data = storage.read(MANIFEST_NAME)
    except MissingFileError:
        if storage.is_local and storage.stat(LEDGER_NAME) is not None:
            notes.append(
                f"`{shown}` is missing beside a `{LEDGER_NAME}`: only the shards themselves are "
                "judged"
            )
        return None
    if not is_own_manifest(data) and storage.stat(LEDGER_NAME) is None:
        notes.append(f"`{shown}` is not used: it is not a manifest of tfrecreg")
        return None
    return parse_manifest(data, where)


def schema_beside(manifest: Manifest, storage: Readable) -> tuple[str, str] | None:
    """The text of the schema in the folder that `storage` is rooted at, and its path for messages.

    None if there is none: bare files, a build that was adopted in place, and those of earlier
    versions of tfrecreg have none.

    Raises:
        ManifestError: it is not the schema that the manifest names.
    """
    try:
        data = storage.read(SCHEMA_NAME)
    except MissingFileError:
        return None
    path = f"{storage.root}/{SCHEMA_NAME}"
    if blake3(data).hexdigest() == manifest.schema.blake3:
        return data.decode("utf-8", "replace"), path
    if all(entry.path != SCHEMA_NAME for entry in manifest.files):
        return None  # a file of another tool
    raise ManifestError(
        f"`{safe(path, limit=1000)}` is not the schema that the manifest beside it names",
        hint="fetch the folder again, or name a schema with `schema=`",
    )


def _build_of(shards: Sequence[Shard], notes: list[str]) -> FolderBuild | None:
    """The build that has some files of one folder."""
    first = shards[0]
    if not first.storage.is_local:
        if query_of(first.name):
            return None  # what signs this URL does not sign others
        try:
            return _build_at(first.storage.below(first.path.rpartition("/")[0]), notes)
        except StorageError as error:
            # A store need not let everybody look at what was not named.
            notes.append(f"`{MANIFEST_NAME}` beside the shards is not used: {error.message}")
            return None
    folder = os.path.dirname(first.name) or os.curdir  # noqa: PTH120 - a str stays a str
    try:
        resolved = resolve_folder(folder)
        if resolved is not None:
            return FolderBuild(resolved.manifest, resolved.storage(to_check=True), resolved)
        return _build_at(storage_at(folder), notes)
    except StorageError:
        if os.access(folder, os.X_OK):
            raise
        return None  # the folder is closed, and so are its shards: the scan reports each of them


def _build_at(storage: Readable, notes: list[str]) -> FolderBuild | None:
    manifest = manifest_in(storage, notes)
    return FolderBuild(manifest, storage, None) if manifest is not None else None
