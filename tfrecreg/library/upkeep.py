"""The verbs of a registry and of a release: audits, remotes, tags, the pipeline, the site.

Commands import this module, because they take their options from the verbs. To keep the commands
fast, the module does not import the readers of a registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.library.context import FailOnWord, PathLike, Shown, Working, shown_by, verb, work_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfrecreg.builtin.dvc.garbage import Unneeded
    from tfrecreg.builtin.dvc.pipeline import PipelineResult
    from tfrecreg.builtin.dvc.transfer import PullResult, PushResult
    from tfrecreg.builtin.pages.make import SiteResult
    from tfrecreg.builtin.releases.tag import TagResult, YankResult
    from tfrecreg.builtin.view.run import View
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.registry.data import Release, TargetLike
    from tfrecreg.core.registry.listing import Listed
    from tfrecreg.core.registry.registry import Registry
    from tfrecreg.core.workers.interface import Engine
else:
    Registry = Release = object


class Keeping(Registry):
    """The verbs of a registry."""

    def audit(
        self, *names: str, base: str | None = None, fail_on: FailOnWord | None = None
    ) -> Report:
        """Check the releases of datasets without reading their bytes.

        Args:
            names: names of datasets. If no name is given, all datasets are checked.
            base: git revision, such as the target branch of a pull request. The releases in this
                revision are also read, to find duplicate numbers and forks.
            fail_on: fail on findings of this severity or higher. The default is the gate's
                ``fail_on``. If the gate does not set it, the default is ``error``. ``never``
                reports without judging: gate severities and waivers are ignored.

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
        """List every dataset by name, with its newest release, like ``tfrecreg list``.

        A dataset that cannot be read is listed as broken.

        Example:
            >>> [(each.name, each.latest, each.records) for each in reg.catalog()]
            [('mnist', '1.0.0', 260)]
        """
        from tfrecreg.core.registry.listing import list_datasets

        return list_datasets(self)

    @verb
    def pull(self, *, remote: str | None = None, **context: Unpack[Shown]) -> list[PullResult]:
        """Fetch the newest release of each dataset, and the builds that are missing from ``data/``.

        A build is fetched if DVC's pointer to it, or `dvc.lock`, names a release.

        Args:
            remote: name of the DVC remote. None means DVC's default remote.

        Raises:
            UsageError: there is no such remote.
            RefusedError: the bytes that were found differ from the release.
            FailureError: DVC or the disk failed, or the remote lacks a file.

        Example:
            >>> [(result.name, result.files) for result in reg.pull()]
            [('mnist@1.0.0', 0)]
        """
        from tfrecreg.builtin.dvc.transfer import pull_needed

        return pull_needed(self, remote=remote, progress=shown_by(context))

    @verb
    def push(
        self,
        *names: str,
        remote: str | None = None,
        verify: bool = False,
        repair: bool = False,
        **context: Unpack[Shown],
    ) -> PushResult:
        """Send the bytes of releases to a DVC remote.

        Args:
            names: names of releases and datasets. The name of a dataset means all its releases. If
                no name is given, all releases are sent.
            remote: name of the DVC remote. None means DVC's default remote.
            verify: also verify the bytes in the remote, either by the remote's checksums or by
                reading the bytes.
            repair: verify as with `verify`, then replace damaged objects in the remote.

        Example:
            >>> reg.push("mnist").releases
            ('mnist@1.0.0',)
        """
        from tfrecreg.builtin.dvc.transfer import push

        return push(
            self, names, remote=remote, verify=verify, repair=repair, progress=shown_by(context)
        )

    @verb
    def gc(
        self,
        *,
        apply: bool = False,
        remote: str | None = None,
        **context: Unpack[Shown],
    ) -> list[Unneeded]:
        """Find unneeded files and, with `apply`, remove them.

        Args:
            apply: remove the listed files. Without it they are only listed.
            remote: remote that must hold a release before its local copy may be removed; None for
                DVC's own default.

        Raises:
            FailureError: DVC, git or the disk failed.

        Example:
            >>> reg.gc()
            []
        """
        from tfrecreg.builtin.dvc.garbage import gc

        return gc(self, apply=apply, remote=remote, progress=shown_by(context))

    def pipeline(self, *names: str, check: bool = False, artifacts: bool = False) -> PipelineResult:
        """Write or update the stages of datasets in ``dvc.yaml``.

        Args:
            names: names of datasets; none for all.
            check: write nothing. The result shows whether ``dvc.yaml`` is stale.
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

    @verb
    def site(
        self,
        folder: PathLike,
        **context: Unpack[Working],
    ) -> SiteResult:
        """Write a static site: an index, and a page for each build and release.

        Every build and release whose bytes are on this machine is checked. The pages of other
        versions show their manifests and say how to fetch the bytes.

        Args:
            folder: a new or empty folder. It appears when it is complete.

        Raises:
            UsageError: the folder exists and is not empty.
            FailureError: a worker died, or the disk failed.

        Example:
            >>> reg.site("public").pages
            3
        """
        from tfrecreg.builtin.pages.make import site

        return site(folder, registry=self, **work_of(context))

    def view(
        self,
        *targets: TargetLike,
        where: str | None = None,
        port: int = 0,
        engine: Engine | None = None,
    ) -> View:
        """Show every record of the registry's datasets, or of other TFRecords, in the browser.

        Args:
            targets: references, builds, releases or paths. If no target is given, the viewer lists
                the datasets.
            where: show only records that meet this condition, for example
                ``label = 'cat' AND width >= 224``.
            port: port on which the viewer listens. The default 0 selects a free port.
            engine: makes the catalog. If it is None, this process makes the catalog.

        Raises:
            UsageError: a target does not exist.

        Example:
            >>> shown = reg.view()
            >>> shown.close()
        """
        from tfrecreg.builtin.view.run import view

        return view(targets, registry=self, where=where, port=port, engine=engine)


class Publishing(Release):
    """The verbs of a release: methods that pull, push, tag or yank the release."""

    @verb
    def pull(self, *, remote: str | None = None, **context: Unpack[Shown]) -> PullResult:
        """Fetch the bytes of the release to this machine, from DVC's cache or a remote.

        Args:
            remote: name of the DVC remote. None means DVC's default remote.

        Raises:
            UsageError: DVC does not keep this release, or there is no such remote.
            RefusedError: the bytes that were found differ from the release.
            FailureError: DVC or the disk failed, or the remote lacks a file.

        Example:
            >>> release = reg["mnist@1.0.0"]
            >>> release.pull().files
            0
        """
        from tfrecreg.builtin.dvc.transfer import pull

        return pull(self.registry, self.name, remote=remote, progress=shown_by(context))

    @verb
    def push(
        self,
        *,
        remote: str | None = None,
        verify: bool = False,
        repair: bool = False,
        **context: Unpack[Shown],
    ) -> PushResult:
        """Send the release's objects to a DVC remote, if they are missing there or differ in size.

        Args:
            remote: name of the DVC remote. None means DVC's default remote.
            verify: also verify the bytes in the remote, either by the remote's checksums or by
                reading the bytes.
            repair: verify as with `verify`, then replace damaged objects in the remote.

        Raises:
            UsageError: DVC does not keep this release, or there is no such remote.
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
            progress=shown_by(context),
        )

    @verb
    def tag(
        self,
        stage: str | None = None,
        *,
        commit: str | None = None,
        **context: Unpack[Shown],
    ) -> TagResult:
        """Tag the release in git, in GTO's format.

        Args:
            stage: stage to which the release is assigned, such as ``prod``.
            commit: commit to tag. The default is the first commit that contains both the release
                and DVC's pointer to its bytes.

        Raises:
            UsageError: the name of the stage is not legal, the registry is outside git, or the
                commit does not hold the release.
            ConflictError: the tag already exists at another commit.

        Example:
            >>> reg["mnist@1.0.0"].tag("prod").made
            ('mnist@v1.0.0', 'mnist#prod#1')
        """
        from tfrecreg.builtin.releases.tag import tag

        told = shown_by(context)
        return tag(self.registry, self.name, stage=stage, commit=commit, progress=told)

    @verb
    def yank(self, reason: str, **context: Unpack[Shown]) -> YankResult:
        """Mark the release as wrong: ``latest`` skips it from then on.

        Args:
            reason: reason to show to users of the release.

        Raises:
            UsageError: there is no reason.

        Example:
            >>> reg["mnist@1.0.0"].yank(reason="labels mixed up").yanked_now
            True
            >>> [each.reason for each in reg["mnist@1.0.0"].yanks]
            ['labels mixed up']
        """
        from tfrecreg.builtin.releases.tag import yank

        return yank(self.registry, self.name, reason, progress=shown_by(context))
