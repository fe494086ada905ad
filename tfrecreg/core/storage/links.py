"""Listing that follows symbolic links."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.core.storage.interface import Entry, Readable


def list_through_links(storage: Readable) -> Iterator[Entry]:
    """Everything below the root except folders, with symbolic links followed to any target.

    Each folder is listed once, even if many links lead to it, so circular links are harmless. A
    link whose target is missing keeps the kind ``link``.
    """
    top = storage.stat("", follow="all")
    known = {(top.device, top.inode)} if top is not None else set()
    folders = [""]
    while folders:
        for entry in storage.list(folders.pop(), recursive=False):
            found = entry
            if entry.kind == "link":
                found = storage.stat(entry.path, follow="all") or entry
            if found.kind != "dir":
                yield found
            elif (found.device, found.inode) not in known:
                known.add((found.device, found.inode))
                folders.append(found.path)
