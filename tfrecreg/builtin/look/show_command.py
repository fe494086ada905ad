"""`tfrecreg show`.

The provenance of a build or a release, for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click
from rich.console import Console

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.console import line, print_facts
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.build.conclude import Origin
    from tfrecreg.core.registry.lookup import Resolved


@complete.silent
def _frameworks(ctx: click.Context, incomplete: str) -> Iterable[str]:
    del ctx, incomplete
    from tfrecreg.builtin.look.snippets import FRAMEWORKS

    return FRAMEWORKS


@session_command("show")
@click.argument("reference", metavar="REF", shell_complete=complete.references)
@click.option(
    "--code",
    metavar="FRAMEWORK",
    shell_complete=_frameworks,
    help="Print Python code that uses it: tf, keras, numpy, grain, torch, tfds, mlflow or wandb.",
)
@click.option(
    "--provenance",
    is_flag=True,
    help="Show where it comes from: source, raw data, versions.",
)
def show_command(session: Session, reference: str, code: str | None, provenance: bool) -> None:
    """Show a build or a release.

    REF is mnist for the build, mnist@1.0.0, mnist@1.* or mnist@latest for a release. The output has
    its splits, sizes, source, items, labels and digests. `--code` prints a few lines of Python to
    paste, which read it in a framework or log it. `--provenance` shows how it was made.
    """
    from tfrecreg.core.registry.lookup import resolve

    if code is not None and provenance:
        raise click.UsageError("--code and --provenance exclude each other")
    resolved = resolve(session.open(), reference)
    if code is not None:
        _show_code(session, resolved, code)
        return
    if provenance:
        _show_provenance(session, resolved)
        return
    if session.as_json:
        from tfrecreg.core.registry.listing import manifest_json

        session.print_json(manifest_json(resolved))
        return
    from tfrecreg.core.terminal.render.catalog import print_manifest

    print_manifest(
        session.out,
        resolved.name,
        resolved.folder,
        resolved.manifest,
        yanks=resolved.yanks,
    )


def _show_provenance(session: Session, resolved: Resolved) -> None:
    from tfrecreg.core.build.conclude import origin_of

    origin = origin_of(resolved)
    if session.printed_json(origin):
        return

    print_origin(session.out, origin)


def _show_code(session: Session, resolved: Resolved, framework: str) -> None:
    from tfrecreg.builtin.look.snippets import snippet

    text = snippet(resolved, framework, registry=session.registry)
    if not session.printed_json({"reference": resolved.name, "framework": framework, "code": text}):
        # A console would wrap and colour.
        click.echo(text, nl=False)


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
