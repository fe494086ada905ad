"""`tfrecreg export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, jobs_option, json_option

if TYPE_CHECKING:
    from tfrecreg.engines import Engine
    from tfrecreg.operations.export import ExportResult


@click.command(name="export")
@click.argument("reference", metavar="REF", shell_complete=complete.references)
@click.option(
    "--to",
    required=True,
    metavar="FORMAT",
    shell_complete=complete.export_formats,
    help="tfds: for TensorFlow Datasets. index: for readers that seek to records, such as DALI's.",
)
@click.option(
    "--suffix",
    default=".idx",
    metavar="SUFFIX",
    help="Suffix of the indexes of `--to index`: .idx, .tfindex or .index. Default: .idx.",
)
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@jobs_option
@json_option
@click.pass_obj
def command(face: Face, reference: str, to: str, suffix: str, folder: str, engine: Engine) -> None:
    """Export a build or a release for other tools.

    REF is exported to the new folder DIR. `--to tfds` writes a folder for
    `tfds.builder_from_directory(DIR)`; `--to index` writes the shards, each with an index in the
    format of `tfrecord2idx` of DALI and of the package tfrecord. Shards are hard links where
    possible: never edit them in place. Existing files are never overwritten.
    """
    from tfrecreg.operations.export import export

    result = export(
        face.open(),
        reference,
        folder,
        to=to,
        suffix=suffix,
        engine=engine,
        progress=face.progress(),
    )
    if face.as_json:
        from dataclasses import asdict

        face.print_json(asdict(result))
        return
    _print(face, result, suffix)


def _print(face: Face, result: ExportResult, suffix: str) -> None:
    from tfrecreg.text import safe, si_bytes

    folder = safe(result.folder, limit=1000)
    records, shards = sum(result.splits.values()), sum(result.shards.values())
    face.out.print(f"exported {result.reference} to {folder}")
    ways = ", ".join(f"{count} {how}" for how, count in result.shards.items())
    size = si_bytes(result.bytes)
    face.out.print(f"  {records:,} records in {shards} shards ({ways}), {size}")
    for note in result.notes:
        face.out.print(f"  note: {note}")
    if result.to == "index":
        face.out.print(f"each shard has its index beside it, with the suffix {suffix}")
        return
    # A Python literal, so that it can be pasted whatever the path holds.
    face.out.print(f"read it: tfds.builder_from_directory({result.folder!a})")
