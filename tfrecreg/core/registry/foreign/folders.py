"""Checks files without a manifest: their names, their sets, and the kinds of their payloads.

A file's name may declare the size of its set, its number in the set, and its number of records. A
`dataset_info.json` next to the files declares numbers of records as well.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, Protocol

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.records.batch import StreamEnd
from tfrecreg.core.registry.foreign.tfds import (
    INFO_NAME,
    InfoSplit,
    NotTfdsError,
    TfdsInfo,
    described_by,
    is_unfinished,
    read_info,
)
from tfrecreg.core.registry.manifest import SalvageMark, read_mark
from tfrecreg.core.schema.payload_kinds import (
    NOT_AN_EXAMPLE,
    TOO_LARGE,
    PayloadCounts,
    described,
    mostly_examples,
)
from tfrecreg.core.values.codes import (
    SCH001,
    SHD001,
    SHD003,
    SHD005,
    SHD006,
    SHD007,
    SHD012,
    SHD013,
)
from tfrecreg.core.values.errors import RefusedError, StorageError
from tfrecreg.core.values.findings import MAX_LOCATIONS, Code, Location, Measure, TensorflowOutcome
from tfrecreg.core.values.shards import ShardName, parse_shard_name
from tfrecreg.core.values.text import safe

_PATH = 1000
"""Maximum length of a path in a message. Names of sets often differ only at the end."""
_NUMBER = re.compile(
    r"(\d+)(?=[-_]?of[-_]?\d+(?:(?!\d[-_]?of[-_]?\d)[^/])*$)", re.IGNORECASE | re.ASCII | re.DOTALL
)
"""Matches the number of a shard in its path."""

_Member = tuple[Shard, ShardName]


def shard_sets(shards: Iterable[Shard]) -> Iterator[tuple[str, list[_Member]]]:
    """Each set and its files, in order of the sets' names. Files without a set are left out."""
    sets: dict[tuple[str, str], list[_Member]] = defaultdict(list)
    for shard in shards:
        name = _shard_name(shard)
        if name is not None:
            folder = "".join(shard.name.rpartition("/")[:2])
            sets[folder, name.stem].append((shard, name))
    for (folder, stem), members in sorted(sets.items()):
        yield folder + stem, members


class Seen(Protocol):
    """The results for a shard that was read."""

    @property
    def end(self) -> StreamEnd: ...

    @property
    def sound(self) -> bool:
        """Whether the scanner found no fault. After a fault, missing records are expected."""

    @property
    def payloads(self) -> PayloadCounts: ...


SeenShards = Sequence[tuple[Shard, Seen]]


def salvaged(seen: SeenShards) -> Iterator[tuple[Shard, SalvageMark]]:
    """The bare files that were salvaged or may have been, each with the mark of its folder."""
    marks: dict[tuple[str, str], SalvageMark | None] = {}
    for shard, part in seen:
        folder, _, name = shard.path.rpartition("/")
        place = shard.storage.root, folder
        if place not in marks:
            marks[place] = read_mark(shard.storage, folder)
        mark = marks[place]
        if mark is None:
            continue
        if mark.broken or name in mark.changed or part.end.blake3 in mark.changed.values():
            yield shard, mark


def check_bare(
    tally: Tally, shards: Iterable[Shard], infos: Iterable[DescribedShards], seen: SeenShards
) -> list[UnnamedShards]:
    """Check whether bare files agree with their sets, names and descriptions."""
    # A file that cannot be read still exists: sets include all files.
    unnamed = check_sets(tally, shards)
    for shard, part in seen:
        name, records = _shard_name(shard), part.end.records
        if part.sound and name is not None and name.records not in (None, records):
            _add_one(tally, SHD003, f"its name says {name.records} records, found {records}", shard)
    _check_described(tally, infos, seen)
    return unnamed


def check_empty(
    tally: Tally,
    seen: SeenShards,
    *,
    bare: bool,
    tensorflow: TensorflowOutcome | None = TensorflowOutcome.READS,
) -> None:
    """Find shards without records. A bare file has SHD013 (records were probably lost) if the other
    files of its split have enough records. All other shards without records have SHD007.
    """
    counts = [(shard, part.end.records) for shard, part in seen if part.sound]
    files = Counter(shard.split for shard, _ in counts)
    total: Counter[str] = Counter()
    for shard, records in counts:
        total[shard.split] += records
    for shard, records in counts:
        if records:
            continue
        code, message = SHD007, "the shard has no records"
        name = _shard_name(shard)
        spark = name is not None and (name.prefix, name.of) == ("part", None)
        if bare and not spark and total[shard.split] >= files[shard.split]:
            code = SHD013
            message += f", but the other shards of its split have {total[shard.split]}"
        where = replace(_where(shard), tensorflow=tensorflow)
        tally.add(code, message, where, split=shard.split, subject=shard.name)


class UnnamedShards(NamedTuple):
    """The number of shards of a set that exist but were not named for the check."""

    subject: str
    unnamed: int
    of: int


def check_sets(tally: Tally, shards: Iterable[Shard]) -> list[UnnamedShards]:
    """Find SHD001 and SHD006: sets that are incomplete or contradictory."""
    beside: _Beside = {}
    found = []
    for subject, members in shard_sets(shards):
        counted = [each for each in members if each[1].of is not None]
        unnamed = _check_set(tally, subject, counted, beside) if counted else 0
        if unnamed:
            found.append(UnnamedShards(subject, unnamed, counted[0][1].of or 0))
    return found


def expect_whole_sets(shards: Iterable[Shard], otherwise: str, hint: str) -> None:
    """Refuse files from a folder or a glob if their names say that more files should exist."""
    sets = Tally()
    check_sets(sets, shards)
    for finding in sets.findings(""):
        raise RefusedError(f"{finding.message}: {otherwise}", hint=hint)


def _check_set(tally: Tally, subject: str, members: Sequence[_Member], known: _Beside) -> int:
    shown = safe(subject, limit=_PATH)
    counts = sorted({name.of or 0 for _, name in members})
    if len(counts) > 1:
        said = ", ".join(str(count) for count in counts)
        message = f"files of the set `{shown}` disagree about its size: {said}"
        files = [(shard, f"its name says {name.of} shards") for shard, name in members]
        _add(tally, SHD006, message, files, subject)
        return 0
    of = counts[0]
    numbers = Counter(name.number for _, name in members)
    # Some writers count from 1: then a shard has the number `of`, and none has the number 0.
    from_one = of in numbers and 0 not in {*numbers, *_numbers_beside(known, *members[0])}
    if of == 1:
        from_one &= not _parts_of_name(members)[1].startswith("0")
    expected = range(1, of + 1) if from_one else range(of)
    wrong = [number for number in sorted(numbers) if number not in expected]
    if wrong:
        message = f"the set `{shown}` has {of} shards, but one of them has number {wrong[0]}"
        last = f"the last number of the set is {expected.stop - 1}"
        files = [(shard, last) for shard, name in members if name.number in wrong]
        _add(tally, SHD006, message, files, subject)
    twice = sorted(number for number, files in numbers.items() if files > 1)
    if twice:
        message = f"the set `{shown}` has more than one shard with number {twice[0]}"
        _add(tally, SHD006, message, _later(members), subject)
    missing = of - len(numbers) + len(wrong)
    if missing <= 0:
        return 0
    beside = _numbers_beside(known, *members[0]) - numbers.keys()
    unnamed = {number for number in beside if number in expected}
    numbers.update(unnamed)
    missing -= len(unnamed)
    if missing:
        message = f"{of - missing} of {of} shards of `{shown}` are present"
        absent = (number for number in expected if number not in numbers)
        head, digits, end = _parts_of_name(members)
        places = [
            Location(
                shard=f"{head}{number:0{len(digits)}d}{end}",
                detail=f"shard number {number} of {of} is missing",
                tensorflow=TensorflowOutcome.READS,
            )
            for number in islice(absent, MAX_LOCATIONS)
        ]
        tally.add_places(SHD001, message, places, missing, subject=subject)
    return len(unnamed)


def _parts_of_name(members: Sequence[_Member]) -> list[str]:
    """The path of one shard: the text before its number, the number, and the text after it."""
    # If numbers have no leading zeros, the shortest path has the shortest number.
    return _NUMBER.split(min((shard.name for shard, _ in members), key=len), maxsplit=1)


def _later(members: Sequence[_Member]) -> list[tuple[Shard, str]]:
    first: dict[int, Shard] = {}
    later = []
    for shard, name in members:
        before = first.setdefault(name.number, shard)
        if before is not shard:
            other = before.name.rpartition("/")[2]
            later.append((shard, f"`{safe(other)}` has the same number {name.number}"))
    return later


def _shard_name(shard: Shard) -> ShardName | None:
    return parse_shard_name(shard.path.rpartition("/")[2])


def _add(
    tally: Tally, code: Code, message: str, files: Iterable[tuple[Shard, str]], subject: str
) -> None:
    for shard, detail in files:
        tally.add(code, message, _where(shard, detail), subject=subject)


def _add_one(tally: Tally, code: Code, message: str, shard: Shard) -> None:
    tally.add(code, message, _where(shard), split=shard.split, subject=shard.name)


def _where(shard: Shard, detail: str | None = None) -> Location:
    reads = TensorflowOutcome.READS
    return Location(split=shard.split or None, shard=shard.name, detail=detail, tensorflow=reads)


_Beside = dict[tuple[str, str], list[ShardName]]
"""The shards' names in the folders that were listed. Each folder is listed at most once."""


def _numbers_beside(known: _Beside, shard: Shard, name: ShardName) -> set[int]:
    """The shard numbers that the set of `name` has in the folder of `shard`."""
    folder = shard.path.rpartition("/")[0]
    place = shard.storage.root, folder
    if place not in known:
        names = known[place] = []
        with suppress(StorageError):  # a folder without read permission cannot be listed
            for entry in shard.storage.list(folder, recursive=False):
                each = parse_shard_name(entry.path.rpartition("/")[2])
                if each is not None and each.of is not None and entry.kind in ("file", "link"):
                    names.append(each)
    members = (each for each in known[place] if (each.stem, each.of) == (name.stem, name.of))
    return {each.number for each in members}


_KINDS = "manifest.kinds"
UNNAMED = "manifest.unnamed"

_SETS = 3


def bare_measures(seen: SeenShards, unnamed: Sequence[UnnamedShards]) -> Iterator[Measure]:
    """The numbers of records by kind of payload, and the number of shards that were not named."""
    total: Counter[str] = Counter()
    for _, part in seen:
        total.update(part.payloads.kinds)
    names = [*(kind.value for kind in PayloadKind), TOO_LARGE]
    kinds = {name: total[name] for name in names if total[name]}
    if kinds:
        yield Measure(_KINDS, kinds, described(kinds))
    if unnamed:
        count = sum(each.unnamed for each in unnamed)
        shown = [
            f"{each.unnamed} of the {each.of} shards of `{safe(each.subject)}`"
            for each in unnamed[:_SETS]
        ]
        more = [f"and shards of {len(unnamed) - _SETS} more sets"] if len(unnamed) > _SETS else []
        yield Measure(UNNAMED, count, ", ".join([*shown, *more]))


def check_payloads(tally: Tally, seen: SeenShards) -> None:
    """Find SCH001: records that are not Examples, in a set whose records mostly are Examples. A
    file that belongs to no set is judged separately.
    """
    parts = {shard.name: (shard, part.payloads) for shard, part in seen}
    sets = [
        [parts[shard.name] for shard, _ in members]
        for _, members in shard_sets(shard for shard, _ in seen)
    ]
    together = {shard.name for members in sets for shard, _ in members}
    sets += [[part] for name, part in parts.items() if name not in together]
    known = {PayloadKind.EXAMPLE.value, TOO_LARGE}
    for members in sets:
        kinds: Counter[str] = Counter()
        for _, part in members:
            kinds.update(part.kinds)
        if mostly_examples(kinds):
            for shard, part in members:
                for where in part.others:
                    tally.add(SCH001, NOT_AN_EXAMPLE, where, split=shard.split)
                rest = sum(number for kind, number in part.kinds.items() if kind not in known)
                rest -= len(part.others)
                if rest > 0:
                    tally.add(SCH001, NOT_AN_EXAMPLE, None, split=shard.split, count=rest)


DESCRIBED = "manifest.described"


DescribedShards = tuple[TfdsInfo, Sequence[Shard]]
"""A description, and the shards in its folder."""


def descriptions(shards: Iterable[Shard]) -> tuple[list[DescribedShards], list[str]]:
    """Read the `dataset_info.json` in the folders of shards. For each `dataset_info.json`, also
    return a line that describes this file, or says why this file cannot be used.
    """
    folders: dict[tuple[str, str], list[Shard]] = {}
    for shard in shards:
        folder = shard.path.rpartition("/")[0]
        folders.setdefault((shard.storage.root, folder), []).append(shard)
    found: list[DescribedShards] = []
    notes: list[str] = []
    for (_, folder), members in folders.items():
        try:
            info = read_info(members[0].storage, folder)
        except NotTfdsError as error:
            shown = safe(members[0].name.rpartition("/")[0] or ".", limit=1000)
            notes.append(f"`{INFO_NAME}` in `{shown}` is not used: {error}")
            continue
        if info is not None:
            found.append((info, members))
            notes.append(described_by(info))
    return found, notes


def _check_described(tally: Tally, infos: Iterable[DescribedShards], seen: SeenShards) -> None:
    """Compare the shards of each folder with the folder's description. Compares the numbers of
    records (SHD003) and bytes (SHD012), and finds shards that the description does not list
    (SHD005). In splits without checked shards, also finds missing shards (SHD001).
    :func:`check_sets` reports the other missing shards.
    """
    parts = {shard.name: (shard, part) for shard, part in seen}
    for info, members in infos:
        listed: set[str] = set()
        here = {shard.path.rpartition("/")[2]: shard for shard in members}
        for split in info.splits:
            files = info.files(split)
            listed.update(files)
            if any(name in here for name in files):
                _check_split(tally, split, [here.get(name) for name in files], parts)
            elif split.records and files:
                _check_absent(tally, split, files, members[0])
        for name in sorted(here.keys() - listed):
            if listed and not is_unfinished(name):
                message = f"`{INFO_NAME}` next to the shard does not list it"
                _add_one(tally, SHD005, message, here[name])


def _check_split(
    tally: Tally,
    split: InfoSplit,
    present: Sequence[Shard | None],
    parts: Mapping[str, tuple[Shard, Seen]],
) -> None:
    seen = [parts.get(shard.name) if shard is not None else None for shard in present]
    for one, length in zip(seen, split.lengths, strict=False):  # old versions have no lengths
        if one is not None and one[1].sound and one[1].end.records != length:
            message = f"`{INFO_NAME}` says {length} records, found {one[1].end.records}"
            _add_one(tally, SHD003, message, one[0])
    sound = [each[1].end for each in seen if each is not None and each[1].sound]
    if len(sound) < len(present):
        return
    total = sum(each.payload_bytes for each in sound)
    records = sum(each.records for each in sound)
    faults = []
    if not split.lengths and split.records not in (None, records):
        faults.append((SHD003, f"{split.records} records", f"found {records}"))
    if split.bytes is not None and split.bytes != total:
        faults.append((SHD012, f"{split.bytes} bytes", f"but the payloads have {total}"))
    for code, said, found in faults:
        where = Location(split=split.name, tensorflow=TensorflowOutcome.READS)
        message = f"`{INFO_NAME}` says {said} for the split `{safe(split.name)}`, {found}"
        tally.add(code, message, where, split=split.name, subject=split.name)


def _check_absent(tally: Tally, split: InfoSplit, files: Sequence[str], near: Shard) -> None:
    """Find SHD001: no shard of a split is checked, and shards of this split are missing."""
    folder = near.path.rpartition("/")[0]
    try:
        listed = near.storage.list(folder, recursive=False)
        there = {entry.path.rpartition("/")[2] for entry in listed}
    except StorageError:
        return  # a folder without read permission cannot be listed
    absent = [name for name in files if name not in there]
    message = f"`{INFO_NAME}` lists the split `{safe(split.name)}`, but some shards are missing"
    above = near.name[: len(near.name) - len(near.path.rpartition("/")[2])]
    places = [
        Location(split=split.name, shard=f"{above}{name}", tensorflow=TensorflowOutcome.READS)
        for name in absent[:MAX_LOCATIONS]
    ]
    tally.add_places(SHD001, message, places, len(absent), split=split.name, subject=split.name)
