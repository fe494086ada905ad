"""The operation: find what is wrong, make it again, prove it, swap the folder in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from blake3 import blake3

from tfrecreg.engines import Engine, LocalEngine
from tfrecreg.errors import RefusedError, UsageError
from tfrecreg.manifest import MANIFEST_NAME, FileEntry, Manifest, render_manifest
from tfrecreg.manifest.canonical import canonical_json
from tfrecreg.operations.builds.names import LABELS_NAME, LEDGER_NAME
from tfrecreg.operations.repair.differences import refusal
from tfrecreg.operations.repair.make import Lost, make_again
from tfrecreg.operations.repair.raw import RawData, open_raw
from tfrecreg.operations.repair.remake import RemadeShard
from tfrecreg.operations.repair.state import State, build_manifest, find_index, look_over
from tfrecreg.progress import SILENT, Progress
from tfrecreg.records import hashed_write
from tfrecreg.registry import Registry, Resolved, layout, resolve
from tfrecreg.registry.transaction import transaction
from tfrecreg.storage import LocalStorage, Storage
from tfrecreg.text import safe

__all__ = ["RepairResult", "repair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult:
    """What a repair did."""

    reference: str
    """``mnist`` or ``mnist@1.0.0``."""
    folder: str
    """That was repaired, in the registry."""
    digest: str
    """Of the manifest, which every file in the folder agrees with now."""
    shards: tuple[RemadeShard, ...]
    """Those that were made again."""
    files: tuple[str, ...]
    """Other files that were."""

    def to_json(self) -> dict[str, Any]:
        """The result as the command line prints it."""
        return {
            "reference": self.reference,
            "folder": self.folder,
            "digest": self.digest,
            "shards": [
                {name: value for name, value in asdict(shard).items() if name in _SHOWN}
                for shard in self.shards
            ],
            "files": list(self.files),
        }


_SHOWN = ("path", "taken", "made", "bytes", "blake3")


def repair(
    registry: Registry,
    name: str,
    reference: str,
    *,
    raw: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> RepairResult:
    """Make the missing and damaged files of a build or a release again, to the byte.

    Records that are still there are taken as they are; the others are made from the raw data. The
    whole folder is made beside the old one, of links to the files that are sound and of the new
    ones; when every byte of it was read back and agrees with the manifest, the folders are
    exchanged. Before that nothing is changed.

    Args:
        registry: the registry.
        name: the dataset.
        reference: ``mnist`` or ``mnist@1.0.0``: the bytes of a release are repaired where they
            are, in the build's folder or in `versions/`.
        raw: folder of the raw data, where they are not where the configuration says.
        engine: where to make shards.
        progress: told how far it is.

    Raises:
        UsageError: no such build or release, or the raw data are needed and are not at hand.
        RefusedError: what is made again is not what it was; nothing was changed.
        ManifestError: the manifest itself is damaged.
        FailureError: a plugin, a worker or the disk failed.
    """
    with transaction(registry, name, progress) as change:
        resolved = resolve(registry, reference)
        if resolved.dataset != name:
            raise UsageError(
                f"`--repair {safe(reference)}` is of another dataset than `{name}`",
                hint=f"tfrecreg build {resolved.dataset} --repair {resolved.name}",
            )
        here = resolved.storage(to_check=True)
        assert resolved.folder is not None  # or there were no storage
        manifest = build_manifest(resolved.manifest)
        state = look_over(here, manifest, progress)
        if state.sound:
            return _result(resolved, manifest, (), ())
        lost, links = _sort_out(registry, resolved.folder, manifest, state)
        data = open_raw(registry, manifest, raw)
        with change.stage("repair") as stage:
            made = make_again(
                lost,
                manifest,
                data,
                folder=here,
                stage=stage,
                engine=engine or LocalEngine(1),
                progress=progress,
            )
            _require_same(resolved.name, manifest, made, data)
            restored = _restore(registry, manifest, state, stage, links)
            _link_rest(here, stage)
            change.replace(resolved.folder, stage, manifest)
        return _result(resolved, manifest, made, restored)


def _result(
    resolved: Resolved, manifest: Manifest, made: Iterable[RemadeShard], files: Iterable[str]
) -> RepairResult:
    return RepairResult(
        reference=resolved.name,
        folder=resolved.folder or "",
        digest=manifest.digest,
        shards=tuple(made),
        files=tuple(files),
    )


def _sort_out(
    registry: Registry, folder: str, manifest: Manifest, state: State
) -> tuple[list[Lost], dict[str, str]]:
    """Which shards are to be made again, and which indexes only need to be linked from where they
    were kept.
    """
    damaged = {entry.path for entry in state.shards}
    files = {entry.path: entry for entry in state.files}
    lost: list[Lost] = []
    links: dict[str, str] = {}
    for shard in manifest.shards:
        entry = files.get(shard.index)
        if shard.path not in damaged and entry is None:
            continue
        kept = None if entry is None else layout.cached_index(entry.blake3)
        index = find_index(registry, folder, manifest, shard)
        if shard.path not in damaged and kept is not None and index is not None:
            links[shard.index] = kept
        else:
            lost.append(Lost(shard, index))
    return lost, links


def _require_same(
    name: str, manifest: Manifest, made: Sequence[RemadeShard], data: RawData
) -> None:
    shards = {entry.path: entry for entry in manifest.shards}
    indexes = {entry.path: entry.blake3 for entry in manifest.files}
    wrong = []
    for shard in made:
        entry = shards[shard.path]
        if (shard.blake3, shard.index_blake3) != (entry.blake3, indexes.get(entry.index)):
            wrong.append(shard)
    if not wrong:
        return
    if data.problem is not None:
        raise data.problem
    raise refusal(name, manifest, wrong, data)


def _restore(
    registry: Registry,
    manifest: Manifest,
    state: State,
    stage: LocalStorage,
    links: dict[str, str],
) -> list[str]:
    """Write what the manifest itself says, and link what was kept elsewhere."""
    restored = []
    for target, source in links.items():
        stage.link(source, target, origin=registry.storage)
        restored.append(target)
    indexes = {shard.index for shard in manifest.shards}
    for entry in state.files:
        if entry.path not in indexes:
            hashed_write(stage, entry.path, _content(manifest, entry))
            restored.append(entry.path)
    hashed_write(stage, MANIFEST_NAME, render_manifest(manifest))
    if state.manifest:
        restored.append(MANIFEST_NAME)
    return restored


def _content(manifest: Manifest, entry: FileEntry) -> bytes:
    """The bytes of a small file, which the manifest knows as well.

    Raises:
        RefusedError: it does not.
    """
    candidates = {
        LABELS_NAME: canonical_json(manifest.labels) + b"\n",
        LEDGER_NAME: b"",  # of a build that skipped nothing and remarked on nothing
    }
    data = candidates.get(entry.path)
    if data is not None and blake3(data).hexdigest() == entry.blake3:
        return data
    raise RefusedError(
        f"`{safe(entry.path)}` is lost, and a repair cannot make it again; nothing was changed",
        hint=f"restore it from DVC or a backup, or `tfrecreg build {manifest.dataset}` makes all",
    )


def _link_rest(here: Storage, stage: Storage) -> None:
    """Everything that is not there yet comes from the old folder; what no manifest lists, too, for
    it is not ours to remove.
    """
    for entry in here.list():
        if entry.kind != "dir" and stage.stat(entry.path) is None:
            stage.link(entry.path, entry.path, origin=here)
