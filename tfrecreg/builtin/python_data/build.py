"""Building from the data of a program, given in the call instead of by a plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tfrecreg._version import __version__
from tfrecreg.builtin.python_data.convert import KeyRule, SplitData
from tfrecreg.builtin.python_data.source import open_python_data
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.build.request import BuildRequest, BuildSettings, Prepared
from tfrecreg.core.build.run import build_from_source, build_prepared
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.registry.manifest import KEYS, PYTHON, SourceEntry
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.transaction import Transaction
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import check_dataset_name
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import SkipLimit
from tfrecreg.core.workers.interface import Engine

_OF_PLUGINS = ("source", "raw", "options", "max_skipped", "max_dropped", "save")
"""Settings of a request that mean nothing without a plugin that reads raw files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramData:
    """What a program hands to a build."""

    splits: Mapping[str, SplitData]
    """The elements of each split."""
    key: str | Callable[[Any], object] | None = None
    """The origin of keys: the name of a feature, a function, or None for numbers."""
    labels: Mapping[str, Sequence[str]] | None = None
    """Class names in order of their numbers, by feature."""


def program_data(
    splits: Mapping[str, SplitData] | None,
    *,
    key: str | Callable[[Any], object] | None,
    labels: Mapping[str, Sequence[str]] | None,
) -> ProgramData | None:
    """The data of the program; None where a source reads raw data."""
    if splits is not None:
        return ProgramData(splits=splits, key=key, labels=labels)
    for name, value in (("key", key), ("labels", labels)):
        if value is not None:
            raise UsageError(
                f"`{name}` needs `data`",
                hint="a source has keys and class names of its own",
            )
    return None


def build(
    registry: Registry,
    request: BuildRequest,
    *,
    data: Mapping[str, SplitData] | None = None,
    key: str | Callable[[Any], object] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    jobs: int = 1,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> BuildResult:
    """Make `data/<name>` from raw data that a source reads, or from the data of this program.

    The old build stays whole until the new one was read back and passed; then the folders are
    exchanged. A killed run is resumed.
    """
    given = program_data(data, key=key, labels=labels)
    if given is None:
        return build_from_source(registry, request, jobs=jobs, engine=engine, progress=progress)

    @contextmanager
    def opened(change: Transaction, engine: Engine) -> Iterator[Prepared]:
        with (
            change.stage("data") as scratch,
            prepare_data(
                registry, request, given, scratch=scratch, engine=engine, progress=progress
            ) as prepared,
        ):
            yield prepared

    return build_prepared(registry, request, opened, jobs=jobs, engine=engine, progress=progress)


@contextmanager
def prepare_data(
    registry: Registry,
    request: BuildRequest,
    data: ProgramData,
    *,
    scratch: Storage,
    engine: Engine,
    progress: Progress,
) -> Iterator[Prepared]:
    """Decide everything that the request leaves open, and open the data as a source."""
    check_dataset_name(request.name)
    dataset = registry.dataset(request.name)
    saved = BuildSettings.saved(dataset.config)
    _expect_no_plugin(request)
    if saved.source is not None:
        raise UsageError(
            f"`{dataset.config_file}` names the source `{safe(saved.source)}` for "
            f"`{request.name}`, so `data` cannot be built",
            hint="remove `source` there, or build the data under another name",
        )
    rule = KeyRule.of(data.key)
    with open_python_data(
        request.name,
        data.splits,
        rule,
        _class_names(data.labels),
        scratch=scratch,
        engine=engine,
        progress=progress,
        draft=dataset.schema_text() is None,
    ) as source:
        yield Prepared(
            request=request,
            source=GuardedSource(source, PluginId("source", PYTHON)),
            entry=SourceEntry(
                name=PYTHON, distribution=OURS, version=__version__, options={KEYS: str(rule)}
            ),
            raw=None,
            settings=replace(request.over(saved), max_skipped=SkipLimit.parse(0)),
            remember={},
            data=source,
        )


def _expect_no_plugin(request: BuildRequest) -> None:
    given = [name for name in _OF_PLUGINS if getattr(request, name)]
    if given:
        listed = " and ".join(f"`{name}`" for name in given)
        raise UsageError(
            f"{listed} and `data` exclude each other: a program's data have no source and no "
            "raw files",
            hint="leave out one of them",
        )


def _class_names(labels: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]]:
    """The class names as a manifest has them."""
    found: dict[str, list[str]] = {}
    for feature, names in (labels or {}).items():
        one_text = isinstance(names, str)
        if one_text or not all(isinstance(each, str) for each in (feature, *names)):
            raise UsageError(
                f"`labels` has no list of names for `{safe(str(feature))}`",
                hint='`labels={"label": ["cat", "dog"]}`, in order of their numbers',
            )
        found[feature] = list(names)
    return found
