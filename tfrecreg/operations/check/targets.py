"""From what the user names to what is scanned."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from tfrecreg.errors import UsageError
from tfrecreg.manifest import Manifest
from tfrecreg.operations.check.raw import measure_raw
from tfrecreg.operations.schema_file import read_schema_file
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry import Resolved
from tfrecreg.scan import RawSize, Shard, Target
from tfrecreg.shards import parse_shard_name
from tfrecreg.storage import LocalStorage, Storage
from tfrecreg.text import safe

__all__ = ["build_target", "files_target", "reference_target", "sharded_spec"]

_NAMED = 3
"""So many files or globs are named where a target is shown."""


def reference_target(
    resolved: Resolved, *, schema: str | None, raw: str | None, progress: Progress = SILENT
) -> Target:
    """A build or a release.

    Args:
        resolved: what the reference names.
        schema: path of a schema to check against instead of its own.
        raw: folder of raw data to measure instead of taking the manifest's word.
        progress: told of the raw files that are measured.

    Raises:
        UsageError: its bytes are not here, or a path does not exist.
    """
    text, path = (
        (read_schema_file(schema), schema)
        if schema is not None
        else (resolved.schema, resolved.schema_path)
    )
    return build_target(
        resolved.manifest,
        resolved.storage(to_check=True),
        name=resolved.name,
        kind=resolved.kind,
        schema=text,
        schema_path=path,
        raw=measure_raw(raw, progress) if raw is not None else None,
        raw_folder=raw,
        home=resolved.registry.storage,
    )


def build_target(
    manifest: Manifest,
    storage: Storage,
    *,
    name: str,
    kind: Literal["build", "release"],
    schema: str | None,
    schema_path: str | None,
    raw: RawSize | None = None,
    raw_folder: str | None = None,
    home: Storage | None = None,
) -> Target:
    """A folder that a manifest describes; `storage` is rooted at it."""
    shards: list[Shard] = []
    numbers: dict[str, int] = {}
    for entry in manifest.shards:
        number = numbers[entry.split] = numbers.get(entry.split, -1) + 1
        if storage.stat(entry.path) is None:
            continue  # the `manifest` validator says so
        index = entry.index if entry.index and storage.stat(entry.index) is not None else None
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
    if raw is None and manifest.raw.files:
        raw = RawSize(manifest.raw.stored, manifest.raw.decoded)
    return Target(
        name=name,
        kind=kind,
        dataset=manifest.dataset,
        shards=tuple(shards),
        storage=storage,
        manifest=manifest,
        schema=schema,
        schema_path=schema_path,
        raw=raw,
        raw_folder=raw_folder,
        home=home,
    )


def files_target(
    patterns: Sequence[str],
    *,
    schema: str | None,
    raw: str | None,
    progress: Progress = SILENT,
) -> Target:
    """Bare files: paths, globs, folders (every shard below them) and ``prefix@N`` shard sets.

    Raises:
        UsageError: a pattern matches nothing.
    """
    root = LocalStorage("/")
    paths: dict[str, str] = {}
    for pattern in patterns:
        for path in _expand(pattern):
            paths.setdefault(_absolute(path), path)
    splits: dict[str, list[str]] = {}
    for absolute in paths:
        name = parse_shard_name(os.path.basename(absolute))  # noqa: PTH119 - a str stays a str
        split = (name.split or "") if name is not None else ""
        splits.setdefault(split, []).append(absolute)
    shards = tuple(
        Shard(
            split=split,
            number=number,
            name=paths[absolute],
            storage=root,
            path=absolute.lstrip("/"),
            declared=None,
            entry=None,
            index=None,
        )
        for split in sorted(splits)
        for number, absolute in enumerate(sorted(splits[split], key=os.fsencode))
    )
    return Target(
        name=_named(patterns),
        kind="files",
        dataset="",
        shards=shards,
        storage=None,
        manifest=None,
        schema=read_schema_file(schema) if schema is not None else None,
        schema_path=schema,
        raw=measure_raw(raw, progress) if raw is not None else None,
        raw_folder=raw,
    )


def _absolute(path: str) -> str:
    """Links above the file are followed, for that is what `..` means; its own name is kept."""
    folder, name = os.path.split(path)
    return str(Path(os.path.realpath(folder or "."), name))


def _named(patterns: Sequence[str]) -> str:
    """The arguments, as far as anybody would read them: a shell may have expanded a glob."""
    shown = " ".join(safe(pattern) for pattern in patterns[:_NAMED])
    more = len(patterns) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _expand(pattern: str) -> list[str]:
    """The files that one argument names.

    What a folder or a glob finds and cannot be read (a FIFO, a link that leads nowhere) is among
    them: the check then says that it was not read.
    """
    if os.path.isdir(pattern):  # noqa: PTH112 - False, not an error, where it may not be looked at
        found = list(_shards_below(pattern))
        missing = f"no TFRecord file lies below the folder `{safe(pattern)}`"
    elif _may_exist(pattern):
        return [pattern]
    else:
        found = glob.glob(pattern, recursive=True) or list(sharded_spec(pattern))
        found = [each for each in found if not os.path.isdir(each)]  # noqa: PTH112 - as above
        missing = f"no file matches `{safe(pattern)}`"
    if not found:
        raise UsageError(missing, hint="quote globs; `tfrecreg list` shows what has a name here")
    return found


def _may_exist(path: str) -> bool:
    """Whether there is something, or nobody may say: then reading it will tell."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _shards_below(folder: str) -> Iterator[str]:
    """By their names; hidden folders are left out, as globs leave them out."""
    for entry in LocalStorage(folder).list():
        *above, name = entry.path.split("/")
        if entry.kind == "dir" or any(part.startswith(".") for part in above):
            continue
        if parse_shard_name(name) is not None:
            yield str(Path(folder) / entry.path)


def sharded_spec(pattern: str) -> Iterator[str]:
    """``prefix@5`` stands for the files of one set of five, as TFX and Beam write it."""
    prefix, _, count = pattern.rpartition("@")
    if prefix and count.isdecimal():
        yield from glob.glob(f"{glob.escape(prefix)}-[0-9]*-of-{int(count):05d}*")
