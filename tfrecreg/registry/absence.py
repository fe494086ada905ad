"""What is not on this machine although the registry names it, and the command that brings it.

Every message about an absent build, release or schema is made here, so that its hint fits the
state: a pointer of DVC, a stage of a pipeline, a release, or nothing but the raw data.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress

from blake3 import blake3

from tfrecreg.errors import (
    FailureError,
    ManifestError,
    MissingFileError,
    NewerFormatError,
    NotHereError,
    UsageError,
)
from tfrecreg.manifest import MANIFEST_NAME, Manifest
from tfrecreg.reference import Version, is_dataset_name
from tfrecreg.registry import layout
from tfrecreg.registry.registry import Registry
from tfrecreg.registry.yanks import held
from tfrecreg.shards import parse_shard_name
from tfrecreg.text import safe


def absent_build(registry: Registry, name: str) -> NotHereError:
    """That a dataset has no build here, with the command that brings or makes one."""
    from tfrecreg.tracking.pointers import bring_command  # as below: mostly nothing is absent

    folder = layout.build_folder(name)
    ways = [bring_command(registry.storage.root, folder)]
    message = f"`{name}` is not built"
    if has_shards(registry, name):
        message = f"`{folder}` has shards and no `{MANIFEST_NAME}`, so that nothing judges them"
        ways.append(f"tfrecreg adopt {name} --in-place")
    elif ways == [""]:
        ways.append(_released(registry, name) or _build_command(registry, name))
    return NotHereError(message, hint="; or ".join(filter(None, ways)))


def has_shards(registry: Registry, name: str) -> bool:
    """Whether there are shards where the build of `name` is or would be."""
    folder = registry.storage.below(layout.build_folder(name))
    return any(
        entry.kind != "dir" and parse_shard_name(entry.path) is not None
        for entry in folder.list(recursive=False)
    )


def strays(registry: Registry) -> list[str]:
    """Names of folders that lie where builds do and have shards, and no manifest."""
    found = registry.storage.list(layout.BUILDS, recursive=False)
    names = [each.path.rpartition("/")[2] for each in found if each.kind == "dir"]
    return [
        name
        for name in filter(is_dataset_name, names)
        if not registry.is_built(name) and has_shards(registry, name)
    ]


def _released(registry: Registry, name: str) -> str:
    """What to do where releases are all there is; empty without one."""
    versions = registry.versions(name)
    if not versions:
        return ""
    try:
        version = (held(registry, name) or versions)[-1]
        release = registry.release_manifest(name, version).release
    except (UsageError, FailureError):
        return f"`tfrecreg check --registry {name}` says what is wrong with its releases"
    if release is not None and release.dvc is not None:
        return f"`tfrecreg pull {name}@{version}` brings its newest release"
    return f"its newest release is `{name}@{version}`"


def _build_command(registry: Registry, name: str) -> str:
    known = registry.dataset_config(name).source is not None
    return f"tfrecreg build {name}" + ("" if known else " --source SOURCE --raw PATH")


def absent_release(
    registry: Registry, dataset: str, version: Version, manifest: Manifest
) -> NotHereError:
    """That the bytes of a release are not here, with the command that brings them."""
    name = f"{dataset}@{version}"
    build, copy = layout.build_folder(dataset), layout.version_folder(dataset, version)
    there = registry.storage.stat(f"{build}/{MANIFEST_NAME}") is not None
    where = f"`{build}` is another build" if there else f"there is no build in `{build}`"
    if manifest.release is not None and manifest.release.dvc:
        hint = f"tfrecreg pull {name}"
    else:
        hint = f"DVC did not keep them: bring `{copy}` back from another machine or a backup"
    return NotHereError(
        f"the bytes of `{name}` are not here: {where}, and there is no `{copy}`", hint=hint
    )


def absent_schema(registry: Registry, name: str) -> NotHereError:
    """That the working schema of a dataset is gone, with the command that restores it."""
    return NotHereError(
        f"`{name}` has no schema: there is no `{registry.schema_path(name)}`",
        hint=schema_hint(registry, name),
    )


def schema_hint(registry: Registry, name: str) -> str:
    """How a missing schema comes back: from git, from a release, or drafted from the records."""
    from tfrecreg.tracking import git

    path = registry.schema_path(name)
    if command := git.restore_command(registry.storage.root, path):
        return f"restore it: {command}"
    for version in reversed(registry.versions(name)):
        copy = f"{layout.release_folder(name, version)}/{layout.SCHEMA_NAME}"
        if _fits(registry, name, version):
            return f"restore it: cp {copy} {shlex.quote(path)}"
    return f"`tfrecreg schema infer {name} --output {path}` drafts one"


def _fits(registry: Registry, name: str, version: Version) -> bool:
    """Whether the schema of a release is sound, and that of the build if there is one."""
    with suppress(ManifestError, NewerFormatError, MissingFileError):
        build = registry.build_manifest(name)
        schema = registry.release_manifest(name, version).schema
        registry.release_schema(name, version, schema.blake3)
        return build is None or build.schema == schema
    return False


def expects_schema(registry: Registry, name: str) -> bool:
    """Whether a dataset that is worked on has to have a schema: it had one, or names one.

    One that is not configured and has no build here is history: its releases have schemas of their
    own.
    """
    table = registry.config.datasets.get(name)
    if table is None:
        return registry.is_built(name)
    made = registry.is_built(name) or bool(registry.versions(name))
    return made or table.schema is not None


def expect_same_schema(registry: Registry, name: str, default: str) -> None:
    """Refuse to put the source's schema where a dataset had another one, or names a file.

    Args:
        registry: the registry.
        name: of a dataset whose working schema is missing.
        default: the text that would become its schema.

    Raises:
        UsageError: its build or its newest release has another schema, or its configuration
            names the file that is missing.
    """
    path = registry.schema_path(name)
    digest = blake3(default.encode("utf-8")).hexdigest()
    known = dict(_schemas(registry, name))
    of = next((each for each, found in known.items() if found != digest), None)
    if of is not None:
        message = (
            f"`{path}` is missing, and the source's own schema is not that of `{of}`: expected "
            f"digest {safe(known[of])[:16]}…, found {digest[:16]}…"
        )
    elif not known and registry.dataset_config(name).schema is not None:
        message = (
            f"`{path}`, which {registry.described_in(name)} names as the schema of `{name}`, is "
            "missing"
        )
    else:
        return
    accept = f"take the source's own: tfrecreg build {name} --default-schema"
    restore = schema_hint(registry, name)
    hint = f"{restore}; or {accept}" if restore.startswith("restore") else accept
    raise UsageError(message, hint=hint)


def _schemas(registry: Registry, name: str) -> Iterator[tuple[str, str]]:
    """The digests of the schemas that the build and the newest release were made with.

    What is damaged says nothing: building again is what replaces a damaged build.
    """
    with suppress(ManifestError, NewerFormatError):
        if (build := registry.build_manifest(name)) is not None:
            yield name, build.schema.blake3
    with suppress(ManifestError, NewerFormatError, MissingFileError):
        for version in held(registry, name)[-1:]:
            yield f"{name}@{version}", registry.release_manifest(name, version).schema.blake3
