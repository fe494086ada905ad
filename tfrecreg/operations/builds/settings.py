"""Settings of a build that the next one will not have, or that the one before did not have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfrecreg.config import DatasetConfig
from tfrecreg.errors import TfrecregError
from tfrecreg.manifest.adopted import is_adopted
from tfrecreg.operations.builds.base import made_before
from tfrecreg.operations.builds.request import SIZING, BuildRequest, Prepared
from tfrecreg.plugins.manager import plugins
from tfrecreg.registry.registry import Registry
from tfrecreg.storage.urls import is_url
from tfrecreg.text import safe


@dataclass(frozen=True, slots=True)
class _Difference:
    """A setting of this build, and what it is elsewhere."""

    name: str
    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
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

    def notes(self) -> Iterator[str]:
        """What a person should know, a line each."""
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
            "unsaved": {
                each.name: {"used": each.here, "saved": each.there} for each in self.unsaved
            },
            "since": self.since,
            "changed": {
                each.name: {"used": each.here, "before": each.there} for each in self.changed
            },
        }


def compare_settings(
    registry: Registry, request: BuildRequest, prepared: Prepared
) -> BuildSettings:
    """Compare the settings of a build with the configuration and with earlier builds."""
    unsaved: tuple[_Difference, ...] = ()
    if not prepared.remember and prepared.raw is not None:
        config = registry.dataset(request.name).config
        unsaved = tuple(_unsaved(registry, request, config, prepared, prepared.raw.root))
    since, changed = _changed(registry, prepared)
    where = f"`{registry.dataset(request.name).config_file}`"
    return BuildSettings(
        dataset=request.name, where=where, unsaved=unsaved, since=since, changed=changed
    )


def _unsaved(
    registry: Registry,
    request: BuildRequest,
    config: DatasetConfig,
    prepared: Prepared,
    raw: str,
) -> Iterator[_Difference]:
    saved = {
        "source": config.source or "",
        "raw": config.raw or "",
        "compression": config.compression,
        "max_skipped": str(config.max_skipped or 0),
        **{name: _number(getattr(config, name)) for name in SIZING},
    }
    used = dict(saved)
    if request.source is not None:
        used["source"] = request.source
    if request.raw is not None and raw != _absolute(registry, saved["raw"]):
        used["raw"] = request.raw
    if request.compression is not None:
        used["compression"] = request.compression
    if request.max_skipped is not None:
        used["max_skipped"] = str(request.max_skipped)
    if request.policy is not None:
        used.update({name: _number(getattr(request.policy, name)) for name in SIZING})
    yield from _differences(used, saved)
    if request.options or used["source"] != saved["source"]:
        yield from _differences(prepared.options, _saved_options(request, config, prepared))


def _saved_options(
    request: BuildRequest, config: DatasetConfig, prepared: Prepared
) -> dict[str, str]:
    """The source's options as the next build would have them."""
    same = request.source in (None, config.source)
    for given in (config.options if same else {}), {}:
        try:
            return plugins().source_options(prepared.source_name, given)[1]
        except TfrecregError:
            continue  # they depend on other settings, so they differ from those in use in any case
    return dict.fromkeys(prepared.options, "")


def _changed(registry: Registry, prepared: Prepared) -> tuple[str | None, tuple[_Difference, ...]]:
    where, manifest = made_before(registry, prepared.name)
    if manifest is None or not manifest.source.name or is_adopted(manifest):
        return None, ()
    before = manifest.source
    found = [
        *_differences(
            {"source": prepared.source_name, "compression": prepared.compression},
            {"source": before.name, "compression": manifest.compression},
        )
    ]
    if before.name == prepared.source_name:
        # An option that came with a newer plugin was not chosen by anybody.
        both = {name: text for name, text in prepared.options.items() if name in before.options}
        found += _differences(both, before.options)
    return (where, tuple(found)) if found else (None, ())


def _differences(here: Mapping[str, str], there: Mapping[str, str]) -> Iterator[_Difference]:
    for name, text in here.items():
        if text != there.get(name, ""):
            yield _Difference(name, text, there.get(name, ""))


def _absolute(registry: Registry, raw: str) -> str:
    if is_url(raw):
        return raw.rstrip("/")
    return os.path.abspath(Path(registry.storage.root, raw))  # noqa: PTH100 - links stay


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _text(name: str, value: str) -> str:
    return f"{safe(name)}={safe(value, limit=200)}"
