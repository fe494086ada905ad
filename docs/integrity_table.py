"""Makes the table of `docs/integrity.md`: faults of a dataset, and which readers notice them.

``python docs/integrity_table.py --tfrecord PYTHON`` puts it into the page; ``--check`` writes
nothing and exits with 1 if the page has another one. `PYTHON` is an interpreter that has
`tfrecord` (PyPI), which wants an environment of its own; TensorFlow and Beam are read with here.

Each fault is done to a dataset of three shards with ten records each, and the readers are given
what a glob finds, as a training script would.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

from other_readers import OtherReader, Reading, record_mark

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.records.framing import frame, frame_header
from tfrecreg.core.records.gzip_writer import INPUT_BUFFER, GzipEncoder
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry

PAGE = Path(__file__).resolve().parent / "integrity.md"
BEGIN = "<!-- Made by `python docs/integrity_table.py`: do not edit. -->\n"
END = "<!-- End of the generated table. -->\n"
SHARDS, RECORDS = 3, 10
TRIED = ("crc", "manifest", "duplicates")


@dataclass(frozen=True)
class Shards:
    """The dataset of one fault, to do things to."""

    folder: Path
    compression: str
    dice: random.Random = field(default_factory=lambda: random.Random(3))

    def path(self, number: int = 1, of: int = SHARDS) -> Path:
        """A shard's file; the one in the middle is where most faults are."""
        return self.folder / f"faces-train.tfrecord-{number:05d}-of-{of:05d}"

    def change(self, make: Callable[[bytes], bytes]) -> None:
        """Put other bytes in the place of the shard in the middle."""
        self.path().write_bytes(make(self.path().read_bytes()))


Do = Callable[[Shards], None]


@dataclass(frozen=True)
class Fault:
    """One line of the table."""

    name: str
    do: Do
    compression: str = "none"
    nested: bool = False
    """The records hold TFRecords themselves."""


def payloads(number: int, *, nested: bool) -> list[bytes]:
    """Records of one shard: bytes that no compression makes smaller, whatever its version."""
    made = []
    for place in range(RECORDS):
        dice = random.Random(100 * number + place)
        value = dice.randbytes(200)
        if nested:
            value = stream([dice.randbytes(30) for _ in range(4)])
        made.append(encode({"face": bytes_feature(value)}))
    return made


def stream(records: Sequence[bytes]) -> bytes:
    """The records as a TFRecord stream."""
    framed = ((*frame(payload), payload) for payload in records)
    return b"".join(header + payload + footer for header, footer, payload in framed)


def starts(data: bytes) -> list[int]:
    """Where the records of a sound stream begin."""
    found = []
    at = 0
    while at < len(data):
        found.append(at)
        at += int.from_bytes(data[at : at + 8], "little") + 16
    return found


def nothing(shards: Shards) -> None:
    """The sound dataset."""
    del shards


def become(data: bytes) -> Do:
    """Put a file of other bytes in the place of the shard in the middle."""
    return lambda shards: shards.path().write_bytes(data) and None


def flip(place: Callable[[bytes], int]) -> Do:
    """Change one bit of the byte at this place."""

    def do(shards: Shards) -> None:
        def change(data: bytes) -> bytes:
            at = place(data)
            return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]

        shards.change(change)

    return do


def change(make: Callable[[bytes], bytes]) -> Do:
    """Make other bytes of the shard in the middle."""
    return lambda shards: shards.change(make)


def overwrite(place: Callable[[bytes], int], count: int, byte: int | None = 0) -> Do:
    """Put zeros, or random bytes, from this place on."""

    def do(shards: Shards) -> None:
        block = shards.dice.randbytes(count) if byte is None else bytes([byte]) * count
        shards.change(lambda data: data[: place(data)] + block + data[place(data) + count :])

    return do


def members(data: bytes) -> list[bytes]:
    """A plain shard's records as gzip members of two records each."""
    bounds = [*starts(data)[::2], len(data)]
    pieces = (data[begin:end] for begin, end in pairwise(bounds))
    encoders = ((GzipEncoder(), piece) for piece in pieces)
    return [encoder.write(piece) + encoder.close() for encoder, piece in encoders]


def in_members(make: Callable[[list[bytes]], bytes]) -> Do:
    """Compress the shard in the middle in members, and make something of these."""
    return change(lambda data: make(members(gzip.decompress(data))))


def at_buffer(parts: list[bytes]) -> bytes:
    """Such a header that the first member ends right after TensorFlow's buffer."""
    head, rest = parts[0][:3], parts[0][10:]
    name = b"n" * (INPUT_BUFFER + 4 - len(rest) - 11) + b"\0"
    return head + b"\x08" + bytes(6) + name + rest + b"".join(parts[1:])


def swap(first: Path, second: Path) -> None:
    """Exchange the bytes of two files."""
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"
RIEGELI = bytes.fromhex("83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a9")
HEAD = b"\x1f\x8b\x08\x00"


def _faults() -> Iterator[Fault]:
    """All of them, in the order of the table."""
    yield Fault("nothing", nothing)
    yield Fault("a bit of a length", flip(lambda data: starts(data)[4]))
    yield Fault("a bit of a length's checksum", flip(lambda data: starts(data)[4] + 9))
    yield Fault("a bit of a record's data", flip(lambda data: starts(data)[4] + 50))
    yield Fault("a bit of a data checksum", flip(lambda data: starts(data)[5] - 2))
    yield Fault("a header overwritten", overwrite(lambda data: starts(data)[4], 12, 0xFF))
    yield Fault("512 bytes zeroed", overwrite(lambda data: starts(data)[4] + 100, 512))
    yield Fault("512 bytes random", overwrite(lambda data: starts(data)[4] + 100, 512, None))
    yield Fault("a cut in a record's data", change(lambda data: data[: starts(data)[4] + 99]))
    yield Fault("a cut in a header", change(lambda data: data[: starts(data)[4] + 5]))
    yield Fault("a cut between two records", change(lambda data: data[: starts(data)[4]]))
    yield Fault("5 bytes appended", change(lambda data: data + b"words"))
    yield Fault("500 bytes appended", change(lambda data: data + b"words" * 100))
    yield Fault("5 zeros appended", change(lambda data: data + bytes(5)))
    yield Fault("500 zeros appended", change(lambda data: data + bytes(500)))
    huge = frame_header(1 << 40)
    yield Fault(
        "a length of 2^40, its checksum right",
        change(lambda data: data[: starts(data)[4]] + huge + data[starts(data)[4] + 12 :]),
    )
    yield Fault("records that hold TFRecords", nothing, nested=True)
    yield Fault(
        "such a record's header overwritten",
        overwrite(lambda data: starts(data)[4], 12),
        nested=True,
    )
    yield Fault("a shard missing", lambda shards: shards.path().unlink())
    yield Fault("a shard empty", become(b""))
    yield Fault(
        "a shard twice",
        lambda shards: (
            shards.path().with_name("more.tfrecord").write_bytes(shards.path(0).read_bytes())
            and None
        ),
    )
    yield Fault(
        "a shard copied over another",
        lambda shards: shards.path().write_bytes(shards.path(0).read_bytes()) and None,
    )
    yield Fault("two shards swapped", lambda shards: swap(shards.path(0), shards.path()))
    yield Fault(
        "a shard of another set",
        lambda shards: (
            shards.path(3, 4).write_bytes(stream(payloads(9, nested=False)[:1])) and None
        ),
    )
    yield Fault(
        "a shard numbered wrongly", lambda shards: shards.path().rename(shards.path(3)) and None
    )
    yield Fault("one shard in gzip, the others not", change(gzip.compress))
    gz = "gzip"
    yield Fault("nothing", nothing, gz)
    yield Fault("many members", in_members(b"".join), gz)
    yield Fault("one shard not in gzip", change(gzip.decompress), gz)
    yield Fault("a bit of compressed data", flip(lambda data: len(data) // 2), gz)
    yield Fault("a bit of the header's flags (FEXTRA)", flip_extra, gz)
    yield Fault("a cut in the data", change(lambda data: data[: len(data) // 2]), gz)
    yield Fault("a cut in the trailer", change(lambda data: data[:-3]), gz)
    yield Fault("a cut between two members", in_members(lambda parts: b"".join(parts[:3])), gz)
    yield Fault(
        "a cut in a member's header",
        in_members(lambda parts: b"".join(parts[:3]) + parts[3][:7]),
        gz,
    )
    yield Fault("a bit of the trailer's checksum", flip(lambda data: len(data) - 6), gz)
    yield Fault("a bit of the trailer's length", flip(lambda data: len(data) - 4), gz)
    yield Fault("a byte of garbage after it", change(lambda data: data + b"w"), gz)
    yield Fault("garbage after it", change(lambda data: data + b"words" * 100), gz)
    yield Fault("zeros after it", change(lambda data: data + bytes(512)), gz)
    empty = GzipEncoder().close()
    yield Fault(
        "an empty member between others",
        in_members(lambda parts: b"".join([*parts[:3], empty, *parts[3:]])),
        gz,
    )
    yield Fault("a member that ends after 256 KiB", in_members(at_buffer), gz)
    bomb = become(gzip.compress(bytes(10_000_000)))
    yield Fault("10 MB of zeros in 10 kB", bomb, gz)
    yield Fault("text", become(b"file,label\n1.png,2\n" * 9))
    yield Fault("less than 12 bytes of text", become(b"no records"))
    yield Fault("a git-LFS pointer", become(LFS))
    riegeli = RIEGELI + random.Random(1).randbytes(900)
    yield Fault("an ArrayRecord", become(riegeli))


def flip_extra(shards: Shards) -> None:
    """FEXTRA set, and a first word that makes the field longer than the file."""
    shards.change(lambda data: HEAD[:3] + b"\x04" + data[4:10] + b"\xff\xff" + data[12:])


@dataclass(frozen=True)
class Told:
    """What each says of a fault."""

    fault: Fault
    readers: tuple[str, ...]
    ours: str


def sound(folder: Path, fault: Fault) -> Path:
    """A registry with the dataset before the fault; made once for each kind."""
    root = folder / f"{fault.compression}-{fault.nested}"
    if root.exists():
        return root
    source = folder / f"source-{root.name}"
    source.mkdir()
    for number in range(SHARDS):
        data = stream(payloads(number, nested=fault.nested))
        if fault.compression == "gzip":
            encoder = GzipEncoder()
            data = encoder.write(data) + encoder.close()
        name = f"train-{number:05d}-of-{SHARDS:05d}.tfrecord"
        (source / name).write_bytes(data)
    init(root, with_dvc=False)
    adopt(open_registry(root), AdoptRequest(name="faces", paths=(str(source),)))
    return root


def told(fault: Fault, folder: Path, readers: Sequence[OtherReader]) -> Told:
    """Do it, and ask everybody."""
    root = folder / "work"
    shutil.copytree(sound(folder, fault), root)
    shards = Shards(root / "data/faces", fault.compression)
    records = (payloads(number, nested=fault.nested) for number in range(SHARDS))
    marks = [record_mark(payload) for payload in chain.from_iterable(records)]
    fault.do(shards)
    files = sorted(shards.folder.glob("*.tfrecord*"))
    words = tuple(_reads(each, files, fault, marks) for each in readers)
    ours = _codes(root, ["faces"])
    alone = root / "alone"
    alone.mkdir()
    bare = _codes(root, [shutil.copy(path, alone) for path in files])
    shutil.rmtree(root)
    return Told(fault, words, ours if ours == bare else f"{ours} (without the manifest: {bare})")


def _reads(
    reader: OtherReader, files: Sequence[Path], fault: Fault, expected: Sequence[str]
) -> str:
    """The outcome of reading the files one after the other, up to the first error."""
    found: list[str] = []
    end = Reading()
    for end in reader.read((str(path), fault.compression) for path in files):
        found += end.records
        if not end.silent:
            break
    if end.crash:
        return f"crashes ({end.crash})"
    wrong = sum(mark not in expected for mark in found)
    count = f"{len(found)} records" + (f" ({wrong} wrong)" if wrong else "")
    if end.error:
        return f"`{end.error.partition(':')[0]}` after {count}"
    if found == list(expected):
        return f"reads all {len(found)}"
    order = ", reordered" if sorted(found) == sorted(expected) else ""
    return f"**reads {count}{order}**"


def _codes(root: Path, targets: list[str]) -> str:
    (report,) = check(targets, registry=root, options=CheckOptions(only=TRIED))
    codes = sorted({finding.code for finding in report.findings})
    return ", ".join(f"`{code}`" for code in codes) or "nothing"


def table(tfrecord: str, folder: Path) -> str:
    """The whole table."""
    with ExitStack() as stack:
        names: Mapping[str, str | None] = {"tensorflow": None, "beam": None, "tfrecord": tfrecord}
        readers = [stack.enter_context(OtherReader(name, python)) for name, python in names.items()]
        rows = [told(fault, folder, readers) for fault in _faults()]
        titles = ("TensorFlow", "Beam", "`tfrecord`")
        versions = [f"{title} {each.version}" for title, each in zip(titles, readers, strict=True)]
    head = ["fault", *versions, "tfrecreg"]
    lines = [_row(head), _row(["---"] * len(head))]
    for row in rows:
        kind = "gzip: " if row.fault.compression == "gzip" else ""
        lines.append(_row([kind + row.fault.name, *row.readers, row.ours]))
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Make the table, or look whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tfrecord", required=True, help="a Python that has `tfrecord`")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = table(arguments.tfrecord, Path(folder))
    return put(made, BEGIN, END, check=arguments.check)


def put(made: str, begin: str, end: str, *, check: bool) -> int:
    """Put a table between two lines of the page, or only compare; returns the exit code."""
    before, _, rest = PAGE.read_text("utf-8").partition(begin)
    old, _, after = rest.partition(end)
    if old == made:
        return 0
    if check:
        sys.stderr.write(f"the table of docs/{PAGE.name} is stale; it would be\n{made}")
        return 1
    PAGE.write_text(before + begin + made + end + after, "utf-8")
    sys.stdout.write(f"wrote docs/{PAGE.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
