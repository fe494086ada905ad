"""From the user's arguments to the targets of a scan."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from tfrecreg.errors import UsageError
from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.raw_sizes import measure_raw
from tfrecreg.progress import SILENT, Progress
from tfrecreg.reference import looks_like_reference, parse_reference
from tfrecreg.registry.lookup import Resolved, resolve, resolve_folder
from tfrecreg.registry.registry import Registry, RegistryLike, find_registry, open_registry
from tfrecreg.scan.interface import RawSize, Shard, Target
from tfrecreg.shards import parse_shard_name
from tfrecreg.storage.interface import Readable, Storage
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import storage_at
from tfrecreg.storage.urls import is_url, named_url
from tfrecreg.text import safe

TargetLike: TypeAlias = str | os.PathLike[str] | Resolved
"""A reference, path, URL, glob or folder; or a build or a release."""
TargetsLike: TypeAlias = TargetLike | Iterable[TargetLike]
"""One target or several."""


def named_targets(targets: TargetsLike) -> list[str | Resolved]:
    """The targets, each once, paths as text and URLs without queries.

    Raises:
        UsageError: a URL with a password, or one that names nothing to read.
    """
    several = [targets] if isinstance(targets, str | os.PathLike | Resolved) else targets
    named = (each if isinstance(each, Resolved) else _text_of(each) for each in several)
    return list(dict.fromkeys(named))


def _text_of(target: str | os.PathLike[str]) -> str:
    text = os.fsdecode(target)
    return named_url(text) if is_url(text) else text


def resolve_in(registry: RegistryLike | None, reference: str | Resolved) -> Resolved:
    """The build or the release that `reference` names; a resolved target is returned unchanged.

    Raises:
        UsageError, NotHereError, ManifestError: as :func:`tfrecreg.resolve`.
    """
    if isinstance(reference, Resolved):
        return reference
    return resolve(open_registry(registry), reference)


def find(argument: str | Resolved, registry: RegistryLike | None) -> Resolved | str:
    """The build or release that `argument` names; `argument` itself where it names files.

    A dataset of the registry comes before a file or folder of the same name, for which
    ``./mnist`` can be written. The folder of a build or release, such as ``data/mnist``, names
    what its reference names.

    Raises:
        UsageError: it is a reference, and there is no such thing.
        ManifestError: the manifest of what it names is damaged.
    """
    found = find_reference(argument, registry)
    if isinstance(found, Resolved) or is_url(found) or not names_folder(found):
        return found
    return resolve_folder(found, registry if isinstance(registry, Registry) else None) or found


def find_reference(argument: str | Resolved, registry: RegistryLike | None) -> Resolved | str:
    """As :func:`find`, but a folder names the files in it.

    Raises:
        UsageError, ManifestError: as :func:`find`.
    """
    if isinstance(argument, Resolved) or is_url(argument):
        return argument
    if not looks_like_reference(argument):
        expect_no_misspelt_reference(argument, registry)
        return argument
    if os.path.lexists(argument):
        root = registry if registry is not None else find_registry()
        if root is None:
            return argument
        opened = open_registry(root)
        if parse_reference(argument).name not in opened.dataset_names():
            return argument
        return resolve(opened, argument)
    return resolve(open_registry(registry), argument)


def names_files(argument: str) -> bool:
    """Whether an argument that is no reference means files, such as ``shards/train-*``."""
    return "/" in argument or glob.has_magic(argument) or os.path.lexists(argument)


def expect_no_misspelt_reference(argument: str, registry: RegistryLike | None) -> None:
    """Refuse what names no file and was meant as a reference: ``mnist@1``, ``Mnist@latest``.

    What has a slash or a wildcard means files, and so does ``prefix@5``, the files of one set of
    five, unless a dataset has that name.

    Raises:
        UsageError: it is such an argument; the message says which part of it is wrong.
    """
    name, *others = re.split("([@#])", argument, maxsplit=1)
    mark, rest = others or ("", "")
    if not mark or names_files(argument):
        return
    if mark == "@" and rest.isdecimal():
        root = registry if registry is not None else find_registry()
        if root is None or name not in open_registry(root).dataset_names():
            return
        if any(sharded_spec(argument)):
            return
    parse_reference(argument)


_NAMED = 3
"""Maximum number of files or globs in the display name of a target."""


def reference_target(
    resolved: Resolved, *, schema: str | None, raw: str | None, progress: Progress = SILENT
) -> Target:
    """A build or a release.

    Args:
        resolved: what the reference names.
        schema: path of a schema to check against instead of its own.
        raw: folder of raw data to measure instead of taking the manifest's word.
        progress: updated for the raw files that are measured.

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


def _as_workers_see(storage: Readable) -> Readable:
    """Where shards and their indexes are read: of a build in a bucket, from there alone, because
    workers on other machines do not see its folder.
    """
    return storage if storage.is_local else storage_at(storage.root)


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
    read_from: Readable | None = None,
    named: Collection[str] | None = None,
) -> Target:
    """A folder that a manifest describes; `storage` is rooted at it.

    `read_from` is where shards and indexes are read; None for a place that all workers see.
    `named` are the existing shards that were named, listed or not; None for all that are listed.
    """
    present: Collection[str] | None = None
    if not storage.is_local and named is None:
        from tfrecreg.operations.url_targets import files_below  # few are URLs

        present = files_below(storage)

    def exists(path: str) -> bool:
        return storage.stat(path) is not None if present is None else path in present

    shards: list[Shard] = []
    numbers: dict[str, int] = {}
    read_from = read_from or _as_workers_see(storage)
    for entry in manifest.shards:
        number = numbers[entry.split] = numbers.get(entry.split, -1) + 1
        if not exists(entry.path) if named is None else entry.path not in named:
            continue  # the `manifest` validator says so
        index = entry.index if entry.index and exists(entry.index) else None
        shards.append(
            Shard(
                split=entry.split,
                number=number,
                name=entry.path,
                storage=read_from,
                path=entry.path,
                declared=manifest.compression,
                entry=entry,
                index=index,
            )
        )
    listed = {entry.path for entry in manifest.shards}
    for path in sorted(set(named or ()) - listed):
        parsed = parse_shard_name(path)
        split = (parsed.split or "") if parsed is not None else ""
        number = numbers[split] = numbers.get(split, -1) + 1
        shards.append(
            Shard(
                split=split,
                number=number,
                name=path,
                storage=read_from,
                path=path,
                declared=None,
                entry=None,
                index=None,
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

    Each may be a URL.

    Raises:
        UsageError: a pattern matches nothing.
        StorageError: a store cannot be asked.
    """
    files: dict[str, _File] = {}
    for pattern in patterns:
        for absolute, file in _located(pattern):
            files.setdefault(absolute, file)
    splits: dict[str, list[str]] = {}
    for absolute in files:
        name = parse_shard_name(os.path.basename(absolute))  # noqa: PTH119 - a str stays a str
        split = (name.split or "") if name is not None else ""
        splits.setdefault(split, []).append(absolute)
    shards = tuple(
        Shard(
            split=split,
            number=number,
            name=files[absolute].name,
            storage=files[absolute].storage,
            path=files[absolute].path,
            declared=None,
            entry=None,
            index=None,
        )
        for split in sorted(splits)
        for number, absolute in enumerate(sorted(splits[split], key=os.fsencode))
    )
    return Target(
        name=display_name(patterns),
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


class _File(NamedTuple):
    """A bare file."""

    storage: Readable
    path: str
    """In `storage`."""
    name: str
    """As findings have it: as it was given, or its URL."""


_ROOT = LocalStorage("/")


def _located(pattern: str) -> Iterator[tuple[str, _File]]:
    """The files that one argument names, each with a text that no other file has."""
    if is_url(pattern):
        from tfrecreg.operations.url_targets import expand_url  # few targets are URLs

        for storage, path, url in expand_url(pattern):
            yield url, _File(storage, path, url)
        return
    for path in _expand(pattern):
        absolute = _absolute(path)
        yield absolute, _File(_ROOT, absolute.lstrip("/"), path)


def names_one_file(argument: str) -> bool:
    """Whether an argument is the path or the URL of one file."""
    if not is_url(argument):
        return Path(argument).is_file()
    from tfrecreg.operations.url_targets import is_file_url  # few targets are URLs

    return is_file_url(argument)


def names_folder(argument: str) -> bool:
    """Whether an argument is the path or the URL of a folder."""
    if not is_url(argument):
        return os.path.isdir(argument)  # noqa: PTH112 - False where it may not be looked at
    from tfrecreg.operations.url_targets import is_folder_url  # few targets are URLs

    return is_folder_url(argument)


def _absolute(path: str) -> str:
    """Links above the file are followed, for that is what `..` means; its own name is kept."""
    folder, name = os.path.split(path)
    return str(Path(os.path.realpath(folder or "."), name))


def display_name(patterns: Sequence[str]) -> str:
    """The name of a target of files: the first arguments, for a shell may have expanded a glob."""
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
        missing = f"there is no TFRecord file below the folder `{safe(pattern)}`"
    elif _may_exist(pattern):
        return [pattern]
    else:
        found = glob.glob(pattern, recursive=True) or list(sharded_spec(pattern))
        found = [each for each in found if not os.path.isdir(each)]  # noqa: PTH112 - as above
        missing = f"no file matches `{safe(pattern)}`"
    if not found:
        raise UsageError(
            missing, hint="quote globs; `tfrecreg list` lists the names in this registry"
        )
    return found


def _may_exist(path: str) -> bool:
    """Whether it exists or is not accessible: then reading it will tell."""
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


def read_schema_file(path: str) -> str:
    """The text of a schema; bytes that are no UTF-8 are replaced, and parsing it says where.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"the schema `{safe(path)}` cannot be read: {error.strerror}",
            hint="name a dataset, a release or a `.pbtxt` file",
        ) from None
