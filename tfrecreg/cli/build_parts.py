"""`tfrecreg build` with a plan: writing it, making a part, and publishing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from tfrecreg.commands.options import ENGINE_PARAMETERS, given_besides, was_given
from tfrecreg.commands.session import Session

if TYPE_CHECKING:
    from tfrecreg.engines.interface import Engine
    from tfrecreg.operations.builds.parts.collect import Collected, CollectRequest
    from tfrecreg.operations.builds.settings import BuildRequest
    from tfrecreg.operations.release import ReleaseResult
    from tfrecreg.progress import Progress
    from tfrecreg.registry.registry import Registry

_WITH_PART = ENGINE_PARAMETERS | {"name", "raw", "plan", "part", "as_json"}
_WITH_PLAN = _WITH_PART - {"part"} | {"version", "parts_only", "verify"}
_NOT_WITH_PLAN_TO = frozenset({"dry_run", "version"})
_PLAN_TO = "`tfrecreg build NAME --plan-to DIR` writes a plan"


def write_plan(
    session: Session, registry: Registry, request: BuildRequest, folder: str, progress: Progress
) -> None:
    """Write the plan of a build, and say what to do with it."""
    from tfrecreg.errors import UsageError
    from tfrecreg.operations.builds.parts.prepare_plan import plan_to
    from tfrecreg.text import safe

    for parameter in click.get_current_context().command.params:
        if parameter.name in _NOT_WITH_PLAN_TO and was_given(parameter):
            raise UsageError(
                f"`{parameter.opts[0]}` cannot be combined with `--plan-to`, which builds nothing",
                hint=f"tfrecreg build {request.name} --plan-to {safe(folder, limit=1000)}",
            )
    written = plan_to(registry, request, folder, progress=progress)
    document = written.document
    if session.as_json:
        session.print_json(
            {
                "dataset": document.dataset,
                "folder": written.folder,
                "plan": document.digest,
                "items": written.items,
                "shards": len(document.shards),
            }
        )
        return
    from tfrecreg.commands.console import count

    where = safe(written.folder, limit=1000)
    items = count(sum(written.items.values()), "item")
    shards = count(len(document.shards), "shard")
    session.out.print(f"planned {document.dataset}: {items} in {shards}, in {where}")
    session.out.print(f"plan    {document.digest}")
    session.err.print("next:")
    session.err.print(
        f"  tfrecreg build --plan {where} --part I/N  # on any machine, I from 1 to N"
    )
    session.err.print(f"  tfrecreg build --plan {where}  # publishes")


def use_plan(
    session: Session,
    plan: str | None,
    name: str | None,
    part: str | None,
    verify: str | None,
    engine: Engine,
    *,
    raw: str | None,
    parts_only: bool,
    version: str | None,
) -> tuple[Collected, ReleaseResult | None] | None:
    """Make a part, or publish; what was published is returned to be shown."""
    from tfrecreg.errors import UsageError

    if plan is None:
        option = given_besides(ENGINE_PARAMETERS | {"name", "as_json", "raw"}) or "--part"
        raise UsageError(f"`{option}` needs `--plan DIR`, the folder of a plan", hint=_PLAN_TO)
    other = given_besides(_WITH_PLAN if part is None else _WITH_PART)
    if other is not None:
        with_what = "--plan" if part is None else "--part"
        raise UsageError(
            f"`{other}` cannot be combined with `{with_what}`: the plan has the settings",
            hint=_PLAN_TO,
        )
    session.warn_of_broken_plugins()
    if part is not None:
        _make_part(session, plan, name, part, raw, engine)
        return None
    from tfrecreg.operations.builds.parts.collect import CollectRequest
    from tfrecreg.operations.builds.parts.remake import parse_sample

    request = CollectRequest(
        plan=plan,
        name=name,
        raw=raw,
        parts_only=parts_only,
        verify=parse_sample(verify) if verify is not None else None,
    )
    return _publish(session, request, version, engine)


def _make_part(
    session: Session, plan: str, name: str | None, text: str, raw: str | None, engine: Engine
) -> None:
    from tfrecreg.commands.console import count
    from tfrecreg.operations.builds.parts.one_part import parse_part, run_part
    from tfrecreg.text import si_bytes

    part = parse_part(text)
    result = run_part(
        plan,
        part,
        name=name,
        raw=raw,
        registry=session.open,
        engine=engine,
        progress=session.progress(),
    )
    made = len(result.shards) - result.finished_before
    if session.as_json:
        session.print_json(
            {
                "dataset": result.dataset,
                "plan": result.plan,
                "part": str(result.part),
                "shards": result.shards,
                "made": made,
                "finished_before": result.finished_before,
                "records": result.records,
                "bytes": result.bytes,
            }
        )
        return
    if not result.shards:
        session.out.print(f"part {result.part} of {result.dataset} has no shards: nothing to do")
        return
    before = f", {result.finished_before} were finished before" if result.finished_before else ""
    session.out.print(
        f"part {result.part} of {result.dataset}: made {count(made, 'shard')}{before}; "
        f"{count(result.records, 'record')}, {si_bytes(result.bytes)}"
    )


def _publish(
    session: Session, request: CollectRequest, version: str | None, engine: Engine
) -> tuple[Collected, ReleaseResult | None]:
    from tfrecreg.operations.builds.parts.collect import collect_parts
    from tfrecreg.operations.release import ReleaseRequest, release
    from tfrecreg.registry.lock import dataset_lock

    registry, progress = session.open(), session.progress()
    if version is None:
        collected = collect_parts(registry, request, engine=engine, progress=progress)
        _say(session, collected)
        return collected, None
    from tfrecreg.operations.builds.parts.plan_files import PlanFolder

    name = PlanFolder.open(request.plan).document.dataset
    waiting = partial(progress.note, "waiting for another command")
    with dataset_lock(registry, name, waiting):
        collected = collect_parts(registry, request, engine=engine, progress=progress)
        _say(session, collected)
        wanted = ReleaseRequest(name=name, version=None if version == "auto" else version)
        return collected, release(registry, wanted, engine=engine, progress=progress)


def _say(session: Session, collected: Collected) -> None:
    from tfrecreg.commands.console import count

    here = len(collected.made_here)
    said = f"{count(collected.from_parts, 'shard')} of parts, {here} made here"
    if collected.verified:
        said += f", {len(collected.verified)} made again and equal"
    session.err.print(said)
