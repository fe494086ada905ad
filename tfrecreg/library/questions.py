"""Questions in SQL: a function for any targets, and the verbs of a version."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.library.display import shown
from tfrecreg.library.targets import path_or_none

if TYPE_CHECKING:
    from tfrecreg.builtin.query.ask import QueryAnswer
    from tfrecreg.builtin.view.run import View
    from tfrecreg.core.registry.registry import RegistryLike
    from tfrecreg.core.registry.shardset.find import TargetLike, TargetsLike
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.workers.interface import Engine


def query(
    targets: TargetsLike,
    sql: str,
    *,
    report: str | os.PathLike[str] | None = None,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress | bool = True,
) -> QueryAnswer:
    """Query targets in SQL: one SELECT of DuckDB over their tables, which only reads.

    Args:
        targets: a reference (``mnist``, ``mnist@1.0.0``), a build, a release, or a path, URL, glob
            or folder of TFRecord files, with the tables `records`, `objects`, `splits`, `findings`
            and `ledger`; or a list of these, whose records are the tables `a`, `b` and so on.
        sql: the question.
        report: a check's JSON report, for the table findings.
        registry: an open registry or a path in one; None for that of the current folder.
        engine: where the catalog is made; None for this process.
        progress: a bar in a notebook or a terminal; False for none, or an object to update.

    Returns:
        The answer: `arrow()` is a ``pyarrow.Table``, `df()` a ``pandas.DataFrame``, `rows()` a list
        of dictionaries, and `notes` says what the tables lack.

    Raises:
        UsageError: there is no such target, or the question is not one SELECT that DuckDB accepts.
        MissingExtraError: DuckDB or pyarrow is not installed.
        FailureError: a shard cannot be read, or there is no room for the answer.

    Example:
        >>> tr.query("mnist@1.0.0", "SELECT count(*) AS n FROM records", registry=reg).rows()
        [{'n': 260}]
    """
    from tfrecreg.builtin.query.ask import ask

    opened = ask(
        targets,
        sql=sql,
        registry=registry,
        report=path_or_none(report),
        engine=engine,
        progress=shown(progress),
    )
    with opened as questions:
        return questions.answer(sql)


class QuestionVerbs(Resolved):
    """The verbs that query a build or a release in SQL."""

    def query(
        self,
        sql: str,
        *,
        report: str | os.PathLike[str] | None = None,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> QueryAnswer:
        """Query it in SQL, as :func:`tfrecreg.query` does.

        Args:
            sql: one SELECT over `records`, `objects`, `splits`, `findings` and `ledger`, and over
                `previous`: the records of the release before it.
            report: a check's JSON report, for the table findings.
            engine: where the catalog is made; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: the question is not one SELECT that DuckDB accepts.
            MissingExtraError: DuckDB or pyarrow is not installed.
            FailureError: a shard cannot be read, or there is no room for the answer.

        Example:
            >>> answer = reg["mnist@1.0.0"].query("SELECT split, records FROM splits")
            >>> answer.rows()
            [{'split': 'test', 'records': 60}, {'split': 'train', 'records': 200}]
        """
        return query(
            self,
            sql,
            report=report,
            registry=self.registry,
            engine=engine,
            progress=shown(progress),
        )

    def table(self, *, engine: Engine | None = None, progress: Progress | bool = True) -> Any:
        """Its records as a ``duckdb.DuckDBPyRelation``, for `filter`, `aggregate`, `df` and so on.

        Args:
            engine: where the catalog is made; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            MissingExtraError: DuckDB or pyarrow is not installed.
            FailureError: a shard cannot be read.

        Example:
            >>> records = reg["mnist@1.0.0"].table()
            >>> records.filter("label = '7'").aggregate("count(*), max(width)").fetchall()
            [(32, 28)]
        """
        from tfrecreg.builtin.query.ask import ask

        opened = ask(self, registry=self.registry, engine=engine, progress=shown(progress))
        return opened.relation()

    def view(
        self,
        *targets: TargetLike,
        where: str | None = None,
        port: int = 0,
        engine: Engine | None = None,
    ) -> View:
        """See every record in the browser; a notebook shows a link.

        The viewer runs until it is closed or Python ends.

        Args:
            targets: others to compare with: references, builds, releases or paths.
            where: only records for which this condition holds: ``label = 'cat' AND width >= 224``.
            port: port of the viewer. Default: 0, a free one.
            engine: where the catalog is made; None for this process.

        Raises:
            UsageError: a target does not exist.
            MissingExtraError: the extra `view` is not installed.
            FailureError: the port is taken.

        Example:
            >>> shown = reg["mnist@1.0.0"].view()
            >>> shown.close()
        """
        from tfrecreg.builtin.view.run import view

        every = (self, *targets)
        return view(every, registry=self.registry, where=where, port=port, engine=engine)
