"""Data that the registry names but this machine lacks, as DVC's small files say, and their command.

Every message about an absent build, release or schema is made here, so that its hint fits the
state: a pointer of DVC, a stage of a pipeline, a release, or nothing but the raw data.

DVC itself writes `NAME.dvc` and `dvc.lock`, and `tfrecreg pipeline` writes `dvc.yaml`, all in
YAML's block style. Files in another style are ignored.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.manifest import MANIFEST_NAME, SCHEMA_NAME, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry, Yank, not_yanked
from tfrecreg.core.storage.paths import is_url
from tfrecreg.core.values.errors import (
    FailureError,
    ManifestError,
    MissingFileError,
    NewerFormatError,
    NoSuchNameError,
    NotHereError,
    UsageError,
)
from tfrecreg.core.values.reference import Reference, Version, is_dataset_name
from tfrecreg.core.values.shards import parse_shard_name
from tfrecreg.core.values.text import did_you_mean, listed, safe

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
    """Whether a stage of a pipeline makes a folder, which then has no pointer of its own."""
    return any(folder in dict(_outs(Path(root, name))) for name in ("dvc.lock", "dvc.yaml"))


def named_hash(root: str, folder: str) -> str | None:
    """DVC's hash of a folder, from its pointer or else from `dvc.lock`; empty if it has none, None
    if neither names the folder.
    """
    lock = dict(_outs(Path(root, "dvc.lock"), _HASH))
    try:
        text = Path(root, f"{folder}.dvc").read_text("utf-8", "replace")
    except FileNotFoundError:
        return lock.get(folder)
    except OSError:
        return ""
    found = _HASH.search(text)
    return found[1] if found is not None else ""


def _outs(path: Path, wanted: re.Pattern[str] | None = None) -> Iterator[tuple[str, str]]:
    """The outs of the stages in `dvc.yaml` or `dvc.lock`, each with the name of its stage."""
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


def absent_build(dataset: Dataset) -> NotHereError:
    """Error for a dataset without a build on this machine, with the command that fetches or makes
    one.
    """
    name, folder = dataset.name, layout.build_folder(dataset.name)
    shards = has_shards(dataset)
    if not shards:
        expect_dataset(dataset)
    ways = [tracker().bring_command(dataset.registry.storage.root, folder)]
    message = f"`{name}` is not built"
    if shards:
        message = f"`{folder}` has shards and no `{MANIFEST_NAME}`, so that nothing judges them"
        ways.append(f"tfrecreg adopt {name} --in-place")
    elif ways == [""]:
        ways.append(_released(dataset) or _build_command(dataset))
    return NotHereError(message, hint="; or ".join(filter(None, ways)))


def missing_build(dataset: Dataset) -> str:
    """A line about a build that is not here, and that DVC's files name with other bytes than any
    release has; empty if there is none.
    """
    from tfrecreg.core.registry.history import links_of

    root, folder = dataset.registry.storage.root, layout.build_folder(dataset.name)
    value = None if dataset.is_built() else named_hash(root, folder)
    if value is None or value in {each.dvc for each in links_of(dataset).values()}:
        return ""
    return (
        f"{dataset}, a build that is not released: DVC's files name it, and `{folder}` is not "
        f"here; hint: {tracker().bring_command(root, folder)}"
    )


def fetch_command(dataset: Dataset, manifest: Manifest) -> str:
    """The command that fetches the bytes of a build or release where the raw data are not here, so
    that nothing makes them again; empty where they are, and where DVC does not keep the bytes.
    """
    from tfrecreg.core.registry.history import links_of

    raw = dataset.raw_folder
    if raw is not None and (is_url(raw) or Path(raw).exists()):
        return ""
    for version, link in sorted(links_of(dataset).items(), reverse=True):
        if link.dvc and manifest.digest in (link.build, link.digest):
            return f"tfrecreg pull {dataset}@{version}"
    return ""


def expect_dataset(dataset: Dataset) -> None:
    """Refuse a dataset that is not in the registry, with a suggestion."""
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
    """Error for a reference that no release of its dataset matches, or only yanked ones."""
    name = dataset.name
    expect_dataset(dataset)
    matching = [each for each in versions if reference.matches(each)]
    if matching:
        last = yanks[matching[-1]][-1]
        return NoSuchNameError(
            f"every release `{name}@{reference.selector}` was yanked, {matching[-1]} "
            f"because: {safe(last.reason)}",
            hint=f"`{name}@{matching[-1]}` is still available by its full version",
        )
    if versions:
        earlier = f", and {len(versions) - 5} earlier ones" if len(versions) > 5 else ""
        hint = f"available: {', '.join(map(str, versions[-5:]))}{earlier}"
    else:
        hint = f"it has no release yet: tfrecreg release {name} --version 1.0.0"
    return NoSuchNameError(f"no release `{name}@{reference.selector}`", hint=hint)


def has_shards(dataset: Dataset) -> bool:
    """Whether there are shards where its build is or would be."""
    folder = dataset.registry.storage.below(layout.build_folder(dataset.name))
    return any(
        entry.kind != "dir" and parse_shard_name(entry.path) is not None
        for entry in folder.list(recursive=False)
    )


def strays(registry: Registry) -> list[str]:
    """Names of folders that lie where builds do and have shards, and no manifest."""
    entries = registry.storage.list(layout.BUILDS, recursive=False)
    names = [each.path.rpartition("/")[2] for each in entries if each.kind == "dir"]
    found = [registry.dataset(name) for name in names if is_dataset_name(name)]
    return [each.name for each in found if not each.is_built() and has_shards(each)]


def _released(dataset: Dataset) -> str:
    """What to do where releases are all there is; empty without one."""
    name, versions = dataset.name, dataset.versions
    if not versions:
        return ""
    try:
        version = (not_yanked(dataset) or versions)[-1]
        release = dataset.release_manifest(version).release
    except (UsageError, FailureError):
        return f"`tfrecreg audit {name}` lists the faults of its releases"
    if release is not None and release.dvc is not None:
        return f"`tfrecreg pull {name}@{version}` fetches its newest release"
    return f"its newest release is `{name}@{version}`"


def _build_command(dataset: Dataset) -> str:
    known = dataset.config.source is not None
    return f"tfrecreg build {dataset.name}" + ("" if known else " --source SOURCE --raw PATH")


def absent_release(dataset: Dataset, version: Version, manifest: Manifest) -> NotHereError:
    """Error for a release whose bytes are missing, with the command that fetches them."""
    name = f"{dataset.name}@{version}"
    build = layout.build_folder(dataset.name)
    copy = layout.version_folder(dataset.name, version)
    where = (
        f"`{build}` has another build" if dataset.is_built() else f"there is no build in `{build}`"
    )
    if manifest.release is not None and manifest.release.dvc:
        hint = f"tfrecreg pull {name}"
    else:
        hint = f"DVC does not have them: copy `{copy}` from another machine or a backup"
    return NotHereError(
        f"the bytes of `{name}` are not here: {where}, and there is no `{copy}`", hint=hint
    )


def absent_schema(dataset: Dataset) -> NotHereError:
    """Error for a missing working schema, with the command that restores it."""
    return NotHereError(
        f"`{dataset.name}` has no schema: there is no `{dataset.schema_path}`",
        hint=schema_hint(dataset),
    )


def schema_hint(dataset: Dataset) -> str:
    """How to restore a missing schema: from git, from a release, or drafted from the records."""
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
    """Whether the schema of a release is sound, and that of the build if there is one."""
    with suppress(ManifestError, NewerFormatError, MissingFileError):
        build = dataset.build_manifest()
        schema = dataset.release_manifest(version).schema
        dataset.release_schema(version, schema.blake3)
        return build is None or build.schema == schema
    return False


def expects_schema(dataset: Dataset) -> bool:
    """Whether a dataset that is worked on has to have a schema: it had one, or names one.

    One that is not configured and has no build here is history: its releases have schemas of their
    own.
    """
    config = dataset.config
    if dataset.name not in dataset.registry.config.datasets:
        return dataset.is_built()
    made = dataset.is_built() or bool(dataset.versions)
    return made or config.schema is not None


def expect_same_schema(dataset: Dataset, default: str, *, drafted: bool = False) -> None:
    """Refuse to put the source's schema where a dataset had another one, or names a file."""
    name, path = dataset.name, dataset.schema_path
    own = "the draft from the data" if drafted else "the source's own schema"
    digest = blake3(default.encode("utf-8")).hexdigest()
    known = dict(_schemas(dataset))
    of = next((each for each, found in known.items() if found != digest), None)
    if of is not None:
        message = (
            f"`{path}` is missing, and {own} is not that of `{of}`: expected "
            f"digest {safe(known[of])[:16]}…, found {digest[:16]}…"
        )
    elif not known and dataset.config.schema is not None:
        message = (
            f"`{path}`, which `{dataset.config_file}` names as the schema of `{name}`, is missing"
        )
    else:
        return
    accept = f"take the source's own: tfrecreg build {name} --default-schema"
    if drafted:
        accept = "take the draft: `build(…, default_schema=True)`"
    restore = schema_hint(dataset)
    hint = f"{restore}; or {accept}" if restore.startswith("restore") else accept
    raise UsageError(message, hint=hint)


def _schemas(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """The digests of the schemas that the build and the newest release were made with.

    A damaged build is ignored here: building again replaces it.
    """
    with suppress(ManifestError, NewerFormatError):
        if (build := dataset.build_manifest()) is not None:
            yield dataset.name, build.schema.blake3
    with suppress(ManifestError, NewerFormatError, MissingFileError):
        for version in not_yanked(dataset)[-1:]:
            yield f"{dataset.name}@{version}", dataset.release_manifest(version).schema.blake3
