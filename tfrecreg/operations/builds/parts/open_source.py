"""The source of a plan on this machine: the same plugin, versions and raw data, or an error."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfrecreg._version import __version__
from tfrecreg.amounts import SkipLimit
from tfrecreg.entry_points import is_local
from tfrecreg.errors import RawDataError, UsageError
from tfrecreg.operations.builds.base import Base, find_base
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.plan_model import ShardOfPlan
from tfrecreg.operations.builds.request import Prepared, code_of_source
from tfrecreg.operations.builds.settings import BuildRequest, BuildSettings
from tfrecreg.plugins.manager import plugins, plugins_of
from tfrecreg.plugins.records import SourceRecord
from tfrecreg.progress import Progress, counting
from tfrecreg.registry.registry import Registry
from tfrecreg.shards import ShardPolicy
from tfrecreg.sources.guarded import GuardedSource
from tfrecreg.storage.interface import Readable
from tfrecreg.storage.locations import raw_storage
from tfrecreg.storage.raw import RawStorage
from tfrecreg.text import safe


def codecs_here(source: GuardedSource) -> dict[str, str]:
    """Encoders of this machine that affect the bytes, with their versions."""
    return {"zlib": zlib.ZLIB_RUNTIME_VERSION, **source.codecs()}


@dataclass(frozen=True, slots=True)
class RawState:
    """Raw data of a plan that are on this machine and are as they were."""

    storage: RawStorage
    files: dict[str, tuple[int, int]]
    """Raw file to its size and modification time here."""


def open_planned(
    folder: PlanFolder, raw: str | None, registry: Callable[[], Registry] | None
) -> Prepared:
    """The source of the plan, opened on its raw data, which need not exist.

    Args:
        raw: the folder of the raw data, or its URL; None for that of the plan.
        registry: opens the registry, which has a local source.

    Raises:
        UsageError: this machine has other versions or options than the plan.
        UnknownPluginError: the plugin of the source is not installed.
    """
    document = folder.document
    said = document.source
    name = f"{said.distribution}:{said.name}"
    known = plugins()
    if is_local(name) and registry is not None:
        known = plugins_of(registry().config)
    announced = known.find(SourceRecord, name)
    options, text = known.source_options(name, said.options)
    planned = document.planned
    place = raw if raw is not None else planned.raw if planned is not None else ""
    storage = raw_storage(place or ".")
    source = known.open_source(name, storage, options)
    differences = list(_differences(folder, announced.version, text, source))
    if differences:
        raise UsageError(
            f"this machine would make other bytes than the plan `{folder.name}`: "
            f"{'; '.join(differences)}",
            hint="install the versions of the plan here, or write the plan again with these",
        )
    return Prepared(
        request=BuildRequest(name=document.dataset),
        source=source,
        entry=said,
        raw=storage,
        settings=BuildSettings(
            source=name,
            raw=place,
            options=said.options,
            policy=ShardPolicy(),
            compression=document.compression,
            max_skipped=SkipLimit.parse(document.max_skipped),
            max_dropped=SkipLimit.parse(document.max_dropped),
        ),
        remember=folder.settings(),
    )


def _differences(
    folder: PlanFolder, version: str, options: Mapping[str, str], source: GuardedSource
) -> Iterator[str]:
    """What differs from the plan, in a few words each."""
    document = folder.document
    said = document.versions
    pairs = {
        "tfrecreg": (said.tfrecreg, __version__),
        f"the plugin {document.source.distribution}": (document.source.version, version),
    }
    here = codecs_here(source)
    for codec in sorted(said.codecs.keys() | here.keys()):
        pairs[codec] = (said.codecs.get(codec, "none"), here.get(codec, "none"))
    pairs.update(
        {
            f"option {name}": (document.source.options.get(name, "none"), options.get(name, "none"))
            for name in sorted(document.source.options.keys() | options.keys())
        }
    )
    for name, (then, now) in pairs.items():
        if then != now:
            yield f"{safe(name)} {safe(now)} in place of {safe(then)}"
    code = code_of_source(document.source.distribution, source, said.code)
    for name in sorted(said.code.keys() | code.keys()):
        if said.code.get(name) != code.get(name):
            yield f"other code of {safe(name)}, by an editable or local install"


def read_raw_state(
    folder: PlanFolder,
    prepared: Prepared,
    *,
    moved: bool,
    shards: Sequence[ShardOfPlan],
    progress: Progress,
) -> RawState | None:
    """Hold raw files of this machine against those of the plan; None if they are not here.

    The source does not list them again: some read all their raw data for that. Files that were
    added since are not part of the plan.

    Args:
        moved: whether they are a copy, whose files have other times.
        shards: those whose raw files are looked at.

    Raises:
        RawDataError: they are others, or changed since.
        UsageError: a folder was named and does not exist.
    """
    storage = prepared.raw
    assert storage is not None
    if not storage.is_local:
        storage.expect_folder()
    elif not Path(storage.root).is_dir():
        if moved:
            raise UsageError(
                f"the raw data `{safe(storage.root, limit=1000)}` do not exist",
                hint="name the folder with --raw PATH",
            )
        return None
    planned = folder.raw_files(shards)
    found = _files_of_plan(planned, storage, progress)
    changed = next(_changed(planned, found, moved=moved), None)
    if changed is not None:
        raise RawDataError(
            f"the raw data in `{safe(storage.root, limit=1000)}` are not those of the plan: "
            f"{changed}",
            hint="restore them, or write the plan again, into a new folder",
        )
    return RawState(storage, found)


def _files_of_plan(
    planned: Mapping[str, tuple[int, int]], storage: Readable, progress: Progress
) -> dict[str, tuple[int, int]]:
    """Size and modification time of each raw file of the plan that is here."""
    found = {}
    with counting(progress, "checking whether raw data changed", "files") as ticker:
        for path in planned:
            entry = storage.stat(path, follow="all")
            if entry is not None:
                found[path] = (entry.size, entry.mtime_ns)
            ticker.add(1, 0)
    return found


def _changed(
    planned: Mapping[str, tuple[int, int]], found: Mapping[str, tuple[int, int]], *, moved: bool
) -> Iterator[str]:
    for path, (size, mtime_ns) in planned.items():
        shown = safe(path)
        if path not in found:
            yield f"`{shown}` is missing"
        elif found[path][0] != size:
            yield f"`{shown}` has {found[path][0]:,} bytes, expected {size:,}"
        elif not moved and found[path][1] != mtime_ns:
            yield f"`{shown}` was written again since (a copy is named by --raw PATH)"


def base_of_plan(folder: PlanFolder, registry: Registry | None) -> Base | None:
    """The release that the plan grows from; None without one.

    Raises:
        UsageError: the registry is missing, or has another release of that number.
    """
    said = folder.document.base
    if said is None:
        return None
    name = f"{folder.document.dataset}@{said.version}"
    if registry is None:
        raise UsageError(
            f"the plan grows from `{safe(name)}`, and there is no registry here",
            hint="name the registry that has it: tfrecreg -C REGISTRY parts build DIR …",
        )
    base = find_base(registry, folder.document.dataset, said.version)
    if base is None or base.manifest.digest != said.digest:
        raise UsageError(
            f"the registry has another `{safe(name)}` than the plan grows from",
            hint="write the plan again, into a new folder",
        )
    return base
