"""Damaged files and builds through a data source and its certificate, against a reader of its own.

The reader here is strict and slow: it returns the payloads of a file that is sound from its first
byte to its last, or nothing. A source has to return the very same payloads, or to raise an error.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import google_crc32c
import pytest
from check_support import framed
from mutants_support import compressed, mutant, mutate

import tfrecreg
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.registry.init import init
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError

Compression = Literal["none", "gzip"]
EXCHANGED = "exchange_two_of_one_length"
"""What a source of a build with its index does not find: every record is there, once."""


def crc(data: bytes) -> bytes:
    value = google_crc32c.value(data)
    return struct.pack("<I", (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def strict(data: bytes) -> list[bytes] | None:
    """The payloads of a sound file; None for any other."""
    stream = data
    if data[:2] == b"\x1f\x8b":
        stream, rest = b"", data
        while rest:
            inflater = zlib.decompressobj(31)
            try:
                stream += inflater.decompress(rest)
            except zlib.error:
                return None
            if not inflater.eof:
                return None
            rest = inflater.unused_data
    found, at = [], 0
    while at < len(stream):
        head = stream[at : at + 12]
        if len(head) < 12 or crc(head[:8]) != head[8:]:
            return None
        (length,) = struct.unpack("<Q", head[:8])
        payload = stream[at + 12 : at + 12 + length]
        if len(payload) < length or crc(payload) != stream[at + 12 + length : at + 16 + length]:
            return None
        found.append(payload)
        at += 16 + length
    return found


def certified(source: tfrecreg.DataSource) -> tuple[list[bytes], bool]:
    """Its payloads, and whether the certificate calls them complete."""
    payloads = list(source)
    certificate = source.certificate()
    certificate.add_payloads(payloads)
    report = source.report(certificate)
    assert report.expected == len(source) == len(payloads)
    return payloads, report.is_complete


def judge_file(path: Path, number: int) -> str:
    """What a source makes of a mutant: ``error``, ``same`` or, where it is sound, ``other``."""
    made = mutant(number)
    path.write_bytes(made.data)
    os.utime(path, (1e9, 1e9 + number))
    expected = strict(made.data)
    told = f"mutant {number}: {made.done}"
    try:
        payloads, is_complete = certified(tfrecreg.data_source(path, raw=True))
    except TfrecregError:
        if expected is not None:
            raise
        return "error"
    assert payloads == expected, f"{told}: not what is in it"
    assert is_complete, told
    if payloads == list(made.payloads):
        return "same"
    # A sound file of other records. Nothing in it tells that it was another one.
    assert made.done, told
    return "other"


def sweep_files(tmp_path: Path, numbers: range) -> dict[str, int]:
    path = tmp_path / "x.tfrecord"
    found = [judge_file(path, number) for number in numbers]
    return {each: found.count(each) for each in ("error", "same", "other")}


def test_a_source_agrees_with_a_strict_reader(tmp_path: Path) -> None:
    found = sweep_files(tmp_path, range(150))
    assert found["error"] > 60
    assert found["same"] > 8
    assert 0 < found["other"] < 20


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("start", range(10_000, 14_000, 1_000))
def test_a_source_agrees_with_a_strict_reader_about_thousands(tmp_path: Path, start: int) -> None:
    found = sweep_files(tmp_path, range(start, start + 1_000))
    assert found["error"] > 500
    assert found["other"] < 100


# --- builds


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[Compression, Path]:
    """Folders of a build of 60 images in two shards, plain and gzip."""
    root = tmp_path_factory.mktemp("builds") / "r"
    write_digits(LocalStorage(root / "raw"), train=60, test=2, seed=1)
    init(root, with_dvc=False)
    registry = tfrecreg.open(root)
    found: dict[Compression, Path] = {}
    for compression in ("none", "gzip"):
        name = f"digits_{compression}"
        registry[name].build(source="mnist", raw=root / "raw", shards=2, compression=compression)
        found[compression] = root / "data" / name
    return found


def frames(dice: random.Random, payloads: list[bytes]) -> tuple[int, int]:
    """Two records of one length."""
    lengths = [len(each) for each in payloads]
    pairs = [
        (one, other)
        for one in range(len(payloads))
        for other in range(len(payloads))
        if lengths[one] == lengths[other] and payloads[one] != payloads[other]
    ]
    return dice.choice(pairs)


def copy_over_one_of_the_same_length(dice: random.Random, payloads: list[bytes]) -> None:
    one, other = frames(dice, payloads)
    payloads[one] = payloads[other]


def exchange_two_of_one_length(dice: random.Random, payloads: list[bytes]) -> None:
    one, other = frames(dice, payloads)
    payloads[one], payloads[other] = payloads[other], payloads[one]


def exchange_any(dice: random.Random, payloads: list[bytes]) -> None:
    one, other = dice.sample(range(len(payloads)), 2)
    payloads[one], payloads[other] = payloads[other], payloads[one]


def change_a_payload(dice: random.Random, payloads: list[bytes]) -> None:
    number = dice.randrange(len(payloads))
    changed = bytearray(payloads[number])
    changed[dice.randrange(len(changed))] ^= 1
    payloads[number] = bytes(changed)


REWRITES: tuple[Callable[[random.Random, list[bytes]], None], ...] = (
    copy_over_one_of_the_same_length,
    exchange_two_of_one_length,
    exchange_any,
    change_a_payload,
)


def damage_build(dice: random.Random, folder: Path, compression: Compression) -> list[str]:
    """Damage a shard or its index, in most cases so that the size of the shard stays."""
    shard = dice.choice(sorted(folder.glob("*train.tfrecord*")))
    data = shard.read_bytes()
    payloads = strict(data)
    assert payloads is not None
    done: list[str] = []
    index = folder / "index" / f"{shard.name}.index"
    if dice.randrange(3) == 0:
        rewrite = dice.choice(REWRITES)
        rewrite(dice, payloads)
        done.append(rewrite.__name__)
        changed = framed(*payloads)
        if compression == "gzip":
            changed = compressed(dice, changed)
            # The size in the manifest is that of the file: fill up with a name in a header.
            if len(data) - len(changed) > 0:
                name = b"n" * (len(data) - len(changed) - 1) + b"\0"
                changed = changed[:3] + b"\x08" + changed[4:10] + name + changed[10:]
    else:
        changed = mutate(dice, data, tuple(payloads), compression, done)
        if dice.randrange(4):
            changed = (changed + data[len(changed) :])[: len(data)]
    shard.write_bytes(changed)
    if index.exists() and dice.randrange(5) == 0:
        rows = bytearray(index.read_bytes())
        rows[dice.randrange(len(rows))] ^= 1 << dice.randrange(8)
        index.write_bytes(rows)
        done.append("index")
    return done


def sweep_build(
    tmp_path: Path, original: Path, compression: Compression, numbers: range, *, indexed: bool
) -> dict[str, int]:
    source = tfrecreg.data_source(original, "train", raw=True)
    expected, keys = list(source), [source.key(number) for number in range(len(source))]
    found: list[str] = []
    for number in numbers:
        dice = random.Random(f"{number} {compression} {indexed}")
        folder = tmp_path / f"{number}"
        shutil.copytree(original, folder)
        if not indexed:
            shutil.rmtree(folder / "index")
        done = damage_build(dice, folder, compression)
        found.append(judge_build(folder, expected, keys, f"build {number}: {done}", done))
        shutil.rmtree(folder)
    return {each: found.count(each) for each in ("error", "same", "certificate", "exchanged")}


def judge_build(
    folder: Path, expected: list[bytes], keys: list[str | None], told: str, done: list[str]
) -> str:
    try:
        source = tfrecreg.data_source(folder, "train", raw=True)
        payloads, is_complete = certified(source)
        if (folder / "index").exists():
            assert [source.key(number) for number in range(len(source))] == keys, told
    except TfrecregError:
        return "error"
    if payloads == expected:
        assert is_complete, told
        return "same"
    assert (folder / "index").exists(), f"{told}: without an index nothing else tells"
    if done[0] in (EXCHANGED, "exchange_any") and sorted(payloads) == sorted(expected):
        assert is_complete, told
        return "exchanged"
    assert not is_complete, told
    return "certificate"


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_build_is_read_as_it_was_made_or_not_at_all(
    tmp_path: Path, builds: dict[Compression, Path], compression: Compression, indexed: bool
) -> None:
    found = sweep_build(tmp_path, builds[compression], compression, range(40), indexed=indexed)
    assert found["error"] > 15


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("start", [1_000, 1_750])
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_thousands_of_builds_are_read_as_they_were_made_or_not_at_all(
    tmp_path: Path,
    builds: dict[Compression, Path],
    compression: Compression,
    indexed: bool,
    start: int,
) -> None:
    numbers = range(start, start + 750)
    found = sweep_build(tmp_path, builds[compression], compression, numbers, indexed=indexed)
    assert found["error"] > 400
    assert (found["certificate"] > 0) == indexed
