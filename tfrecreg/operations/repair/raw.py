"""The raw data that a build was made from, if they are at hand, read as they were read then."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tfrecreg.errors import PluginError, TfrecregError, UsageError
from tfrecreg.manifest import Manifest
from tfrecreg.manifest.adopted import is_adopted
from tfrecreg.operations.builds.request import BuildRequest, Prepared, prepare
from tfrecreg.registry import Registry
from tfrecreg.sources import Item

__all__ = ["RawData", "open_raw"]


@dataclass(frozen=True, slots=True)
class RawData:
    """The source of a build, with the options that the manifest names."""

    prepared: Prepared | None
    """None where the raw data are not at hand: then a record that is lost stays lost."""
    problem: TfrecregError | None
    """Why they are not."""

    @property
    def source(self) -> bytes | None:
        """The source, pickled for workers."""
        return None if self.prepared is None else pickle.dumps(self.prepared.source)

    def items(
        self, wanted: Mapping[str, Collection[str]], whole: Collection[str]
    ) -> dict[str, dict[str, Item]]:
        """Items by split and key.

        Args:
            wanted: split to the keys that are wanted of it.
            whole: splits of which all are.
        """
        found: dict[str, dict[str, Item]] = defaultdict(dict)
        if self.prepared is not None:
            for item in self.prepared.source.items():
                if isinstance(item, Item) and (
                    item.split in whole or item.key in wanted.get(item.split, ())
                ):
                    found[item.split][item.key] = item
        return found


def open_raw(registry: Registry, manifest: Manifest, raw: str | None) -> RawData:
    """The raw data of a build.

    Args:
        registry: knows where they are.
        manifest: names the source and its options.
        raw: folder of the raw data, where they are not where the configuration says.

    That they are not at hand is told in what is returned: perhaps nobody needs them.
    """
    if is_adopted(manifest) or not manifest.source.name:
        problem = UsageError(
            f"`{manifest.dataset}` was adopted from another tool: no source makes its records",
            hint="restore the files from DVC or a backup, or `tfrecreg salvage` what is left",
        )
        return RawData(None, problem)
    request = BuildRequest(
        name=manifest.dataset,
        source=manifest.source.name,
        raw=raw,
        options=manifest.source.options,
        compression=manifest.compression,
    )
    try:
        prepared = prepare(registry, request)
    except (UsageError, PluginError) as error:
        return RawData(None, error)
    return RawData(prepared, None)
