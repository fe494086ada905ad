"""A build or a release with its verbs: check, read, compare, export, send."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfrecreg.core.registry import lookup
from tfrecreg.core.values.text import count, safe
from tfrecreg.library.display import shown
from tfrecreg.library.questions import QuestionVerbs
from tfrecreg.library.schemas import SchemaVerbs
from tfrecreg.library.targets import FailOnWord, Words, path_or_none

if TYPE_CHECKING:
    from tfrecreg.builtin.dvc.transfer import PullResult, PushResult
    from tfrecreg.builtin.export.run import ExportResult
    from tfrecreg.builtin.look.digest import ContentDigests
    from tfrecreg.builtin.pages.make import PageResult
    from tfrecreg.builtin.releases.diff.result import DiffResult
    from tfrecreg.builtin.releases.release import ReleaseResult
    from tfrecreg.builtin.releases.tag import TagResult, YankResult
    from tfrecreg.builtin.repair.run import RepairResult
    from tfrecreg.builtin.statistics.make import Stats
    from tfrecreg.builtin.training.load import load
    from tfrecreg.builtin.training.open import data_source
    from tfrecreg.core.build.conclude import BuildResult
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.workers.interface import Engine
    from tfrecreg.library.display import Head


class Versioned(SchemaVerbs, QuestionVerbs, lookup.Resolved):
    """What a build and a release have in common."""

    def __repr__(self) -> str:
        from tfrecreg.core.values.shards import in_reading_order

        splits = sorted(self.manifest.splits, key=lambda each: in_reading_order(each.name))
        records = ", ".join(f"{each.records:,} {safe(each.name)}" for each in splits)
        noun = "record" if records.startswith("1 ") and len(splits) == 1 else "records"
        shards = count(len(self.manifest.shards), "shard")
        return f"<{type(self).__name__} {self.name}: {records} {noun} in {shards}>"

    def _repr_html_(self) -> str:
        from tfrecreg.library.display import version_html

        return version_html(self)

    def check(
        self,
        *,
        only: Words = (),
        skip: Words = (),
        raw: str | os.PathLike[str] | None = None,
        source: str | None = None,
        options: Mapping[str, Any] | None = None,
        schema: str | os.PathLike[str] | None = None,
        against: str | os.PathLike[str] | lookup.Resolved | None = None,
        same_as: str | lookup.Resolved | None = None,
        expect: Mapping[str, int] | None = None,
        fail_on: FailOnWord | None = None,
        cached: bool = False,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> Report:
        """Check it with all validators that apply, and judge the findings by its gate.

        Args:
            only: run only these validators; none for all.
            skip: skip these validators.
            raw: folder of the raw data, or its URL, to judge inflation.
            source: with `raw`: find the items of this source that no record holds, and the records
                that hold no item.
            options: options of the source.
            schema: check against this schema.
            against: compare distributions with this version or these files (drift).
            same_as: expect the records of this version, in any order and any shards, or this
                content digest.
            expect: expect this number of records in each of these splits.
            fail_on: ``error``, ``warning`` or ``never``; None for what the gate says.
            cached: skip shards whose size, mtime and inode have not changed since an earlier
                `cached` check.
            engine: where to scan; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: an unknown validator, a schema that does not parse, a version in `against`
                or `same_as` that does not exist.

        Example:
            >>> report = reg["mnist"].built.check(only=["crc", "schema"])
            >>> report.status, report.records
            ('pass', 260)
        """
        from tfrecreg.library.targets import check

        return check(
            self,
            only=only,
            skip=skip,
            raw=raw,
            source=source,
            options=options,
            schema=schema,
            against=against,
            same_as=same_as,
            expect=expect,
            fail_on=fail_on,
            cached=cached,
            registry=self.registry,
            engine=engine,
            progress=shown(progress),
        )

    def describe(self) -> dict[str, Any]:
        """The facts that identify it, for MLflow, Weights & Biases or a log.

        The dictionary is plain data, and can be written as JSON. It needs the manifest only, not
        the bytes:

        - ``name``: the dataset; ``version``: of the release, None for a build; ``reference``: both
        - ``content``: content digest of all splits; equal for the same examples in the same splits
        - ``records``: number of all records; ``splits``: the number by name of the split
        - ``bytes``: size of all shards
        - ``schema``: blake3 of the schema's file; ``manifest``: digest of the manifest
        - ``git_commit``: the commit that was checked out when the version was released; None for a
          build, and outside git

        Example:
            >>> facts = reg["mnist@1.0.0"].describe()
            >>> facts["version"], facts["records"]
            ('1.0.0', 260)
        """
        from tfrecreg.builtin.look.snippets import describe

        return describe(self)

    def diff(
        self,
        other: str | lookup.Resolved,
        *,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> DiffResult:
        """What changed from this version to the `other`, example by example.

        Args:
            other: the later version, or a reference to it.
            engine: where to read; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: there is no such version.
            RefusedError: a shard is damaged.

        Example:
            >>> reg["mnist@1.0.0"].diff(reg["mnist"].built).same
            True
        """
        from tfrecreg.library.records import diff

        bar = shown(progress)
        return diff(self, other, registry=self.registry, engine=engine, progress=bar)

    def digest(
        self,
        *,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> ContentDigests:
        """The content digest of each split, computed from the records.

        Args:
            engine: where to read; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            NotHereError: its bytes are not on this machine.
            RefusedError: a shard is damaged.

        Example:
            >>> before, after = reg["mnist@1.0.0"].digest(), reg["mnist"].built.digest()
            >>> before.content == after.content
            True
        """
        from tfrecreg.library.records import digest

        return digest(self, registry=self.registry, engine=engine, progress=shown(progress))

    def export(
        self,
        folder: str | os.PathLike[str],
        *,
        to: str,
        options: Mapping[str, Any] | None = None,
        where: str | None = None,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> ExportResult:
        """Write it in the format of another tool.

        Args:
            folder: a new or empty folder; with ``to="files"`` also a URL.
            to: name of an exporter; ``tfrecreg plugins list`` shows them.
            options: options of the exporter, such as ``{"suffix": ".index"}``.
            where: only records for which this condition holds: ``label = 'cat' AND width >= 224``.
            engine: where to work; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: no such format, option or condition, or the format cannot hold the data.
            RefusedError: a shard is damaged.

        Example:
            >>> reg["mnist@1.0.0"].export("lines", to="jsonl").files[:2]
            ('mnist-test-00000-of-00002.jsonl', 'mnist-test-00001-of-00002.jsonl')
        """
        from tfrecreg.library.records import export

        return export(
            self,
            folder,
            to=to,
            options=options,
            where=where,
            engine=engine,
            progress=shown(progress),
        )

    def head(
        self,
        records: int | None = None,
        *,
        at: int | None = None,
        shard: str | None = None,
        split: str | None = None,
        where: str | None = None,
        progress: Progress | bool = True,
    ) -> Head:
        """The first records, or records from a given number on. Damaged records are skipped.

        Args:
            records: number of records; None for 5, with `at` for 1.
            at: start at record N of the shard, numbered from 0 as in findings; -1 is the last.
            shard: show only this shard.
            split: show only this split, or a part: ``train``, ``train[-5:]``, ``train[1000:]``,
                ``train+test``.
            where: only records for which this condition holds: ``label = 'cat' AND width >= 224``.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: `records` is negative, or no such split, shard, record or condition.

        Example:
            >>> (record,) = reg["mnist@1.0.0"].head(1)
            >>> [feature.name for feature in record.features]
            ['image/class/label', 'image/encoded', 'image/format', ...]
        """
        from tfrecreg.library.records import head

        return head(self, records, at=at, shard=shard, split=split, where=where, progress=progress)

    def gate(self, report: str | os.PathLike[str], *, progress: Progress | bool = True) -> Report:
        """Judge the saved report of a check under today's gate and waivers.

        Args:
            report: file of the JSON report of a check with ``fail_on="never"``.
            progress: whether to note expired waivers in a notebook or a terminal, or an object.

        Returns:
            the report with the verdict.

        Raises:
            UsageError: there is no such report; it is about another state, was judged already, or
                lacks a check that the gate requires.
            NewerFormatError: a newer tfrecreg wrote the report.

        Example:
            >>> import json, pathlib
            >>> build = reg["mnist"].built
            >>> report = build.check(fail_on="never")
            >>> size = pathlib.Path("report.json").write_text(json.dumps(report.to_json()))
            >>> build.gate("report.json").status
            'pass'
        """
        from tfrecreg.core.check.gate import gate

        return gate(self.registry, self.name, report, progress=shown(progress))

    def repair(
        self,
        *,
        raw: str | os.PathLike[str] | None = None,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> RepairResult:
        """Rebuild its missing and damaged files, byte for byte.

        Args:
            raw: folder of the raw data, or its URL; None for that of the configuration.
            engine: where to work; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: the raw data or the plugin that made it are not here.
            RefusedError: a rebuilt file differs from the original; nothing was changed.
            FailureError: a plugin, DVC or the disk failed.

        Example:
            >>> reg["mnist"].built.repair().files
            ()
        """
        from tfrecreg.builtin.repair.run import repair

        raw = path_or_none(raw)
        return repair(self.registry, self.name, raw=raw, engine=engine, progress=shown(progress))

    def stats(
        self,
        split: str | None = None,
        *,
        features: Words = (),
        schema: str | os.PathLike[str] | None = None,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> Stats:
        """The statistics of the features.

        Args:
            split: show only this split.
            features: show only features that match these names or globs.
            schema: use this schema instead of the target's own.
            engine: where to read; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: there is no such split or feature.

        Example:
            >>> statistics = reg["mnist@1.0.0"].stats("train", features=["image/class/label"])
            >>> statistics.target
            'mnist@1.0.0'
        """
        from tfrecreg.library.records import stats

        return stats(
            self,
            split=split,
            features=features,
            schema=path_or_none(schema),
            registry=self.registry,
            engine=engine,
            progress=shown(progress),
        )

    def report(
        self,
        output: str | os.PathLike[str] | None = None,
        *,
        against: str | lookup.Resolved | None = None,
        statistics: bool = False,
        budget: int | str = "8MB",
        schema: str | os.PathLike[str] | None = None,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> PageResult:
        """Check it, and make a page that shows the verdict, the findings and the data.

        Args:
            output: write the page to this file; None to write none.
            against: also show the changes since this version.
            statistics: also show statistics and drift, and if TFDV is installed, its anomalies.
            budget: size of the page, in bytes or as ``"8MB"``. What does not fit is left out.
            schema: check against this schema.
            engine: where to scan; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: there is no such version, or `output` cannot be written.

        Example:
            >>> page = reg["mnist@1.0.0"].report("mnist.html")
            >>> [report.status for report in page.reports]
            ['pass']
        """
        from tfrecreg.library.targets import report

        return report(
            self,
            output,
            registry=self.registry,
            against=against,
            statistics=statistics,
            budget=budget,
            schema=schema,
            engine=engine,
            progress=shown(progress),
        )

    if TYPE_CHECKING:
        load = load  # with all keywords of the function
        data_source = data_source
    else:

        def load(self, split=None, **keywords):
            """A `tf.data.Dataset` of its records: :func:`tfrecreg.load`, with the same keywords.

            Example:
                >>> train = reg["mnist@1.0.0"].load("train", decode=True, batch_size=32)
                >>> len(train)
                7
            """
            from tfrecreg.builtin.training.load import load

            return load(self, split, **keywords)

        def data_source(self, split=None, **keywords):
            """A sequence of its records: :func:`tfrecreg.data_source`, with the same keywords.

            Example:
                >>> reg["mnist@1.0.0"].data_source("train[:80%]", decode=True)
                <DataSource 160 records of mnist@1.0.0>
            """
            from tfrecreg.builtin.training.open import data_source

            return data_source(self, split, **keywords)


@dataclass(frozen=True, repr=False)
class Build(Versioned, lookup.Build):
    """The build of a dataset: the folder that `build` or `adopt` made last.

    Example:
        >>> build = reg["mnist"].built
        >>> {split.name: split.records for split in build.manifest.splits}
        {'test': 60, 'train': 200}
    """

    result: BuildResult | None = field(default=None, compare=False)
    """The result of making it; None if this program did not make it."""

    @classmethod
    def _of(cls, found: lookup.Resolved) -> Build:
        """The same build with verbs."""
        assert isinstance(found, lookup.Build)
        return cls(found.dataset, found.manifest, found.folder)


@dataclass(frozen=True, repr=False)
class Release(Versioned, lookup.Release):
    """A release of a dataset: immutable, under a version.

    Example:
        >>> release = reg["mnist@1.0.0"]
        >>> str(release.version), release.folder
        ('1.0.0', 'data/mnist')
    """

    result: ReleaseResult | None = field(default=None, compare=False)
    """The result of making it; None if this program did not make it."""

    @classmethod
    def _of(cls, found: lookup.Resolved, result: ReleaseResult | None = None) -> Release:
        """The same release with verbs."""
        assert isinstance(found, lookup.Release)
        return cls(found.dataset, found.manifest, found.folder, found.version, found.proven, result)

    def pull(self, *, remote: str | None = None, progress: Progress | bool = True) -> PullResult:
        """Fetch its bytes to this machine, from DVC's cache or a remote.

        Args:
            remote: DVC remote; None for its default one.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: DVC does not keep it, or there is no such remote.
            RefusedError: the bytes that were found differ from the release.
            FailureError: DVC or the disk failed, or the remote lacks a file.

        Example:
            >>> release = reg["mnist@1.0.0"]
            >>> release.pull().files
            0
        """
        from tfrecreg.builtin.dvc.transfer import pull

        return pull(self.registry, self.name, remote=remote, progress=shown(progress))

    def push(
        self,
        *,
        remote: str | None = None,
        verify: bool = False,
        repair: bool = False,
        progress: Progress | bool = True,
    ) -> PushResult:
        """Send its bytes to a DVC remote. Every object is looked for there, and its size compared.

        Args:
            remote: DVC remote; None for its default one.
            verify: also verify the bytes in the remote, by its checksums or by reading them.
            repair: like `verify`, and replace damaged objects in the remote.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: DVC does not keep it, or there is no such remote.
            RefusedError: an object of the remote is damaged.
            FailureError: DVC or the network failed, or bytes are missing on this machine.

        Example:
            >>> result = reg["mnist@1.0.0"].push()
            >>> result.releases
            ('mnist@1.0.0',)
        """
        from tfrecreg.builtin.dvc.transfer import push

        names = (self.name,)
        return push(
            self.registry,
            names,
            remote=remote,
            verify=verify,
            repair=repair,
            progress=shown(progress),
        )

    def tag(
        self,
        stage: str | None = None,
        *,
        commit: str | None = None,
        progress: Progress | bool = True,
    ) -> TagResult:
        """Tag it in git, in GTO's format.

        Args:
            stage: assign the release to this stage, such as ``prod``.
            commit: commit to tag; None for the first one that holds the release.
            progress: whether to say what it waits for in a notebook or a terminal, or an object.

        Raises:
            UsageError: no stage of that name is legal, the registry is outside git, or the commit
                does not hold the release.
            ConflictError: the tag is there already, at another commit.

        Example:
            >>> reg["mnist@1.0.0"].tag("prod").made
            ('mnist@v1.0.0', 'mnist#prod#1')
        """
        from tfrecreg.builtin.releases.tag import TagRequest, tag

        request = TagRequest(reference=self.name, stage=stage, commit=commit)
        return tag(self.registry, request, progress=shown(progress))

    def yank(self, reason: str, *, progress: Progress | bool = True) -> YankResult:
        """Mark it as wrong: ``latest`` skips it from then on.

        Args:
            reason: reason to show to users of the release.
            progress: whether to say what it waits for in a notebook or a terminal, or an object.

        Raises:
            UsageError: there is no reason.

        Example:
            >>> reg["mnist@1.0.0"].yank(reason="labels mixed up").yanked_now
            True
            >>> [each.reason for each in reg["mnist@1.0.0"].yanks]
            ['labels mixed up']
        """
        from tfrecreg.builtin.releases.tag import yank

        return yank(self.registry, self.name, reason, progress=shown(progress))


def handle(found: lookup.Resolved) -> Build | Release:
    """A build or a release with verbs."""
    return Build._of(found) if isinstance(found, lookup.Build) else Release._of(found)
