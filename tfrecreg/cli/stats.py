"""`tfrecreg stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, jobs_option, json_option
from tfrecreg.cli.output import write_text

if TYPE_CHECKING:
    from tfrecreg.engines.interface import Engine
    from tfrecreg.operations.stats import Stats


@click.command(name="stats")
@click.argument("target", shell_complete=complete.targets)
@click.option("--split", metavar="S", help="Show only this split.")
@click.option(
    "--feature",
    "features",
    metavar="GLOB",
    multiple=True,
    help="Show only features that match. Repeatable.",
)
@click.option(
    "--schema",
    metavar="FILE",
    shell_complete=complete.files,
    help="Use this schema instead of the target's own.",
)
@click.option("--pbtxt", is_flag=True, help="Print TFDV's text form, for tfdv.load_stats_text.")
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write to FILE instead of stdout.",
)
@jobs_option
@json_option
@click.pass_obj
def command(
    face: Face,
    target: str,
    split: str | None,
    features: tuple[str, ...],
    schema: str | None,
    pbtxt: bool,
    output: str | None,
    engine: Engine,
) -> None:
    """Show the statistics of the features.

    TARGET is a reference (mnist, mnist@1.0.0, mnist@latest), or a path, URL, folder or glob of
    TFRecord files, which need no registry. Statistics are computed per split by TensorFlow Data
    Validation, which needs the extra `tfdv`. Those of a build or a release are cached.
    """
    from tfrecreg.errors import UsageError
    from tfrecreg.operations.stats import stats

    if pbtxt and face.as_json:
        raise UsageError("`--pbtxt` and `--json` exclude each other", hint="give one of them")
    found = stats(
        target,
        registry=face.registry,
        split=split,
        features=features,
        schema=schema,
        engine=engine,
        progress=face.progress(),
    )
    if face.as_json:
        face.print_json(found, output)
    elif output is not None:
        write_text(output, found.pbtxt() if pbtxt else _text(face, found))
    elif pbtxt:
        click.echo(found.pbtxt(), nl=False)
    else:
        from tfrecreg.cli.render.stats import print_stats

        print_stats(face.out, found)


def _text(face: Face, found: Stats) -> str:
    from tfrecreg.cli.render.stats import print_stats

    console = face.out
    with console.capture() as capture:
        print_stats(console, found)
    return capture.get()
