"""A manifest as bytes: rendering, parsing, and the digest that seals it.

The size of a build or release, from its manifest, in a fraction of the time of parsing it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from blake3 import blake3

from tfrecreg.core.registry.manifest.model import FORMAT_VERSION, Change, Manifest
from tfrecreg.core.values.documents import (
    canonical_json,
    digest_apart,
    known_format,
    refusing,
    strict_json,
)
from tfrecreg.core.values.errors import ManifestError
from tfrecreg.core.values.text import count, safe

_HINT = "restore the file from git or DVC, or make the build again"


def seal(manifest: Manifest) -> Manifest:
    """The manifest with the digest that covers it."""
    return replace(manifest, digest=manifest_digest(manifest))


def manifest_digest(manifest: Manifest) -> str:
    """blake3, as hex, over the canonical JSON of all but `digest` and `provenance`."""
    with _writing(manifest):
        return _digest(_plain(manifest))


def render_manifest(manifest: Manifest) -> bytes:
    """The manifest's file: canonical JSON and a newline."""
    with _writing(manifest):
        return canonical_json(_plain(manifest)) + b"\n"


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Read a manifest's file and check its own digest.

    The digest covers the content of the file, including fields that this package does not know.
    """
    shown = safe(where)
    with refusing(ManifestError, f"`{shown}` is not a manifest", hint=_HINT):
        found = known_format(strict_json(data), FORMAT_VERSION, f"`{shown}` has manifest format")
        manifest = msgspec.convert(found, Manifest)
        expected = _digest(found)
    if manifest.digest != expected:
        raise ManifestError(
            f"`{shown}` was changed after it was sealed: its digest should be "
            f"`{expected[:16]}…`, found `{safe(manifest.digest[:16])}…`",
            hint=_HINT,
        )
    return manifest


_OWN_FIELDS = ("compression", "content", "dataset", "digest", "format_version", "stream_blake3")
"""Fields of every manifest. Few other formats have three of them."""


def is_own_manifest(data: bytes) -> bool:
    """Whether a file named `manifest.json` was written by this package, intact or damaged.

    Other tools have files of that name. A file without any content is a damaged one.
    """
    fields = sum(f'"{name}"'.encode() in data for name in _OWN_FIELDS)
    return fields >= 3 or not data.strip(b"\0 \t\r\n")


def build_digest(data: bytes) -> str:
    """The digest of the build's own manifest, from the manifest of its release.

    The manifest of a release has all fields of its build's manifest, and more: these are removed
    again, and fields that this package does not know are kept.
    """
    plain = strict_json(data)
    if not isinstance(plain, dict):
        raise ValueError("it is not a JSON object")
    plain.pop("release", None)
    return _digest(plain)


def _digest(plain: dict[str, Any]) -> str:
    return digest_apart(plain, "digest", "provenance")


def _plain(manifest: Manifest) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(manifest)
    for name in ("base", "parents", "release", "salvaged", "provenance"):
        if not plain[name]:
            del plain[name]
    release = plain.get("release")
    if release is not None and release["change"]["counts"] is None:
        del release["change"]["counts"]
    for ledger in plain["ledger"].values():
        if not ledger["remarks"]:
            del ledger["remarks"]  # as in manifests of versions without remarks
    return plain


def _writing(manifest: Manifest) -> AbstractContextManager[None]:
    return refusing(
        ManifestError,
        f"the manifest of `{safe(manifest.dataset)}` cannot be written",
        hint="names of files, labels and features have to be UTF-8: rename those that are not",
    )


def build_manifest(manifest: Manifest) -> Manifest:
    """The manifest beside the bytes: that of a release extends its build's."""
    if manifest.release is None:
        return manifest
    found = seal(replace(manifest, release=None, provenance=None))
    if found.digest != manifest.release.build:
        raise ManifestError(
            f"the release `{manifest.dataset}@{manifest.release.version}` does not match its "
            "build: the digest of the build's manifest differs",
            hint="restore its manifest from git",
        )
    return found


class Totals(NamedTuple):
    """Sums over a manifest."""

    records: int
    bytes: int
    """Size of the shards in bytes."""


class _Split(msgspec.Struct):
    records: int


class _Shard(msgspec.Struct):
    bytes: int


class _Release(msgspec.Struct):
    version: str


class _Part(msgspec.Struct):
    """The fields of :class:`Manifest` that are read."""

    format_version: int
    dataset: str
    digest: str
    splits: list[_Split]
    shards: list[_Shard]
    release: _Release


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PART = msgspec.json.Decoder(_Part)


def totals_of(manifest: Manifest) -> Totals:
    """The sums of a parsed manifest."""
    return Totals(
        records=sum(split.records for split in manifest.splits),
        bytes=sum(shard.bytes for shard in manifest.shards),
    )


def quick_totals(data: bytes, dataset: str, version: str) -> Totals | None:
    """The sums of a release whose manifest is unchanged since it was sealed.

    The digest is compared with that of the members that it covers, joined again: if the file is
    canonical JSON, these are the bytes that the digest was computed from.
    """
    try:
        members = _MEMBERS.decode(data)
        part = _PART.decode(data)
    except (ValueError, RecursionError):
        return None
    whole = [b'"%b":%b' % (name.encode(), bytes(raw)) for name, raw in members.items()]
    covered = [
        text
        for name, text in zip(members, whole, strict=True)
        if name not in ("digest", "provenance")
    ]
    if (
        b"{%b}\n" % b",".join(whole) != data  # white space, or a duplicate member
        or blake3(b"{%b}" % b",".join(covered)).hexdigest() != part.digest
        or part.format_version != FORMAT_VERSION
        or (part.dataset, part.release.version) != (dataset, version)
    ):
        return None
    return Totals(
        records=sum(split.records for split in part.splits),
        bytes=sum(shard.bytes for shard in part.shards),
    )


def change_line(name: str, records: int, change: Change, parent: str | None) -> str:
    """``signs 2.0.0 (major after 1.1.0): 413 labels changed; …``, the change since `parent`."""
    if parent is None:
        return f"{name} (the first): {count(records, 'record')}"
    reasons = "; ".join(safe(each, limit=300) for each in change.reasons)
    return f"{name} ({change.level} after {safe(parent)}): {reasons or 'no reason is known'}"
