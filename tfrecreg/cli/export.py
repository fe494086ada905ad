"""`tfrecreg export`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from tfrecreg.commands import complete
from tfrecreg.commands.options import jobs_option
from tfrecreg.commands.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.engines.interface import Engine
    from tfrecreg.operations.export.run import ExportResult


@complete.silent
def _formats(ctx: click.Context, incomplete: str) -> Iterable[str]:
    del ctx, incomplete
    from tfrecreg.operations.export.run import EXPORT_FORMATS

    return EXPORT_FORMATS


@session_command("export")
@click.argument("reference", metavar="REF", shell_complete=complete.references)
@click.option(
    "--to",
    required=True,
    metavar="FORMAT",
    shell_complete=_formats,
    help="tfds: for TensorFlow Datasets. index: for readers that seek to records, such as DALI's. "
    "croissant: with a description in JSON-LD. tfx: for TFX pipelines. arrayrecord, parquet, "
    "webdataset: files of these formats. intoto: a statement on all files, to be signed.",
)
@click.option(
    "--suffix",
    default=".idx",
    metavar="SUFFIX",
    help="Suffix of the indexes of `--to index`: .idx, .tfindex or .index. Default: .idx.",
)
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@jobs_option
def command(
    session: Session, reference: str, to: str, suffix: str, folder: str, engine: Engine
) -> None:
    """Export a build or a release for other tools.

    REF is exported to the new folder DIR. `--to tfds` writes a folder for
    `tfds.builder_from_directory(DIR)`; `--to index` writes the shards, each with an index in the
    format of `tfrecord2idx` of DALI and of the package tfrecord; `--to croissant` writes the
    shards as they are and `croissant.json`, their description with the sha256 of every file; `--to
    tfx` writes examples, statistics and schema as the components of TFX do. Shards are hard links
    where possible: never edit them in place.

    `--to arrayrecord`, `parquet` and `webdataset` write the records to files of these formats, one
    for each shard, read them again, and compare their content digest with the manifest.

    `--to intoto` writes an in-toto statement alone: the sha256 of every file, and the provenance.

    Existing files are never overwritten.
    """
    from tfrecreg.operations.export.run import export

    result = export(
        session.open(),
        reference,
        folder,
        to=to,
        suffix=suffix,
        engine=engine,
        progress=session.progress(),
    )
    if session.as_json:
        session.print_json(result)
        return
    _print(session, result, suffix)


def _print(session: Session, result: ExportResult, suffix: str) -> None:
    from tfrecreg.text import safe, si_bytes

    folder = safe(result.folder, limit=1000)
    records, shards = sum(result.splits.values()), sum(result.shards.values())
    session.out.print(f"exported {result.reference} to {folder}")
    if result.to == "intoto":
        session.out.print(f"  {records:,} records; the shards are not copied")
        for note in result.notes:
            session.out.print(f"  note: {note}")
        session.out.print("sign `statement.intoto.json` and publish it with the shards")
        return
    ways = ", ".join(f"{count} {how}" for how, count in result.shards.items())
    size = si_bytes(result.bytes)
    session.out.print(f"  {records:,} records in {shards} shards ({ways}), {size}")
    for note in result.notes:
        session.out.print(f"  note: {note}")
    if result.content is not None:
        session.out.print(f"content digest equal: {result.content}")
    session.out.print(_how_to_read(result, suffix))


def _how_to_read(result: ExportResult, suffix: str) -> str:
    """The last line: what a reader opens."""
    if result.to == "index":
        return f"each shard has its index beside it, with the suffix {suffix}"
    if result.to == "croissant":
        return "the description is `croissant.json`: publish it with the shards"
    # A Python literal, so that it can be pasted whatever the path holds.
    if result.to == "tfds":
        return f"read it: tfds.builder_from_directory({result.folder!a})"
    if result.to == "tfx":
        return "import it: an Importer each for `examples`, `statistics` and `schema`"
    if result.to == "arrayrecord":
        pattern = f"{result.folder}/{result.dataset}-*.array_record-*"
        return f"read it: ArrayRecordDataSource(sorted(glob({pattern!a})))"
    if result.to == "parquet":
        return f"read it: pandas.read_parquet({result.folder + '/data'!a})"
    # The largest split, and its shards as the library counts them.
    split = max(result.splits, key=lambda each: result.splits[each], default="")
    head = f"{result.folder}/{result.dataset}-{split}-"
    last = sum(name.startswith(f"{result.dataset}-{split}-") for name in result.files) - 1
    pattern = f"{head}{{000000..{max(last, 0):06d}}}.tar"
    return f"read it: webdataset.WebDataset({pattern!a})"
