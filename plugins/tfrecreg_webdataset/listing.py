"""Members to samples, as the library WebDataset groups them, and samples to items.

Neighbors with the same key are a sample. The key is the path up to the first dot of the file's
name; the suffix is what follows, in lower case.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tfrecreg.api import (
    Item,
    RawDataError,
    RawFile,
    Reader,
    Remark,
    Skipped,
    Storage,
    list_files,
    missing_files,
    safe,
    splits_of_files,
)
from tfrecreg_webdataset.exported import JSON_SUFFIX, Exported, key_of_sample
from tfrecreg_webdataset.member_values import IMAGE_SUFFIXES
from tfrecreg_webdataset.tar_members import TarDamage, TarMember, TarWalk
from tfrecreg_webdataset.webdataset_options import WebDatasetOptions

MAX_SAMPLE_BYTES = 1 << 30
"""Most bytes of a sample: a record may have twice as many."""
_MAX_SUFFIXES = 1000
_MAX_JSON = 1 << 28
_OVERHEAD = 90
"""Estimated bytes of an example beside its members."""
_GZIP = b"\x1f\x8b"
_COMPRESSED = (".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz")
_KINDS = {
    "tar": ("tar file", "tar files"),
    "folder": ("folder", "folders"),
    "keyless": ("member without a key", "members without a key"),
    "refused": ("link or device without a key", "links or devices without a key"),
    "metadata": ("member with metadata", "members with metadata"),
    "suffix": ("member with another suffix", "members with other suffixes"),
}
"""Kinds of what is left out, one and several."""


class MemberPlace(NamedTuple):
    """Where a member is in its tar file."""

    suffix: int
    """Its number among all suffixes."""
    offset: int
    size: int


class SamplePlace(NamedTuple):
    """The data of an item beside its key, packed as MessagePack into its state."""

    file: int
    """Number of the tar file."""
    members: tuple[MemberPlace, ...]


@dataclass
class TarListing:
    """The content of the tar files."""

    paths: tuple[str, ...]
    """All tar files that are read."""
    splits: dict[str, str]
    entries: list[Item | Skipped | Remark] = field(default_factory=list)
    suffixes: dict[str, int] = field(default_factory=dict)
    """The number of each suffix."""
    samples: int = 0
    """Samples that are items."""
    with_suffix: list[int] = field(default_factory=list)
    """Number of these that have a suffix, by its number."""
    files: list[RawFile] = field(default_factory=list)

    @property
    def has_images(self) -> bool:
        """Whether any sample has an image."""
        return any(
            count and is_image_suffix(suffix)
            for suffix, count in zip(self.suffixes, self.with_suffix, strict=True)
        )


def is_image_suffix(suffix: str) -> bool:
    """Whether members with this suffix are images."""
    return suffix.rpartition(".")[2] in IMAGE_SUFFIXES


def list_samples(raw: Storage, options: WebDatasetOptions, exported: Exported | None) -> TarListing:
    """All items of the tar files of a folder."""
    sizes, left_out = _tar_files(raw)
    splits = dict(exported.splits) if exported else splits_of_files(list(sizes), options.splits)
    paths = tuple(path for path in sizes if path in splits)
    listing = TarListing(paths, splits)
    listing.files = [RawFile(path, sizes[path], sizes[path]) for path in paths]
    left_out += [path for path in sizes if path not in splits]
    if left_out:
        split = splits[paths[0]]
        detail = _counted("tar", left_out[0], len(left_out))
        listing.entries.append(Remark(split, left_out[0], "SRC070", detail, len(left_out)))
    listing.entries += missing_files(sizes, splits)
    keys: dict[str, set[str]] = {split: set() for split in splits.values()}
    for number, path in enumerate(paths):
        before = listing.samples
        with raw.open(path) as reader:
            _Shard(listing, options, exported, path, number, reader, keys[splits[path]]).read()
        found_here = listing.samples - before
        if exported and found_here != exported.records[path]:
            raise RawDataError(
                f"`{safe(path)}` should have {exported.records[path]} records, as `tfrecreg.json` "
                f"says, found {found_here}",
                hint="export it again, or read the samples as any others: --option restore=no",
            )
    return listing


def _tar_files(raw: Storage) -> tuple[dict[str, int], list[str]]:
    """The sizes of all tar files, and the hidden ones, which are left out."""
    sizes: dict[str, int] = {}
    hidden: list[str] = []
    for entry in sorted(list_files(raw), key=lambda each: os.fsencode(each.path)):
        name = entry.path.rpartition("/")[2].lower()
        if entry.kind == "link" and name.endswith(".tar"):
            raise RawDataError(
                f"`{safe(entry.path)}` is a link that leads to no file",
                hint="fetch the file, or remove the link",
            )
        if entry.kind == "file" and name.endswith(_COMPRESSED):
            raise _is_compressed(entry.path)
        if entry.kind == "file" and name.endswith(".tar"):
            if name.startswith("."):
                hidden.append(entry.path)
            else:
                sizes[entry.path] = entry.size
    if not sizes:
        raise RawDataError(
            f"`{safe(raw.root, limit=4096)}` holds no file `*.tar`",
            hint="name the folder of the shards with `--raw`",
        )
    return sizes, hidden


class _Shard:
    """The samples of one tar file."""

    def __init__(
        self,
        listing: TarListing,
        options: WebDatasetOptions,
        exported: Exported | None,
        path: str,
        number: int,
        reader: Reader,
        keys: set[str],
    ) -> None:
        self._listing = listing
        self._options = options
        self._exported = exported
        self._path = path
        self._number = number
        self._reader = reader
        self._keys = keys
        self._split = listing.splits[path]
        self._left_out: dict[str, tuple[str, int]] = {}
        self._key = ""
        self._members: list[MemberPlace] = []
        self._before: list[MemberPlace] = []  # of the sample before
        self._problem: tuple[str, str] | None = None

    def read(self) -> None:
        """Add all items, and what is skipped or left out."""
        walk = TarWalk(self._reader)
        try:
            for member in walk.members():
                self._add(member)
        except TarDamage as damage:
            self._damaged(damage)
        if not walk.has_end and self._is_short():
            detail = f"`{safe(self._path)}` is cut after a member of the sample"
            self._problem = self._problem or ("SRC074", detail)
        self._end_sample()
        if walk.end_note:
            detail = f"`{safe(self._path)}`: {walk.end_note}"
            self._put(Remark(self._split, self._path, "SRC075", detail))
        for kind, (first, times) in sorted(self._left_out.items()):
            detail = f"`{safe(self._path)}`: {_counted(kind, first, times)}"
            self._put(Remark(self._split, self._path, "SRC070", detail, times))

    def _is_short(self) -> bool:
        """Whether the last sample lacks a member that the one before it has."""
        here = {each.suffix for each in self._members}
        return bool(here) and not here.issuperset(each.suffix for each in self._before)

    def _put(self, entry: Item | Skipped | Remark) -> None:
        self._listing.entries.append(entry)

    def _leave_out(self, kind: str, name: str) -> None:
        first, times = self._left_out.get(kind, (name, 0))
        self._left_out[kind] = first, times + 1

    def _add(self, member: TarMember) -> None:
        folder, slash, name = member.name.rpartition("/")
        stem, _, suffix = name.partition(".")
        if member.kind == "dir":
            self._leave_out("folder", member.name)
            return
        if not (stem and suffix):
            kind = "keyless" if member.kind == "file" else "refused"
            self._leave_out(kind, member.name)
            return
        if member.name.startswith("__") and _is_metadata(member.name):
            self._leave_out("metadata", member.name)
            return
        suffix = suffix.lower()
        key = f"{folder}{slash}{stem}"
        if key != self._key:
            self._end_sample()
            self._key = key
        if member.kind == "refused":
            self._refuse("SRC072", f"`{safe(member.name)}` is {member.detail}")
        elif self._options.takes(suffix):
            self._add_file(suffix, member)
        else:
            self._leave_out("suffix", member.name)

    def _add_file(self, suffix: str, member: TarMember) -> None:
        suffixes = self._listing.suffixes
        number = suffixes.get(suffix)
        if number is None:
            if len(suffixes) >= _MAX_SUFFIXES:
                raise RawDataError(
                    f"the samples have more than {_MAX_SUFFIXES} suffixes, the last is "
                    f"`{safe(suffix, limit=60)}` of `{safe(member.name)}`: a key ends at the "
                    "first dot",
                    hint="write the shards with keys that have no dots, or name the suffixes: "
                    "--option suffixes=jpg,cls",
                )
            number = suffixes[suffix] = len(suffixes)
            self._listing.with_suffix.append(0)
        if any(each.suffix == number for each in self._members):
            self._refuse("SRC071", f"it has two members `{safe(suffix)}`")
        else:
            self._members.append(MemberPlace(number, member.offset, member.size))

    def _refuse(self, code: str, detail: str) -> None:
        self._problem = self._problem or (code, f"{detail}, in `{safe(self._path)}`")

    def _end_sample(self) -> None:
        key, members, problem = self._key, self._members, self._problem
        self._key, self._members, self._problem, self._before = "", [], None, members
        if problem is None and not members:
            return
        size = sum(each.size for each in members)
        if problem is None and size > MAX_SAMPLE_BYTES:
            detail = f"its members have {size} bytes, at most {MAX_SAMPLE_BYTES} go in"
            problem = "SRC073", f"{detail}, in `{safe(self._path)}`"
        if self._exported is not None and problem is None:
            key = self._original_key(members) or key
        elif self._options.keys == "shard":
            key = f"{self._path.rpartition('.')[0]}/{key}"
        if key in self._keys:
            detail = f"another sample has this key already; this one is in `{safe(self._path)}`"
            self._put(Skipped(self._split, f"{key}#{self._path}", *(problem or ("SRC071", detail))))
            return
        self._keys.add(key)
        if problem is not None:
            self._put(Skipped(self._split, key, *problem))
            return
        state = msgspec.msgpack.encode(SamplePlace(self._number, tuple(members)))
        self._put(Item(self._split, key, size + _OVERHEAD, state))
        self._listing.samples += 1
        for each in members:
            self._listing.with_suffix[each.suffix] += 1

    def _original_key(self, members: Sequence[MemberPlace]) -> str | None:
        """The key of the record that the sample was exported from."""
        number = self._listing.suffixes.get(JSON_SUFFIX)
        for each in members:
            if each.suffix == number and each.size <= _MAX_JSON:
                return key_of_sample(self._reader.read_at(each.offset, each.size))
        return None

    def _damaged(self, damage: TarDamage) -> None:
        path = safe(self._path)
        if damage.is_first and self._reader.size:
            if self._reader.read_at(0, 2) == _GZIP:
                raise _is_compressed(self._path)
            raise RawDataError(
                f"`{path}` is not a tar file: {damage.detail}",
                hint="fetch it again, or take it out of the raw folder",
            )
        name = damage.name.rpartition("/")[2]
        stem = name.partition(".")[0]
        key = damage.name[: len(damage.name) - len(name)] + stem
        detail = f"`{path}`: {damage.detail}; what follows is not read"
        if stem and key == self._key:  # the sample is not complete
            self._problem = "SRC074", detail
            return
        self._end_sample()
        self._put(Skipped(self._split, self._path, "SRC074", detail))


def _is_metadata(name: str) -> bool:
    """Whether WebDataset skips the member: `__name__`, or a folder of such a name."""
    first, slash, _ = name.partition("/")
    return first.endswith("__") and len(first) > 3 and (bool(slash) or first == name)


def _counted(kind: str, first: str, times: int) -> str:
    one, many = _KINDS[kind]
    some = f"1 {one} is" if times == 1 else f"{times} {many} are"
    return f"{some} left out, {'' if times == 1 else 'the first '}`{safe(first)}`"


def _is_compressed(path: str) -> RawDataError:
    return RawDataError(
        f"`{safe(path)}` is compressed: members of a compressed tar file cannot be read alone",
        hint="decompress the shards first: `gunzip *.tar.gz`; unpack an archive of another kind: "
        "`tar -xf`",
    )
