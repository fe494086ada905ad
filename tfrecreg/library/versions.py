"""Builds and releases, with methods that check, read, compare, export or send them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfrecreg.core.registry import data as lookup
from tfrecreg.core.values.text import count, safe
from tfrecreg.library.context import PathLike, Working, context_of, verb, work_of
from tfrecreg.library.display import shown
from tfrecreg.library.files import Verbs
from tfrecreg.library.making import Mending
from tfrecreg.library.schemas import SchemaVerbs
from tfrecreg.library.upkeep import Publishing

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfrecreg.builtin.releases.release import ReleaseResult
    from tfrecreg.builtin.training.load import load
    from tfrecreg.builtin.training.open import data_source
    from tfrecreg.core.build.conclude import BuildResult
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.workers.context import Context


class Versioned(Verbs, Mending, SchemaVerbs, lookup.Resolved):
    """The common verbs of a build and a release."""

    def __repr__(self) -> str:
        from tfrecreg.core.values.shards import in_reading_order

        splits = sorted(self.manifest.splits, key=lambda each: in_reading_order(each.name))
        records = ", ".join(f"{each.records:,} {safe(each.name)}" for each in splits)
        noun = "record" if records.startswith("1 ") and len(splits) == 1 else "records"
        shards = count(len(self.manifest.shards), "shard")
        return f"<{type(self).__name__} {self.name}: {records} {noun} in {shards}>"

    def _repr_html_(self) -> str:
        from tfrecreg.core.terminal.catalog import print_manifest
        from tfrecreg.library.display import both_forms

        about = self.name, self.folder, self.manifest
        return both_forms(lambda out: print_manifest(out, *about, brief=True))["text/html"]

    def _meant(self) -> Any:
        return self

    def _context(self, kind: type[Any], given: Mapping[str, Any]) -> Context:
        return context_of(kind, given, self.registry)

    def describe(self) -> dict[str, Any]:
        """Return the facts that identify the version, for MLflow, Weights & Biases or a log.

        This method needs only the manifest, not the bytes. The dictionary has these keys
        and can be written as JSON:

        - ``name``: the dataset; ``version``: the number, None for a build; ``reference``: name and
          number
        - ``content``: content digest of all splits, equal if each split has the same examples
        - ``records``: number of all records; ``splits``: number of records of each split
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

    def gate(self, report: PathLike, *, progress: Progress | bool = True) -> Report:
        """Judge the saved report of a check under today's gate and waivers.

        Args:
            report: file of the JSON report of a check with ``fail_on="never"``.
            progress: whether to note expired waivers in a notebook or a terminal, or an object that
                receives the notes.

        Returns:
            the report with the verdict.

        Raises:
            UsageError: there is no such report, or it is about another state, already has a
                verdict, or lacks a check that the gate requires.
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

    @verb
    def table(self, **context: Unpack[Working]) -> Any:
        """Return the records as a ``duckdb.DuckDBPyRelation``, for `filter`, `aggregate`, `df`.

        Raises:
            MissingExtraError: DuckDB or pyarrow is not installed.
            FailureError: a shard cannot be read.

        Example:
            >>> records = reg["mnist@1.0.0"].table()
            >>> records.filter("label = '7'").aggregate("count(*), max(width)").fetchall()
            [(32, 28)]
        """
        from tfrecreg.builtin.query.ask import ask

        opened = ask(self, registry=self.registry, **work_of(context))
        return opened.relation()

    if TYPE_CHECKING:
        load = load  # with all keywords of the function
        data_source = data_source
    else:

        def load(self, split=None, **keywords):
            """Return the records as a `tf.data.Dataset`, like :func:`tfrecreg.load`.

            Example:
                >>> train = reg["mnist@1.0.0"].load("train", decode=True, batch_size=32)
                >>> len(train)
                7
            """
            from tfrecreg.builtin.training.load import load

            return load(self, split, **keywords)

        def data_source(self, split=None, **keywords):
            """Return the records as a sequence, like :func:`tfrecreg.data_source`.

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
    """The result of `Dataset.build`; None if this object comes from another call."""

    @classmethod
    def _of(cls, found: lookup.Resolved) -> Build:
        """Return the same build as an object of this class."""
        assert isinstance(found, lookup.Build)
        return cls(found.dataset, found.manifest, found.folder)


@dataclass(frozen=True, repr=False)
class Release(Versioned, Publishing, lookup.Release):
    """A release of a dataset, which has a version number and never changes.

    Example:
        >>> release = reg["mnist@1.0.0"]
        >>> str(release.version), release.folder
        ('1.0.0', 'data/mnist')
    """

    result: ReleaseResult | None = field(default=None, compare=False)
    """The result of `Dataset.release`; None if this object comes from another call."""

    @classmethod
    def _of(cls, found: lookup.Resolved, result: ReleaseResult | None = None) -> Release:
        """Return the same release as an object of this class."""
        assert isinstance(found, lookup.Release)
        return cls(found.dataset, found.manifest, found.folder, found.version, found.proven, result)


def handle(found: lookup.Resolved) -> Build | Release:
    """Convert the found build or release to a :class:`Build` or a :class:`Release`."""
    return Build._of(found) if isinstance(found, lookup.Build) else Release._of(found)
