"""For tests and examples: the examples of a source, shards to check, and raw data to build from.

These functions keep their meaning until the next major version, like :mod:`tfrecreg.api`. To check
the shards, call :func:`tfrecreg.check`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tfrecreg.example.decode import decode
from tfrecreg.example.encode import encode
from tfrecreg.example.model import Example
from tfrecreg.operations.demo import digits
from tfrecreg.plugins.manager import plugins
from tfrecreg.records.framing import frame
from tfrecreg.sources.interface import Item, Skipped
from tfrecreg.storage.local import LocalStorage

__all__ = ["examples", "write_digits", "write_shard"]


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


def write_shard(path: str | os.PathLike[str], records: Iterable[Example]) -> None:
    """Write a TFRecord file of examples, in their order.

    Raises:
        StorageError: the file cannot be written.
    """
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - a storage takes texts
    with LocalStorage(folder).create(name) as file:
        for example in records:
            payload = encode(example)
            before, behind = frame(payload)
            file.write(before + payload + behind)


def write_digits(
    folder: str | os.PathLike[str], *, train: int = 600, test: int = 100, seed: int = 1
) -> None:
    """Draw handwritten-looking digits, and write them as the four gzip files of MNIST.

    The same arguments give the same images on every machine.

    Args:
        folder: where to write, made if it is missing; files of the same names are replaced.
        train: number of images in the split `train`, at least 1.
        test: number of images in the split `test`, at least 1.
        seed: another seed gives other images.

    Raises:
        ValueError: a split without images.
        StorageError: a file cannot be written.
    """
    digits.write_digits(LocalStorage(os.fspath(folder)), train=train, test=test, seed=seed)
