"""The provenance of a build or a release, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import line, print_facts
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.build.origin import Origin


def print_origin(console: Console, origin: Origin) -> None:
    """Print the facts about a version."""
    console.print(line((f"provenance of {origin.reference}", "bold")))
    print_facts(console, _facts(origin))


def _facts(origin: Origin) -> Iterator[tuple[str, str]]:
    manifest = origin.manifest
    source, release, released = manifest.source, manifest.release, manifest.provenance
    if source.name:
        yield "source", f"{safe(source.name)} ({safe(source.distribution)} {safe(source.version)})"
        given = ", ".join(f"{safe(key)}={safe(value)}" for key, value in source.options.items())
        yield "options", given or "none"
    raw = manifest.raw
    stored = f"{count(raw.files, 'file')}, {si_bytes(raw.stored)} stored"
    yield "raw", stored if raw.files else "unknown"
    codecs = (f"{safe(name)} {safe(version)}" for name, version in manifest.codecs.items())
    yield "codecs", ", ".join(codecs) or "unknown"
    yield "schema", manifest.schema.blake3
    for each in manifest.parents:
        yield "from", f"{safe(each.reference)}, content {safe(each.content)}"
    if manifest.base is not None:
        base = manifest.base
        yield "base", f"{safe(manifest.dataset)}@{safe(base.version)}, manifest {safe(base.digest)}"
    if release is not None and release.parent is not None:
        yield "parent", f"{safe(release.parent.version)}, manifest {safe(release.parent.digest)}"
    if released is not None:
        yield (
            "released",
            f"{safe(released.created)} by {safe(released.by)} on {safe(released.host)}",
        )
        commit = f", commit {safe(released.commit)}" if released.commit else ""
        yield "with", f"tfrecreg {safe(released.tfrecreg)}, Python {safe(released.python)}{commit}"
    yield "gate", origin.gate
    yield "content", manifest.content
    yield "manifest", manifest.digest
