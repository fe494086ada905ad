"""What a request leaves open, decided: the source, its raw data, the settings of the build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from tfrecreg.core.build.base import announced_source, made_before, made_of_python_data
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.plugins.bundled import OURS
from tfrecreg.core.plugins.code_digest import code_digest, code_of
from tfrecreg.core.plugins.discovery import Announced
from tfrecreg.core.plugins.manager import Plugins, plugins_of
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import BUILD_AGAIN, SourceEntry, is_adopted
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.raw import RawStorage, absolute_place, raw_storage
from tfrecreg.core.values.config import DatasetConfig
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import check_dataset_name
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import SkipLimit
from tfrecreg.core.workers.interface import Engine

DEFAULT_MAX_DROPPED = "1%"
"""The default limit on dropped objects."""
_SIZING = ("shards", "shard_size", "records_per_shard", "hosts")
"""The ways to size shards; at most one may be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """What a build does with its raw data."""

    source: str | None
    raw: str | None
    options: Mapping[str, Any]
    """The source's options, as they were given."""
    policy: ShardPolicy
    compression: Literal["none", "gzip"]
    max_skipped: SkipLimit
    max_dropped: SkipLimit

    @classmethod
    def saved(cls, config: DatasetConfig) -> BuildSettings:
        """The settings in the file of a dataset, with the defaults."""
        return cls(
            source=config.source,
            raw=config.raw,
            options=config.options,
            policy=ShardPolicy(**{name: getattr(config, name) for name in _SIZING}),
            compression=config.compression,
            max_skipped=config.max_skipped or SkipLimit.parse(0),
            max_dropped=config.max_dropped or SkipLimit.parse(DEFAULT_MAX_DROPPED),
        )

    def table(self) -> dict[str, Any]:
        """The form in the dataset's file; None for missing keys."""
        return {
            "source": self.source,
            "raw": self.raw,
            "options": dict(self.options) or None,
            **{name: getattr(self.policy, name) for name in _SIZING},
            "compression": self.compression,
            "max_skipped": str(self.max_skipped),
            "max_dropped": str(self.max_dropped),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """Settings of a build. None means the value from `datasets/<name>.toml`."""

    name: str
    source: str | None = None
    raw: str | None = None
    """Folder of the raw data, relative to the current folder, or the URL of one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The source's options; they override those of the configuration."""
    policy: ShardPolicy | None = None
    compression: Literal["none", "gzip"] | None = None
    max_skipped: SkipLimit | int | str | None = None
    """Maximum number of skipped items: a number, or a share such as ``"0.5%"``."""
    max_dropped: SkipLimit | int | str | None = None
    """Maximum number of dropped objects of each split, or their share."""
    default_schema: bool = False
    """Whether a missing schema may become the source's own, although the dataset had another."""
    base: str | None = None
    """The release to grow from: a version or a reference, or ``none``. None for the latest one,
    unless the number of shards is asked for or another compression: then everything is new."""
    save: bool = False
    """Whether what this request asks for is written into `datasets/<name>.toml`, so that
    ``build NAME`` does it again. The first build of a dataset is saved in any case."""
    anew: bool = False
    """Whether every shard is made again, although an earlier run that ended early had finished
    some."""

    def over(self, saved: BuildSettings) -> BuildSettings:
        """The settings of the build. Options of another source are not taken over."""
        same = self.source in (None, saved.source)
        return BuildSettings(
            source=self.source or saved.source,
            raw=saved.raw if self.raw is None else self.raw,
            options={**(saved.options if same else {}), **self.options},
            policy=self.policy or saved.policy,
            compression=self.compression or saved.compression,
            max_skipped=self._limit("max_skipped") or saved.max_skipped,
            max_dropped=self._limit("max_dropped") or saved.max_dropped,
        )

    def keys(self) -> Iterator[str]:
        """The keys of the file of a dataset that it names, apart from `options`."""
        for name in ("source", "raw", "compression", "max_skipped", "max_dropped"):
            if getattr(self, name) is not None:
                yield name
        if self.policy is not None:
            yield from _SIZING

    def _limit(self, name: str) -> SkipLimit | None:
        limit: SkipLimit | int | str | None = getattr(self, name)
        if limit is None or isinstance(limit, SkipLimit):
            return limit
        try:
            return SkipLimit.parse(limit)
        except ValueError as error:
            raise UsageError(
                f"`{name}`: {error}, found `{safe(str(limit))}`",
                hint="0 accepts none",
            ) from None


def to_save(request: BuildRequest, saved: BuildSettings, used: BuildSettings) -> dict[str, Any]:
    """The settings to save in the dataset's file; empty if the user wrote it, unless asked
    to save.
    """
    if saved.source is not None and saved.raw is not None and not request.save:
        return {}
    keys = {*request.keys(), *(key for key in ("source", "raw") if getattr(saved, key) is None)}
    if used.options != saved.options:
        keys.add("options")
    return {key: value for key, value in used.table().items() if key in keys}


class GivenData(Protocol):
    """The data of a program, as a source of this process."""

    @property
    def travels(self) -> bool:
        """Whether other processes can make the records."""

    def survey(self) -> object:
        """Go over the elements once, before the source lists its items."""

    def engine_for(self, small: Engine, large: Engine) -> Engine:
        """The engine that makes the records."""


class DetectedSource(Protocol):
    """Why a source was chosen that nobody had named."""

    @property
    def source(self) -> str:
        """The name of the chosen source."""

    def notes(self) -> Iterator[str]:
        """What was found, used and not read, one line each."""

    def to_json(self) -> dict[str, Any]:
        """The same, as the document of ``build --json`` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request with everything decided."""

    request: BuildRequest
    source: GuardedSource
    entry: SourceEntry
    """The source as the manifest describes it."""
    raw: RawStorage | None
    """Folder of the raw data; None where a program has the data."""
    settings: BuildSettings
    remember: dict[str, Any]
    """Settings to save in `datasets/<name>.toml` so that ``build NAME`` repeats the build; empty if
    it has them already.
    """
    data: GivenData | None = None
    """The data of a program; None where a plugin reads raw files."""
    detected: DetectedSource | None = None
    """Why the source was chosen; None where it was named."""

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.request.name


def code_of_source(
    distribution: str, source: GuardedSource, said: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Distribution to the digest of its code, where that can change under the same version."""
    found = {}
    for name in sorted({distribution, OURS}):
        modules = (source.module,) if name != OURS else ()
        find = code_digest if said and name in said else code_of
        found[name] = find(name, *modules)
    return {name: digest for name, digest in found.items() if digest}


def prepare(registry: Registry, request: BuildRequest, progress: Progress = SILENT) -> Prepared:
    """Decide everything that the request leaves open, and load the source."""
    check_dataset_name(request.name)
    saved = BuildSettings.saved(registry.dataset(request.name).config)
    settings = request.over(saved)
    known = plugins_of(registry.config)
    raw: RawStorage | None = None
    detected: DetectedSource | None = None
    source = settings.source
    if source is None:
        if made_of_python_data(registry, request.name):
            raise UsageError(
                f"`{request.name}` was built from the data of a program, which this command does "
                "not have",
                hint=f"{BUILD_AGAIN}; or name raw files: --source SOURCE --raw PATH",
            )
        if settings.raw is None:
            raise UsageError(
                f"no source is known for `{request.name}`",
                hint=f"tfrecreg build {request.name} --raw PATH finds one; or name it with "
                f"`--source`: {', '.join(known.names(SourceRecord))}",
            )
        raw, raw_text = _raw(registry, request, saved.raw, progress)
        detected = source_detection().detect_source(raw, settings.raw, known, request.name)
        source = detected.source
        settings = replace(settings, source=source)
    announced = announced_source(registry, request.name, source)
    options, options_text = known.source_options(source, settings.options)
    if raw is None:
        place = saved.raw or announced.record.raw
        raw, raw_text = _raw(registry, request, place, progress)
        if saved.source is None and raw.is_local:  # elsewhere every look is a request
            for note in source_detection().stronger_sources(raw, announced.record.name, known):
                progress.note(note)
    typed = {name: getattr(options.own, name, given) for name, given in settings.options.items()}
    numbers = {name: each for name, each in typed.items() if type(each) in (bool, int, float)}
    used = replace(settings, raw=raw_text, options={**settings.options, **numbers})
    remember = to_save(request, saved, used)
    if "raw" in remember:
        _expect_text(request.name, raw_text)
    return Prepared(
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


class _Detection(Protocol):
    def detect_source(
        self, raw: RawStorage, place: str, known: Plugins, dataset: str
    ) -> DetectedSource: ...

    def stronger_sources(self, raw: RawStorage, used: str, known: Plugins) -> Iterator[str]: ...

    def fitting_folder(self, raw: RawStorage, announced: Announced[SourceRecord]) -> str: ...

    def other_source_hint(self, raw: RawStorage, used: str, known: Plugins) -> str: ...


def source_detection() -> _Detection:
    """The room that looks into raw data, which only the first build of a dataset needs."""
    return cast("_Detection", import_module("tfrecreg.core.build.detection"))


def _expect_text(name: str, raw: str) -> None:
    """Refuse a path that cannot be written into the configuration."""
    try:
        raw.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            f"the raw folder is `{safe(raw, limit=1000)}`, which is not UTF-8, and "
            f"`{layout.dataset_path(name)}` is",
            hint="rename it, or name it by a link",
        ) from None


def _raw(
    registry: Registry, request: BuildRequest, saved: str | None, progress: Progress
) -> tuple[RawStorage, str]:
    """The raw data's storage, and its path as the configuration should have it."""
    root = registry.storage.root
    place = saved if request.raw is None else request.raw
    if place is None:
        raise UsageError(
            f"no raw data are named for `{request.name}`",
            hint=f"tfrecreg build {request.name} --raw PATH",
        )
    raw = raw_storage(place, progress, start=root if request.raw is None else "")
    raw.expect_folder()
    # A relative path stays relative, so that the registry can move with its raw data.
    relative = request.raw is None or not (
        request.raw.startswith("~") or Path(request.raw).is_absolute()
    )
    return raw, raw.told_in(root, relative=relative)


@dataclass(frozen=True, slots=True)
class _Difference:
    """A setting of this build, and its value elsewhere."""

    name: str
    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSettings:
    """How the settings of a build differ from those that were written down."""

    dataset: str
    where: str
    """File with the settings of the dataset, for messages."""
    unsaved: tuple[_Difference, ...]
    """Differences from the saved settings, which the next build uses."""
    since: str | None
    """The newest release, or the build before, where that was made with other settings."""
    changed: tuple[_Difference, ...]
    """Against `since`."""
    detected: DetectedSource | None = None
    """Why the source was chosen; None where it was named."""

    def notes(self) -> Iterator[str]:
        """Notes for the user, one line each."""
        if self.detected is not None:
            yield from self.detected.notes()
        if self.unsaved:
            shown = ", ".join(
                f"`{_text(each.name, each.here)}` (there `{_text(each.name, each.there)}`)"
                for each in self.unsaved
            )
            yield (
                f"{self.where} does not have these settings: {shown}; the next "
                f"`tfrecreg build {self.dataset}` will not use them unless `--save-options` writes "
                "them there"
            )
        if self.changed:
            shown = ", ".join(
                f"`{_text(each.name, each.there)}` (now `{_text(each.name, each.here)}`)"
                for each in self.changed
            )
            yield f"{self.since} was made with other settings: {shown}"

    def to_json(self) -> dict[str, Any]:
        """As the document of ``build --json`` has it."""
        return {
            **({} if self.detected is None else {"detected": self.detected.to_json()}),
            "unsaved": {
                each.name: {"used": each.here, "saved": each.there} for each in self.unsaved
            },
            "since": self.since,
            "changed": {
                each.name: {"used": each.here, "before": each.there} for each in self.changed
            },
        }


def compare_settings(registry: Registry, prepared: Prepared) -> ChangedSettings:
    """Compare the settings of a build with the configuration and with earlier builds."""
    unsaved: tuple[_Difference, ...] = ()
    if not prepared.remember and prepared.raw is not None:
        unsaved = tuple(_unsaved(registry, prepared, prepared.raw.root))
    since, changed = _changed(registry, prepared)
    where = f"`{registry.dataset(prepared.name).config_file}`"
    return ChangedSettings(
        dataset=prepared.name,
        where=where,
        unsaved=unsaved,
        since=since,
        changed=changed,
        detected=prepared.detected,
    )


def _unsaved(registry: Registry, prepared: Prepared, raw: str) -> Iterator[_Difference]:
    request, saved = prepared.request, BuildSettings.saved(registry.dataset(prepared.name).config)
    there, here = saved.table(), prepared.settings.table()
    if raw == absolute_place(saved.raw or "", registry.storage.root):
        here["raw"] = there["raw"]  # the same folder, perhaps in other words
    yield from _differences(
        {key: _as_text(here[key]) for key in request.keys()},  # noqa: SIM118 - no mapping
        {key: _as_text(value) for key, value in there.items()},
    )
    if request.options or prepared.settings.source != saved.source:
        yield from _differences(prepared.entry.options, _saved_options(registry, saved, prepared))


def _saved_options(registry: Registry, saved: BuildSettings, prepared: Prepared) -> dict[str, str]:
    """The source's options of the next build."""
    same = prepared.request.source in (None, saved.source)
    for given in (saved.options if same else {}), {}:
        try:
            known = plugins_of(registry.config)
            return known.source_options(prepared.settings.source or "", given)[1]
        except TfrecregError:
            continue  # they depend on other settings, so they differ from those in use in any case
    return dict.fromkeys(prepared.entry.options, "")


def _changed(registry: Registry, prepared: Prepared) -> tuple[str | None, tuple[_Difference, ...]]:
    where, manifest = made_before(registry, prepared.name)
    if manifest is None or not manifest.source.name or is_adopted(manifest):
        return None, ()
    before, here = manifest.source, prepared.entry
    found = [
        *_differences(
            {"source": here.name, "compression": prepared.settings.compression},
            {"source": before.name, "compression": manifest.compression},
        )
    ]
    if before.name == here.name:
        # An option added by a newer plugin was not chosen by the user.
        both = {name: text for name, text in here.options.items() if name in before.options}
        found += _differences(both, before.options)
    return (where, tuple(found)) if found else (None, ())


def _differences(here: Mapping[str, str], there: Mapping[str, str]) -> Iterator[_Difference]:
    for name, text in here.items():
        if text != there.get(name, ""):
            yield _Difference(name, text, there.get(name, ""))


def _as_text(value: object) -> str:
    return "" if value is None else str(value)


def _text(name: str, value: str) -> str:
    return f"{safe(name)}={safe(value, limit=200)}"
