"""Opening or making a registry, and resolving references in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from tfrecreg.core.registry import lookup
from tfrecreg.core.registry import registry as registries
from tfrecreg.core.values.errors import NoSuchNameError, UsageError
from tfrecreg.core.values.reference import parse_reference
from tfrecreg.library.dataset import Dataset
from tfrecreg.library.display import shown
from tfrecreg.library.targets import FailOnWord, Words, check_options
from tfrecreg.library.versions import Build, Release, handle

if TYPE_CHECKING:
    from tfrecreg.builtin.dvc.garbage import Unneeded
    from tfrecreg.builtin.dvc.pipeline import PipelineResult
    from tfrecreg.builtin.dvc.transfer import PullResult, PushResult
    from tfrecreg.builtin.pages.make import PageResult, SiteResult
    from tfrecreg.builtin.view.run import View
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.registry.listing import Listed
    from tfrecreg.core.registry.shardset.find import TargetLike
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.workers.interface import Engine


if TYPE_CHECKING:

    class DatasetOrRelease(Dataset, Release):  # type: ignore[misc]  # both have a schema
        """The type of ``registry[name]``: a text does not tell a type checker which of both it is.

        A union would refuse all verbs that only one of them has.
        """


class Registry(registries.Registry):
    """A registry: its datasets by name, their builds and releases by reference.

    ``registry["mnist"]`` is a :class:`Dataset`, which need not exist yet; ``registry["mnist@1.*"]``
    and ``registry["mnist#prod"]`` are a :class:`Release`. Iterating gives the names of datasets.

    Example:
        >>> list(reg), "mnist" in reg
        (['mnist'], True)
        >>> reg["mnist@1.0.0"]
        <Release mnist@1.0.0: 200 train, 60 test records in 4 shards>
    """

    @property
    def root(self) -> str:
        """Its folder."""
        return self.storage.root

    def __fspath__(self) -> str:
        return self.storage.root

    def __repr__(self) -> str:
        return f"<Registry {self.root}>"

    def __getitem__(self, name: str) -> DatasetOrRelease:
        """The dataset of a name, or the release of a reference.

        Raises:
            NoSuchNameError: there is no such release, or no dataset of that name may exist. It is a
                `KeyError`.
            TfrecregError: as :func:`tfrecreg.core.registry.lookup.resolve`.
        """
        try:
            reference = parse_reference(name)
        except UsageError as error:
            raise NoSuchNameError(error.message, hint=error.hint) from error
        found = self.dataset(reference.name) if reference.selector is None else self.find(name)
        return cast("DatasetOrRelease", found)

    def find(self, reference: str) -> Build | Release:
        """What a reference names: ``mnist`` the build, ``mnist@1.0.0`` a release.

        Raises:
            NoSuchNameError: there is no such dataset, release or stage.
            NotHereError: there is no build of that dataset on this machine.
            ManifestError: its manifest is damaged.

        Example:
            >>> reg.find("mnist").name, reg.find("mnist@latest").name
            ('mnist', 'mnist@1.0.0')
        """
        return handle(lookup.resolve(self, reference))

    def __contains__(self, name: object) -> bool:
        """Whether there is a dataset of that name."""
        return name in self.dataset_names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.dataset_names())

    def __len__(self) -> int:
        return len(self.dataset_names())

    def dataset(self, name: str) -> Dataset:
        return Dataset(self, name)

    def audit(
        self, *names: str, base: str | None = None, fail_on: FailOnWord | None = None
    ) -> Report:
        """Check the releases of datasets, without their bytes.

        Args:
            names: of the datasets; none for all.
            base: also read the releases at this git revision, to find duplicate numbers and forks
                (in a pull request: the target branch).
            fail_on: ``error``, ``warning`` or ``never``; None for what the gate says.

        Raises:
            UsageError: there is no such dataset or revision, or the registry is outside git.
            NewerFormatError: a newer tfrecreg wrote a release.
            FailureError: git failed.

        Example:
            >>> reg.audit().status
            'pass'
        """
        from tfrecreg.builtin.releases.audit import audit_releases

        return audit_releases(self, names, base=base, fail_on=fail_on)

    def catalog(self) -> list[Listed]:
        """Every dataset in order of its name, with its newest release, as ``tfrecreg list`` has it.

        A dataset that cannot be read is listed as broken.

        Example:
            >>> [(each.name, each.latest, each.records) for each in reg.catalog()]
            [('mnist', '1.0.0', 260)]
        """
        from tfrecreg.core.registry.listing import list_datasets

        return list_datasets(self)

    def check(
        self,
        *,
        only: Words = (),
        skip: Words = (),
        raw: str | os.PathLike[str] | None = None,
        schema: str | os.PathLike[str] | None = None,
        against: str | os.PathLike[str] | lookup.Resolved | None = None,
        fail_on: FailOnWord | None = None,
        cached: bool = False,
        ignore_missing: bool = False,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> list[Report]:
        """Check every dataset: its build, or its newest release where only that is here.

        Args:
            only: run only these validators; none for all.
            skip: skip these validators.
            raw: folder of the raw data, or its URL, to judge inflation.
            schema: check against this schema.
            against: compare distributions with this version or these files (drift).
            fail_on: ``error``, ``warning`` or ``never``; None for what each gate says.
            cached: skip shards whose size, mtime and inode have not changed since an earlier
                `cached` check.
            ignore_missing: skip datasets whose bytes are not on this machine.
            engine: where to scan; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: there is no dataset; an unknown validator, a schema that does not parse, or
                a version in `against` that does not exist.
            NotHereError: with `ignore_missing`, none is on this machine.

        Example:
            >>> [report.status for report in reg.check(only=["crc"])]
            ['pass']
        """
        from tfrecreg.core.check.run import check

        options = check_options(
            only=only,
            skip=skip,
            raw=raw,
            schema=schema,
            against=against,
            fail_on=fail_on,
            cached=cached,
            ignore_missing=ignore_missing,
        )
        return check((), registry=self, options=options, engine=engine, progress=shown(progress))

    def pull(
        self, *, remote: str | None = None, progress: Progress | bool = True
    ) -> list[PullResult]:
        """Fetch the newest release of each dataset, and builds that are missing in ``data/``.

        A build is fetched if DVC's pointer to it names a release.

        Args:
            remote: DVC remote; None for its default one.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: there is no such remote.
            RefusedError: the bytes that were found differ from the release.
            FailureError: DVC or the disk failed, or the remote lacks a file.

        Example:
            >>> [(result.name, result.files) for result in reg.pull()]
            [('mnist@1.0.0', 0)]
        """
        from tfrecreg.builtin.dvc.transfer import pull_needed

        return pull_needed(self, remote=remote, progress=shown(progress))

    def push(
        self,
        *names: str,
        remote: str | None = None,
        verify: bool = False,
        repair: bool = False,
        progress: Progress | bool = True,
    ) -> PushResult:
        """Send releases to a DVC remote: those named, all of the datasets named, or all there are.

        Args:
            names: of datasets and releases; none for all.
            remote: DVC remote; None for its default one.
            verify: also verify the bytes in the remote, by its checksums or by reading them.
            repair: like `verify`, and replace damaged objects in the remote.
            progress: as for :meth:`Release.push`.

        Example:
            >>> reg.push("mnist").releases
            ('mnist@1.0.0',)
        """
        from tfrecreg.builtin.dvc.transfer import push

        return push(
            self, names, remote=remote, verify=verify, repair=repair, progress=shown(progress)
        )

    def gc(
        self,
        *,
        apply: bool = False,
        remote: str | None = None,
        progress: Progress | bool = True,
    ) -> list[Unneeded]:
        """Find files that nothing needs any more, and remove them with `apply`.

        Args:
            apply: remove the listed files.
            remote: remote that must hold a release before its local copy may be removed; None for
                its default.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            FailureError: DVC, git or the disk failed.

        Example:
            >>> reg.gc()
            []
        """
        from tfrecreg.builtin.dvc.garbage import gc

        return gc(self, apply=apply, remote=remote, progress=shown(progress))

    def pipeline(self, *names: str, check: bool = False, artifacts: bool = False) -> PipelineResult:
        """Write or update the stages of datasets in ``dvc.yaml``.

        Args:
            names: of datasets; none for all.
            check: write nothing; the result says whether it is stale.
            artifacts: write only the artifacts, for datasets built without a pipeline.

        Raises:
            UsageError: there is no such dataset, or ``dvc.yaml`` does not parse.

        Example:
            >>> reg["digits"].build(source="mnist", raw="raw/mnist")
            <Build digits: 200 train, 60 test records in 2 shards>
            >>> reg.pipeline("digits").datasets
            ('digits',)
        """
        from tfrecreg.builtin.dvc.pipeline import pipeline

        return pipeline(self, names, look=check, only_artifacts=artifacts)

    def report(
        self,
        output: str | os.PathLike[str] | None = None,
        *,
        statistics: bool = False,
        budget: int | str = "8MB",
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> PageResult:
        """Check every dataset, and make one page that shows all of them.

        Args:
            output: write the page to this file; None to write none.
            statistics: also show statistics; if TFDV is installed, its anomalies.
            budget: size of the page, in bytes or as ``"8MB"``. Images and records that do not fit
                are left out, and the page says how many.
            engine: where to scan; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: there is no dataset, or `output` cannot be written.

        Example:
            >>> page = reg.report("all.html")
            >>> [report.target for report in page.reports]
            ['mnist']
        """
        from tfrecreg.library.targets import report

        return report(
            (),
            output,
            statistics=statistics,
            budget=budget,
            registry=self,
            engine=engine,
            progress=shown(progress),
        )

    def site(
        self,
        folder: str | os.PathLike[str],
        *,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> SiteResult:
        """Write a static site: an index, and a page for each build and release.

        Every build and release whose bytes are on this machine is checked. The pages of others show
        their manifests and say how to fetch them.

        Args:
            folder: a new or empty folder. It appears when all pages are in it.
            engine: where to scan; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: the folder is not free.
            FailureError: a worker died, or the disk failed.

        Example:
            >>> reg.site("public").pages
            3
        """
        from tfrecreg.builtin.pages.make import site

        return site(folder, registry=self, engine=engine, progress=shown(progress))

    def view(
        self,
        *targets: TargetLike,
        where: str | None = None,
        port: int = 0,
        engine: Engine | None = None,
    ) -> View:
        """See every record of its datasets or other TFRecords, as :meth:`Build.view` does.

        Args:
            targets: references, builds, releases or paths; none for the list of datasets.
            where: only records for which this condition holds: ``label = 'cat' AND width >= 224``.
            port: port of the viewer. Default: 0, a free one.
            engine: where the catalog is made; None for this process.

        Raises:
            UsageError: a target does not exist.

        Example:
            >>> shown = reg.view()
            >>> shown.close()
        """
        from tfrecreg.builtin.view.run import view

        return view(targets, registry=self, where=where, port=port, engine=engine)


def open(folder: registries.RegistryLike | None = None) -> Registry:
    """Open the registry that `folder` is or contains; without one, that of the current folder.

    Args:
        folder: a path, from which the registry is looked for upwards, as git does; an open
            registry is returned unchanged.

    Raises:
        UsageError: there is no registry.

    Example:
        >>> registry = tr.open("registry")
        >>> list(registry)
        ['mnist']
    """
    if isinstance(folder, Registry):
        return folder
    return Registry(registries.open_registry(folder).storage)


def init(
    folder: str | os.PathLike[str] = ".", *, with_dvc: bool | None = None, nested: bool = False
) -> Registry:
    """Make a folder a registry, and open it. One that is a registry already stays as it is.

    Args:
        folder: the root, which need not exist.
        with_dvc: whether to make it a DVC repository. None: where DVC is installed, unless the
            folder is a registry without DVC already.
        nested: whether it may be inside another registry.

    Raises:
        UsageError: it is not a folder, or is inside another registry.
        StorageError: it cannot be written.
        MissingExtraError: DVC was asked for, and is not installed.
        FailureError: DVC refused. The folder is not a registry yet; run `init` again.

    Example:
        >>> registry = tr.init("new", with_dvc=False)
        >>> len(registry)
        0
    """
    from tfrecreg.core.registry.init import init

    return open(init(folder, with_dvc=with_dvc, nested=nested).root)
