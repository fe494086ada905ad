"""The bundled source `mnist`: IDX files of u8 images and u8 labels, as MNIST is published.

Schemas: `mnist.pbtxt` and `mnist_raw.pbtxt` (in the repository they are in `schemas/`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl, safe

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    yield SourceRecord(
        "mnist",
        "IDX files: MNIST, Fashion-MNIST, KMNIST, EMNIST and similar datasets",
        _load,
        recognizes=["*images?idx?-ubyte*"],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg.api import Recognition
    from tfrecreg_mnist.source import idx_name

    found = [path for path in preview.files() if idx_name(path)]
    if not found:
        return None
    reason = f"{len(found)} IDX files, such as `{safe(found[0])}`"
    return Recognition("exact", reason, preview.aside(found))


def _load() -> type[Source]:
    from tfrecreg_mnist.source import MnistSource

    return MnistSource
