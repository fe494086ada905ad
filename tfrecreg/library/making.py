"""The verbs that make builds and releases, and repair them.

Commands take their options from the verbs. To keep commands fast, this module does not import the
readers of a registry.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from tfrecreg.core.values.typed_values import expect_one_of
from tfrecreg.library.context import PathLike, Working, path_or_none, verb, work_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Unpack

    from tfrecreg.builtin.python_data.convert import SplitData
    from tfrecreg.builtin.repair.run import RepairResult
    from tfrecreg.core.registry.data import Resolved
    from tfrecreg.core.registry.listing import LogEntry
    from tfrecreg.core.registry.registry import Dataset, Registry
    from tfrecreg.core.values.typed_values import SkipLimit
    from tfrecreg.library.versions import Build, Release
else:
    Dataset = Resolved = object


class Making(Dataset):
    """The verbs of a dataset, which make its builds and releases."""

    @verb
    def build(
        self,
        *,
        source: str | None = None,
        raw: PathLike | None = None,
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
        **context: Unpack[Working],
    ) -> Build:
        """Make the build from raw data that a source reads, or from data of this program.

        The new build is read back and checked, and then replaces the old build. A killed run is
        resumed. Settings that are None come from ``datasets/NAME.toml``, which the first build
        saves.

        Args:
            source: source plugin that reads the raw data; None for the saved source. If no source
                is saved, the source that fits best is used.
            raw: folder of the raw data, or its URL.
            options: options of the source.
            data: the elements of each split. They are given as a sequence of dictionaries from
                feature name to value, a dictionary of columns of equal length, or an iterable of
                dictionaries. A sequence is read twice and must give the same elements both times.
                An iterable is read once.
            key: name of the feature that has the key of an element of `data`, or a function that
                returns the key of an element. By default the key is the number of the element in
                its split.
            labels: for a feature of `data`, its class names in the order of their numbers.
            shards: make N shards of each split.
            shard_size: make shards of about SIZE, such as ``128MiB``; a bare number is in bytes.
            records_per_shard: put at most N records into a shard.
            hosts: make enough shards for N training hosts.
            compression: compression of the shards; None for the saved compression, else ``none``.
            base: keep the unchanged shards of this release; None for the latest release. ``none``
                reshuffles all records.
            default_schema: if the dataset's schema is missing, use the schema of the source, even
                if the last build or release has another schema.
            max_skipped: accept up to this many skipped items: a number, or a share such as
                ``0.5%``; None for 0.
            max_dropped: accept up to this many dropped objects per split: a number, or a share;
                None for 1%.
            save_options: save these settings in ``datasets/NAME.toml`` for later builds.
            anew: rebuild every shard, including those that an unfinished run completed.
            jobs: number of worker processes. With more than one, a script must keep its code under
                ``if __name__ == "__main__":``.
            engine: the engine that runs the work; None for `jobs` processes of this machine.

        Returns:
            the build. Its `result` has the report, and says what earlier work was reused.

        Raises:
            UsageError: names, options, configuration, raw data or schema are invalid, or an example
                cannot store an element without loss.
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
        from tfrecreg.library.versions import Build

        if compression is not None:
            expect_one_of("compression", compression, ("none", "gzip"))
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
            save_options=save_options,
            anew=anew,
        )
        made = build(
            _fresh(self.registry),
            request,
            data=data,
            key=key,
            labels=labels,
            jobs=jobs,
            **work_of(context),
        )
        _fresh(self.registry)  # the first build of a dataset saves its settings
        return Build(self, made.manifest, made.folder, made)

    @verb
    def adopt(
        self,
        *paths: str | os.PathLike[str],
        how: Literal["copy", "link", "in-place"] = "copy",
        splits: Mapping[str, str] | None = None,
        schema: str | None = None,
        raw: PathLike | None = None,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        pixels: Mapping[str, tuple[int, int, int]] | None = None,
        **context: Unpack[Working],
    ) -> Build:
        """Make the build from TFRecord files that another tool wrote.

        Args:
            paths: files, globs and folders. Give no paths with ``how="in-place"``, because it
                takes the files in ``data/NAME``.
            how: ``copy`` the files, ``link`` them (writing into the files then changes the build),
                or take them ``in-place``.
            splits: a glob over the files of each split, if the file names do not contain the split.
            schema: check every record against this schema; None for the dataset's schema, or else a
                draft.
            raw: folder of the raw data, or its URL, with which `inflation` compares the shards.
            key: feature that holds the keys of the records; None for keys of file name and number.
            labels: file of the class names of each feature: a label map, or one name per line.
            pixels: height, width and channels of the image whose pixels a feature holds.

        Raises:
            UsageError: there are no such files, names contradict each other, or the schema is bad.
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
        from tfrecreg.core.registry.data import resolve
        from tfrecreg.library.versions import Build

        expect_one_of("how", how, ("copy", "link", "in-place"))
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
        adopt(_fresh(self.registry), request, **work_of(context))
        _fresh(self.registry)
        return Build._of(resolve(self.registry, self.name))

    @verb
    def release(
        self,
        version: str | None = None,
        *,
        bump: Literal["auto", "patch", "minor", "major"] = "auto",
        note: str = "",
        raw: PathLike | None = None,
        **context: Unpack[Working],
    ) -> Release:
        """Freeze the build under a version number.

        If the release `version` exists with the same content, class names and schema as the build,
        this release is returned. If `version` is None, the newest release is returned if it was
        made from this very build.

        Args:
            version: version number of the release, such as ``1.0.0``; None for the next number.
            bump: part of the newest version to increment. ``auto``, the default, takes the
                smallest legal number.
            note: note to store in the release.
            raw: folder of the raw data, or its URL, with which `inflation` compares the shards;
                None for the size in the manifest.

        Returns:
            the release. Its `result` says whether this call made it, and what the gate found.

        Raises:
            UsageError: there is no such build, the number is bad, or raw data changed after
                the build.
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
        from tfrecreg.core.registry.data import resolve
        from tfrecreg.library.versions import Release

        expect_one_of("bump", bump, ("auto", "patch", "minor", "major"))
        request = ReleaseRequest(
            name=self.name,
            version=version,
            bump=bump,
            note=note,
            raw=path_or_none(raw),
        )
        made = release(_fresh(self.registry), request, **work_of(context))
        return Release._of(resolve(self.registry, f"{self.name}@{made.version}"), made)

    def log(self) -> list[LogEntry]:
        """List the releases of the dataset, the newest first.

        Raises:
            NoSuchNameError: there is no dataset of that name.
            ManifestError: a manifest is damaged.

        Example:
            >>> [(str(entry.version), entry.note) for entry in reg["mnist"].log()]
            [('1.0.0', 'first')]
        """
        from tfrecreg.core.registry.listing import log

        return log(self.registry, self.name)


class Mending(Resolved):
    """The verb that repairs a build or a release."""

    @verb
    def repair(
        self,
        *,
        raw: PathLike | None = None,
        **context: Unpack[Working],
    ) -> RepairResult:
        """Rebuild the missing and damaged files of the build or release, byte for byte.

        Args:
            raw: folder of the raw data, or its URL; None for the configured folder.

        Raises:
            UsageError: the raw data, or the plugin that read them, are not on this machine.
            RefusedError: a rebuilt file differs from the original, so nothing was changed.
            FailureError: a plugin, DVC or the disk failed.

        Example:
            >>> reg["mnist"].built.repair().files
            ()
        """
        from tfrecreg.builtin.repair.run import repair

        raw = path_or_none(raw)
        return repair(self.registry, self.name, raw=raw, **work_of(context))


def _fresh(registry: Registry) -> Registry:
    """Forget the cached configuration, whose file may have been edited, and return the registry."""
    registry.__dict__.pop("config", None)
    return registry
