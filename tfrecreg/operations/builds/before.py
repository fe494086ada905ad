"""What was made of a dataset before, and by whose source."""

from __future__ import annotations

from tfrecreg.errors import ManifestError, NewerFormatError, UnknownPluginError
from tfrecreg.manifest import Manifest
from tfrecreg.plugins import Announced, plugins
from tfrecreg.registry import Registry
from tfrecreg.sources import SourceRecord

__all__ = ["announced_source", "made_before"]


def made_before(registry: Registry, name: str) -> tuple[str, Manifest | None]:
    """The newest release, which the next one is compared with, or the build where there is none.

    One that is damaged says nothing here.
    """
    versions = registry.versions(name)
    try:
        if versions:
            release = registry.release_manifest(name, versions[-1])
            return f"`{name}@{versions[-1]}`", release
        return f"the build of `{name}` before", registry.build_manifest(name)
    except (ManifestError, NewerFormatError):
        return "", None


def announced_source(registry: Registry, name: str, source: str) -> Announced[SourceRecord]:
    """The source of that name, to make the dataset `name` with.

    Raises:
        UnknownPluginError: there is none; the message says which distribution brought it when the
            dataset was made before.
        PluginError: there is more than one.
    """
    try:
        return plugins().source(source)
    except UnknownPluginError as error:
        where, manifest = made_before(registry, name)
        if manifest is None or manifest.source.name != source.rpartition(":")[2]:
            raise
        raise error.brought_by(
            manifest.source.distribution, manifest.source.version, where
        ) from None
