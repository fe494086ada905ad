"""A dataset with its verbs: build, adopt, release."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from tfrecreg.core.registry import registry as registries
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.library.display import shown
from tfrecreg.library.schemas import SchemaVerbs
from tfrecreg.library.targets import path_or_none
from tfrecreg.library.versions import Build, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfrecreg.builtin.python_data.convert import SplitData
    from tfrecreg.builtin.releases.release import Level
    from tfrecreg.core.registry.listing import LogEntry
    from tfrecreg.core.values.progress import Progress
    from tfrecreg.core.values.typed_values import SkipLimit
    from tfrecreg.core.workers.interface import Engine


class Dataset(SchemaVerbs, registries.Dataset):
    """A dataset of a registry: its schema, its build and its releases.

    There need not be one of that name yet: `build` or `adopt` makes it. Everything but the
    configuration is read again with each call.

    Example:
        >>> mnist = reg["mnist"]
        >>> [str(version) for version in mnist.versions], mnist.schema_path
        (['1.0.0'], 'schemas/mnist.pbtxt')
    """

    def __repr__(self) -> str:
        return f"<Dataset {self.name} in {self.registry.storage.root}>"

    if not TYPE_CHECKING:  # mypy would accept every name

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not (hasattr(Build, name) or hasattr(Release, name)):
                raise AttributeError(f"'Dataset' object has no attribute {name!r}")
            raise AttributeError(
                f"a dataset has no `{name}`: its build and its releases have it, as in "
                f"`.{'built' if hasattr(Build, name) else 'latest'}.{name}`"
            )

    @property
    def schema(self) -> str | None:
        """The text of the working schema; None if there is none."""
        return self.schema_text()

    @property
    def built(self) -> Build:
        """The build of this machine.

        Raises:
            NotHereError: there is none here.
            NoSuchNameError: there is no dataset of that name.
            ManifestError: its manifest is damaged.
        """
        return Build._of(resolve(self.registry, self.name))

    @property
    def latest(self) -> Release:
        """The newest release that was not yanked.

        Raises:
            NoSuchNameError: there is none.
            ManifestError: its manifest is damaged.
        """
        return self["latest"]

    def __getitem__(self, version: str) -> Release:
        """The release of a version: ``1.0.0``, ``1.*`` or ``latest``.

        Raises:
            NoSuchNameError: there is none. It is a `KeyError`.
            ManifestError: its manifest is damaged.
        """
        return Release._of(resolve(self.registry, f"{self.name}@{version}"))

    def log(self) -> list[LogEntry]:
        """Its releases, the newest first.

        Raises:
            NoSuchNameError: there is no dataset of that name.
            ManifestError: a manifest is damaged.

        Example:
            >>> [(str(entry.version), entry.note) for entry in reg["mnist"].log()]
            [('1.0.0', 'first')]
        """
        from tfrecreg.core.registry.listing import log

        return log(self.registry, self.name)

    def build(
        self,
        *,
        source: str | None = None,
        raw: str | os.PathLike[str] | None = None,
        options: Mapping[str, Any] | None = None,
        data: Mapping[str, SplitData] | None = None,
        key: str | Callable[[Any], object] | None = None,
        labels: Mapping[str, Sequence[str]] | None = None,
        shards: int | None = None,
        shard_size: str | int | None = None,
        records_per_shard: int | None = None,
        hosts: int | None = None,
        compression: Literal["none", "gzip"] | None = None,
        base: str | None = None,
        default_schema: bool = False,
        max_skipped: SkipLimit | int | str | None = None,
        max_dropped: SkipLimit | int | str | None = None,
        save_options: bool = False,
        anew: bool = False,
        jobs: int = 1,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> Build:
        """Make the build from raw data that a source reads, or from the data of this program.

        The old build stays whole until the new one was read back and passed; then the folders are
        exchanged. A killed run is resumed. Settings that are None are those of
        ``datasets/NAME.toml``, which the first build saves.

        Args:
            source: source plugin that reads the raw data; None for the saved one, else for the one
                that fits the raw data best.
            raw: folder of the raw data, or its URL.
            options: options of the source.
            data: the elements of each split: a sequence of dictionaries from feature name to
                value, a dictionary of columns of equal length, or an iterable of dictionaries. A
                sequence is read twice and has to give the same elements; an iterable is read once.
            key: of an element of `data`: the name of a feature, or a function of the element. By
                default the key is the number of the element in its split.
            labels: class names in order of their numbers, by feature of `data`.
            shards: make N shards of each split.
            shard_size: make shards of about SIZE, such as ``"128MiB"``, or an integer in bytes.
            records_per_shard: put at most N records into a shard.
            hosts: make enough shards for N training hosts.
            compression: compression of the shards; None for that of the settings, else none.
            base: keep the unchanged shards of this release; None for the latest, ``"none"`` to
                reshuffle all.
            default_schema: if the dataset's schema is missing, use the source's own, even if it
                differs.
            max_skipped: accept up to this many skipped items: a number, or a share such as
                ``"0.5%"``.
            max_dropped: accept up to this many dropped objects per split, in the same form; by
                default 1 %.
            save_options: save these settings in ``datasets/NAME.toml`` for later builds.
            anew: rebuild every shard, including those that an unfinished run completed.
            jobs: number of worker processes. With more than one, a script keeps its code under
                ``if __name__ == "__main__":``.
            engine: runs the work in place of `jobs` processes of this machine.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Returns:
            the build; its `result` has the report, and what was kept of earlier runs and releases.

        Raises:
            UsageError: bad names, options, configuration, raw data or schema, or an element that
                cannot be stored in an example without loss.
            RefusedError: too many items were skipped or objects dropped, or the check of the new
                build has findings.
            FailureError: a plugin, a worker or the disk failed.

        Example:
            >>> reg["digits"].build(source="mnist", raw="raw/mnist", shards=4)
            <Build digits: 200 train, 60 test records in 8 shards>
            >>> points = {"train": {"x": [[0.0, 1.0], [1.0, 0.0]], "label": [0, 1]}}
            >>> reg["points"].build(data=points, labels={"label": ["left", "right"]})
            <Build points: 2 train records in 1 shard>
        """
        from tfrecreg.builtin.python_data.build import build
        from tfrecreg.core.build.request import BuildRequest
        from tfrecreg.core.values.shards import shard_policy

        request = BuildRequest(
            name=self.name,
            source=source,
            raw=path_or_none(raw),
            options=options or {},
            policy=shard_policy(shards, shard_size, records_per_shard, hosts),
            compression=compression,
            max_skipped=max_skipped,
            max_dropped=max_dropped,
            default_schema=default_schema,
            base=base,
            save=save_options,
            anew=anew,
        )
        made = build(
            _fresh(self.registry),
            request,
            data=data,
            key=key,
            labels=labels,
            jobs=jobs,
            engine=engine,
            progress=shown(progress),
        )
        _fresh(self.registry)  # the first build of a dataset saves its settings
        return Build(self, made.manifest, made.folder, made)

    def adopt(
        self,
        *paths: str | os.PathLike[str],
        how: Literal["copy", "link", "in-place"] = "copy",
        splits: Mapping[str, str] | None = None,
        schema: str | None = None,
        raw: str | os.PathLike[str] | None = None,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        pixels: Mapping[str, tuple[int, int, int]] | None = None,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> Build:
        """Make the build from TFRecord files that another tool wrote.

        Args:
            paths: files, globs and folders; none with ``how="in-place"``: all of ``data/NAME``.
            how: ``copy`` the files, ``link`` them (writing into the files then changes the build),
                or take them ``in-place``.
            splits: a glob over the files of each split, if their names do not contain it.
            schema: check every record against this schema; None for the dataset's own, or a draft.
            raw: folder of the raw data, or its URL, to judge inflation.
            key: feature that holds the keys of the records; None for file and number.
            labels: file of the class names, by feature: a label map, or one name per line.
            pixels: height, width and channels of the image whose pixels a feature holds.
            engine: where to scan; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Raises:
            UsageError: no such files, names that do not fit together, or a bad schema.
            RefusedError: the records have findings.
            FailureError: the disk failed.

        Example:
            >>> with tr.TFRecordWriter("points-train.tfrecord") as file:
            ...     file.write({"x": [0.0, 1.0], "label": 0})
            >>> reg["points"].adopt("points-train.tfrecord")
            <Build points: 1 train record in 1 shard>
        """
        from tfrecreg.builtin.adopt.request import AdoptRequest
        from tfrecreg.builtin.adopt.run import adopt

        request = AdoptRequest(
            name=self.name,
            paths=tuple(os.fspath(path) for path in paths),
            how=how,
            splits=tuple((splits or {}).items()),
            schema=schema,
            raw=path_or_none(raw),
            key=key,
            labels=tuple((labels or {}).items()),
            pixels=tuple((pixels or {}).items()),
        )
        adopt(_fresh(self.registry), request, engine=engine, progress=shown(progress))
        _fresh(self.registry)
        return self.built

    def release(
        self,
        version: str | None = None,
        *,
        bump: Level = "auto",
        note: str = "",
        raw: str | os.PathLike[str] | None = None,
        engine: Engine | None = None,
        progress: Progress | bool = True,
    ) -> Release:
        """Freeze the build under a number. The same content again gives the release that is there.

        Args:
            version: version number of the release, such as ``1.0.0``; None to count from the one
                before.
            bump: increment the newest version, where `version` is None; ``auto`` takes the smallest
                legal number.
            note: note to store in the release.
            raw: folder of the raw data, or its URL, to judge inflation; None for what the manifest
                says.
            engine: where to check; None for this process.
            progress: a bar in a notebook or a terminal; False for none, or an object to update.

        Returns:
            the release; its `result` says whether it was made now, and what the gate found.

        Raises:
            UsageError: no such build, a bad number, or raw data that changed since the build.
            ConflictError: the number exists with other content.
            RefusedError: the gate fails, or the number understates the change.
            FailureError: DVC, a plugin or the disk failed.

        Example:
            >>> reg["mnist"].build(shards=1)
            <Build mnist: 200 train, 60 test records in 2 shards>
            >>> release = reg["mnist"].release(note="fewer shards")
            >>> release.name, release.result.change.level
            ('mnist@1.0.1', 'patch')
        """
        from tfrecreg.builtin.releases.release import ReleaseRequest, release

        request = ReleaseRequest(
            name=self.name,
            version=version,
            bump=bump,
            note=note,
            raw=path_or_none(raw),
        )
        made = release(_fresh(self.registry), request, engine=engine, progress=shown(progress))
        return Release._of(resolve(self.registry, f"{self.name}@{made.version}"), made)


def _fresh(registry: registries.Registry) -> registries.Registry:
    """The registry, whose configuration is read again: an editor may have changed it since."""
    registry.__dict__.pop("config", None)
    return registry
