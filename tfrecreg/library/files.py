"""The verbs of all handles that have records: files, builds and releases.

Each verb is declared here once. It is also a function of :mod:`tfrecreg` that takes the registry,
engine and progress as keywords. A verb has the same options as the command with its name.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfrecreg.library.context import (
    Asking,
    FailOnWord,
    PathLike,
    Reading,
    Words,
    context_of,
    name_or_none,
    of_each,
    of_target,
    of_targets,
    path_or_none,
    tuple_of,
    verb,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfrecreg.builtin.export.run import ExportResult
    from tfrecreg.builtin.look.digest import ContentDigests
    from tfrecreg.builtin.pages.make import PageResult
    from tfrecreg.builtin.query.ask import QueryAnswer
    from tfrecreg.builtin.releases.diff.result import DiffResult
    from tfrecreg.builtin.salvage.model import SalvageResult
    from tfrecreg.builtin.statistics.make import Stats
    from tfrecreg.builtin.view.run import View
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.registry.data import Built, Resolved, TargetLike
    from tfrecreg.core.workers.context import Context
    from tfrecreg.core.workers.interface import Engine
    from tfrecreg.library.display import Head


class Verbs(ABC):
    """Verbs for handles that have records."""

    @abstractmethod
    def _meant(self) -> Any:
        """Return the target, or the targets; None for all datasets of a registry."""

    @abstractmethod
    def _context(self, kind: type[Any], given: Mapping[str, Any]) -> Context:
        """Return the shared keywords in the form that operations take."""

    @verb
    def check(
        self,
        *,
        only: Words = (),
        skip: Words = (),
        raw: PathLike | None = None,
        source: str | None = None,
        options: Mapping[str, Any] | None = None,
        schema: PathLike | None = None,
        against: PathLike | Resolved | None = None,
        same_as: str | Resolved | None = None,
        expect: Mapping[str, int] | None = None,
        fail_on: FailOnWord | None = None,
        cached: bool = False,
        ignore_missing: bool = False,
        **context: Unpack[Asking],
    ) -> Report:
        """Check the target with all validators that apply, and apply its gate to the findings.

        Args:
            only: run only these validators; none for all.
            skip: skip these validators.
            raw: folder of the raw data, or its URL, with which `inflation` compares the shards.
            source: with `raw`: find the items of this source that no record holds, and the records
                without an item.
            options: options of the source.
            schema: path of the schema for the check.
            against: compare distributions with this version or these files (drift).
            same_as: expect the records of this version, or this content digest. The order and the
                shards may differ.
            expect: expect this number of records in each of these splits.
            fail_on: fail on findings of this severity or higher. The default is the gate's
                ``fail_on``. If the gate does not set it, the default is ``error``. ``never``
                reports without judging: gate severities and waivers are ignored.
            cached: skip shards whose size, mtime and inode have not changed since an earlier
                `cached` check. This does not detect bit rot.
            ignore_missing: without a target: skip datasets whose bytes are not on this machine.

        Returns:
            The report. A list of targets gives a list of reports. It begins with the reports of
            references and of build folders, in the given order. Then each build to which given
            files belong has one report. The last report is about all other files. If a target in a
            list is missing, or if its manifest or schema is broken, its report has the error. For a
            registry, a list with one report for each dataset. It is about the build, or about the
            newest release if only that is on this machine.

        Raises:
            UsageError: a target, a validator, or a version in `against` or `same_as` does not
                exist, a schema does not parse, or a single target names shards of several builds.
                All targets are found before the first target is read.
            NotHereError: the target is not on this machine, or `ignore_missing` is given and every
                target is missing.

        Example:
            >>> report = reg["mnist"].built.check(only=["crc", "schema"])
            >>> report.status, report.records
            ('pass', 260)
            >>> tr.check("registry/data/mnist").status
            'pass'
            >>> [report.target for report in tr.check(["mnist", "mnist@1.0.0"], registry=reg)]
            ['mnist', 'mnist@1.0.0']
        """
        from tfrecreg.core.check import run
        from tfrecreg.core.check.options import CheckOptions
        from tfrecreg.core.values.errors import UsageError

        wanted = CheckOptions(
            only=tuple_of(only),
            skip=tuple_of(skip),
            raw=path_or_none(raw),
            source=source,
            source_options=options or {},
            schema=path_or_none(schema),
            against=name_or_none(against),
            same_as=name_or_none(same_as),
            expect=expect or {},
            fail_on=fail_on,
            cached=cached,
            ignore_missing=ignore_missing,
        )
        targets, told = self._meant(), self._context(Asking, context)
        if is_one(targets):
            return run.check(targets, options=wanted, one=True, **told)[0]
        several = () if targets is None else list(targets)
        if targets is not None and not several:
            raise UsageError("there is no target to check")
        reports: Any = run.check(several, options=wanted, **told)
        return reports  # type: ignore[no-any-return]  # a list, as the functions say

    @verb
    def diff(self, other: TargetLike | Built, **context: Unpack[Asking]) -> DiffResult:
        """Compare the version with a later version, example by example.

        Examples are matched through the indexes, which are small and stay on this machine. If the
        bytes of both versions are on this machine, the records of changed examples are read to find
        the changed features.

        Args:
            other: the later version: a reference, a build or a release, or the path or URL of a
                folder with a manifest.

        Raises:
            UsageError: there is no such build or release.
            ManifestError: a manifest, a schema or an index differs from what was released.
            RefusedError: a shard is damaged.
            FailureError: a worker died.

        Example:
            >>> reg["mnist@1.0.0"].diff(reg["mnist"].built).same
            True
            >>> tr.diff("mnist@1.0.0", "mnist", registry=reg).same
            True
        """
        from tfrecreg.builtin.releases.diff.result import diff

        return diff(self._meant(), other, **self._context(Asking, context))

    @verb
    def digest(self, *, split: str | None = None, **context: Unpack[Asking]) -> ContentDigests:
        """Compute the content digest of each split from the records.

        Splits with the same name and the same records have equal digests. The shards, the order and
        the compression may differ.

        Args:
            split: files get this split, for example ``train``, if their names do not state a split.

        Returns:
            The digests. A list of targets gives a list of results. It has one result for each
            reference, in order. The last result is for all files together.

        Raises:
            UsageError: a target does not exist, or `split` is given and no file needs it.
            NotHereError: the bytes of a target are not on this machine.
            RefusedError: a shard is missing or damaged.
            ManifestError: a manifest is damaged.
            FailureError: a shard cannot be read.

        Example:
            >>> before, after = reg["mnist@1.0.0"].digest(), reg["mnist"].built.digest()
            >>> before.content == after.content
            True
            >>> build, release = tr.digest(["mnist", "mnist@1.0.0"], registry=reg)
            >>> build.content == release.content
            True
        """
        from tfrecreg.builtin.look.digest import digest

        targets = self._meant()
        found: Any = digest(targets, split=split, **self._context(Asking, context))
        return found[0] if is_one(targets) else found  # type: ignore[no-any-return]

    @verb
    def export(
        self,
        folder: PathLike,
        *,
        to: str,
        options: Mapping[str, Any] | None = None,
        where: str | None = None,
        **context: Unpack[Asking],
    ) -> ExportResult:
        """Write a build or a release in the format of another tool.

        Args:
            folder: a new or empty folder. It appears when it is complete. If `to` is ``"files"``,
                the folder may be a URL.
            to: name of an exporter. ``tfrecreg plugins list`` shows all exporters.
            options: options of the exporter, such as ``suffix``.
            where: export only records that meet this condition, for example
                ``label = 'cat' AND width >= 224``. ``tfrecreg query TARGET`` shows the columns.

        Raises:
            UsageError: there is no such target, format or option, the format cannot hold the data,
                the format does not support `where`, or `where` is not a condition.
            RefusedError: a shard is damaged.
            MissingExtraError: the format or `where` needs a library that is not installed.
            FailureError: the disk failed, or an exporter from a plugin failed.

        Example:
            >>> reg["mnist@1.0.0"].export("lines", to="jsonl").files[:2]
            ('mnist-test-00000-of-00002.jsonl', 'mnist-test-00001-of-00002.jsonl')
            >>> tr.export("mnist@1.0.0", "files", to="files", registry=reg).bytes > 0
            True
        """
        from tfrecreg.builtin.export.run import export
        from tfrecreg.core.registry.data import resolve_in

        told = self._context(Asking, context)
        found = resolve_in(told["registry"], self._meant())
        return export(
            found.registry,
            found.name,
            folder,
            to=to,
            options=options or {},
            where=where,
            engine=told["engine"],
            progress=told["progress"],
        )

    @verb
    def head(
        self,
        records: int | None = None,
        *,
        at: int | None = None,
        shard: str | None = None,
        split: str | None = None,
        where: str | None = None,
        **context: Unpack[Reading],
    ) -> Head:
        """Return the first records, or the records from a given number on. Skip damaged records.

        Args:
            records: number of records; None for 5, or for 1 with `at`.
            at: start at record N of the shard, numbered from 0 as in findings; -1 is the last.
            shard: show only this shard.
            split: show only this split or part, for example ``train``, ``train[-5:]``,
                ``train[1000:]`` or ``train+test``.
            where: show only records that meet this condition, for example
                ``label = 'cat' AND width >= 224``. ``tfrecreg query TARGET`` shows the columns.

        Returns:
            A list of records. A notebook displays it with the images.

        Raises:
            UsageError: a target, split, shard or record does not exist, `records` is negative, or
                `where` is not a condition.
            RefusedError: `where` would be evaluated on damaged records.
            MissingExtraError: `where` needs DuckDB, which is not installed.
            DamagedRecordError: the record `at` is damaged.
            FailureError: a shard cannot be read.

        Example:
            >>> (record,) = reg["mnist@1.0.0"].head(1)
            >>> [feature.name for feature in record.features]
            ['image/class/label', 'image/encoded', 'image/format', ...]
            >>> for record in tr.head("mnist@1.0.0", 2, registry=reg):
            ...     print(record.shard, record.record, record.key)
            mnist-test.tfrecord-00000-of-00002 0 00016
            mnist-test.tfrecord-00000-of-00002 1 00048
        """
        from tfrecreg.builtin.look.head import Choice, head
        from tfrecreg.core.registry.find import find_target
        from tfrecreg.library.display import Head

        told = self._context(Reading, context)
        target = find_target(self._meant(), registry=told["registry"])
        choice = Choice(records, at, shard, split, where)
        return Head(head(target, choice, progress=told["progress"]))

    @verb
    def query(
        self, sql: str, *, report: PathLike | None = None, **context: Unpack[Asking]
    ) -> QueryAnswer:
        """Answer a read-only SELECT of DuckDB over the tables of the target.

        Args:
            sql: one SELECT over `records`, `objects`, `splits`, `findings` and `ledger`, and over
                `previous`, the records of the release before the target. With several targets,
                their records are in the tables `a`, `b` and so on.
            report: path of a check's JSON report. It fills the table `findings`.

        Returns:
            The answer: `arrow()` returns a ``pyarrow.Table``, `df()` returns a
            ``pandas.DataFrame``, `rows()` returns a list of dictionaries, and `notes` lists what
            the tables lack.

        Raises:
            UsageError: there is no such target, or the question is not one SELECT that DuckDB
                accepts.
            MissingExtraError: DuckDB or pyarrow is not installed.
            FailureError: a shard cannot be read, or the answer takes too much room.

        Example:
            >>> answer = reg["mnist@1.0.0"].query("SELECT split, records FROM splits")
            >>> answer.rows()
            [{'split': 'test', 'records': 60}, {'split': 'train', 'records': 200}]
            >>> tr.query("mnist@1.0.0", "SELECT count(*) AS n FROM records", registry=reg).rows()
            [{'n': 260}]
        """
        from tfrecreg.builtin.query.ask import ask

        told = self._context(Asking, context)
        with ask(self._meant(), sql=sql, report=path_or_none(report), **told) as questions:
            return questions.answer(sql)

    @verb
    def report(
        self,
        output: PathLike | None = None,
        *,
        against: str | Resolved | None = None,
        statistics: bool = False,
        schema: PathLike | None = None,
        **context: Unpack[Asking],
    ) -> PageResult:
        """Check the target, and make a page that shows the verdict, the findings and the data.

        The page is one HTML file that needs no network. Like a check, this method reads the records
        once.

        Args:
            output: path of the page. If it is None, no file is written.
            against: version from which changes are shown.
            statistics: whether statistics are shown, with drift if `against` is given, and with
                TFDV's anomalies if TFDV is installed.
            schema: path of the schema for the check.

        Raises:
            UsageError: there is no such target or version, or `output` cannot be written.

        Example:
            >>> page = reg["mnist@1.0.0"].report("mnist.html")
            >>> [report.status for report in page.reports]
            ['pass']
            >>> page = tr.report(["mnist", "mnist@1.0.0"], "both.html", registry=reg)
            >>> [report.target for report in page.reports]
            ['mnist', 'mnist@1.0.0']
        """
        from tfrecreg.builtin.pages.collect import make_page
        from tfrecreg.builtin.pages.make import write_page
        from tfrecreg.core.check.options import CheckOptions

        told = self._context(Asking, context)
        page = make_page(
            self._meant() or (),
            options=CheckOptions(schema=path_or_none(schema)),
            against=name_or_none(against),
            statistics=statistics,
            **told,
        )
        return write_page(page, output, told["progress"])

    @verb
    def stats(
        self,
        split: str | None = None,
        *,
        features: Words = (),
        schema: PathLike | None = None,
        **context: Unpack[Asking],
    ) -> Stats:
        """Return the statistics of the features. A registry keeps them for the next call.

        Args:
            split: show only this split.
            features: show only features that match these names or globs.
            schema: use this schema instead of the target's own.

        Raises:
            UsageError: there is no such target, split or feature, or a schema does not parse.
            RefusedError: a feature has values of two types.
            FailureError: a shard cannot be read.

        Example:
            >>> statistics = reg["mnist@1.0.0"].stats("train", features=["image/class/label"])
            >>> statistics.target
            'mnist@1.0.0'
            >>> [split.statistics.examples for split in tr.stats("mnist", registry=reg).splits]
            [60, 200]
        """
        from tfrecreg.builtin.statistics.make import stats

        return stats(
            self._meant(),
            split=split,
            features=tuple_of(features),
            schema=path_or_none(schema),
            **self._context(Asking, context),
        )

    def view(
        self,
        *targets: TargetLike,
        where: str | None = None,
        port: int = 0,
        engine: Engine | None = None,
    ) -> View:
        """Show every record in the browser. A notebook shows a link.

        The viewer runs until it is closed or Python ends.

        Args:
            targets: references, builds, releases or paths that are also shown, for comparison.
            where: show only records that meet this condition, for example
                ``label = 'cat' AND width >= 224``. ``tfrecreg query TARGET`` shows the columns.
            port: port on which the viewer listens. The default 0 selects a free port.
            engine: makes the catalog. If it is None, this process makes the catalog.

        Raises:
            UsageError: a target does not exist.
            MissingExtraError: the extra `view` is not installed.
            FailureError: the port is taken.

        Example:
            >>> shown = reg["mnist@1.0.0"].view()
            >>> shown.close()
        """
        from tfrecreg.builtin.view.run import view

        registry = self._context(Asking, {})["registry"]
        every = (self._meant(), *targets)
        return view(every, registry=registry, where=where, port=port, engine=engine)


@dataclass(frozen=True)
class Files(Verbs):
    """Files, folders, globs and URLs, or other targets that are given by name."""

    targets: Any

    def _meant(self) -> Any:
        return self.targets

    def _context(self, kind: type[Any], given: Mapping[str, Any]) -> Context:
        return context_of(kind, given)

    @verb
    def salvage(self, output: PathLike, **context: Unpack[Asking]) -> SalvageResult:
        """Write the undamaged records of damaged shards into a new folder.

        The originals are only read. For each shard, the folder gets a clean shard with the same
        name, and the bytes that were cut out (``NAME.quarantine``). The file ``salvage.json`` marks
        the folder: `check` reports SHD009 for each changed shard in the folder. In builds and
        releases, only damaged shards are salvaged.

        Args:
            output: new folder for the salvaged shards. It appears when it is complete.

        Returns:
            The result for each shard. If the targets are references and all shards are sound, no
            folder is made.

        Raises:
            UsageError: a target does not exist, two shards have the same name, or the folder is not
                empty or overlaps the folder of the originals.
            RefusedError: none of the shards is a TFRecord.
            FailureError: nothing could be read, the folder cannot be written, or a worker died.

        Example:
            >>> result = tr.salvage("registry/data/mnist", "clean")
            >>> [(shard.status, shard.kept) for shard in result.shards]
            [('sound', 30), ('sound', 30), ('sound', 100), ('sound', 100)]
        """
        from tfrecreg.builtin.salvage.run import salvage

        return salvage(self.targets, output, **self._context(Asking, context))


def is_one(targets: Any) -> bool:
    """Whether this is exactly one target. False for a list of targets and for None."""
    from tfrecreg.core.registry.data import Built

    return isinstance(targets, str | os.PathLike | Built)


check = of_each(Verbs.check)
if TYPE_CHECKING:

    def diff(  # noqa: D103 - the docstring is the method's
        before: TargetLike | Built, after: TargetLike | Built, **context: Unpack[Asking]
    ) -> DiffResult: ...

else:
    diff = of_target(Verbs.diff, "before", other="after")
digest = of_each(Verbs.digest)
export = of_target(Verbs.export)
head = of_target(Verbs.head)
query = of_targets(Verbs.query)
report = of_targets(Verbs.report)
salvage = of_targets(Files.salvage)
stats = of_target(Verbs.stats)
