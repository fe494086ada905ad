"""`tfrecreg adopt` and its output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.catalog import print_manifest
from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.terminal.findings import print_findings
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.builtin.adopt.request import AdoptPlan
    from tfrecreg.builtin.adopt.run import AdoptResult
    from tfrecreg.core.workers.interface import Engine


@session_command("adopt")
@click.argument("name", shell_complete=complete.datasets)
@click.argument("paths", nargs=-1, metavar="[PATH..]", shell_complete=complete.files)
@click.option("--link", is_flag=True, help="Hard-link the files instead of copying them.")
@click.option(
    "--in-place", is_flag=True, help="Adopt the files in data/NAME without changing them."
)
@options_of(
    "making:Making.adopt",
    "how",
    splits="NAME=GLOB",
    key="FEATURE",
    labels={"metavar": "FEATURE=FILE", "shell_complete": complete.files},
    pixels={"metavar": "image=FEATURE:HxWxC", "flags": ("--option",)},
)
@click.option("--dry-run", is_flag=True, help="Show splits and names, without adopting the files.")
@jobs_option
def command(
    session: Session,
    name: str,
    paths: tuple[str, ...],
    link: bool,
    in_place: bool,
    splits: tuple[str, ...],
    labels: tuple[str, ...],
    pixels: tuple[str, ...],
    dry_run: bool,
    engine: Engine,
    **arguments: Any,
) -> None:
    """Make a build from TFRecords written by another tool.

    PATH is a file, folder or glob. Every record is read and checked before anything is copied.
    Damaged or incomplete files are refused. The build in data/NAME has the files, an index, and a
    manifest with splits, counts and digests. If the dataset has no schema, one is drafted.
    `tfrecreg release NAME` then freezes the build like any other.
    """
    from tfrecreg.builtin.adopt.request import AdoptRequest
    from tfrecreg.builtin.adopt.run import adopt, preview_adopt

    if link and in_place:
        raise UsageError("`--link` and `--in-place` exclude each other")
    request = AdoptRequest(
        name=name,
        paths=paths,
        how="in-place" if in_place else "link" if link else "copy",
        splits=_pairs(splits, "--split NAME=GLOB"),
        labels=_pairs(labels, "--labels FEATURE=FILE"),
        pixels=tuple(map(_pixels, pixels)),
        **arguments,
    )
    registry = session.open()
    session.warn_of_broken_plugins()
    if dry_run:
        _print_plan(session, preview_adopt(registry, request))
        return
    result = adopt(registry, request, engine=engine, progress=session.progress())
    if not session.printed_json(result):
        _print_adopted(session.out, session.err, result)


def _pixels(option: str) -> tuple[str, tuple[int, int, int]]:
    """The feature and the size in an option such as ``image=image_raw:28x28x1``."""
    from tfrecreg.core.schema.definition import PIXELS

    key, _, value = option.partition("=")
    feature, _, size = value.rpartition(":")
    found = PIXELS.fullmatch(f"pixels:{size}")
    if key != "image" or not feature or found is None:
        raise UsageError(
            f"`--option {option}` should be `--option image=FEATURE:HEIGHTxWIDTHxCHANNELS`"
        )
    return feature, (int(found[1]), int(found[2]), int(found[3]))


def _pairs(values: Sequence[str], form: str) -> tuple[tuple[str, str], ...]:
    """The name and the value of each ``NAME=VALUE``."""
    pairs = []
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or not name or not rest:
            raise UsageError(f"`{form.split()[0]} {value}` should be `{form}`")
        pairs.append((name, rest))
    return tuple(pairs)


def _print_plan(session: Session, plan: AdoptPlan) -> None:
    if not session.as_json:
        _print_table(session.out, plan)
        return
    files = [
        {"file": file.shard.name, "split": file.shard.split, "path": file.path, "bytes": file.bytes}
        for file in plan.files
    ]
    session.print_json({"dataset": plan.dataset, "how": plan.how, "files": files})


_FILES = 10
"""Maximum number of files shown per split."""


def _print_table(console: Console, plan: AdoptPlan) -> None:
    """Print each file of an adoption with its split and its new name."""
    doing = {"copy": "copied", "link": "linked", "in-place": "left where they are"}[plan.how]
    files = f"{count(len(plan.files), 'file')} below {safe(plan.base, limit=1000)}"
    console.print(line((f"{plan.dataset}: ", "bold"), f"{files} would be {doing}"))
    table = PlainTable("split", "file", "size", "in the build", right=("size",), indent=2)
    splits = sorted(plan.splits().items(), key=lambda pair: in_reading_order(pair[0]))
    for split, members in splits:
        for file in members[:_FILES]:
            name = f"/{file.shard.path}".removeprefix(plan.base).lstrip("/")
            size = si_bytes(file.bytes)
            table.add_row(safe(split), safe(name, limit=1000), size, safe(file.path, limit=1000))
        if len(members) > _FILES:
            table.add_row(safe(split), f"… {len(members) - _FILES} more", "", "")
    console.print(table)


def _print_adopted(console: Console, messages: Console, result: AdoptResult) -> None:
    """Print the adopted build, and the next command."""
    from tfrecreg.core.schema.payload_kinds import described

    manifest = result.manifest
    print_findings(messages, result.findings)
    again = " again, the same as before" if result.unchanged else ""
    title = f"adopted {manifest.dataset}{again}, in {result.folder}"
    print_manifest(console, title, result.folder, manifest, brief=True)
    console.print("")
    console.print(line(("payloads: ", "bold"), described(result.kinds)))
    if manifest.labels:
        named = (f"{safe(name)} ({len(names):,})" for name, names in manifest.labels.items())
        console.print(line(("names of classes: ", "bold"), ", ".join(named)))
    for note in result.notes:
        messages.print(line(("note: ", "cyan"), note))
    if result.terms:
        said = ", ".join(f"{key} {safe(text)}" for key, text in result.terms.items())
        messages.print(line(("described next to the files: ", "cyan"), said))
    if result.drafted:
        path = safe(result.schema_path, limit=1000)
        text = f"drafted {path} from the records: review it, tighten it, keep it in git"
        messages.print(line(text))
