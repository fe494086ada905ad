"""Opening or making a registry, and finding in it what a reference names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tfrecreg.errors import NoSuchNameError, UsageError
from tfrecreg.library.dataset import Dataset
from tfrecreg.library.versions import Build, Release, handle
from tfrecreg.progress import SILENT, Progress
from tfrecreg.reference import parse_reference
from tfrecreg.registry import lookup
from tfrecreg.registry import registry as registries

if TYPE_CHECKING:
    import datetime

    from tfrecreg.engines.interface import Engine
    from tfrecreg.operations.pipeline.run import PipelineResult
    from tfrecreg.operations.remote.garbage import Doomed
    from tfrecreg.operations.remote.sending import PushResult
    from tfrecreg.reports.model import Report


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

    def __getitem__(self, name: str) -> Any:
        """The dataset of a name, or the release of a reference.

        Raises:
            NoSuchNameError: there is no such release, or no dataset of that name may exist. It is a
                `KeyError`.
            TfrecregError: as :func:`tfrecreg.registry.lookup.resolve`.
        """
        try:
            reference = parse_reference(name)
        except UsageError as error:
            raise NoSuchNameError(error.message, hint=error.hint) from error
        return self.dataset(reference.name) if reference.selector is None else self.find(name)

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

    def check(
        self, *, engine: Engine | None = None, progress: Progress = SILENT, **options: Any
    ) -> list[Report]:
        """Check every dataset: its build, or its newest release where only that is here.

        Args:
            engine: where to scan; None for this process.
            progress: updated during the work.
            options: keywords of :meth:`Build.check`, and `ignore_missing`, which skips datasets
                whose bytes are not on this machine.

        Example:
            >>> [report.status for report in reg.check(only=["crc"])]
            ['pass']
        """
        from tfrecreg.library.versions import check_options
        from tfrecreg.operations.check.run import check

        chosen = check_options(options)
        return check((), registry=self, options=chosen, engine=engine, progress=progress)

    def push(
        self,
        *names: str,
        remote: str | None = None,
        verify: bool = False,
        repair: bool = False,
        progress: Progress = SILENT,
    ) -> PushResult:
        """Send releases to a DVC remote: those named, all of the datasets named, or all there are.

        The arguments are those of :meth:`Release.push`.

        Example:
            >>> reg.push("mnist").releases
            ('mnist@1.0.0',)
        """
        from tfrecreg.operations.remote.sending import push

        return push(self, names, remote=remote, verify=verify, repair=repair, progress=progress)

    def gc(
        self,
        *,
        apply: bool = False,
        remote: str | None = None,
        buckets: bool = False,
        progress: Progress = SILENT,
    ) -> list[Doomed]:
        """Find files that nothing needs any more, and remove them with `apply`.

        Args:
            apply: whether to remove what was found.
            remote: DVC's name of the remote that has copies of releases; None for its default.
            buckets: whether to look at folders of buckets as well.
            progress: updated during the work.

        Raises:
            FailureError: DVC, git or the disk failed.

        Example:
            >>> reg.gc()
            []
        """
        from tfrecreg.operations.remote.garbage import gc

        return gc(self, apply=apply, remote=remote, buckets=buckets, progress=progress)

    def pipeline(
        self, *names: str, look: bool = False, today: datetime.date | None = None
    ) -> PipelineResult:
        """Write or update the stages of datasets in ``dvc.yaml``.

        Args:
            names: of datasets; none for all.
            look: whether to say what would change, and to write nothing.
            today: the day by which waivers are judged; None for the day of today.

        Raises:
            UsageError: there is no such dataset, or ``dvc.yaml`` does not parse.

        Example:
            >>> reg["digits"].build(source="mnist", raw="raw/mnist")
            <Build digits: 200 train, 60 test records in 2 shards>
            >>> reg.pipeline("digits").datasets
            ('digits',)
        """
        from tfrecreg.operations.pipeline.run import pipeline

        return pipeline(self, names, look=look, today=today)


def open(folder: registries.RegistryLike | None = None) -> Registry:
    """Open the registry that `folder` is or contains; without one, that of the current folder.

    Args:
        folder: a path, from which the registry is looked for upwards, as git does; an open
            registry is returned unchanged.

    Raises:
        UsageError: there is no registry.

    Example::

        registry = tfrecreg.open("registry")
        print(list(registry))

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
    from tfrecreg.operations.init import init

    return open(init(folder, with_dvc=with_dvc, nested=nested).root)


def resolve(registry: registries.RegistryLike, reference: str) -> Build | Release:
    """What a reference names in a registry, as :meth:`Registry.find`."""
    return open(registry).find(reference)
