"""Reading a new build back: the check that it has to pass before it replaces the old one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tfrecreg.core.build.planning.begin import BuildStart
from tfrecreg.core.build.shard import MadeShard
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.check.target import check_target
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.registry.manifest.model import Manifest
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.shardset.target import build_target
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.errors import FailureError, RefusedError
from tfrecreg.core.values.findings import Location
from tfrecreg.core.values.gating import FailOn
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine


class ReadBackProof(Validator):
    """Proves claims about shards without an index, in the pass that reads a new build back."""

    @abstractmethod
    def proven(self, folder: Storage, progress: Progress) -> list[MadeShard]:
        """The shards with SHA-256 and index. Called after :meth:`finish`, if every shard was
        read.
        """


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The check that a new build has to pass."""

    registry: Registry
    started: BuildStart
    files: Readable
    """Rooted at the folder of the build, with all its files."""
    engine: Engine
    progress: Progress

    def target(self, manifest: Manifest) -> Target:
        """The build, as `manifest` describes it."""
        return build_target(
            manifest,
            self.files,
            name=manifest.dataset,
            kind="build",
            schema=self.started.schema,
            schema_path=self.registry.dataset(manifest.dataset).schema_path,
        )

    def check(self, target: Target) -> Report:
        """The report of a target that passed."""
        report = self.scan(target)
        self.expect_passed(report)
        return report

    def scan(
        self, target: Target, *, only: tuple[str, ...] = (), beside: Sequence[ReadBackProof] = ()
    ) -> Report:
        """The report of a target."""
        records = (each.record for each in plugins().every(ValidatorRecord))
        only = only or tuple(each.name for each in records if each.reads_back)
        report = check_target(
            target,
            self.registry.config,
            CheckOptions(only=only, fail_on=FailOn.ERROR),
            engine=self.engine,
            progress=self.progress,
            beside=[(PluginId("validator", each.name), each) for each in beside],
        )
        return replace(report, folder=None)  # the unfinished folder is gone afterwards

    def expect_read(self, report: Report) -> None:
        """Raise if the check is incomplete."""
        if report.errors:
            raise FailureError(
                f"the new build could not be read back{self._old_stays}: {report.errors[0]}",
                hint="fix this and run the build again; finished shards are reused",
            )

    @property
    def _old_stays(self) -> str:
        """Words of a message; empty if there is no old build."""
        dataset = self.registry.dataset(self.started.prepared.name)
        return ", and the old one stays" if dataset.is_built() else ""

    def expect_passed(self, report: Report) -> None:
        """Raise if the check failed."""
        self.expect_read(report)
        if report.status == "pass":
            return
        first = report.findings[0]
        hint, where = "fix the schema or the raw data; the findings above say where", ""
        if self.started.prepared.data is not None:
            hint = "fix the data, or the schema: `findings` of this error has all of them"
            places = (f" ({_place(each)})" for each in first.locations)
            where = next(places, "")
        raise RefusedError(
            f"the new build does not pass its own check{self._old_stays}: {first.message}{where}",
            hint=hint,
            findings=report.findings,
        )


def _place(location: Location) -> str:
    return f"split `{safe(location.split or '')}`, key `{safe(location.key or '')}`"
