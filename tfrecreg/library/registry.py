"""A registry and its datasets. Opens or makes a registry, and resolves references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from tfrecreg.core.registry import registry as registries
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.values.errors import NoSuchNameError, UsageError
from tfrecreg.core.values.reference import parse_reference
from tfrecreg.library.context import PathLike, of_datasets, of_registry
from tfrecreg.library.files import Verbs
from tfrecreg.library.making import Making
from tfrecreg.library.schemas import SchemaVerbs
from tfrecreg.library.upkeep import Keeping
from tfrecreg.library.versions import Build, Release, handle


class Dataset(Making, SchemaVerbs, registries.Dataset):
    """A dataset of a registry: its schema, its build and its releases.

    The dataset need not exist yet: `build` or `adopt` makes it. Everything but the
    configuration is read again with each call.

    Example:
        >>> mnist = reg["mnist"]
        >>> [str(version) for version in mnist.versions], mnist.schema_path
        (['1.0.0'], 'schemas/mnist.pbtxt')
    """

    def __repr__(self) -> str:
        return f"<Dataset {self.name} in {self.registry.storage.root}>"

    @property
    def schema(self) -> str | None:
        """The text of the working schema; None if there is none."""
        return self.schema_text()

    @property
    def built(self) -> Build:
        """The build on this machine.

        Raises:
            NotHereError: there is no build on this machine.
            NoSuchNameError: there is no dataset of that name.
            ManifestError: its manifest is damaged.
        """
        return Build._of(resolve(self.registry, self.name))

    @property
    def latest(self) -> Release:
        """The newest release that was not yanked.

        Raises:
            NoSuchNameError: there is no such release.
            ManifestError: its manifest is damaged.
        """
        return self["latest"]

    def __getitem__(self, version: str) -> Release:
        """Return the release with a version: ``1.0.0``, ``1.*`` or ``latest``.

        Raises:
            NoSuchNameError: there is no such release. The error is a `KeyError`.
            ManifestError: its manifest is damaged.
        """
        return Release._of(resolve(self.registry, f"{self.name}@{version}"))


if TYPE_CHECKING:

    class DatasetOrRelease(Dataset, Release):  # type: ignore[misc]  # both have a schema
        """The type of ``registry[name]``. A type checker cannot tell whether a text names a dataset
        or a release. If the type were a union, type checkers would refuse each verb that only
        datasets or only releases have.
        """


class Registry(Keeping, registries.Registry):
    """A registry. It finds a dataset by its name, and a build or release by its reference.

    ``registry["mnist"]`` is a :class:`Dataset`, which need not exist yet. ``registry["mnist@1.*"]``
    and ``registry["mnist#prod"]`` are releases (:class:`Release`). Iterating gives the names of
    datasets.

    Example:
        >>> list(reg), "mnist" in reg
        (['mnist'], True)
        >>> reg["mnist@1.0.0"]
        <Release mnist@1.0.0: 200 train, 60 test records in 4 shards>
    """

    @property
    def root(self) -> str:
        """The path of the registry's folder."""
        return self.storage.root

    def __fspath__(self) -> str:
        return self.storage.root

    def __repr__(self) -> str:
        return f"<Registry {self.root}>"

    def __getitem__(self, name: str) -> DatasetOrRelease:
        """Return the dataset with a name, or the release that a reference names.

        Raises:
            NoSuchNameError: there is no such release, or the name is not allowed. The error is a
                `KeyError`.
            TfrecregError: for the reasons of :func:`tfrecreg.core.registry.data.resolve`.
        """
        try:
            reference = parse_reference(name)
        except UsageError as error:
            raise NoSuchNameError(error.message, hint=error.hint) from error
        found = self.dataset(reference.name) if reference.selector is None else self.find(name)
        return cast("DatasetOrRelease", found)

    def find(self, reference: str) -> Build | Release:
        """Return what a reference names: ``mnist`` is a build, ``mnist@1.0.0`` is a release.

        Raises:
            NoSuchNameError: there is no such dataset, release or stage.
            NotHereError: there is no build of that dataset on this machine.
            ManifestError: its manifest is damaged.

        Example:
            >>> reg.find("mnist").name, reg.find("mnist@latest").name
            ('mnist', 'mnist@1.0.0')
        """
        return handle(resolve(self, reference))

    def __contains__(self, name: object) -> bool:
        """Whether there is a dataset of that name."""
        return name in self.dataset_names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.dataset_names())

    def __len__(self) -> int:
        return len(self.dataset_names())

    def dataset(self, name: str) -> Dataset:
        return Dataset(self, name)

    check = of_datasets(Verbs.check)
    report = of_registry(Verbs.report)


def open(folder: registries.RegistryLike | None = None) -> Registry:
    """Open the registry in `folder` or the nearest folder above it. Default: the current folder.

    Args:
        folder: the path from which to search upwards, as git does. An open registry is returned
            unchanged.

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


def init(folder: PathLike = ".", *, with_dvc: bool | None = None, nested: bool = False) -> Registry:
    """Turn a folder into a registry, and open it. An existing registry stays unchanged.

    Args:
        folder: the root, which need not exist.
        with_dvc: whether the folder becomes a DVC repository. By default, it does if DVC is
            installed, unless the folder is already a registry without DVC.
        nested: whether the folder is allowed to be inside another registry.

    Raises:
        UsageError: the path is not a folder, or is inside another registry.
        StorageError: the folder cannot be written.
        MissingExtraError: DVC was requested but is not installed.
        FailureError: DVC refused. The folder is not a registry yet; run `init` again.

    Example:
        >>> registry = tr.init("new", with_dvc=False)
        >>> len(registry)
        0
    """
    from tfrecreg.core.registry.init import init

    return open(init(folder, with_dvc=with_dvc, nested=nested).root)
