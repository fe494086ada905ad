"""Builds datasets from data that a program passes in the call. No plugin reads these data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tfrecreg._version import __version__
from tfrecreg.builtin.python_data.convert import KeyRule, SplitData, key_rule_text
from tfrecreg.builtin.python_data.source import open_python_data
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.build.request import BuildRequest, Prepared
from tfrecreg.core.build.run import build_from_source
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.registry.manifest import KEYS, PYTHON, SourceEntry
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.registry.transaction import Transaction
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import check_dataset_name
from tfrecreg.core.values.typed_values import SkipLimit
from tfrecreg.core.workers.interface import Engine

_OF_PLUGINS = ("source", "raw", "options", "max_skipped", "max_dropped", "save_options")
"""Settings of a request that make sense only for a plugin that reads raw files."""


def build(
    registry: Registry,
    request: BuildRequest,
    *,
    data: Mapping[str, SplitData] | None = None,
    key: KeyRule = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    jobs: int = 1,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> BuildResult:
    """Make `data/<name>` from raw data that a source reads, or from data of this program.

    The old build stays unchanged until the new one has been read back and passed the checks. Then
    the new folder replaces the old one. If a build is killed, the next run resumes it.
    """
    if data is None:
        for name, value in (("key", key), ("labels", labels)):
            if value is not None:
                raise UsageError(f"`{name}` needs `data`")
        return build_from_source(registry, request, jobs=jobs, engine=engine, progress=progress)

    @contextmanager
    def opened(change: Transaction, engine: Engine) -> Iterator[Prepared]:
        check_dataset_name(request.name)
        dataset = registry.dataset(request.name)
        _expect_no_plugin(request, dataset)
        rule = key_rule_text(key)
        with (
            change.stage("data") as scratch,
            open_python_data(
                request.name,
                data,
                key,
                _class_names(labels),
                scratch=scratch,
                engine=engine,
                progress=progress,
                draft=dataset.schema_text() is None,
            ) as source,
        ):
            yield Prepared(
                registry=registry,
                progress=progress,
                request=request,
                source=GuardedSource(source, PluginId("source", PYTHON)),
                entry=SourceEntry(
                    name=PYTHON, distribution=OURS, version=__version__, options={KEYS: rule}
                ),
                raw=None,
                settings=replace(request.over(dataset.config), max_skipped=SkipLimit.parse(0)),
                data=source,
            )

    return build_from_source(
        registry, request, jobs=jobs, engine=engine, progress=progress, opened=opened
    )


def _expect_no_plugin(request: BuildRequest, dataset: Dataset) -> None:
    given = [name for name in _OF_PLUGINS if getattr(request, name)]
    if given:
        listed = " and ".join(f"`{name}`" for name in given)
        raise UsageError(
            f"{listed} cannot be combined with `data`: a build from `data` has no source and "
            "reads no raw files"
        )
    if dataset.config.source is not None:
        raise UsageError(
            f"`{dataset.config_file}` names the source `{dataset.config.source}` for "
            f"`{request.name}`, so `data` cannot be built"
        )


def _class_names(labels: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]]:
    """The class names as a manifest stores them."""
    found: dict[str, list[str]] = {}
    for feature, given in (labels or {}).items():
        names = list(given)
        if isinstance(given, str) or not all(isinstance(each, str) for each in (feature, *names)):
            raise UsageError(
                f"`labels` has no list of names for `{feature}`",
                hint='list the names by class number: `labels={"label": ["cat", "dog"]}`',
            )
        found[str(feature)] = list(map(str, names))  # JSON does not take the texts of NumPy
    return found
