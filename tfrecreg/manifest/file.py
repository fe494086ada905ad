"""A manifest as bytes: rendering, parsing, and the digest that seals it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from blake3 import blake3

from tfrecreg.errors import ManifestError, NewerFormatError
from tfrecreg.manifest.canonical import canonical_json, strict_json
from tfrecreg.manifest.model import FORMAT_VERSION, Manifest
from tfrecreg.text import safe

_HINT = "restore the file from git or DVC, or make the build again"


def seal(manifest: Manifest) -> Manifest:
    """The manifest with the digest that covers it."""
    return replace(manifest, digest=manifest_digest(manifest))


def manifest_digest(manifest: Manifest) -> str:
    """blake3, as hex, over the canonical JSON of all but `digest` and `provenance`.

    Raises:
        ManifestError: a name in it is not UTF-8, or a number is beyond 2^53.
    """
    try:
        return _digest(_plain(manifest))
    except ValueError as error:
        raise _unwritable(manifest, error) from None


def render_manifest(manifest: Manifest) -> bytes:
    """The manifest's file: canonical JSON and a newline.

    Raises:
        ManifestError: a name in it is not UTF-8, or a number is beyond 2^53.
    """
    try:
        return canonical_json(_plain(manifest)) + b"\n"
    except ValueError as error:
        raise _unwritable(manifest, error) from None


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Read a manifest's file and check its own digest.

    The digest covers the content of the file, including fields that this package does not know.

    Args:
        data: the file's bytes.
        where: name of the file in messages.

    Raises:
        NewerFormatError: its `format_version` is greater than this package knows.
        ManifestError: it does not parse, or its digest does not match its content.
    """
    try:
        found = strict_json(data)
        version = found.get("format_version") if isinstance(found, dict) else None
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ValueError("it has no `format_version`")
        if version > FORMAT_VERSION:
            raise NewerFormatError(
                f"`{safe(where)}` has manifest format {safe(str(version))}, "
                f"this tfrecreg supports {FORMAT_VERSION}",
                hint="pip install --upgrade tfrecreg",
            )
        # A ValidationError is a ValueError: all errors have the same message.
        manifest = msgspec.convert(found, Manifest)
        expected = _digest(found)
    except ValueError as error:
        reason = safe(str(error), limit=500)
        raise ManifestError(f"`{safe(where)}` is not a manifest: {reason}", hint=_HINT) from None
    if manifest.digest != expected:
        raise ManifestError(
            f"`{safe(where)}` was changed after it was sealed: its digest should be "
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

    Args:
        data: the bytes of a manifest that :func:`parse_manifest` read.

    Raises:
        ValueError: it is not a JSON object.
    """
    plain = strict_json(data)
    if not isinstance(plain, dict):
        raise ValueError("it is not a JSON object")
    plain.pop("release", None)
    return _digest(plain)


def _digest(plain: dict[str, Any]) -> str:
    covered = {name: plain[name] for name in plain if name not in ("digest", "provenance")}
    return blake3(canonical_json(covered)).hexdigest()


def _plain(manifest: Manifest) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(manifest)
    for name in ("base", "release", "salvaged", "provenance"):
        if plain[name] is None:
            del plain[name]
    release = plain.get("release")
    if release is not None and release["change"]["counts"] is None:
        del release["change"]["counts"]
    for ledger in plain["ledger"].values():
        if not ledger["remarks"]:
            del ledger["remarks"]  # as in manifests of versions without remarks
    return plain


def _unwritable(manifest: Manifest, error: ValueError) -> ManifestError:
    return ManifestError(
        f"the manifest of `{safe(manifest.dataset)}` cannot be written: {error}",
        hint="names of files, labels and features have to be UTF-8: rename those that are not",
    )
