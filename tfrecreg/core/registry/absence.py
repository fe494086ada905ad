"""Errors for a build, release, schema or dataset that this machine lacks, with the commands that
fetch it.

DVC itself writes `NAME.dvc` and `dvc.lock`, and `tfrecreg pipeline` writes `dvc.yaml`. All of them
are in YAML's block style; files in another style are ignored.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import MANIFEST_NAME, SCHEMA_NAME, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry, Yank, not_yanked
from tfrecreg.core.storage.paths import is_url
from tfrecreg.core.values.errors import (
    ManifestError,
    MissingFileError,
    NewerFormatError,
    NoSuchNameError,
    NotHereError,
    UsageError,
)
from tfrecreg.core.values.reference import Reference, Version, is_dataset_name
from tfrecreg.core.values.shards import parse_shard_name
from tfrecreg.core.values.text import did_you_mean, listed

_STAGE = re.compile(r"  ([^\s#:][^:]*):\s*")
_SECTION = re.compile(r"\s*([a-z]+):\s*")
_HASH = re.compile(r"""\bmd5["']?:\s*["']?([^\s"',}]+)""")
_OUT = re.compile(r"\s*- (?:path: )?([^\s:]+?)/?:?\s*")


def bring_command(root: str, folder: str) -> str:
    """The command that fetches a folder from DVC; empty if DVC's files do not name it."""
    if Path(root, f"{folder}.dvc").is_file():
        return f"dvc pull {folder}.dvc"
    if folder in dict(_outs(Path(root, "dvc.lock"))):
        return f"dvc pull {folder}"
    stage = dict(_outs(Path(root, "dvc.yaml"))).get(folder)
    return f"dvc repro {stage}" if stage is not None else ""


def is_output(root: str, folder: str) -> bool:
    """Whether a stage of a pipeline makes the folder. Such a folder has no pointer of its own."""
    return any(folder in dict(_outs(Path(root, name))) for name in ("dvc.lock", "dvc.yaml"))


def named_hash(root: str, folder: str) -> str | None:
    """DVC's hash of a folder, from its pointer, or from `dvc.lock` if it has no pointer. Empty if
    these files name the folder but give no hash; None if they do not name the folder.
    """
    lock = dict(_outs(Path(root, "dvc.lock"), _HASH))
    try:
        found = _HASH.search(Path(root, f"{folder}.dvc").read_text("utf-8", "replace"))
    except OSError:
        return lock.get(folder)
    return found[1] if found is not None else ""


def _outs(path: Path, wanted: re.Pattern[str] | None = None) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    stage = section = folder = ""
    for line in lines:
        if named := _STAGE.fullmatch(line):
            stage, section = named[1], ""
        elif opened := _SECTION.fullmatch(line):
            section = opened[1]
        elif section == "outs" and (out := _OUT.fullmatch(line)):
            folder = out[1]
            yield folder, "" if wanted else stage
        elif section == "outs" and wanted and (value := wanted.search(line)):
            yield folder, value[1]


def bytes_hint(manifest: Manifest) -> str:
    """How to get the bytes of a build or release."""
    release = manifest.release
    if release is None:
        return f"`tfrecreg check {manifest.dataset}` lists the missing bytes"
    if release.dvc:
        return f"tfrecreg pull {manifest.dataset}@{release.version}"
    copy = f"{layout.VERSIONS}/{manifest.dataset}/{release.version}"
    return f"DVC does not have them: copy `{copy}` from another machine or a backup"


def absent_build(dataset: Dataset) -> NotHereError:
    name, folder = dataset.name, layout.build_folder(dataset.name)
    bring = bring_command(dataset.registry.storage.root, folder)
    if has_shards(dataset):
        message = f"`{folder}` has shards but no `{MANIFEST_NAME}` to check them against"
        adopt = f"tfrecreg adopt {name} --in-place"
        return NotHereError(message, hint=f"{bring}; or {adopt}" if bring else adopt)
    expect_dataset(dataset)
    known = "" if dataset.config.source is not None else " --source SOURCE --raw PATH"
    build = f"tfrecreg build {name}{known}"
    versions = dataset.versions
    newest = f"its newest release is `{name}@{versions[-1]}`" if versions else ""
    return NotHereError(f"`{name}` is not built", hint=bring or newest or build)


def absent_release(dataset: Dataset, version: Version, manifest: Manifest) -> NotHereError:
    build = layout.build_folder(dataset.name)
    copy = layout.version_folder(dataset.name, version)
    where = (
        f"`{build}` has another build" if dataset.is_built() else f"there is no build in `{build}`"
    )
    message = f"the bytes of `{dataset}@{version}` are not here: {where}, and there is no `{copy}`"
    return NotHereError(message, hint=bytes_hint(manifest))


def absent_schema(dataset: Dataset) -> NotHereError:
    message = f"`{dataset.name}` has no schema: there is no `{dataset.schema_path}`"
    return NotHereError(message, hint=schema_hint(dataset))


def missing_build(dataset: Dataset) -> str:
    """A line about an unreleased build that DVC tracks but this machine lacks; else empty."""
    from tfrecreg.core.registry.history import links_of

    root, folder = dataset.registry.storage.root, layout.build_folder(dataset.name)
    value = None if dataset.is_built() else named_hash(root, folder)
    if value is None or value in {each.dvc for each in links_of(dataset).values()}:
        return ""
    return (
        f"{dataset}, a build that is not released: DVC's files name it, but this machine has no "
        f"`{folder}`; hint: {bring_command(root, folder)}"
    )


def fetch_command(dataset: Dataset, manifest: Manifest) -> str:
    """The command that fetches the bytes of a build or release from DVC. Empty if DVC does not have
    them, or if the raw data are on this machine, so that the dataset can be built again.
    """
    from tfrecreg.core.registry.history import links_of

    raw = dataset.raw_folder
    if raw is not None and (is_url(raw) or os.path.exists(raw)):  # noqa: PTH110 - Path raises
        return ""
    for version, link in sorted(links_of(dataset).items(), reverse=True):
        if link.dvc and manifest.digest in (link.build, link.digest):
            return f"tfrecreg pull {dataset}@{version}"
    return ""


def expect_dataset(dataset: Dataset) -> None:
    """Refuse a name that is not a dataset of the registry, and suggest other names."""
    name, known = dataset.name, dataset.registry.dataset_names()
    if name in known:
        return
    if known:
        hint = f"available: {listed(known, most=5)}"
    else:
        hint = f"the registry is empty: tfrecreg build {name} --source SOURCE --raw PATH"
    raise NoSuchNameError(f"no dataset `{name}`{did_you_mean(name, known)}", hint=hint)


def absent_version(
    dataset: Dataset,
    reference: Reference,
    versions: Sequence[Version],
    yanks: Mapping[Version, Sequence[Yank]],
) -> NoSuchNameError:
    """Error for a reference that matches no release of its dataset, or only yanked releases."""
    name = dataset.name
    expect_dataset(dataset)
    matching = [each for each in versions if reference.matches(each)]
    if matching:
        last = yanks[matching[-1]][-1]
        return NoSuchNameError(
            f"every release `{name}@{reference.selector}` was yanked ({matching[-1]} "
            f"because: {last.reason})",
            hint=f"`{name}@{matching[-1]}` is still available by its full version",
        )
    if versions:
        earlier = f", and {len(versions) - 5} earlier ones" if len(versions) > 5 else ""
        hint = f"available: {', '.join(map(str, versions[-5:]))}{earlier}"
    else:
        hint = f"it has no release yet: tfrecreg release {name} --version 1.0.0"
    return NoSuchNameError(f"no release `{name}@{reference.selector}`", hint=hint)


def has_shards(dataset: Dataset) -> bool:
    folder = dataset.registry.storage.below(layout.build_folder(dataset.name))
    return any(
        entry.kind != "dir" and parse_shard_name(entry.path) is not None
        for entry in folder.list(recursive=False)
    )


def strays(registry: Registry) -> list[str]:
    """Names of the folders in `data/` that have shards but no manifest."""
    entries = registry.storage.list(layout.BUILDS, recursive=False)
    names = [each.path.rpartition("/")[2] for each in entries if each.kind == "dir"]
    found = [registry.dataset(name) for name in names if is_dataset_name(name)]
    return [each.name for each in found if not each.is_built() and has_shards(each)]


def schema_hint(dataset: Dataset) -> str:
    """How to get a missing schema back: from git, from a release that fits, or as a draft."""
    from tfrecreg.core.registry import git

    name, path = dataset.name, dataset.schema_path
    if command := git.restore_command(dataset.registry.storage.root, path):
        return f"restore it: {command}"
    for version in reversed(dataset.versions):
        copy = f"{layout.release_folder(name, version)}/{SCHEMA_NAME}"
        if _fits(dataset, version):
            return f"restore it: cp {copy} {shlex.quote(path)}"
    return f"`tfrecreg schema infer {name} --output {path}` drafts one"


def _fits(dataset: Dataset, version: Version) -> bool:
    """Whether the release's schema is undamaged, and equals that of the build, if any."""
    with suppress(ManifestError, NewerFormatError, MissingFileError):
        build = dataset.build_manifest()
        schema = dataset.release_manifest(version).schema
        dataset.release_schema(version, schema.blake3)
        return build is None or build.schema == schema
    return False


def expects_schema(dataset: Dataset) -> bool:
    """Whether a dataset must have a schema. A dataset without a configuration and without a build
    needs none, because its releases have their own.
    """
    config = dataset.config
    if dataset.is_built() or dataset.name not in dataset.registry.config.datasets:
        return dataset.is_built()
    return bool(dataset.versions) or config.schema is not None


def expect_same_schema(dataset: Dataset, default: str, *, drafted: bool = False) -> None:
    """Refuse the source's schema `default` if the build or newest release has another schema.
    If there is neither a build nor a release, refuse `default` if the configuration has the path of
    a schema.
    """
    name, path = dataset.name, dataset.schema_path
    own = "the draft from the data" if drafted else "the source's own schema"
    digest = blake3(default.encode("utf-8")).hexdigest()
    known: dict[str, str] = {}
    with suppress(ManifestError, NewerFormatError):  # building again replaces a damaged build
        if (build := dataset.build_manifest()) is not None:
            known[name] = build.schema.blake3
    with suppress(ManifestError, NewerFormatError, MissingFileError):
        for version in not_yanked(dataset)[-1:]:
            known[f"{name}@{version}"] = dataset.release_manifest(version).schema.blake3
    of = next((each for each, found in known.items() if found != digest), None)
    if of is not None:
        message = (
            f"`{path}` is missing, and {own} differs from the schema of `{of}`: expected "
            f"digest {known[of][:16]}…, found {digest[:16]}…"
        )
    elif not known and dataset.config.schema is not None:
        message = (
            f"`{path}`, which `{dataset.config_file}` names as the schema of `{name}`, is missing"
        )
    else:
        return
    accept = f"use the source's own schema: tfrecreg build {name} --default-schema"
    if drafted:
        accept = "use the draft: `build(…, default_schema=True)`"
    restore = schema_hint(dataset)
    hint = f"{restore}; or {accept}" if restore.startswith("restore") else accept
    raise UsageError(message, hint=hint)
