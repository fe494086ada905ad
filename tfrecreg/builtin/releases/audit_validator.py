"""The `registry` validator: checks that releases are unchanged and their numbers follow the rules.

The validator examines manifests, schemas and git's history, but no shards. If the target is a
release, the problems of that release are reported. One such problem is a later release that names
the release as its parent, but with a different digest. If the target is a build, the problems of
all releases of the dataset are reported, because the next release follows these releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Tally
from tfrecreg.core.records.batch import StreamEnd
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.registry import Dataset, Registry, read_yanks
from tfrecreg.core.values.codes import REG007, CodeList
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.errors import ManifestError
from tfrecreg.core.values.findings import Code, Finding, Location, Measure
from tfrecreg.core.values.reference import Version, parse_version
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import NoOptions

if TYPE_CHECKING:
    from tfrecreg.core.registry.history import Issue

HISTORY = "registry.history"
"""The name of a measure. The measure says why git's history is unknown or incomplete."""


class RegistryValidator(Validator):
    """Compares releases with their digests, with each other, and with git's history. It has no
    options.
    """

    name = "registry"
    Options = NoOptions
    codes: Sequence[Code] = CodeList(
        "REG00[1-8]", "REG01[0-2]", "SRC10[01]"
    )  # other findings belong to the gate
    part_codec = JsonCodec(None)

    def applies(self, target: Target) -> str | None:
        if target.home is not None:
            return None
        what = "bare files do" if target.kind == "files" else "the folder does"
        return f"{what} not belong to a registry"

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Ignoring]:
        """Return a factory of visitors. The visitors ignore their shards."""
        del target
        read_limits(NoOptions, options, self.name)
        return Ignoring

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:
        del target, options
        return ""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, None]]
    ) -> Iterator[Finding | Measure]:
        del parts
        assert target.home is not None
        # Imported here, because bare files have no releases to examine.
        from tfrecreg.builtin.releases.audit_history import audit, parent_issues

        dataset, tally = Registry(target.home).dataset(target.dataset), Tally()
        found = audit(dataset)
        manifest, version = target.manifest, None
        if target.kind == "release" and manifest is not None and manifest.release is not None:
            version = parse_version(manifest.release.version)
        for issue in found.issues:
            if version is None or version in issue.versions:
                add_issue(tally, issue)
        built = manifest if target.kind == "build" else None
        released = {link.build for link in found.links.values()}
        if built is not None and built.digest not in released:
            folder = layout.build_folder(dataset.name)
            for issue in parent_issues(dataset.registry, built, folder):
                add_issue(tally, issue)
        if version is not None:
            _add_yank(tally, dataset, version)
        yield from tally.findings(target.dataset)
        if found.unseen:
            yield Measure(HISTORY, found.unseen, found.unseen)


class Ignoring(Visitor):
    """Ignores a shard, because the registry is checked without shards."""

    def __init__(self, shard: Shard) -> None:
        del shard

    def close(self, end: StreamEnd) -> None:
        """There is no part."""


def add_issue(tally: Tally, issue: Issue) -> None:
    """Count an issue of the audit."""
    message = issue.message
    if issue.command:
        message += f"; `{issue.command}` restores it"
    for place in issue.places or (Location(shard=issue.path),):
        tally.add(issue.code, message, place, subject=issue.path)


def _add_yank(tally: Tally, dataset: Dataset, version: Version) -> None:
    try:
        yanks = read_yanks(dataset, version)
    except ManifestError:
        return  # the audit reports the damage
    if yanks:
        last = yanks[-1]
        message = f"yanked on {safe(last.created)} by {safe(last.by)}: {safe(last.reason)}"
        path = layout.yanks_path(dataset.name, version)
        tally.add(REG007, message, Location(shard=path), subject=path)
