"""The settings of a build: those of a request, merged over `datasets/NAME.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tfrecreg.core.values.amounts import SkipLimit
from tfrecreg.core.values.config import DatasetConfig
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.values.text import safe

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
