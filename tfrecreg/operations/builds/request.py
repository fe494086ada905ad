"""The settings of a build: from arguments, and from the dataset's file for missing ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tfrecreg.amounts import SkipLimit
from tfrecreg.code_digest import code_digest, code_of
from tfrecreg.config import DatasetConfig
from tfrecreg.errors import UsageError
from tfrecreg.guard import OURS
from tfrecreg.manifest.python_data import BUILD_AGAIN
from tfrecreg.operations.builds.base import announced_source, made_of_python_data
from tfrecreg.operations.builds.state import WatchedStorage
from tfrecreg.plugins.manager import plugins
from tfrecreg.progress import SILENT, Progress
from tfrecreg.reference import check_dataset_name
from tfrecreg.registry import layout
from tfrecreg.registry.registry import Registry
from tfrecreg.shards import ShardPolicy
from tfrecreg.sources.guarded import GuardedSource
from tfrecreg.storage.listed import ListedStorage
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import raw_storage
from tfrecreg.text import safe

if TYPE_CHECKING:
    from tfrecreg.sources.python_data.source import PythonSource

SIZING = ("shards", "shard_size", "records_per_shard", "hosts")
"""The ways to size shards; at most one may be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """Settings of a build. None means the value from `datasets/<name>.toml`."""

    name: str
    source: str | None = None
    raw: str | None = None
    """Folder of the raw data, relative to the current folder, or the URL of one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The source's options; they go over those of the configuration."""
    policy: ShardPolicy | None = None
    compression: Literal["none", "gzip"] | None = None
    max_skipped: SkipLimit | int | str | None = None
    """Maximum number of skipped items: a number, or a share such as ``"0.5%"``."""
    default_schema: bool = False
    """Whether a missing schema may become the source's own, although the dataset had another."""
    base: str | None = None
    """The release to grow from: a version or a reference, or ``none``. None for the latest one,
    unless the number of shards is asked for or another compression: then everything is new."""
    save: bool = False
    """Whether what this request asks for is written into `datasets/<name>.toml`, so that
    ``build NAME`` does it again. The first build of a dataset is saved in any case."""
    anew: bool = False
    """Whether every shard is made again, although an earlier run that ended early had finished
    some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request with everything decided."""

    name: str
    source: GuardedSource
    source_name: str
    distribution: str
    version: str
    """Version of the distribution."""
    raw: LocalStorage | ListedStorage | None
    """Folder of the raw data; None where a program has the data."""
    options: dict[str, str]
    """The source's options as text, defaults included."""
    policy: ShardPolicy
    compression: Literal["none", "gzip"]
    max_skipped: SkipLimit
    remember: dict[str, Any]
    """Settings to save in `datasets/<name>.toml` so that ``build NAME`` repeats the build; empty if
    it has them already.
    """
    data: PythonSource | None = None
    """The data of a program; None where a plugin reads raw files."""


def code_of_source(
    distribution: str, source: GuardedSource, said: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Distribution to the digest of its code, where that can change under the same version.

    Args:
        distribution: the one that brought the source.
        source: the source.
        said: what this function found elsewhere, to compare it with: it has a digest here, too.
    """
    found = {}
    for name in sorted({distribution, OURS}):
        modules = (source.module,) if name != OURS else ()
        find = code_digest if said and name in said else code_of
        found[name] = find(name, *modules)
    return {name: digest for name, digest in found.items() if digest}


def _max_skipped(request: BuildRequest) -> SkipLimit | None:
    limit = request.max_skipped
    if limit is None or isinstance(limit, SkipLimit):
        return limit
    try:
        return SkipLimit.parse(limit)
    except ValueError as error:
        raise UsageError(
            f"`max_skipped`: {error}, found `{safe(str(limit))}`",
            hint="0 refuses every skipped item",
        ) from None


def prepare(
    registry: Registry, request: BuildRequest, progress: Progress | None = None
) -> Prepared:
    """Decide everything that the request leaves open, and load the source.

    Args:
        registry: whose configuration fills in.
        request: the requested settings.
        progress: updated for the raw files that the source lists and reads in this process.

    Raises:
        UsageError: a bad name, no source, no raw data, a bad option.
        PluginError: the source does not exist or does not load.
    """
    check_dataset_name(request.name)
    config = registry.dataset(request.name).config
    source_name = request.source or config.source
    if source_name is None:
        if made_of_python_data(registry, request.name):
            raise UsageError(
                f"`{request.name}` was built from the data of a program, which this command does "
                "not have",
                hint=f"{BUILD_AGAIN}; or name raw files: --source SOURCE --raw PATH",
            )
        known = ", ".join(each.record.name for each in plugins().sources())
        raise UsageError(
            f"no source is known for `{request.name}`",
            hint=f"tfrecreg build {request.name} --source SOURCE --raw PATH; sources: {known}",
        )
    announced = announced_source(registry, request.name, source_name)
    same = request.source in (None, config.source)
    given = {**(config.options if same else {}), **request.options}
    options, options_text = plugins().source_options(source_name, given)
    raw, raw_text = _raw(registry, request, config, progress or SILENT)
    watched = raw
    if progress is not None and isinstance(raw, LocalStorage):
        watched = WatchedStorage(raw, progress)
    policy = request.policy or policy_of(config)
    remembered = _remember(request, config, source_name, raw_text, given)
    if "raw" in remembered:
        _expect_text(request.name, raw_text)
    return Prepared(
        name=request.name,
        source=plugins().open_source(source_name, watched, options),
        source_name=announced.record.name,
        distribution=announced.distribution,
        version=announced.version,
        raw=raw,
        options=options_text,
        policy=policy,
        compression=request.compression or config.compression,
        max_skipped=_max_skipped(request) or config.max_skipped or SkipLimit.parse(0),
        remember=remembered,
    )


def _expect_text(name: str, raw: str) -> None:
    """Refuse a path that cannot be written into the configuration."""
    try:
        raw.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            f"the raw folder is `{safe(raw, limit=1000)}`, which is not UTF-8, and "
            f"`{layout.dataset_path(name)}` is",
            hint="rename it, or name it by a link",
        ) from None


def _raw(
    registry: Registry, request: BuildRequest, config: DatasetConfig, progress: Progress
) -> tuple[LocalStorage | ListedStorage, str]:
    """The raw data's storage, and its path as the configuration should have it."""
    root = Path(registry.storage.root)
    place = config.raw if request.raw is None else request.raw
    storage = None if place is None else raw_storage(place, progress)
    if isinstance(storage, ListedStorage):
        storage.expect_folder()
        return storage, storage.root
    if request.raw is not None:
        folder = Path(os.path.abspath(request.raw))  # noqa: PTH100 - resolve() would follow links
    elif config.raw is not None:
        folder = root / config.raw
    else:
        raise UsageError(
            f"no raw data are named for `{request.name}`",
            hint=f"tfrecreg build {request.name} --raw PATH",
        )
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(
            f"the raw data `{safe(str(folder))}` {what}", hint="name the folder with --raw PATH"
        )
    # What was said as a relative path stays one, so that the registry can move with its raw data.
    near = request.raw is None or not Path(request.raw).is_absolute()
    text = os.path.relpath(folder, root) if near or folder.is_relative_to(root) else str(folder)
    return LocalStorage(folder), text


def policy_of(config: DatasetConfig) -> ShardPolicy:
    """The sizes of shards that the file of a dataset asks for."""
    return ShardPolicy(
        shards=config.shards,
        shard_size=config.shard_size,
        records_per_shard=config.records_per_shard,
        hosts=config.hosts,
    )


def _remember(
    request: BuildRequest,
    config: DatasetConfig,
    source: str,
    raw: str,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    known = config.source is not None and config.raw is not None
    if known and not request.save:
        return {}  # a person wrote it: what was said this once stays said this once
    values: dict[str, Any] = {}
    if config.source is None or request.source is not None:
        values["source"] = source
    if config.raw is None or request.raw is not None:
        values["raw"] = raw
    if dict(options) != config.options:
        values["options"] = dict(options) or None
    if request.policy is not None:
        values.update({name: getattr(request.policy, name) for name in SIZING})
    if request.compression is not None:
        values["compression"] = request.compression
    if request.max_skipped is not None:
        values["max_skipped"] = str(request.max_skipped)
    return values
