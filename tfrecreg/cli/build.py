"""`tfrecreg build`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from tfrecreg.commands import complete
from tfrecreg.commands.options import ENGINE_PARAMETERS, given_besides, jobs_option, pairs
from tfrecreg.commands.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.engines.interface import Engine
    from tfrecreg.operations.builds.conclude import BuildResult
    from tfrecreg.operations.builds.growth import Growth
    from tfrecreg.operations.builds.parts.collect import Collected
    from tfrecreg.operations.builds.run import Preview
    from tfrecreg.operations.release import ReleaseResult
    from tfrecreg.shards import ShardPolicy

_WITH_REPAIR = ENGINE_PARAMETERS | {"name", "raw", "repair", "as_json"}
"""The parameters that a repair takes: it builds as it was built."""


@session_command("build")
@click.argument("name", required=False, shell_complete=complete.datasets)
@click.option(
    "--source",
    metavar="S",
    shell_complete=complete.sources,
    help="Source plugin that reads the raw data.",
)
@click.option(
    "--raw",
    metavar="PATH",
    shell_complete=complete.folders,
    help="Folder of the raw data, or its URL.",
)
@click.option(
    "--option", "options", metavar="K=V", multiple=True, help="Option of the source. Repeatable."
)
@click.option("--shards", type=int, metavar="N", help="Make N shards of each split.")
@click.option("--shard-size", metavar="SIZE", help="Make shards of about SIZE, such as 128MiB.")
@click.option(
    "--records-per-shard", type=int, metavar="N", help="Put at most N records into a shard."
)
@click.option("--hosts", type=int, metavar="N", help="Make enough shards for N training hosts.")
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip"]),
    help="Compression of the shards. Default: none.",
)
@click.option(
    "--base",
    metavar="REF|none",
    shell_complete=complete.releases,
    help="Keep the unchanged shards of this release. Default: the latest; none: reshuffle all.",
)
@click.option(
    "--default-schema",
    is_flag=True,
    help="If the dataset's schema is missing, use the source's own, even if it differs.",
)
@click.option(
    "--max-skipped", metavar="N|P%", help="Accept up to this many skipped items. Default: 0."
)
@click.option(
    "--save-options",
    "save",
    is_flag=True,
    help="Save these settings in datasets/NAME.toml for later builds.",
)
@click.option(
    "--anew",
    is_flag=True,
    help="Make every shard, also those that an earlier, unfinished run had finished.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan and write nothing.")
@click.option(
    "--release", "version", metavar="X.Y.Z|auto", help="Release the build under this number."
)
@click.option(
    "--repair",
    metavar="REF",
    shell_complete=complete.references,
    help="Rebuild the missing or damaged files of REF, byte for byte.",
)
@click.option(
    "--plan-to",
    metavar="DIR",
    shell_complete=complete.folders,
    help="List the items, write the plan to DIR, a new folder or its URL, and build nothing.",
)
@click.option(
    "--plan",
    metavar="DIR",
    shell_complete=complete.folders,
    help="Publish the shards that parts made by the plan in DIR, and make those that are missing.",
)
@click.option("--part", metavar="I/N", help="With --plan: make the shards of part I of N alone.")
@click.option(
    "--parts-only", is_flag=True, help="With --plan: if shards are missing, name them and stop."
)
@click.option(
    "--verify-parts",
    "verify",
    metavar="N|P%",
    help="With --plan: make so many shards again, chosen at random, and compare the bytes.",
)
@jobs_option
def command(
    session: Session,
    name: str | None,
    source: str | None,
    raw: str | None,
    options: tuple[str, ...],
    shards: int | None,
    shard_size: str | None,
    records_per_shard: int | None,
    hosts: int | None,
    compression: Literal["none", "gzip"] | None,
    base: str | None,
    default_schema: bool,
    max_skipped: str | None,
    save: bool,
    anew: bool,
    dry_run: bool,
    version: str | None,
    repair: str | None,
    plan_to: str | None,
    plan: str | None,
    part: str | None,
    parts_only: bool,
    verify: str | None,
    engine: Engine,
) -> None:
    """Build a dataset's TFRecords from its raw data.

    The new build is written beside the old data/NAME, read back and checked, and then replaces it.
    The first build of a dataset saves its settings in datasets/NAME.toml, and `tfrecreg build NAME`
    repeats it. Settings of a later build apply to that build only, unless `--save-options` saves
    them.

    With `--repair REF` (NAME, or a release of it), only the missing and damaged files of REF are
    rebuilt. If the result is not byte for byte the original, nothing is changed. Only `--raw`,
    `--jobs` and the engine may be combined with it.

    `--plan-to DIR` writes the plan of a build. Then `--plan DIR --part I/N` makes the shards of one
    part, on any machine that sees DIR and the raw data, and `--plan DIR` compares every shard with
    its receipt, the plan and its bytes, and publishes the build. DIR may be in a bucket:
    `s3://bucket/plan`. NAME may be omitted with `--plan`.
    """
    if plan is not None or part is not None or verify is not None or parts_only:
        from tfrecreg.cli import build_parts

        made = build_parts.use_plan(
            session,
            plan,
            name,
            part,
            verify,
            engine,
            raw=raw,
            parts_only=parts_only,
            version=version,
        )
        if made is not None:
            collected, released = made
            _print(session, collected.built, released, collected)
        return
    from tfrecreg.operations.builds.run import build_from_source, preview
    from tfrecreg.operations.builds.settings import BuildRequest

    if name is None:
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param_hint="'NAME'", param_type="argument")
    registry = session.open()
    session.warn_of_broken_plugins()
    if repair is not None:
        _repair(session, name, repair, raw, engine)
        return
    request = BuildRequest(
        name=name,
        source=source,
        raw=raw,
        options=pairs(options, "--option"),
        policy=_policy(shards, shard_size, records_per_shard, hosts),
        compression=compression,
        max_skipped=max_skipped,
        base=base,
        default_schema=default_schema,
        save=save,
        anew=anew,
    )
    progress = session.progress()
    if plan_to is not None:
        from tfrecreg.cli import build_parts

        build_parts.write_plan(session, registry, request, plan_to, progress)
        return
    if dry_run:
        _print_preview(session, preview(registry, request, engine=engine, progress=progress))
        return
    if version is None:
        _print(
            session, build_from_source(registry, request, engine=engine, progress=progress), None
        )
        return
    from tfrecreg.operations.release import publish

    number = None if version == "auto" else version
    built, released = publish(registry, request, number, engine=engine, progress=progress)
    _print(session, built, released)


def _repair(session: Session, name: str, reference: str, raw: str | None, engine: Engine) -> None:
    from tfrecreg.errors import UsageError
    from tfrecreg.operations.repair.run import repair

    other = given_besides(_WITH_REPAIR)
    if other is not None:
        raise UsageError(
            f"`{other}` cannot be combined with `--repair`, which repeats the original settings",
            hint=f"tfrecreg build {name} --repair {reference}",
        )
    result = repair(
        session.open(), name, reference, raw=raw, engine=engine, progress=session.progress()
    )
    if session.as_json:
        session.print_json(result)
        return
    from tfrecreg.cli.render.repaired import print_repair

    print_repair(session.out, result)


def _policy(
    shards: int | None, size: str | None, records: int | None, hosts: int | None
) -> ShardPolicy | None:
    from tfrecreg.shards import ShardPolicy, parse_shard_size

    if all(value is None for value in (shards, size, records, hosts)):
        return None
    return ShardPolicy(
        shards=shards,
        shard_size=parse_shard_size(size) if size is not None else None,
        records_per_shard=records,
        hosts=hosts,
    )


def _print(
    session: Session,
    result: BuildResult,
    released: ReleaseResult | None,
    collected: Collected | None = None,
) -> None:
    from tfrecreg.cli.release import accepted, print_release

    manifest = result.manifest
    if session.as_json:
        document: dict[str, Any] = {
            "dataset": manifest.dataset,
            "folder": result.folder,
            "content": manifest.content,
            "digest": manifest.digest,
            "splits": {split.name: split.records for split in manifest.splits},
            "shards": len(manifest.shards),
            "bytes": sum(shard.bytes for shard in manifest.shards),
            "resumed_shards": result.resumed,
            "unchanged": result.unchanged,
            "settings": result.settings.to_json(),
            "growth": _growth(result.growth),
            **accepted(result.report),
            "parts": None,
            "release": None,
        }
        if collected is not None:
            document["parts"] = collected
        if released is not None:
            document["release"] = {
                "version": str(released.version),
                "created": released.created,
                **accepted(released.report),
            }
        session.print_json(document)
        return
    from tfrecreg.render.catalog import print_manifest
    from tfrecreg.render.findings import print_accepted

    again = " again, the same as before" if result.unchanged else ""
    if result.resumed:
        kept = "shard" if result.resumed == 1 else "shards"
        session.err.print(
            f"{result.resumed} finished {kept} of an earlier run kept; --anew makes every shard"
        )
    if result.growth is not None:
        from tfrecreg.cli.render.outcomes import print_growth

        print_growth(session.err, result.growth)
    if released is None or released.report is None:
        print_accepted(session.err, result.report)  # else it is among what the gate found
    title = f"built {manifest.dataset}{again}, in {result.folder}"
    print_manifest(session.out, title, result.folder, manifest, brief=True)
    if released is not None:
        print_release(session, released)


def _growth(growth: Growth | None) -> dict[str, Any] | None:
    from dataclasses import asdict

    return None if growth is None else {**asdict(growth), "written_bytes": growth.written_bytes}


def _print_preview(session: Session, found: Preview) -> None:
    if not session.as_json:
        from tfrecreg.cli.render.outcomes import print_preview

        print_preview(session.out, found)
        return
    from dataclasses import asdict

    plan = found.plan
    splits = plan.splits()
    shards = {name: sum(s.split == name for s in plan.shards) for name in splits}
    sizes = {
        name: sum(found.sizes[s.path] for s in plan.shards if s.split == name) for name in splits
    }
    session.print_json(
        {
            "dataset": plan.dataset,
            "source": found.prepared.entry.name,
            "options": found.prepared.entry.options,
            "settings": found.settings,
            "found": found.found,
            "raw": {"files": found.raw.files, "stored": found.raw.stored},
            "splits": {
                name: {
                    "items": splits[name],
                    "shards": shards[name],
                    "estimated_bytes": sizes[name],
                }
                for name in splits
            },
            "skipped": len(plan.skipped),
            "growth": _growth(found.growth),
            "push": {**asdict(found.push), "total": found.push.total},
        }
    )
