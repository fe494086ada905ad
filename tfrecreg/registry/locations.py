"""The locations of builds and releases in a store, and the owners of numbers there.

`location.json` beside the manifest has the URL of the folder with the shards. No digest covers it:
the same content has the same manifest wherever its bytes are.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from tfrecreg.documents import known_format, refusing, strict_json, texts_of
from tfrecreg.errors import ConflictError, ManifestError, UsageError
from tfrecreg.manifest.model import Manifest
from tfrecreg.reference import Version
from tfrecreg.registry import layout
from tfrecreg.registry.keeper import Buckets, KeptBytes, ReleaseChange
from tfrecreg.registry.registry import Registry
from tfrecreg.storage.interface import Readable
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import LOCATION_NAME, store_at
from tfrecreg.storage.urls import is_url, named_url, without_secrets
from tfrecreg.text import safe

_FORMAT = 1


def render_location(url: str) -> bytes:
    """The file: one line of JSON.

    Args:
        url: of the folder with the shards, from :func:`tfrecreg.storage.urls.named_url`.
    """
    return msgspec.json.encode({"format_version": _FORMAT, "url": url}) + b"\n"


def location_of(registry: Registry, folder: str) -> str | None:
    """The URL of the shards of a build or release; None if they are local files, or kept by DVC.

    Args:
        folder: with the manifest: ``data/mnist`` or ``registry/mnist/1.0.0``.

    Raises:
        ManifestError: the file with the location is damaged.
        NewerFormatError: a newer tfrecreg wrote it.
    """
    path = f"{folder}/{LOCATION_NAME}"
    data = registry._read(path)
    return None if data is None else parse_location(data, path)


def parse_location(data: bytes, path: str) -> str:
    """The URL in a `location.json`.

    Raises:
        ManifestError: it is damaged.
        NewerFormatError: a newer tfrecreg wrote it.
    """
    complaint = f"`{safe(path)}` does not say where the bytes are: expected a URL"
    with refusing(ManifestError, complaint, hint="restore it from git, or build again"):
        url = _texts(data, path, "url")["url"]
        with suppress(UsageError):
            if is_url(url):
                return named_url(url)
        raise ValueError(f"found `{without_secrets(url)}`")


def _texts(data: bytes, path: str, *names: str) -> dict[str, str]:
    has = f"`{safe(path, limit=1000)}` has format"
    return texts_of(known_format(strict_json(data), _FORMAT, has, "reads"), *names)


def claim_number(url: str, version: Version, build: Manifest) -> None:
    """Take the number of a release in the store, so that no clone gives it to another build.

    The file is `releases/VERSION.json`, beside the folders of builds. Whoever puts it first has the
    number. A claim of the same build is one's own, or as good.

    Args:
        url: of the folder with the shards.

    Raises:
        ConflictError: another build has it.
        ManifestError, NewerFormatError: the file of the claim cannot be read.
    """
    parent = store_at(url.rpartition("/")[0])
    path = f"releases/{version}.json"
    claim = {"format_version": _FORMAT, "build": build.digest, "content": build.content}
    if parent.put_if_absent(path, msgspec.json.encode(claim) + b"\n"):
        return
    place = f"{parent.root}/{path}"
    shown = safe(place, limit=1000)
    complaint = f"`{shown}` does not say which build has this number"
    with refusing(ManifestError, complaint, hint="remove it, if no clone has this release"):
        found = _texts(parent.read(path), place, "build", "content")
    if found["build"] != build.digest:
        raise ConflictError(
            f"another clone released `{build.dataset}@{version}` with other content, or is about "
            f"to: `{shown}` has content {safe(found['content'][:16])}…, the build has "
            f"{build.content[:16]}…",
            hint="`git pull` fetches that release once it is pushed; then `--bump auto` takes the "
            "next number. If it was abandoned, remove that file",
        )


class _Buckets:
    """Stores that keep the bytes of a build where it was made: nothing there is replaced."""

    location = staticmethod(location_of)

    def keep(self, change: ReleaseChange, build: Manifest, version: Version) -> KeptBytes | None:
        dataset = change.dataset
        folder = layout.build_folder(dataset.name)
        url = location_of(dataset.registry, folder)
        if url is None:
            return None
        from tfrecreg.registry.verify import below, expect_intact  # each reference asks for a URL

        expect_intact(
            build,
            below(self.storage(dataset.registry, folder)),
            what=f"nothing was released: the bytes of `{dataset}`",
            hint=f"tfrecreg check {dataset}",
            progress=change.progress,
        )
        claim_number(url, version, build)
        return KeptBytes(files={LOCATION_NAME: render_location(url)})

    def storage(self, registry: Registry, folder: str) -> Readable:
        local = registry.storage.below(folder)
        url = location_of(registry, folder)
        if url is None:
            return local
        from tfrecreg.storage.two_places import TwoPlaces  # few builds need it

        return TwoPlaces(LocalStorage(local.root), store_at(url))


BUCKETS: Buckets = _Buckets()
