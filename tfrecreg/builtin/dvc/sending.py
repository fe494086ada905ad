"""The bytes of releases to a DVC remote.

Releases, and the folders that DVC keeps of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tfrecreg.builtin.dvc import cloud
from tfrecreg.builtin.dvc.cache import Verified
from tfrecreg.builtin.dvc.cloud import Folder, ObjectFault
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import expect_dataset
from tfrecreg.core.registry.history import repair_hint
from tfrecreg.core.registry.lookup import Release, open_release, resolve
from tfrecreg.core.registry.manifest.model import MANIFEST_NAME, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.values.errors import FailureError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import parse_version
from tfrecreg.core.values.text import ShortRepr, safe


def release_of(registry: Registry, reference: str) -> Release:
    """The release that a reference with a selector names."""
    found = resolve(registry, reference)
    assert isinstance(found, Release)  # a reference with a selector names no build
    return found


def dvc_folder(dataset: Dataset, manifest: Manifest) -> Folder:
    """The folder of a release as DVC keeps it."""
    release = manifest.release
    assert release is not None
    name = f"{dataset}@{release.version}"
    if not release.dvc:
        raise UsageError(
            f"DVC does not keep `{name}`: it was released outside a DVC repository",
            hint="`dvc init`, then release it under a new number",
        )
    sizes: dict[str, int | None] = {path: each.bytes for path, each in manifest.entries.items()}
    root = dataset.registry.storage.root
    copies = (
        layout.version_folder(dataset.name, parse_version(release.version)),
        layout.build_folder(dataset.name),
    )
    return Folder(
        name=name,
        value=release.dvc,
        sizes=sizes | {MANIFEST_NAME: None},
        copies=tuple(f"{root}/{folder}" for folder in copies),
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PushResult(ShortRepr):
    """Result of a push."""

    releases: tuple[str, ...]
    """``mnist@1.0.0``, in order. Each object of them was found in the remote by this push."""
    objects: int
    """Number of DVC objects sent; objects that the remote already had are not counted."""
    replaced: int = 0
    """Number of the sent objects that took the place of damaged ones."""
    verified: Verified = field(default_factory=Verified)
    """The objects that were verified in the remote."""


def push(
    registry: Registry,
    names: Sequence[str] = (),
    *,
    remote: str | None = None,
    verify: bool = False,
    repair: bool = False,
    progress: Progress = SILENT,
) -> PushResult:
    """Send releases to a remote.

    Each object is looked for in the remote, and its size compared. Missing ones are sent from DVC's
    cache, `data/` or `versions/`, after their bytes were hashed.
    """
    found = {each.name: each for each in _releases(registry, names)}
    folders = [dvc_folder(each.dataset, each.manifest) for each in found.values()]
    progress.note(f"dvc push: {', '.join(found)}")
    sent = cloud.send(
        registry.storage.root, folders, remote, verify=verify, repair=repair, progress=progress
    )
    if sent.lost or sent.damaged:
        raise _incomplete(sent, {each.name: each for each in folders}, repair=repair)
    return PushResult(
        releases=tuple(found),
        objects=sent.objects,
        replaced=sent.replaced,
        verified=sent.verified,
    )


def _incomplete(
    sent: cloud.Sent, folders: dict[str, cloud.Folder], *, repair: bool
) -> TfrecregError:
    """The error for objects that the remote still lacks, or has damaged."""
    others = f"all others were sent ({sent.objects})" if sent.objects else "nothing was sent"
    remote = safe(sent.remote)
    if sent.lost:
        first = sent.lost[0]
        return FailureError(
            f"the remote `{remote}` lacks {_fault_text(first)}{_more(sent.lost)}, and this machine "
            f"has no sound copy, so {others}",
            hint=_elsewhere(first, folders, "push"),
        )
    first = sent.damaged[0]
    message = (
        f"the remote `{remote}` has {_fault_text(first)} damaged: it {first.what}"
        f"{_more(sent.damaged)}; {others}"
    )
    if not repair:
        return RefusedError(message, hint=f"tfrecreg push --repair {first.name}")
    return RefusedError(
        f"{message}, and this machine has no sound copy to replace it",
        hint=_elsewhere(first, folders, "push --repair"),
    )


def _fault_text(fault: ObjectFault) -> str:
    if not fault.path:
        return f"DVC's list of the files of `{safe(fault.name)}`"
    return f"`{safe(fault.path)}` of `{safe(fault.name)}`"


def _more(faults: Sequence[ObjectFault]) -> str:
    return f" and {len(faults) - 1} more" if len(faults) > 1 else ""


def _elsewhere(fault: ObjectFault, folders: dict[str, cloud.Folder], command: str) -> str:
    there = f"on a machine that has it: `tfrecreg {command} {fault.name}`"
    if fault.path and fault.path not in folders[fault.name].sizes:
        return f"{there}; no manifest names this file, so that nothing rebuilds it"
    return f"`{repair_hint(fault.name)}` rebuilds it here; or {there}"


def _releases(registry: Registry, names: Sequence[str]) -> list[Release]:
    if not names:
        every = [each for dataset in registry.datasets() for each in _all_of(dataset)]
        kept = [each for each in every if each.manifest.release and each.manifest.release.dvc]
        if not kept:
            raise UsageError(
                "no release is stored in DVC", hint="tfrecreg release NAME, in a DVC repository"
            )
        return kept
    found: list[Release] = []
    for name in names:
        if "@" in name or "#" in name:
            found.append(release_of(registry, name))
            continue
        expect_dataset(registry.dataset(name))
        releases = _all_of(registry.dataset(name))
        if not releases:
            raise UsageError(f"`{name}` has no release", hint=f"tfrecreg release {name}")
        found += releases
    return found


def _all_of(dataset: Dataset) -> list[Release]:
    return [open_release(dataset, version) for version in dataset.versions]
