"""Plans in a store, and plans whose shards go to one.

The folder of a plan is free or has the same plan. `plan.json` is put there last, so a folder that
has it holds a whole plan.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfrecreg.errors import UsageError
from tfrecreg.manifest.model import ShardEntry
from tfrecreg.operations.builds.bucket import BucketSink, note_use, store_of
from tfrecreg.operations.builds.parts.plan_files import PLAN_FILES, PLAN_LIMIT, PlanFolder
from tfrecreg.operations.builds.parts.plan_model import PLAN_NAME, PlanDocument
from tfrecreg.operations.builds.parts.receipt_model import RECEIPTS, Receipt
from tfrecreg.operations.builds.sink import BUILD, BuildSink, StageSink
from tfrecreg.progress import Progress, working
from tfrecreg.records.hashing import hash_file
from tfrecreg.registry.registry import Dataset
from tfrecreg.storage.daemon_threads import at_once
from tfrecreg.storage.interface import PROBE, Readable, Storage, Store
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.locations import store_at
from tfrecreg.text import safe

NOTES = "parts"
"""Folder of the notes of parts, in the folder of the plan."""
_OURS = PLAN_FILES | {BUILD, RECEIPTS, NOTES}
_HINT = "name a folder that does not exist yet, or an empty one: a plan never overwrites"


def expect_plan_place(store: Store) -> None:
    """Refuse a store that overwrites files, and a folder that holds anything but a plan. That may
    be the plan that is going to be written.

    Raises:
        UsageError: it holds something else.
        StorageError: the store overwrites, or refused.
    """
    store.expect_condition()
    for entry in store.list(recursive=False):
        if entry.path not in _OURS and not entry.path.startswith(PROBE):
            raise UsageError(
                f"`{safe(store.root, limit=1000)}` is not empty: it has `{safe(entry.path)}`",
                hint=_HINT,
            )


def put_plan(made: LocalStorage, document: PlanDocument, store: Store) -> PlanDocument:
    """Put a plan into a store, unless the same one is there.

    Args:
        made: rooted at a local folder with its files.

    Returns:
        The plan that is there now.

    Raises:
        UsageError: another plan is there.
        StorageError: the store refused, or has files of another plan that was not completed.
    """
    if store.stat(PLAN_NAME) is None:
        lists = (entry.path for entry in made.list() if entry.kind == "file")
        for _ in at_once(
            lambda path: store.upload(f"{made.root}/{path}", path),
            (path for path in lists if path != PLAN_NAME),
        ):
            pass
        if store.put_if_absent(PLAN_NAME, made.read(PLAN_NAME, limit=PLAN_LIMIT)):
            return document
    found = PlanFolder.open(store.root).document
    if (found.digest, _raw(found)) != (document.digest, _raw(document)):
        raise UsageError(
            f"`{safe(store.root, limit=1000)}` has another plan: its digest is "
            f"`{found.digest[:16]}…`, that of this one `{document.digest[:16]}…`, with the raw "
            f"data in `{safe(_raw(found), limit=1000)}` and `{safe(_raw(document), limit=1000)}`",
            hint=_HINT,
        )
    return found


def _raw(document: PlanDocument) -> str:
    """The folder of the raw data for parts, which the digest does not cover."""
    return document.planned.raw if document.planned is not None else ""


def enter_bucket(folder: PlanFolder) -> None:
    """Refuse a bucket that overwrites files, and note that the shards there are in use. Does
    nothing where the dataset has its shards in the registry.

    Raises:
        StorageError: the bucket overwrites, or refused.
    """
    if folder.document.data is not None:
        build = store_at(folder.document.data)
        # The folder of a build holds the files of its manifest alone.
        store_at(build.root.rpartition("/")[0]).expect_condition()
        note_use(build)


def expect_same_place(dataset: Dataset, folder: PlanFolder) -> None:
    """Refuse a plan whose shards go to another place than the builds of the dataset.

    Raises:
        UsageError: they do.
    """
    store, data = store_of(dataset), folder.document.data
    here = None if store is None else store.below(folder.document.order).root
    if here != data:
        named = [f"`{safe(each, limit=1000)}`" if each else "`data/`" for each in (data, here)]
        raise UsageError(
            f"the plan `{folder.name}` puts shards into {named[0]}, `{dataset.config_file}` into "
            f"{named[1]}",
            hint="restore the key `data` there, or write the plan again, into a new folder",
        )


def stage_shards(
    folder: PlanFolder, receipts: Mapping[str, Receipt], stage: Storage, progress: Progress
) -> BuildSink:
    """The folder that gets all shards of the build: links, or copies of those in the store of a
    plan. Shards of a dataset in a bucket stay there.

    Args:
        receipts: of all shards, by path.
        stage: rooted at a folder of the registry.
    """
    shards = folder.shards
    if folder.store is None:
        for path in receipts:
            stage.link(path, path, origin=shards)
        return StageSink(stage, stage, indexed=False)
    if folder.document.data is not None:
        return BucketSink(LocalStorage(stage.root), folder.store, indexed=False)
    with (
        working(progress, f"fetching {folder.document.dataset}", len(receipts)),
        shards.reading_ahead(receipts, shards.list()),
    ):
        for receipt in receipts.values():
            _copy(receipt.shard, shards, stage)
            progress.advance(1, receipt.shard.bytes)
    return StageSink(stage, stage, indexed=False)


def _copy(entry: ShardEntry, shards: Readable, stage: Storage) -> None:
    """Copy a file. The proof compares it with the receipt."""
    for _ in range(2):  # bytes may have been altered on their way
        with stage.create(entry.path) as writer:
            if hash_file(shards, entry.path, copy=writer)[1] == entry.blake3:
                return
