"""`tfrecreg list`, `show`, `log`, `explain` and `digest`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import count, did_you_mean, safe, si_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.builtin.look.digest import ContentDigests
    from tfrecreg.core.registry.manifest import Manifest
    from tfrecreg.core.values.findings import Code
    from tfrecreg.core.workers.interface import Engine


@session_command("list")
def list_command(session: Session) -> None:
    """List the datasets of the registry.

    Each line has a dataset's newest release, its number of releases, and its size.
    """
    from tfrecreg.core.registry.listing import list_datasets

    listed = list_datasets(session.open())
    if session.printed_json({"datasets": listed}):
        return
    from tfrecreg.core.terminal.catalog import print_list

    print_list(session.out, listed)


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
    help="Print Python code for it: tf, keras, numpy, grain, torch, tfds, mlflow or wandb.",
)
@click.option(
    "--provenance",
    is_flag=True,
    help="Show where it comes from: source, raw data, versions.",
)
def show_command(session: Session, reference: str, code: str | None, provenance: bool) -> None:
    """Show a build or a release.

    REF is mnist for the build, or mnist@1.0.0, mnist@1.* or mnist@latest for a release. Prints its
    splits, sizes, source, items, labels and digests. `--code` prints Python code. The code loads
    REF in a framework such as PyTorch, or logs REF in a tracker such as MLflow. `--provenance`
    shows how REF was made.
    """
    from tfrecreg.core.registry.data import resolve

    if code is not None and provenance:
        raise click.UsageError("--code and --provenance exclude each other")
    resolved = resolve(session.open(), reference)
    if code is not None:
        from tfrecreg.builtin.look.snippets import snippet

        text = snippet(resolved, code, registry=session.registry)
        document = {"reference": resolved.name, "framework": code, "code": text}
        if not session.printed_json(document):
            click.echo(text, nl=False)  # a console would wrap and colour
        return
    if provenance:
        from tfrecreg.core.terminal.console import line, print_facts

        if session.as_json:
            session.print_json(_provenance(resolved.name, resolved.manifest))
            return
        session.out.print(line((f"provenance of {resolved.name}", "bold")))
        print_facts(session.out, _facts(resolved.manifest))
        return
    if session.as_json:
        from tfrecreg.core.registry.listing import manifest_json

        session.print_json(manifest_json(resolved))
        return
    from tfrecreg.core.terminal.catalog import print_manifest

    print_manifest(
        session.out,
        resolved.name,
        resolved.folder,
        resolved.manifest,
        yanks=resolved.yanks,
    )


def _provenance(reference: str, manifest: Manifest) -> dict[str, Any]:
    """The document of ``show --provenance --json``."""
    names = "source raw codecs schema compression ledger base parents salvaged release"
    return {
        "reference": reference,
        "manifest": manifest.digest,
        **{name: getattr(manifest, name) for name in names.split()},
        "released": manifest.provenance,
        "gate": {"passed": manifest.release is not None or None, "why": _gate(manifest)},
    }


def _gate(manifest: Manifest) -> str:
    if manifest.release is None:
        return "not applied yet: it is applied when the build is released"
    return "passed, as for every release"


def _facts(manifest: Manifest) -> Iterator[tuple[str, str]]:
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
    yield "gate", _gate(manifest)
    yield "content", manifest.content
    yield "manifest", manifest.digest


@session_command("explain")
@click.argument("code", required=False, shell_complete=complete.codes)
def explain_command(session: Session, code: str | None) -> None:
    """Explain a finding code.

    Prints what the code means, why it matters, and what to do. If CODE is a family such as CRC, the
    command lists the codes of the family. Without a CODE, it lists all codes.
    """
    from tfrecreg.core.values.codes import CORE_CODES, former_codes

    if code is None:
        _print_all(session, session.plugins(untrusted=True).codes())
        return
    found, former = CORE_CODES.get(code.upper()), former_codes().get(code.upper())
    if former is not None:
        # The fate of a retired code, and the codes that replaced it.
        document = {"code": former[0], "became": [*former[1]], "summary": former[2]}
        if session.printed_json(document):
            return
        from tfrecreg.core.terminal.console import line

        session.out.print(line((str(former), "bold"), f": {former[2]}."))
        for each in former[1]:
            session.out.print("")
            print_code(session.out, CORE_CODES[each])
        return
    if found is None:  # a code of a plugin
        known = session.plugins(untrusted=True).codes()
        found = known.get(code.upper())
        family = {name: each for name, each in known.items() if name[:-3] == code.upper()}
        if family:
            _print_all(session, family)
            return
    if found is None:
        raise UsageError(f"no code `{code}`{did_you_mean(code.upper(), known)}")
    if session.as_json:
        outcomes = [outcome.value for outcome in found.tensorflow]
        more = {"hint": found.hint, "page": found.page, "tensorflow": outcomes}
        session.print_json(_row(found) | more)
        return
    print_code(session.out, found)


def _row(code: Code) -> dict[str, str]:
    return {
        "code": code.code,
        "rule": code.rule,
        "severity": code.severity.value,
        "summary": code.summary,
    }


def _print_all(session: Session, known: dict[str, Code]) -> None:
    if session.printed_json({"codes": [_row(code) for code in known.values()]}):
        return
    from tfrecreg.core.terminal.console import PlainTable

    table = PlainTable("code", "severity", "summary")
    for code in known.values():
        table.add_row(code.code, code.severity.value, code.summary)
    session.out.print(table)


def print_code(console: Console, code: Code) -> None:
    from tfrecreg.core.terminal.console import line
    from tfrecreg.core.terminal.findings import SEVERITY_STYLE

    severity = (code.severity.value, SEVERITY_STYLE[code.severity])
    console.print(line((f"{code.code} {code.rule}", "bold"), " (", severity, ")"))
    console.print(line(f"{code.summary}."))
    console.print("")
    for paragraph in code.page.strip().split("\n\n"):
        # Pages are wrapped at 100 columns; terminals wrap them at their own width.
        if console.is_terminal:
            console.print(line(" ".join(paragraph.split()), hang=0))
        else:
            console.print(paragraph)
        console.print("")
    if code.tensorflow:
        outcomes = " or ".join(outcome.value for outcome in code.tensorflow)
        console.print(line(("TensorFlow: ", "cyan"), outcomes))
    console.print(line(("hint: ", "cyan"), code.hint))


@session_command("digest")
@click.argument(
    "targets", nargs=-1, required=True, metavar="TARGET..", shell_complete=complete.targets
)
@options_of("files:Verbs.digest", split="NAME")
@jobs_option
def digest_command(
    session: Session, targets: tuple[str, ...], split: str | None, engine: Engine
) -> None:
    """Print the content digest of each split.

    TARGET is a reference (mnist, mnist@1.0.0). It can also be a path, URL, folder or glob of
    TFRecord files, which any tool may have written. The digest depends only on the records and the
    names of their splits, not on order, shards or compression. The manifest of a release also
    contains the digest of each split. `tfrecreg check TARGET --same-as REF` names the records that
    differ.
    """
    from tfrecreg.builtin.look.digest import digest

    found = digest(targets, split=split, **session.context(engine))
    if session.printed_json({"targets": found}):
        return
    for each in found:
        _print_digests(each, named=len(found) > 1)


def _print_digests(found: ContentDigests, *, named: bool) -> None:
    """Print a line per split, and one for all splits if there are several."""
    rows = [(each.content, each.records, safe(each.split) or "(no name)") for each in found.splits]
    if len(rows) != 1:
        records = sum(each.records for each in found.splits)
        rows.append((found.content, records, "(all splits)"))
    target = f"  {found.target}" if named else ""
    width = max(len(f"{records}") for _, records, _ in rows)
    for content, records, name in rows:
        # A console would wrap the line.
        click.echo(f"{content}  {records:>{width}}  {name}{target}")


@session_command("log")
@click.argument("name", shell_complete=complete.datasets)
@options_of("making:Making.log")
def log_command(session: Session, name: str, **chosen: Any) -> None:
    """Show the history of a dataset.

    Lists the releases of NAME, newest first, and what changed in each.
    """
    from tfrecreg.core.registry.listing import log

    entries = log(session.open(), name, **chosen)
    if session.printed_json({"dataset": name, "releases": entries}):
        return
    from tfrecreg.core.terminal.catalog import print_log

    print_log(session.out, name, entries)
