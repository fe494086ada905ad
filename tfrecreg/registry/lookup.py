"""From a reference to what it names: a manifest, a schema, and the folder of the bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tfrecreg.errors import ManifestError, MissingFileError, NewerFormatError, UsageError
from tfrecreg.manifest import MANIFEST_NAME, Manifest, parse_manifest
from tfrecreg.reference import Reference, Version, parse_reference
from tfrecreg.registry import layout
from tfrecreg.registry.registry import Registry
from tfrecreg.registry.yanks import Yank, read_yanks, withdrawn
from tfrecreg.storage import LocalStorage, Storage
from tfrecreg.suggest import did_you_mean, listed
from tfrecreg.text import safe

__all__ = ["Resolved", "expect_dataset", "resolve"]

_DAMAGED = "damaged"


@dataclass(frozen=True)
class Resolved:
    """What a reference names, found."""

    registry: Registry
    dataset: str
    version: Version | None
    """None for the build."""
    manifest: Manifest
    folder: str | None
    """The folder of the bytes in the registry, None where they are not on this machine."""
    proven: bool = True
    """Whether the manifest in that folder is the one that was released. If not, the bytes may
    still be those: `check` looks at each of them."""

    @property
    def kind(self) -> Literal["build", "release"]:
        """What it is."""
        return "build" if self.version is None else "release"

    @property
    def name(self) -> str:
        """As a user writes it: ``mnist`` or ``mnist@1.0.0``."""
        return self.dataset if self.version is None else f"{self.dataset}@{self.version}"

    @property
    def yanks(self) -> tuple[Yank, ...]:
        """How it was withdrawn; empty where it was not, and for a build.

        Raises:
            ManifestError: the file that says so cannot be read.
        """
        if self.version is None:
            return ()
        return read_yanks(self.registry, self.dataset, self.version)

    @property
    def schema_path(self) -> str:
        """Where its schema is, in the registry."""
        if self.version is None:
            return self.registry.schema_path(self.dataset)
        return f"{layout.release_folder(self.dataset, self.version)}/{layout.SCHEMA_NAME}"

    @property
    def schema(self) -> str | None:
        """The text of its schema, None where there is none."""
        if self.version is None:
            return self.registry.schema_text(self.dataset)
        return self.registry.release_schema(self.dataset, self.version, self.manifest.schema.blake3)

    def storage(self, *, to_check: bool = False) -> Storage:
        """The storage that holds its bytes, rooted at their folder.

        Args:
            to_check: whether the caller looks at every byte anyway, so that bytes which may be
                damaged or others will do.

        Raises:
            UsageError: they are not on this machine, or may be others.
        """
        if self.folder is None:
            raise self._not_here()
        if not self.proven and not to_check:
            raise UsageError(
                f"the bytes in `{self.folder}` may not be those of `{self.name}`: their manifest "
                "is damaged, or that of another build",
                hint=f"`tfrecreg check {self.name}` looks at each of them",
            )
        return LocalStorage(f"{self.registry.storage.root}/{self.folder}")

    def _not_here(self) -> UsageError:
        assert self.version is not None  # a build is where it was found
        build = layout.build_folder(self.dataset)
        copy = layout.version_folder(self.dataset, self.version)
        what = "is no build" if self.registry.storage.stat(build) is None else "is another build"
        kept = self.manifest.release is not None and self.manifest.release.dvc
        if kept:
            hint = f"check out the commit that released it, then `dvc checkout {build}.dvc`"
        else:
            hint = f"DVC did not keep them: bring `{copy}` back from another machine or a backup"
        return UsageError(
            f"the bytes of `{self.name}` are not here: `{build}` {what}, and there is no `{copy}`",
            hint=hint,
        )


def resolve(registry: Registry, text: str) -> Resolved:
    """Find what the reference `text` names.

    Raises:
        UsageError: it is no reference, or there is no such dataset, build or release.
        ManifestError: its manifest does not parse, breaks its digest, or is another's.
        NewerFormatError: a newer tfrecreg wrote its manifest.
    """
    reference = parse_reference(text)
    if reference.selector is None:
        return _resolve_build(registry, reference.name)
    return _resolve_release(registry, reference)


def _resolve_build(registry: Registry, name: str) -> Resolved:
    manifest = registry.build_manifest(name)
    if manifest is None:
        expect_dataset(registry, name)
        versions = registry.versions(name)
        if versions:
            hint = f"its newest release is `{name}@{versions[-1]}`"
        else:
            hint = f"tfrecreg build {name}"
        raise UsageError(f"`{name}` is not built", hint=hint)
    return Resolved(registry, name, None, manifest, layout.build_folder(name))


def _resolve_release(registry: Registry, reference: Reference) -> Resolved:
    name = reference.name
    versions = registry.versions(name)
    version = reference.version if reference.version in versions else None
    gone: Mapping[Version, tuple[Yank, ...]] = {}
    if reference.version is None:
        gone = withdrawn(registry, name)
        version = reference.pick(each for each in versions if each not in gone)
    if version is None:
        expect_dataset(registry, name)
        matching = [each for each in versions if reference.matches(each)]
        if matching:
            last = gone[matching[-1]][-1]
            raise UsageError(
                f"every release `{name}@{reference.selector}` was withdrawn, {matching[-1]} "
                f"because: {safe(last.reason)}",
                hint=f"`{name}@{matching[-1]}` is still there for whoever names it in full",
            )
        if versions:
            shown = ", ".join(str(each) for each in versions[-5:])
            hint = f"there is {shown}"
        else:
            hint = f"it has no release yet: tfrecreg release {name} --version 1.0.0"
        raise UsageError(f"no release `{name}@{reference.selector}`", hint=hint)
    manifest = registry.release_manifest(name, version)
    folder, proven = _bytes_of(registry, name, version, manifest)
    return Resolved(registry, name, version, manifest, folder, proven)


def expect_dataset(registry: Registry, name: str) -> None:
    """Refuse a dataset that the registry does not know, with what was meant perhaps.

    Raises:
        UsageError: it is neither configured nor built nor released.
    """
    known = registry.datasets()
    if name in known:
        return
    if known:
        hint = f"there is {listed(known[:5])}"
    else:
        hint = f"the registry is empty: tfrecreg build {name} --source SOURCE --raw PATH"
    raise UsageError(f"no dataset `{name}`{did_you_mean(name, known)}", hint=hint)


def _bytes_of(
    registry: Registry, name: str, version: Version, manifest: Manifest
) -> tuple[str | None, bool]:
    """The build while it still is the release, else the copy that was brought back.

    Returns:
        the folder, and whether its own manifest proves it. What proves nothing comes last: a
        folder whose manifest is damaged may still be this release, and looking will tell.
    """
    expected = manifest.release.build if manifest.release is not None else ""
    build, copy = layout.build_folder(name), layout.version_folder(name, version)
    digests = {folder: _digest(registry, folder) for folder in (build, copy)}
    for folder, digest in digests.items():
        if digest == expected:
            return folder, True
    if digests[copy] is not None:
        return copy, False
    return (build if digests[build] == _DAMAGED else None), False


def _digest(registry: Registry, folder: str) -> str | None:
    """What the manifest in `folder` says of itself; None where there is none."""
    path = f"{folder}/{MANIFEST_NAME}"
    try:
        return parse_manifest(registry.storage.read(path), path).digest
    except MissingFileError:
        return None
    except (ManifestError, NewerFormatError):
        return _DAMAGED
