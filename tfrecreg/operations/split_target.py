"""The shards of the splits that an expression names: of a build, a release or a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from blake3 import blake3

from tfrecreg.errors import ManifestError, MissingFileError, UsageError
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.manifest import MANIFEST_NAME, SCHEMA_NAME, Manifest, parse_manifest
from tfrecreg.manifest.adopted import adopted_kind
from tfrecreg.operations.load_records import SplitRecords
from tfrecreg.registry import Resolved
from tfrecreg.scan import Shard
from tfrecreg.storage import Storage
from tfrecreg.storage.locations import storage_at
from tfrecreg.suggest import listed
from tfrecreg.text import safe
from tfrecreg.training.split_words import named_splits


class SplitTarget(NamedTuple):
    """What a target has, before anything in its shards is looked at."""

    name: str
    """For messages, escaped."""
    words: str
    """The expression for splits."""
    splits: list[str]
    """Those that it names."""
    shards: list[Shard]
    """Of these splits, split by split."""
    is_raw: bool
    """Whether its records are known not to be Examples."""
    manifest: Manifest | None = None
    storage: Storage | None = None
    """Rooted at the folder that the manifest describes."""


def without_keys(name: str) -> UsageError:
    """Error for a target whose keys are wanted, and whose shards have no index."""
    return UsageError(
        f"`{name}` has shards without an index, so its records have no keys",
        hint="`tfrecreg adopt` makes a build with indexes of the shards of another tool",
    )


def splits_of_release(resolved: Resolved, split: str | None, caller: str) -> SplitTarget:
    """The shards of a build or a release.

    Args:
        resolved: the build or release.
        split: the expression; None if there is only one split.
        caller: the function that the user called, for hints.

    Raises:
        UsageError: there is no such split, or shards are missing.
        RefusedError: a shard does not have the size that the manifest says.
    """
    return _of_manifest(resolved.manifest, resolved.storage(), resolved.name, split, caller)


def splits_of_folder(path: str, split: str | None, caller: str) -> SplitTarget | None:
    """The build whose manifest lies in a folder, as DVC or a copy brings it; None without one.

    Raises:
        UsageError, RefusedError: as for a release.
        ManifestError: the manifest does not parse.
    """
    storage = storage_at(path)
    try:
        data = storage.read(MANIFEST_NAME)
    except MissingFileError:
        return None
    manifest = parse_manifest(data, f"{storage.root}/{MANIFEST_NAME}")
    return _of_manifest(manifest, storage, safe(path, limit=1000), split, caller)


def schema_of_folder(target: SplitTarget) -> tuple[str, str] | None:
    """The text of the schema that lies in the folder of a build, and its path for messages.

    None if there is none: bare files, a build that was adopted in place, and those of earlier
    versions of tfrecreg have none.

    Raises:
        ManifestError: it is not the schema that the manifest names.
    """
    if target.manifest is None or target.storage is None:
        return None
    return schema_beside(target.manifest, target.storage)


def schema_beside(manifest: Manifest, storage: Storage) -> tuple[str, str] | None:
    """As :func:`schema_of_folder`, of the folder that `storage` is rooted at."""
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


def chosen_splits(
    name: str, splits: Sequence[str], words: str | None, caller: str
) -> tuple[str, list[str]]:
    """The expression, and the splits that it names.

    Args:
        name: of the target, for messages.
        splits: those that exist.
        words: the expression; None if there is only one split.
        caller: the function that the user called, for hints.

    Raises:
        UsageError: it does not parse, names another split, or is needed and missing.
    """
    if words is None:
        if len(splits) != 1:
            raise UsageError(
                f"`{name}` has the splits {listed(splits)}: name one",
                hint=f"tfrecreg.{caller}({name!r}, split={splits[0]!r})",
            )
        (words,) = splits
        return words, [words]
    return words, named_splits(words, splits, name)


def _of_manifest(
    manifest: Manifest, storage: Storage, name: str, split: str | None, caller: str
) -> SplitTarget:
    words, splits = chosen_splits(name, [each.name for each in manifest.splits], split, caller)
    shards: list[Shard] = []
    for each in splits:
        entries = [entry for entry in manifest.shards if entry.split == each]
        SplitRecords(storage, entries, name).expect_whole()
        shards += [
            Shard(
                split=each,
                number=number,
                name=f"{storage.root}/{entry.path}",
                storage=storage,
                path=entry.path,
                declared=manifest.compression,
                entry=entry,
                index=entry.index or None,
            )
            for number, entry in enumerate(entries)
        ]
    is_raw = adopted_kind(manifest) is not PayloadKind.EXAMPLE
    return SplitTarget(name, words, splits, shards, is_raw, manifest, storage)
