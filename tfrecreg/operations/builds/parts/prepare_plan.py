"""Listing the items once, and writing the plan of a build."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field

from tfrecreg._version import __version__
from tfrecreg.engines.local import LocalEngine
from tfrecreg.manifest.model import Parent
from tfrecreg.operations.builds.begin import begin
from tfrecreg.operations.builds.bucket import note_use, store_of
from tfrecreg.operations.builds.parts.open_source import codecs_here
from tfrecreg.operations.builds.parts.plan_files import (
    RawOfItems,
    plan_store,
    write_document,
    write_listed,
    write_lists,
    write_schema_text,
)
from tfrecreg.operations.builds.parts.plan_model import (
    PLAN_FORMAT,
    PLAN_KIND,
    PlanDocument,
    Planned,
    Versions,
    seal_plan,
)
from tfrecreg.operations.builds.parts.plan_store import expect_plan_place, put_plan
from tfrecreg.operations.builds.request import code_of_source, prepare
from tfrecreg.operations.builds.settings import BuildRequest
from tfrecreg.operations.policy import expect_policy
from tfrecreg.operations.provenance import now, user
from tfrecreg.progress import SILENT, Progress
from tfrecreg.registry.output_folder import free_folder, new_folder
from tfrecreg.registry.registry import Registry
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import store_at
from tfrecreg.storage.two_places import temporary_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWritten:
    """A plan that was written."""

    dataset: str
    folder: str
    """Absolute path, or URL."""
    plan: str
    """Its digest."""
    items: dict[str, int]
    """Split to number of items."""
    shards: int
    document: PlanDocument = field(repr=False)


def plan_to(
    registry: Registry,
    request: BuildRequest,
    folder: str | os.PathLike[str],
    *,
    progress: Progress = SILENT,
) -> PlanWritten:
    """List the items of a build and write its plan. The registry stays as it is.

    Args:
        folder: a new folder, which appears when the plan is complete, or the URL of one. Parts
            and the command that publishes have to see it.

    Raises:
        UsageError: as `build` does before its work starts, or the folder is not free.
        PluginError: the source failed.
    """
    expect_policy(registry, request.name)
    store = plan_store(os.fsdecode(folder))
    if store is not None:
        expect_plan_place(store)
        making = temporary_folder("plan")
    else:
        making = new_folder(free_folder(folder, registry, "a plan"), "plan")
    data = store_of(registry.dataset(request.name))
    if data is not None:
        data.expect_condition()
    prepared = prepare(registry, request, progress)
    started = begin(registry, prepared, LocalEngine(1), progress)
    plan = started.plan
    labels = {name: list(names) for name, names in prepared.source.labels().items()}
    base = plan.base.manifest if plan.base is not None else None
    raw = RawOfItems(prepared.source, started.files)
    with making as made:
        document = seal_plan(
            PlanDocument(
                format_version=PLAN_FORMAT,
                kind=PLAN_KIND,
                dataset=plan.dataset,
                order=plan.digest,
                shards=[write_lists(made, shard, raw) for shard in plan.shards],
                listed=write_listed(made, plan),
                raw_files=raw.write_left(made),
                source=prepared.entry,
                versions=Versions(
                    tfrecreg=__version__,
                    codecs=codecs_here(prepared.source),
                    code=code_of_source(prepared.entry.distribution, prepared.source),
                ),
                compression=prepared.settings.compression,
                max_skipped=str(prepared.settings.max_skipped),
                max_dropped=str(prepared.settings.max_dropped),
                schema=write_schema_text(made, started.schema),
                labels=labels,
                raw=started.raw,
                settings=json.dumps(prepared.remember),
                base=Parent(version=base.release.version, digest=base.digest)
                if base is not None and base.release is not None
                else None,
                data=data.below(plan.digest).root if data is not None else None,
                planned=Planned(
                    created=now(),
                    by=user(),
                    host=platform.node(),
                    python=platform.python_version(),
                    raw=prepared.raw.root if prepared.raw is not None else "",
                ),
            )
        )
        write_document(made, document)
        if store is not None:
            document = put_plan(made, document, store)
    if document.data is not None:
        note_use(store_at(document.data))
    root = LocalStorage(folder).root if store is None else store.root
    return PlanWritten(
        dataset=document.dataset,
        folder=root,
        plan=document.digest,
        items=plan.splits(),
        shards=len(document.shards),
        document=document,
    )
