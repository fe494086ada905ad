"""Bare files in folders that another tool describes: their counts against `dataset_info.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.registry.foreign.tfds_info import (
    INFO_NAME,
    InfoSplit,
    NotTfdsError,
    TfdsInfo,
    described_by,
    is_unfinished,
    read_info,
)
from tfrecreg.core.values.codes import SHD001, SHD003, SHD005, SHD012
from tfrecreg.core.values.errors import StorageError
from tfrecreg.core.values.findings import MAX_LOCATIONS, Code, Location, TensorflowOutcome
from tfrecreg.core.values.text import safe

DESCRIBED = "manifest.described"
"""The measure that counts the folders that are judged by a description."""


class CountedShard(NamedTuple):
    """A shard that was read."""

    shard: Shard
    sound: bool
    """Whether the scanner found no fault."""
    records: int
    payload_bytes: int


@dataclass(slots=True)
class Descriptions:
    """The descriptions beside shards."""

    infos: list[tuple[TfdsInfo, list[Shard]]] = field(default_factory=list)
    """Each with the shards in its folder."""
    notes: list[str] = field(default_factory=list)
    """One line for each folder: what judges it, or why a file that is there does not."""


def descriptions(shards: Iterable[Shard]) -> Descriptions:
    """Read the `dataset_info.json` in the folders of shards."""
    folders: dict[tuple[str, str], list[Shard]] = {}
    for shard in shards:
        folder = shard.path.rpartition("/")[0]
        folders.setdefault((shard.storage.root, folder), []).append(shard)
    found = Descriptions()
    for (_, folder), members in folders.items():
        try:
            info = read_info(members[0].storage, folder)
        except NotTfdsError as error:
            shown = safe(members[0].name.rpartition("/")[0] or ".", limit=1000)
            found.notes.append(f"`{INFO_NAME}` in `{shown}` does not judge the shards: {error}")
            continue
        if info is None:
            if is_unfinished(folder.rpartition("/")[2]):
                found.notes.append(
                    f"`{safe(folder.rpartition('/')[2])}` is a folder that TensorFlow Datasets did "
                    f"not finish: without `{INFO_NAME}`, counts are not judged"
                )
            continue
        found.infos.append((info, members))
        found.notes += described_by([info])
    return found


def check_described(
    tally: Tally, infos: Iterable[tuple[TfdsInfo, Sequence[Shard]]], seen: Iterable[CountedShard]
) -> None:
    """Hold the shards of each folder against its description.

    Finds SHD003 and SHD012, other numbers of records and bytes than it says; SHD001, a split
    without a shard (those of one with some are found by the names of the set); and SHD005, a shard
    that it does not list.
    """
    counted = {each.shard.path: each for each in seen}
    for info, members in infos:
        listed: set[str] = set()
        here = {shard.path.rpartition("/")[2]: shard for shard in members}
        for split in info.splits:
            files = info.files(split)
            listed.update(files)
            if any(name in here for name in files):
                _check_split(tally, split, [here.get(name) for name in files], counted)
            elif split.records and files:
                _check_absent(tally, split, files, members[0])
        for name in sorted(here.keys() - listed):
            if listed and not is_unfinished(name):
                _add(tally, SHD005, f"`{INFO_NAME}` beside it does not list it", here[name])


def _check_split(
    tally: Tally,
    split: InfoSplit,
    present: Sequence[Shard | None],
    counted: Mapping[str, CountedShard],
) -> None:
    seen = [counted.get(shard.path) if shard is not None else None for shard in present]
    sound = [each for each in seen if each is not None and each.sound]
    whole = len(sound) == len(present)
    total = sum(each.payload_bytes for each in sound)
    for one, length in zip(seen, split.lengths, strict=False):  # those of old versions are unknown
        if one is not None and one.sound and one.records != length:
            message = f"`{INFO_NAME}` says {length} records, found {one.records}"
            _add(tally, SHD003, message, one.shard)
    records = sum(each.records for each in sound)
    if whole and not split.lengths and split.records not in (None, records):
        message = (
            f"`{INFO_NAME}` says {split.records} records for the split `{safe(split.name)}`, "
            f"found {records}"
        )
        where = Location(split=split.name, tensorflow=TensorflowOutcome.READS)
        tally.add(SHD003, message, where, split=split.name, subject=split.name)
    if whole and split.bytes is not None and split.bytes != total:
        message = (
            f"`{INFO_NAME}` says {split.bytes} bytes for the split `{safe(split.name)}`, its "
            f"payloads have {total}"
        )
        where = Location(split=split.name, tensorflow=TensorflowOutcome.READS)
        tally.add(SHD012, message, where, split=split.name, subject=split.name)


def _check_absent(tally: Tally, split: InfoSplit, files: Sequence[str], near: Shard) -> None:
    """Find SHD001: a split without a shard. Shards that are there and were not named are not
    missing.
    """
    folder = near.path.rpartition("/")[0]
    try:
        listed = near.storage.list(folder, recursive=False)
        there = {entry.path.rpartition("/")[2] for entry in listed}
    except StorageError:
        return  # a folder without read permission cannot be listed
    absent = [name for name in files if name not in there]
    message = f"`{INFO_NAME}` lists the split `{safe(split.name)}`, and not all of it is there"
    above = near.name[: len(near.name) - len(near.path.rpartition("/")[2])]
    for number, name in enumerate(absent[:MAX_LOCATIONS]):
        where = Location(
            split=split.name, shard=f"{above}{name}", tensorflow=TensorflowOutcome.READS
        )
        count = 1 + max(0, len(absent) - MAX_LOCATIONS) * (number == 0)
        tally.add(SHD001, message, where, split=split.name, subject=split.name, count=count)


def _add(tally: Tally, code: Code, message: str, shard: Shard) -> None:
    where = Location(
        split=shard.split or None, shard=shard.name, tensorflow=TensorflowOutcome.READS
    )
    tally.add(code, message, where, split=shard.split, subject=shard.name)
