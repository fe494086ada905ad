"""`tfrecreg schema` and its subcommands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import expect_free_file, write_text
from tfrecreg.core.terminal.session import LazyGroup, Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("infer")
@click.argument("target", shell_complete=complete.targets)
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write the draft to FILE, which must not exist.",
)
@jobs_option
def infer_command(session: Session, target: str, output: str | None, engine: Engine) -> int:
    """Draft a schema from records.

    TARGET is a reference, or a path, URL, folder or glob of TFRecord files. A schema inferred from
    data accepts that same data: review the draft before you rely on it. Damaged records are
    skipped, and the exit code is then 1.
    """
    from tfrecreg.core.check.infer import infer_schema, passed_over
    from tfrecreg.core.registry.find import find_target

    if output is not None:
        expect_free_file(output)
    found = find_target(target, registry=session.registry)
    draft, damage = infer_schema(found, engine, session.progress())
    if output is not None:
        expect_free_file(output)  # reading all records may take long
        write_text(output, draft)
        session.err.print(
            f"wrote {safe(output)}: review it, because it accepts everything in the data"
        )
    elif session.as_json:
        session.print_json({"target": found.name, "schema": draft, "damage": damage})
        return 1 if damage else 0
    else:
        click.echo(draft.rstrip("\n"))
    if damage:
        raise passed_over(found.name, damage)
    return 0


@session_command("show")
@click.argument("schema", shell_complete=complete.targets)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "tf", "json"]),
    default="text",
    help="text: the schema's text. tf: Python for tf.io.parse_example. json: feature by feature.",
)
def show_command(session: Session, schema: str, form: str) -> None:
    """Show a schema as text, as a tf.io feature spec or as JSON.

    SCHEMA is a dataset (mnist), a release (mnist@1.0.0), or a file.
    """
    from tfrecreg.core.registry.schemas import find_schema
    from tfrecreg.core.schema.compiled import schema_json, tf_source
    from tfrecreg.core.schema.proto import parse_schema

    text, where = find_schema(schema, registry=session.registry)
    parsed = parse_schema(text, where)
    if session.as_json or form == "json":
        session.print_json({"schema": where, **schema_json(parsed)})
    else:
        click.echo((tf_source(parsed) if form == "tf" else text).rstrip("\n"))


@session_command("diff")
@click.argument("expected", metavar="A", shell_complete=complete.targets)
@click.argument("found", metavar="B", shell_complete=complete.targets)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if they differ, as git diff does.")
def diff_command(session: Session, expected: str, found: str, exit_code: bool) -> int:
    """Compare two schemas, feature by feature.

    Each of A and B is a dataset (mnist), a release (mnist@1.0.0), or a file. "expected" shows the
    values of A, and "found" shows the values of B. Comments, order and layout are ignored.
    """
    from tfrecreg.builtin.schemas.compare import diff_schemas, print_schema_diff

    result = diff_schemas(expected, found, registry=session.registry)
    if not session.printed_json(result):
        print_schema_diff(session.out, result)
    return 1 if exit_code and result.changes else 0


@session_command("check")
@click.argument("schema", shell_complete=complete.targets)
@options_of(
    "schemas:SchemaVerbs.check_schema",
    against={"metavar": "REF|FILE", "shell_complete": complete.targets},
    environment="E",
)
def check_command(session: Session, schema: str, mode: str, fail_on: str, **arguments: Any) -> int:
    """Check that readers of one version parse records of another.

    SCHEMA is today's schema: a dataset (mnist), a release (mnist@1.0.0), or a file. Yesterday's
    schema is the schema of the latest release. A reader parses records with the specification that
    `schema show --format tf` prints.
    """
    from tfrecreg.builtin.schemas.compare import check_compatibility, print_compatibility
    from tfrecreg.core.values.config import FailOn

    report = check_compatibility(
        schema, registry=session.registry, mode=mode, fail_on=FailOn(fail_on), **arguments
    )
    if not session.printed_json(report):
        print_compatibility(session.out, report)
    return report.exit_code


@session_command("accept")
@click.argument("target", shell_complete=complete.targets)
@options_of("schemas:SchemaVerbs.accept_schema", features="F")
@jobs_option
def accept_command(
    session: Session, target: str, write: bool, engine: Engine, **arguments: Any
) -> int:
    """Propose a schema change that accepts the data.

    TARGET is a dataset, whose build is checked against its working schema. With --schema, it can be
    any target of `check`. The command shows the smallest possible change as a diff. The changed
    file has protobuf's layout and keeps the comments of features and domains. The exit code is 1 if
    there are findings that no schema change can resolve.
    """
    from tfrecreg.builtin.schemas.accept import propose, write_proposal

    proposal = propose(target, **arguments, **session.context(engine))
    written = write and proposal.before != proposal.after
    if written:
        write_proposal(proposal)
    if not session.printed_json(proposal.to_json(written=written)):
        from tfrecreg.builtin.schemas.compare import print_proposal

        print_proposal(session.out, session.err, proposal, written=written)
    return proposal.exit_code


@click.group(
    name="schema",
    cls=LazyGroup,
    places={
        str(each.name): (f"{__name__}:{each.name}_command", each.get_short_help_str(99).rstrip("."))
        for each in (infer_command, show_command, diff_command, check_command, accept_command)
    },
    no_args_is_help=True,
)
def command() -> None:
    """Work with schemas.

    A schema declares the features of all records and the values they may have.
    """
