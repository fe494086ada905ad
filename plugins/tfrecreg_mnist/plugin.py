"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Source, SourceRecord, hookimpl


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `mnist`."""
    yield SourceRecord(
        "mnist",
        "IDX files: MNIST, Fashion-MNIST, KMNIST, EMNIST and similar datasets",
        _load,
        recognizes=["*images?idx?-ubyte*"],
    )


def _load() -> type[Source]:
    from tfrecreg_mnist.source import MnistSource

    return MnistSource
