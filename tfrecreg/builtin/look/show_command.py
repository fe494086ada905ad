"""`tfrecreg show`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command

if TYPE_CHECKING:
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
def command(session: Session, reference: str, code: str | None, provenance: bool) -> None:
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
    from tfrecreg.core.build.origin import origin_of

    origin = origin_of(resolved)
    if session.printed_json(origin):
        return
    from tfrecreg.builtin.look.printed_origin import print_origin

    print_origin(session.out, origin)


def _show_code(session: Session, resolved: Resolved, framework: str) -> None:
    from tfrecreg.builtin.look.snippets import snippet

    text = snippet(resolved, framework, registry=session.registry)
    if not session.printed_json({"reference": resolved.name, "framework": framework, "code": text}):
        # A console would wrap and colour.
        click.echo(text, nl=False)
