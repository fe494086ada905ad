"""Records for tests and examples: of a source, in a shard, in a build."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tfrecreg
from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.model import Example
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.records.framing import frame
from tfrecreg.core.registry import layout
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe


def examples(
    source: str, raw: str | os.PathLike[str], options: Sequence[str] | Mapping[str, Any] = ()
) -> Iterator[tuple[Item, Example | Skipped]]:
    """Every item of a source with the example that a build would write for it, in the order of the
    listing.

    Args:
        source: the name of an installed source, as for ``--source``.
        raw: the folder of the raw data.
        options: those of the source, as for ``--option`` (``["lowercase=yes"]``), or typed
            (``{"lowercase": True}``).

    Raises:
        PluginError: the source does not exist, or fails.
        UsageError: an option is wrong, or the raw data are not what the source reads.
    """
    known = plugins()
    opened = known.open_source(
        source, LocalStorage(os.fspath(raw)), known.source_options(source, options)[0]
    )
    for entry in opened.items():
        if isinstance(entry, Skipped):
            yield Item(entry.split, entry.key, 0), entry
        elif isinstance(entry, Item):
            made = opened.record(entry, {})
            yield entry, made if isinstance(made, Skipped) else decode(made.payload)


def write_shard(path: str | os.PathLike[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write a TFRecord file of examples, in their order.

    Args:
        records: dictionaries from feature name to value, as for :func:`tfrecreg.to_example`.

    Raises:
        UsageError: an example cannot hold a value.
        StorageError: the file cannot be written.
    """
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - a storage takes texts
    with LocalStorage(folder).create(name) as file:
        for example in records:
            payload = encode(tfrecreg.to_example(example))
            before, behind = frame(payload)
            file.write(before + payload + behind)


def build_examples(
    folder: str | os.PathLike[str],
    splits: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    name: str = "small",
    keys: Mapping[str, Sequence[str]] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    schema: str | None = None,
    shards: int | None = None,
) -> tfrecreg.Build:
    """Make a registry with a build of these records, to check, to load, or to release.

    Args:
        folder: of the registry, made if it is missing.
        splits: the records of each split, as dictionaries from feature name to value.
        name: of the dataset.
        keys: the keys of the records of each split; by default they are numbered.
        labels: class names in order of their numbers, by feature.
        schema: the text of the schema; None for one that is inferred.
        shards: of each split; None for the default.

    Returns:
        the build, with its manifest; `tfrecreg.open(folder)` opens its registry.

    Raises:
        UsageError: an example cannot hold a value, or keys are missing or not unique.
        RefusedError: the records do not conform to the schema.
    """
    root = Path(folder)
    registry = tfrecreg.init(root, with_dvc=False)
    if schema is not None:
        place = root / layout.schema_path(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(schema, "utf-8")
    data: dict[str, list[_Keyed]] = {}
    for split, records in splits.items():
        own = (keys or {}).get(split) or [f"{number:08}" for number in range(len(records))]
        if len(own) != len(records):
            raise UsageError(
                f"the split `{safe(split)}` has {len(records)} records and {len(own)} keys",
                hint="give one key for each record",
            )
        data[split] = [_Keyed(record, key) for record, key in zip(records, own, strict=True)]
    return registry[name].build(
        data=data,
        key=lambda record: record.key,
        labels=labels,
        shards=shards,
        base="none",
        progress=False,
    )


class _Keyed(dict[str, Any]):
    """A record with its key."""

    def __init__(self, record: Mapping[str, Any], key: str) -> None:
        super().__init__(record)
        self.key = key
