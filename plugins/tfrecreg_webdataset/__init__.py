"""The bundled source `webdataset`: samples in tar files, as the library WebDataset reads them.

- `tars`: finds the members of a tar file by reading the headers
- `samples`: defines the options, turns the samples in tar files into items, and recognizes folders
  from `tfrecreg export`
- `source`: defines :class:`~tfrecreg_webdataset.source.WebDatasetSource`
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl, listed

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_LOOKED_INTO = 3
"""Number of tar files that are searched for samples."""


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    yield SourceRecord(
        "webdataset",
        "samples in tar files, as WebDataset reads them",
        _load,
        recognizes=["*.tar", "[tT][rR]*/*.tar", "[vV][aA]*/*.tar", "[tT][eE]*/*.tar"],
        examine=_examine,
        refuses=[f"{folder}*.{each}" for folder in ("", "*/") for each in ("tar", "tgz", "tar.gz")],
    )


def _examine(preview: RawPreview) -> Recognition | None:
    """Recognize tar files whose members share keys, and folders that `tfrecreg export` wrote."""
    from tfrecreg.api import Recognition
    from tfrecreg_webdataset.samples import DESCRIPTION, SCHEMA, split_name

    shards = [path for path in preview.below() if path.lower().endswith(".tar")]
    keys: dict[str, set[str]] = {}
    for path in shards[:_LOOKED_INTO]:
        for name in _names(preview.start(path)):
            key, suffix = split_name(name)
            if suffix:
                keys.setdefault(key, set()).add(suffix)
    if not keys:
        return None
    suffixes = [f".{each}" for each in sorted(set.union(*keys.values()))]
    found = preview.counted(len(shards), "tar file")
    reason = f"{found} with samples of {listed(suffixes, most=5)}"
    exported = [DESCRIPTION, SCHEMA] if DESCRIPTION in preview.files() else []
    if exported:
        reason += f", exported by tfrecreg (`{DESCRIPTION}`)"
    is_layout = exported or max(map(len, keys.values())) > 1
    aside = preview.aside([*shards, *exported])
    return Recognition("layout" if is_layout else "general", reason, aside)


def _names(start: bytes) -> Iterator[str]:
    """The file names in the first bytes of an archive. The bytes may end inside a member."""
    import tarfile

    with (
        suppress(tarfile.TarError, ValueError, EOFError),  # a bad number is a ValueError
        tarfile.open(fileobj=io.BytesIO(start), mode="r:") as archive,
    ):
        for member in archive:
            if member.isfile():
                yield member.name.removeprefix("./")


def _load() -> type[Source]:
    from tfrecreg_webdataset.source import WebDatasetSource

    return WebDatasetSource
