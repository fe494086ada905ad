"""Settings of a build that the next one will not have, or that the one before did not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tfrecreg.core.build.planning.base import made_before
from tfrecreg.core.build.request import BuildSettings, DetectedSource, Prepared
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.registry.manifest.model import is_adopted
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.raw import absolute_place
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.text import safe


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
