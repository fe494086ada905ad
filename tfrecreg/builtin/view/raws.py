"""The raw file that a record was made from, as its source knows it."""

from __future__ import annotations

import posixpath
from functools import cached_property

from tfrecreg.errors import TfrecregError
from tfrecreg.manifest.adopted import is_adopted
from tfrecreg.plugins.manager import plugins_with
from tfrecreg.registry.registry import Registry
from tfrecreg.scan.interface import Target
from tfrecreg.sources.guarded import GuardedSource
from tfrecreg.storage.locations import raw_storage
from tfrecreg.storage.urls import is_url
from tfrecreg.text import safe


class RawFiles:
    """The raw files of a target's records. The source is opened when one is asked for."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def of(self, split: str, key: str | None) -> str | None:
        """The path of the raw file of a record, escaped; None if it is not known or not there."""
        source = self._source
        if source is None or key is None:
            return None
        try:
            path = source.raw_path(split, key)
            there = path is not None and raw_storage(self._folder).stat(path, follow="all")
        except TfrecregError:
            return None
        return safe(posixpath.join(self._folder, path), limit=1000) if path and there else None

    @cached_property
    def _folder(self) -> str:
        """Of the raw data; empty for none on this machine: the viewer asks no other one."""
        home = self._target.home
        raw = Registry(home).dataset(self._target.dataset).raw_folder if home is not None else None
        return "" if raw is None or is_url(raw) else raw

    @cached_property
    def _source(self) -> GuardedSource | None:
        """The source that made the build, on the raw data; None where it does not know them."""
        manifest, home = self._target.manifest, self._target.home
        if manifest is None or not manifest.source.plugin or is_adopted(manifest):
            return None
        name = manifest.source.plugin
        try:
            if not self._folder:
                return None
            known = plugins_with(name, home)
            options, _ = known.source_options(name, manifest.source.options)
            source = known.open_source(name, raw_storage(self._folder), options)
        except TfrecregError:
            return None  # such as a plugin that is not installed here
        return source if source.locates else None
