"""Whether tar files hold samples, where no source is named."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import suppress

from tfrecreg.api import RawPreview, Recognition, safe
from tfrecreg_webdataset.exported import DESCRIPTION, SCHEMA

_SHOWN = 5
_LOOKED_INTO = 3
"""Tar files in which samples are looked for."""


def recognize_shards(preview: RawPreview) -> Recognition | None:
    """Tar files; None if the first ones are something else, or have no member with a suffix.

    Members that share a key are a layout, and so is what tfrecreg exported. Any archive of files
    has members with suffixes.
    """
    shards = [path for path in preview.below() if path.lower().endswith(".tar")]
    if not shards:
        return None
    keys: dict[str, set[str]] = {}
    for name in (each for path in shards[:_LOOKED_INTO] for each in _members(preview.start(path))):
        folder, slash, file = name.rpartition("/")
        stem, dot, suffix = file.partition(".")
        if stem and dot:
            keys.setdefault(folder + slash + stem, set()).add(suffix.lower())
    if not keys:
        return None
    suffixes = sorted(set.union(*keys.values()))
    shown = ", ".join(f"`.{safe(each, limit=60)}`" for each in suffixes[:_SHOWN])
    more = f" and {len(suffixes) - _SHOWN:,} more" if len(suffixes) > _SHOWN else ""
    reason = f"{preview.counted(len(shards), 'tar file')} with samples of {shown}{more}"
    described = DESCRIPTION in preview.files()
    if described:
        reason += f", exported by tfrecreg (`{DESCRIPTION}`)"
    is_layout = described or len(max(keys.values(), key=len)) > 1
    aside = preview.aside([*shards, *(described * [DESCRIPTION, SCHEMA])])
    return Recognition("layout" if is_layout else "general", reason, aside)


def _members(start: bytes) -> Iterator[str]:
    """The names of the files at the beginning of an archive."""
    # It is cut at an arbitrary place. A wrong number in a header is a ValueError.
    with (
        suppress(tarfile.TarError, ValueError, EOFError),
        tarfile.open(fileobj=io.BytesIO(start), mode="r:") as archive,
    ):
        for member in archive:
            if member.isfile():
                yield member.name.removeprefix("./")
