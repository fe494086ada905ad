"""The build's folder: what may be replaced, and which files stay beside the shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blake3 import blake3

from tfrecreg.errors import UsageError
from tfrecreg.index import INDEX_LIMIT, INDEX_MAGIC
from tfrecreg.manifest import MANIFEST_NAME, FileEntry, Manifest
from tfrecreg.manifest.adopted import is_adopted
from tfrecreg.operations.adopt.examine import Examined, index_path
from tfrecreg.operations.adopt.manifest import RESERVED
from tfrecreg.operations.adopt.place import hash_both
from tfrecreg.operations.adopt.plan import AdoptPlan
from tfrecreg.operations.builds.names import INDEX_FOLDER
from tfrecreg.operations.precious import expect_no_strangers
from tfrecreg.records import hashed_write
from tfrecreg.registry import Registry, layout
from tfrecreg.scan import Shard
from tfrecreg.storage import Storage, is_temporary
from tfrecreg.text import safe

__all__ = ["bystanders", "expect_free", "keep_indexes"]


def expect_free(registry: Registry, plan: AdoptPlan) -> Manifest | None:
    """The build that there is, None where there is none.

    Raises:
        UsageError: adopting would cost somebody's files, or there is nothing to adopt.
        ManifestError: there is a build, and its manifest is damaged.
    """
    folder = layout.build_folder(plan.dataset)
    before = registry.build_manifest(plan.dataset)
    if plan.how == "in-place":
        if before is not None and not is_adopted(before):
            raise UsageError(
                f"`{folder}` is a build that tfrecreg made: there is nothing to adopt",
                hint=f"tfrecreg release {plan.dataset}",
            )
        return before
    expect_no_strangers(registry, plan.dataset)
    return before


def bystanders(registry: Registry, plan: AdoptPlan, before: Manifest | None) -> Iterator[FileEntry]:
    """The files that lie beside the shards and stay there: they are files of the build, too.

    Raises:
        UsageError: one of them has a name that the build needs, or is no file.
        StorageError: one cannot be read.
    """
    folder = registry.storage.below(layout.build_folder(plan.dataset))
    own = {MANIFEST_NAME} | (
        {entry.path for entry in before.files} if before is not None else set()
    )
    shards = {file.path for file in plan.files}
    for entry in folder.list():
        path = entry.path
        if entry.kind == "dir" or path in shards or _is_leftover(path):
            continue
        indexed = path.startswith(f"{INDEX_FOLDER}/")
        if path in own and (indexed or path in (*RESERVED, MANIFEST_NAME)):
            continue
        if indexed and folder.read(path, limit=INDEX_LIMIT)[:8] == INDEX_MAGIC:
            continue  # an adoption that was killed left it
        shown = f"{layout.build_folder(plan.dataset)}/{safe(path, limit=1000)}"
        if indexed or path in RESERVED:
            raise UsageError(
                f"`{shown}` has a name that the build needs for itself",
                hint="rename it, or adopt the shards without `--in-place`",
            )
        if folder.stat(path) is None or entry.kind == "other":
            raise UsageError(f"`{shown}` is no file", hint="remove it")
        hashed = hash_both(folder, path)
        yield FileEntry(path=path, bytes=hashed.bytes, blake3=hashed.blake3, sha256=hashed.sha256)


def keep_indexes(
    registry: Registry,
    plan: AdoptPlan,
    before: Manifest,
    seen: Sequence[tuple[Shard, Examined]],
    scratch: Storage,
) -> None:
    """Keep the indexes of shards that did not change: their keys tell where records came from.

    Args:
        registry: where the build is.
        plan: the files, which stay where they are.
        before: the manifest of the build as it was adopted before.
        seen: what was seen of each file, in their order.
        scratch: where their new indexes are.
    """
    folder = registry.storage.below(layout.build_folder(plan.dataset))
    shards = {entry.path: entry for entry in before.shards}
    files = {entry.path: entry for entry in before.files}
    for file, (_, part) in zip(plan.files, seen, strict=True):
        shard = shards.get(file.path)
        index = files.get(shard.index) if shard is not None else None
        if shard is None or index is None or shard.blake3 != part.end.blake3:
            continue
        if folder.stat(index.path) is None:
            continue
        data = folder.read(index.path, limit=INDEX_LIMIT)
        if blake3(data).hexdigest() == index.blake3:
            path = index_path(file.shard.split, file.shard.number)
            part.index = hashed_write(scratch, path, data)


def _is_leftover(path: str) -> bool:
    """Whether an adoption that was killed was about to write a file of its own here."""
    names = (*RESERVED, MANIFEST_NAME)
    return is_temporary(path) and path.startswith(tuple(f".{name}." for name in names))
