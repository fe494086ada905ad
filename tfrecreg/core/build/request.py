"""Completes a request: determines the source, the raw data and the settings that are not given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.code_digest import code_of
from tfrecreg.core.plugins.manager import Announced, Plugins, plugins_of
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import (
    BUILD_AGAIN,
    Manifest,
    SourceEntry,
    is_adopted,
    is_python_data,
)
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.raw import RawStorage, absolute_place, expect_raw_folder, place_in
from tfrecreg.core.values.config import DatasetConfig
from tfrecreg.core.values.errors import (
    ManifestError,
    NewerFormatError,
    TfrecregError,
    UnknownPluginError,
    UsageError,
)
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import check_dataset_name
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import SkipLimit
from tfrecreg.core.workers.interface import Engine

if TYPE_CHECKING:
    from tfrecreg.core.build.detection import Detection

_SIZING = ("shards", "shard_size", "records_per_shard", "hosts")
"""The ways to size shards; at most one may be given."""
_UNDEALT = {"split": "", "split_of": "train", "group": "none"}
"""The default options of all sources, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """Settings of a build. None means the value from `datasets/<name>.toml`."""

    name: str
    source: str | None = None
    raw: str | None = None
    """Folder of the raw data, relative to the current folder, or its URL."""
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: ShardPolicy | None = None
    compression: Literal["none", "gzip"] | None = None
    max_skipped: SkipLimit | int | str | None = None
    """Maximum number of skipped items: a number, or a share such as ``"0.5%"``."""
    max_dropped: SkipLimit | int | str | None = None
    """Maximum number of dropped objects per split: a number, or a share such as ``"0.5%"``."""
    default_schema: bool = False
    """Whether to use the source's own schema, although the missing schema was another one."""
    base: str | None = None
    """The base release: a version, a reference, or ``none``. None means the latest release, or
    ``none`` if the request sets the number of shards or another compression.
    """
    save_options: bool = False
    """Whether the settings of this request are written into `datasets/<name>.toml`. The first build
    of a dataset always saves them."""
    anew: bool = False
    """Whether to make every shard again, even shards that an interrupted run had finished."""

    def given(self) -> dict[str, Any]:
        """The requested settings except `options`, by their keys in the dataset's file."""
        found = {name: getattr(self, name) for name in ("source", "raw", "compression")}
        found |= {name: self._limit(name) for name in ("max_skipped", "max_dropped")}
        found = {name: value for name, value in found.items() if value is not None}
        return found if self.policy is None else {**found, **asdict(self.policy)}

    def over(self, saved: DatasetConfig) -> DatasetConfig:
        """The settings of the build. Saved options of another source are not used."""
        same = self.source in (None, saved.source)
        options = {**(saved.options if same else {}), **self.options}
        return replace(saved, options=options, **self.given())

    def _limit(self, name: str) -> SkipLimit | None:
        limit: SkipLimit | int | str | None = getattr(self, name)
        if limit is None or isinstance(limit, SkipLimit):
            return limit
        try:
            return SkipLimit.parse(limit)
        except ValueError as error:
            raise UsageError(f"`{name}`: {error}, found `{limit}`") from None


def shard_policy(settings: DatasetConfig) -> ShardPolicy:
    return ShardPolicy(**{name: getattr(settings, name) for name in _SIZING})


def max_skipped(settings: DatasetConfig) -> SkipLimit:
    """The limit on skipped items. By default, no item may be skipped."""
    return settings.max_skipped or SkipLimit.parse(0)


def max_dropped(settings: DatasetConfig) -> SkipLimit:
    """The limit on dropped objects: 1 % by default."""
    return settings.max_dropped or SkipLimit.parse("1%")


def _table(settings: DatasetConfig) -> dict[str, Any]:
    """Settings by their keys in a dataset's file; None for a setting without a value or default."""
    return {
        "source": settings.source,
        "raw": settings.raw,
        "options": settings.options or None,
        **{name: getattr(settings, name) for name in _SIZING},
        "compression": settings.compression,
        "max_skipped": str(max_skipped(settings)),
        "max_dropped": str(max_dropped(settings)),
    }


class GivenData(Protocol):
    """A source in this process. It reads data that a program passed to the build."""

    @property
    def travels(self) -> bool:
        """Whether other processes can make the records."""

    def survey(self) -> object:
        """Go over the elements once, before the source lists its items."""

    def engine_for(self, small: Engine, large: Engine) -> Engine:
        """The engine that makes the records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request in which everything is decided."""

    registry: Registry
    progress: Progress
    request: BuildRequest
    source: GuardedSource
    entry: SourceEntry
    raw: RawStorage | None
    """Folder of the raw data; None if a program holds the data."""
    settings: DatasetConfig
    remember: dict[str, Any] = field(default_factory=dict)
    """Settings to save in `datasets/<name>.toml`, so that ``build NAME`` repeats the build."""
    data: GivenData | None = None
    """The program's data; None if a plugin reads raw files."""
    detected: Detection | None = None

    @property
    def name(self) -> str:
        return self.request.name


def code_of_source(distribution: str, source: GuardedSource) -> dict[str, str]:
    """The code digest of each distribution whose code can change without a new version."""
    found = {
        name: code_of(name, *((source.module,) if name != OURS else ()))
        for name in sorted({distribution, OURS})
    }
    return {name: digest for name, digest in found.items() if digest}


def prepare(registry: Registry, request: BuildRequest, progress: Progress = SILENT) -> Prepared:
    """Decide everything that the request leaves open, and load the source."""
    check_dataset_name(request.name)
    saved = registry.dataset(request.name).config
    settings = request.over(saved)
    known = plugins_of(registry.config)
    raw: RawStorage | None = None
    detected: Detection | None = None
    source = settings.source
    if source is None:
        _expect_raw_named(registry, request.name, settings.raw, known)
        raw, raw_text = _raw(registry, request, saved.raw)
        from tfrecreg.core.build.detection import detect_source

        detected = detect_source(raw, settings.raw or "", known, request.name)
        source = detected.chosen.source
        settings = replace(settings, source=source)
    announced = announced_source(registry, request.name, source)
    options, options_text = known.source_options(source, settings.options)
    if raw is None:
        raw, raw_text = _raw(registry, request, saved.raw or announced.record.raw)
    typed = {name: getattr(options.own, name, given) for name, given in settings.options.items()}
    numbers = {name: each for name, each in typed.items() if type(each) in (bool, int, float)}
    used = replace(settings, raw=raw_text, options={**settings.options, **numbers})
    remember: dict[str, Any] = {}
    if saved.source is None or saved.raw is None or request.save_options:
        keys = {key for key in ("source", "raw") if getattr(saved, key) is None}
        keys |= {*request.given(), *(("options",) if used.options != saved.options else ())}
        remember = {key: value for key, value in _table(used).items() if key in keys}
    if "raw" in remember:
        try:
            raw_text.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(f"the path of the raw data `{raw_text}` is not UTF-8") from None
    return Prepared(
        registry=registry,
        progress=progress,
        request=request,
        source=known.open_source(source, raw, options),
        entry=SourceEntry(
            name=announced.record.name,
            distribution=announced.distribution,
            version=announced.version,
            options=options_text,
        ),
        raw=raw,
        settings=settings,
        remember=remember,
        detected=detected,
    )


def _expect_raw_named(registry: Registry, name: str, raw: str | None, known: Plugins) -> None:
    """Refuse a build if neither its source nor its raw data are known."""
    manifest = made_before(registry, name)[1]
    if manifest is not None and is_python_data(manifest):
        raise UsageError(
            f"`{name}` was built from data that a program passed, and this command lacks them",
            hint=f"{BUILD_AGAIN}; or name raw files: --source SOURCE --raw PATH",
        )
    if raw is None:
        raise UsageError(
            f"no source is known for `{name}`",
            hint=f"`tfrecreg build {name} --raw PATH` finds a source that fits the data; "
            f"`--source` selects one of these sources: {', '.join(known.names(SourceRecord))}",
        )


def _raw(registry: Registry, request: BuildRequest, saved: str | None) -> tuple[RawStorage, str]:
    """The raw data's storage, and the path to write into the configuration."""
    root = registry.storage.root
    place = saved if request.raw is None else request.raw
    if place is None:
        raise UsageError(
            f"the path of the raw data of `{request.name}` is not known",
            hint=f"tfrecreg build {request.name} --raw PATH",
        )
    raw = expect_raw_folder(place, start=root if request.raw is None else "")
    # A relative path stays relative, so that the registry and its raw data can move together.
    relative = request.raw is None or not (
        request.raw.startswith("~") or Path(request.raw).is_absolute()
    )
    return raw, place_in(root, raw.root, relative=relative)


def made_before(registry: Registry, name: str) -> tuple[str, Manifest | None]:
    """The version that new builds are compared with: the newest release, or else the last build.
    Returns two values: the version's name in messages, and the version's manifest. If the manifest
    cannot be read, the name is empty and the manifest is None."""
    versions = registry.dataset(name).versions
    try:
        if versions:
            release = registry.dataset(name).release_manifest(versions[-1])
            return f"`{name}@{versions[-1]}`", release
        return f"the previous build of `{name}`", registry.dataset(name).build_manifest()
    except (ManifestError, NewerFormatError):
        return "", None


def announced_source(registry: Registry, name: str, source: str) -> Announced[SourceRecord]:
    try:
        return plugins_of(registry.config).find(SourceRecord, source)
    except UnknownPluginError as error:
        where, manifest = made_before(registry, name)
        if manifest is None or manifest.source.name != source.rpartition(":")[2]:
            raise
        if is_python_data(manifest):
            raise  # no distribution has that source
        raise error.brought_by(
            manifest.source.distribution, manifest.source.version, where
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSettings:
    """How the settings of a build differ from recorded settings. A difference maps the name of a
    setting to two values: the build's and the recorded one.
    """

    dataset: str
    unsaved: dict[str, tuple[str, str]]
    """Differences from the saved settings. The next build would use the saved settings."""
    since: str | None
    """The newest release or, without one, the previous build. None if the settings are the same."""
    changed: dict[str, tuple[str, str]]
    """Differences from the settings of the version that `since` names."""
    detected: Detection | None = None

    def notes(self) -> Iterator[str]:
        if self.detected is not None:
            yield from self.detected.notes()
        if self.unsaved:
            shown = ", ".join(
                f"`{_text(name, here)}` (there `{_text(name, there)}`)"
                for name, (here, there) in self.unsaved.items()
            )
            yield (
                f"`{layout.dataset_path(self.dataset)}` does not have these settings: {shown}; "
                f"the next `tfrecreg build {self.dataset}` will not use them unless "
                "`--save-options` writes them there"
            )
        if self.changed:
            shown = ", ".join(
                f"`{_text(name, there)}` (now `{_text(name, here)}`)"
                for name, (here, there) in self.changed.items()
            )
            yield f"{self.since} was made with other settings: {shown}"

    def to_json(self) -> dict[str, Any]:
        """The entry in the document of ``build --json``."""
        unsaved = {name: {"used": one, "saved": two} for name, (one, two) in self.unsaved.items()}
        changed = {name: {"used": one, "before": two} for name, (one, two) in self.changed.items()}
        detected = {} if self.detected is None else {"detected": self.detected.to_json()}
        return {**detected, "unsaved": unsaved, "since": self.since, "changed": changed}


def compare_settings(prepared: Prepared) -> ChangedSettings:
    """Compare the settings of a build with the configuration and with earlier builds."""
    since, changed = _changed(prepared)
    return ChangedSettings(
        dataset=prepared.name,
        unsaved={} if prepared.remember else _unsaved(prepared),
        since=since,
        changed=changed,
        detected=prepared.detected,
    )


def _unsaved(prepared: Prepared) -> dict[str, tuple[str, str]]:
    if prepared.raw is None:
        return {}
    registry, request = prepared.registry, prepared.request
    saved = registry.dataset(prepared.name).config
    there, here = _table(saved), _table(prepared.settings)
    if prepared.raw.root == absolute_place(saved.raw or "", registry.storage.root):
        here["raw"] = there["raw"]  # the same folder, perhaps spelled differently
    found = _differences({key: here[key] for key in request.given()}, there)
    if request.options or prepared.settings.source != saved.source:
        same = request.source in (None, saved.source)
        known = plugins_of(registry.config)
        next_options: dict[str, str] = {}
        for given in {}, (saved.options if same else {}):
            with suppress(TfrecregError):  # saved options may not fit this source
                next_options = known.source_options(prepared.settings.source or "", given)[1]
        used = {**_UNDEALT, **prepared.entry.options}
        found |= _differences(used, {**_UNDEALT, **next_options})
    return found


def _changed(prepared: Prepared) -> tuple[str | None, dict[str, tuple[str, str]]]:
    where, manifest = made_before(prepared.registry, prepared.name)
    if manifest is None or not manifest.source.name or is_adopted(manifest):
        return None, {}
    before, here = manifest.source, prepared.entry
    found = _differences(
        {"source": here.name, "compression": prepared.settings.compression},
        {"source": before.name, "compression": manifest.compression},
    )
    if before.name == here.name:
        # A newer plugin may have added an option, which the user did not choose.
        there = {**_UNDEALT, **before.options}
        both = {**_UNDEALT, **here.options}
        found |= _differences({name: both[name] for name in both if name in there}, there)
    return (where, found) if found else (None, {})


def _differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    def text(value: object) -> str:
        return "" if value is None else str(value)

    both = {name: (text(value), text(there.get(name))) for name, value in here.items()}
    return {name: (one, two) for name, (one, two) in both.items() if one != two}


def _text(name: str, value: str) -> str:
    return f"{safe(name)}={safe(value, limit=200)}"
