"""`tfrecreg export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import PluginOption, jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.builtin.export.run import ExportResult
    from tfrecreg.core.workers.interface import Engine


@session_command("export")
@click.argument("reference", metavar="REF", shell_complete=complete.references)
@options_of("files:Verbs.export", "folder", to={"cls": PluginOption, "record": "ExporterRecord"})
@click.option("--suffix", metavar="SUFFIX", help="The same as `--option suffix=SUFFIX`.")
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@jobs_option
def command(
    session: Session,
    reference: str,
    options: tuple[str, ...],
    suffix: str | None,
    folder: str,
    engine: Engine,
    **arguments: Any,
) -> None:
    """Export a build or a release for other tools.

    REF is exported to the new folder DIR. `--to tfds` writes a folder for
    `tfds.builder_from_directory(DIR)`. `--to index` writes the shards, each with an index in the
    format that DALI's `tfrecord2idx` and the package tfrecord use. `--to croissant` writes the
    unchanged shards, and describes them in `croissant.json` with the sha256 of every file. `--to
    tfx` writes examples, statistics and schema in the layout of TFX's ExampleGen, StatisticsGen and
    SchemaGen. Shards are hard links where possible: never edit them in place.

    `--to files` copies all files unchanged, with the manifest. Every command can read the copy. For
    this format, DIR may be a URL: s3://bucket/folder. If a file with the right bytes is already at
    the URL, the file is not sent again.

    `--to arrayrecord`, `jsonl`, `parquet` and `webdataset` write one file of that format for each
    shard, read it again, and compare its content digest with the manifest. `--where` works with
    these formats.

    Existing files are never overwritten.
    """
    from tfrecreg.builtin.export.run import export

    session.warn_of_broken_plugins()
    if suffix is not None:
        options = (*options, f"suffix={suffix}")
    result = export(
        session.open(),
        reference,
        folder,
        options=options,
        engine=engine,
        **arguments,
        progress=session.progress(),
    )
    if session.printed_json(result):
        return
    _print_result(session, result)


def _print_result(session: Session, result: ExportResult) -> None:
    records, shards = sum(result.splits.values()), sum(result.shards.values())
    asked = "" if result.where is None else f" where {safe(result.where)}"
    session.out.print(f"exported {result.reference}{asked} to {safe(result.folder, limit=1000)}")
    if shards or not records:
        ways = ", ".join(f"{number} {how}" for how, number in result.shards.items())
        size = f"{count(shards, 'shard')} ({ways}), {si_bytes(result.bytes)}"
        session.out.print(f"  {count(records, 'record')} in {size}")
    else:
        session.out.print(f"  {count(records, 'record')}, without copying the shards")
    for note in result.notes:
        session.out.print(f"  note: {note}")
    if result.content is not None:
        session.out.print(f"content digest verified: {result.content}")
    session.out.print(result.how_to_read)
