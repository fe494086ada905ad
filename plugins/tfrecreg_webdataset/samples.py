"""Defines the options of the source `webdataset`, and turns the samples in tar files into items.

As in the library WebDataset, neighboring members with the same key form a sample. The key is the
path up to the first dot of the file's name; the suffix is the rest, in lower case.

A folder that `tfrecreg export --to webdataset` wrote contains `tfrecreg.json`, which lists the
files with their splits and numbers of records. The JSON of a sample has the key of its record.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    ImageRemarks,
    Item,
    RawDataError,
    RawFile,
    Reader,
    Remark,
    Skipped,
    Storage,
    list_files,
    missing_files,
    paths_remark,
    safe,
    splits_of_files,
)
from tfrecreg_webdataset.tars import TarDamage, TarMember, TarWalk

DESCRIPTION = "tfrecreg.json"
SCHEMA = "schema.pbtxt"
MAX_SAMPLE_BYTES = 1 << 30
"""Maximum bytes of a sample: a record may have twice as many."""
_MAX_SUFFIXES = 1000
_OVERHEAD = 90
"""Estimated size of an example in bytes, not counting its members."""
_COMPRESSED = (".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz")
_METADATA = re.compile(r"__[^/]*__(/.*)?", re.DOTALL)


@dataclass(frozen=True)
class WebDatasetOptions:
    """Options of the source `webdataset`."""

    splits: tuple[str, ...] = ()
    """The splits, each as `SPLIT=PATTERN`. The first pattern that matches a tar file's path
    decides; files without a match are left out. Default: the names of the files decide.
    """
    suffixes: tuple[str, ...] = ()
    """Read only members with these suffixes, such as `jpg,cls`. By default all are read."""
    classes: str = ""
    """A file in the raw folder with the names of the classes: one per line, or JSON."""
    json_fields: tuple[str, ...] = ()
    """Fields of the member `json` that become features, each as `NAME:TYPE`. The type is `int`,
    `float` or `text`. Default: the JSON as a whole is one feature.
    """
    npy: Literal["tensor", "bytes"] = "tensor"
    """`tensor`: a member `npy` becomes a serialized tensor. `bytes`: its bytes stay unchanged."""
    keys: Literal["sample", "shard"] = "sample"
    """`sample`: an item has the key of its sample. `shard`: this key follows the path of the tar
    file. Use `shard` if each tar file numbers its samples from the beginning.
    """
    restore: bool = True
    """Whether to restore the original records of a folder that `tfrecreg export` wrote."""

    def __post_init__(self) -> None:
        for name, kind in self.fields.items():
            if not name or kind not in ("int", "float", "text"):
                raise ValueError(
                    "`json_fields` expects NAME:TYPE with the type int, float or text, found "
                    f"`{safe(name)}:{safe(kind)}`"
                )

    @property
    def fields(self) -> dict[str, str]:
        """The option `json_fields`: the types by name."""
        return {name: kind for name, _, kind in (each.rpartition(":") for each in self.json_fields)}

    def takes(self, suffix: str) -> bool:
        return not self.suffixes or suffix in {each.lower().lstrip(".") for each in self.suffixes}


class MemberPlace(NamedTuple):
    """The place of a member in its tar file."""

    suffix: str
    offset: int
    size: int


class SamplePlace(NamedTuple):
    """The state of an item, packed as MessagePack."""

    file: int
    members: list[MemberPlace]


def split_name(name: str) -> tuple[str, str]:
    """The key of a member's sample, and the member's suffix; both are empty if it has no sample."""
    folder, slash, file = name.rpartition("/")
    stem, _, suffix = file.partition(".")
    return (folder + slash + stem, suffix.lower()) if stem and suffix else ("", "")


class _ExportedFile(msgspec.Struct):
    path: str
    split: str
    records: int


class Exported(msgspec.Struct):
    """The description in a folder that `tfrecreg export` wrote."""

    to: str
    files: list[_ExportedFile]
    labels: dict[str, list[str]]
    schema_text: str = ""


class _Original(msgspec.Struct):
    """The JSON of a sample, with the key of the record that it was exported from."""

    key: str | None


def _read_exported(raw: Storage) -> Exported | None:
    entry = raw.stat(DESCRIPTION)
    if entry is None or entry.kind != "file":
        return None
    try:
        found = msgspec.json.decode(raw.read(DESCRIPTION), type=Exported)
        if found.to != "webdataset":
            return None
        found.schema_text = raw.read(SCHEMA).decode()
    except ValueError as error:
        raise _unlike_export(f"`{DESCRIPTION}`: {error}") from None
    return found


def _unlike_export(why: str) -> RawDataError:
    return RawDataError(
        f"the folder is not as `tfrecreg export` wrote it: {why}",
        hint="--option restore=no reads these tar files like any others",
    )


class Samples:
    def __init__(self, raw: Storage, options: WebDatasetOptions) -> None:
        self._options = options
        self.exported = _read_exported(raw) if options.restore else None
        sizes, left_out = _tar_files(raw)
        if self.exported is None:
            self.splits = splits_of_files(list(sizes), options.splits)
        else:
            self.splits = {each.path: each.split for each in self.exported.files}
            if lost := self.splits.keys() - sizes.keys():
                raise _unlike_export(f"`{min(lost)}` is missing")
        self.paths = [path for path in sizes if path in self.splits]
        """The tar files that are read."""
        self.files = [RawFile(path, sizes[path], sizes[path]) for path in self.paths]
        self.entries: list[Item | Skipped | Remark] = [*missing_files(sizes, self.splits)]
        self.count = 0
        """Number of samples that are items."""
        self.suffixes: Counter[str] = Counter()
        """Number of items by suffix."""
        self._keys: dict[str, set[str]] = defaultdict(set)
        if left_out := left_out + [path for path in sizes if path not in self.splits]:
            split = self.splits[self.paths[0]]
            self.entries.append(paths_remark(split, "SRC117", left_out, "tar files left out"))
        records = {each.path: each.records for each in self.exported.files} if self.exported else {}
        for number, path in enumerate(self.paths):
            before = self.count
            with raw.open(path) as reader:
                self._read(number, path, reader)
            found = self.count - before
            if found != records.get(path, found):
                raise _unlike_export(f"{found} of {records[path]} records are in `{path}`")

    def _read(self, number: int, path: str, reader: Reader) -> None:
        """Add a tar file's items, its skipped samples, and remarks on members that are left out."""
        split, walk = self.splits[path], TarWalk(reader)
        notes: dict[str, ImageRemarks] = defaultdict(ImageRemarks)
        before: set[str] = set()
        for key, group in groupby(_keyed(walk, path, notes), itemgetter(0)):
            members: dict[str, MemberPlace] = {}
            problem: tuple[str, str] | None = None
            for _, suffix, member in group:
                if isinstance(member, TarDamage):
                    problem = problem or ("SRC110", f"{member}; the rest of the file is not read")
                elif member is None:
                    if members and before - members.keys():
                        problem = problem or ("SRC110", "it ends after a member of the sample")
                elif member.refused:
                    problem = problem or ("SRC111", f"`{safe(member.name)}` is {member.refused}")
                elif not self._options.takes(suffix):
                    _leave_out(notes["suffixes"], member.name, "has another suffix")
                elif suffix in members:
                    problem = problem or ("SRC114", f"it has two members `{safe(suffix)}`")
                else:
                    members[suffix] = MemberPlace(suffix, member.offset, member.size)
            before = {*members}
            if sum(each.size for each in members.values()) > MAX_SAMPLE_BYTES:
                problem = problem or ("SRC113", f"it has more than {MAX_SAMPLE_BYTES} bytes")
            if self.exported is not None and not problem and "json" in members:
                _, offset, size = members["json"]
                with suppress(ValueError):
                    original = msgspec.json.decode(reader.read_at(offset, size), type=_Original)
                    key = original.key or key
            elif self._options.keys == "shard" and key:
                key = f"{path.rpartition('.')[0]}/{key}"
            if members or problem:
                place = SamplePlace(number, [*members.values()])
                self._add(split, key or path, path, place, problem)
        if walk.end_note:
            notes["end"].add("SRC014", walk.end_note)
        for each in notes.values():
            self.entries += each.remarks(split, path)

    def _add(
        self, split: str, key: str, path: str, place: SamplePlace, problem: tuple[str, str] | None
    ) -> None:
        if key in self._keys[split]:
            problem = problem or ("SRC114", "another sample already has this key")
            key = f"{key}#{path}"
        self._keys[split].add(key)
        if problem:
            code, detail = problem
            self.entries.append(Skipped(split, key, code, f"`{safe(path)}`: {detail}"))
            return
        self.count += 1
        self.suffixes.update(each.suffix for each in place.members)
        if len(self.suffixes) > _MAX_SUFFIXES:
            raise RawDataError(
                f"the samples up to `{key}` in `{path}` have more than {_MAX_SUFFIXES} different "
                "suffixes; a suffix begins at the first dot of a name",
                hint="--option suffixes=jpg,cls",
            )
        size = sum(each.size for each in place.members) + _OVERHEAD
        self.entries.append(Item(split, key, size, msgspec.msgpack.encode(place)))


def _tar_files(raw: Storage) -> tuple[dict[str, int], list[str]]:
    """The sizes of the tar files to read, and the paths of those left out: devices, and files whose
    names begin with a dot."""
    sizes: dict[str, int] = {}
    left_out: list[str] = []
    for entry in list_files(raw):
        name = entry.path.rpartition("/")[2].lower()
        if name.endswith(_COMPRESSED):
            raise RawDataError(
                f"`{entry.path}` is compressed, so no member can be read alone: decompress it"
            )
        if name.endswith(".tar") and (name.startswith(".") or entry.kind == "other"):
            left_out.append(entry.path)
        elif name.endswith(".tar"):
            sizes[entry.path] = entry.size
    if not sizes:
        raise RawDataError(f"`{raw.root}` holds no file `*.tar`")
    return sizes, left_out


def _keyed(
    walk: TarWalk, path: str, notes: Mapping[str, ImageRemarks]
) -> Iterator[tuple[str, str, TarMember | TarDamage | None]]:
    """The members that belong to samples, each with its key and its suffix.

    If the archive is damaged, the last result has the damage instead of a member. If the damage
    cuts a sample, the result has this sample's key, otherwise an empty key. If only the end blocks
    are missing, the last result has None instead of a member.
    """
    key = ""
    try:
        for member in walk.members():
            found, suffix = split_name(member.name)
            if member.is_folder:
                _leave_out(notes["folders"], member.name, "is a folder")
            elif not suffix:
                _leave_out(notes["keyless"], member.name, "has no key")
            elif _METADATA.fullmatch(member.name):
                _leave_out(notes["metadata"], member.name, "has metadata")
            else:
                key = found
                yield key, suffix, member
        if not walk.has_end:
            yield key, "", None
    except TarDamage as damage:
        if damage.is_other:
            raise RawDataError(f"`{path}` is not a tar file, or is compressed: {damage}") from None
        yield key if key == split_name(damage.name)[0] else "", "", damage


def _leave_out(remarks: ImageRemarks, name: str, why: str) -> None:
    remarks.add("SRC117", f"`{safe(name)}` {why}, and was left out")
