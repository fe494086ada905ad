"""The images of shown records as files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tfrecreg.builtin.look.head import ShownRecord
from tfrecreg.core.example.format_payload import ShownImage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_SUFFIXES = {"bmp": ".bmp", "gif": ".gif", "jpeg": ".jpg", "png": ".png", "webp": ".webp"}
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_PART = 80
"""Characters of a shard's or a feature's name in a file's."""


def save_images(
    records: Iterable[ShownRecord], folder: str | os.PathLike[str]
) -> Iterator[ShownRecord]:
    """Write the images of each record into `folder`, and hand the record on.

    The bytes are written unchanged, as ``<shard>-<record>-<feature>.<suffix>``. The suffix is that
    of the format that the bytes have; what other characters than letters, digits, `.`, `_` and `-`
    there are in the names of shard and feature becomes `_`.
    """
    storage = LocalStorage(folder)
    used: set[str] = set()
    for record in records:
        saved = []
        for image in record.images:
            suffix = _SUFFIXES.get(image.format, f".{_plain(image.format)}")
            name = _free(_name(record, image), suffix, used)
            path = f"{storage.root}/{name}"
            if not storage.put_if_absent(name, image.data):
                raise UsageError(
                    f"`{safe(path, limit=1000)}` exists already, and nothing is overwritten",
                    hint="name a folder that is new or empty with `--save`",
                )
            saved.append(path)
        yield replace(record, saved=tuple(saved))


def _name(record: ShownRecord, image: ShownImage) -> str:
    shard = _plain(record.shard.rpartition("/")[2])
    value = f"-{image.value}" if image.value else ""
    return f"{shard}-{record.record}-{_plain(image.feature)}{value}"


def _plain(name: str) -> str:
    """Nothing that a shell, a file system or a path could take for something else."""
    return _STRANGE.sub("_", name)[:_PART].lstrip(".-") or "_"


def _free(stem: str, suffix: str, used: set[str]) -> str:
    """A name that this call has not used: replacing characters may make names equal."""
    name, number = stem + suffix, 1
    # Some file systems ignore case.
    while name.lower() in used:
        number += 1
        name = f"{stem}~{number}{suffix}"
    used.add(name.lower())
    return name
