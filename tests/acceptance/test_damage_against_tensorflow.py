"""The predicted behavior of TensorFlow on damaged files, compared with TensorFlow."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from check_support import framed
from memory_support import see
from mutants_support import Mutant, disagreement, expected, mutant

from docs.other_readers import OtherReader, Reading, record_mark
from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.gzip_writer import INPUT_BUFFER, GzipEncoder
from tfrecreg.core.values.codes import CORE_CODES, CodeList
from tfrecreg.core.values.findings import TensorflowOutcome

SWEEP = range(1_000, 11_000)
"""Numbers of mutants."""
PART = 2_500
"""So many are read in one test, so that several run at once."""


@pytest.fixture(scope="module")
def tensorflow() -> Iterator[OtherReader]:
    if find_spec("tensorflow") is None:
        pytest.skip("the extra `tf` is not installed")
    with OtherReader("tensorflow") as reader:
        yield reader


def readings(
    reader: OtherReader, files: Sequence[Mutant], folder: Path
) -> Iterator[tuple[Mutant, Reading]]:
    """Each file, as the other reader reads it."""
    for each in files:
        (folder / str(each.number)).write_bytes(each.data)
    paths = [(str(folder / str(each.number)), each.compression) for each in files]
    yield from zip(files, reader.read(paths), strict=True)
    for each in files:
        (folder / str(each.number)).unlink()


def sweep(reader: OtherReader, numbers: range, folder: Path) -> None:
    """Each mutant: we agree, or the first fault says what TensorFlow makes of the file."""
    classes: Counter[tuple[str, str]] = Counter()
    disagreements = []
    for start in range(numbers.start, numbers.stop, 500):
        files = [mutant(number) for number in range(start, min(start + 500, numbers.stop))]
        for made, theirs in readings(reader, files, folder):
            problem = disagreement(made, theirs)
            if problem:
                disagreements.append(f"{made.number} ({made.compression}, {made.done}): {problem}")
            ours = expected(see(made.data, declared=made.compression))
            classes[ours.code, ours.outcome.value] += 1
    for (code, outcome), count in sorted(classes.items()):
        print(f"{count:6} {code or 'sound':7} {outcome}")
    assert disagreements == []
    assert {outcome for _, outcome in classes} == {each.value for each in TensorflowOutcome}
    assert {code for code, _ in classes} >= {"", *(code.code for code in CodeList("CRC*"))}


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("begin", SWEEP[::PART])
def test_10000_mutants_are_read_as_predicted(
    begin: int, tensorflow: OtherReader, tmp_path: Path
) -> None:
    sweep(tensorflow, range(begin, begin + PART), tmp_path)


@pytest.mark.medium
def test_no_fault_has_an_outcome_that_its_code_does_not_know() -> None:
    for number in range(2_000):
        made = mutant(number)
        for fault in see(made.data, declared=made.compression).faults:
            assert fault.tensorflow in CORE_CODES[fault.code].tensorflow, number


def member(stream: bytes, extra: int = 0) -> bytes:
    """A gzip member with so many bytes of an extra field in its header."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = deflater.compress(stream) + deflater.flush()
    head = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff" + struct.pack("<H", extra) + bytes(extra)
    return head + body + struct.pack("<II", zlib.crc32(stream), len(stream))


def buffer_files() -> Iterator[tuple[int, bytes, bool]]:
    """Sound gzip files with a member that ends so many bytes behind the end of a buffer, and
    whether TensorFlow reads them whole.
    """
    dice = random.Random(1)
    large = framed(*(dice.randbytes(1000) for _ in range(252)))
    begin = INPUT_BUFFER - len(member(large))
    rest = b"".join(member(framed(b"%d" % number)) for number in range(5))
    for behind in range(-3, 15):
        yield behind, member(large, begin + behind) + rest, not 1 <= behind <= 10
    yield 5, member(large, begin + 5) + 2 * member(large) + rest, True
    # Behind the first end the buffer is filled from there: that moves where the next one ends.
    for behind in range(-3, 15):
        data = member(large, begin + 5) + member(large, begin + behind) + rest
        yield behind, data, not 1 <= behind <= 10


@pytest.mark.slow
def test_sound_gzip_of_which_tensorflow_loses_the_end_is_found(
    tensorflow: OtherReader, tmp_path: Path
) -> None:
    cases = [
        Mutant(number, "gzip", (), data, (str(behind), str(whole)))
        for number, (behind, data, whole) in enumerate(buffer_files())
    ]
    record = framed(b"a record")
    empty = gzip.compress(b"", mtime=0)
    plain = [
        (empty + member(record), False),
        (member(record) + empty + member(record), False),
        (member(record) + empty, True),
        (member(record) + empty + empty, False),
    ]
    cases += [
        Mutant(100 + number, "gzip", (), data, ("empty", str(whole)))
        for number, (data, whole) in enumerate(plain)
    ]
    for made, theirs in readings(tensorflow, cases, tmp_path):
        assert disagreement(made, theirs) == "", made.done
        seen = see(made.data)
        assert seen.codes == ([] if made.done[1] == "True" else ["CRC009"]), made.done
        assert theirs.silent
    assert len(cases) > 40


@pytest.mark.slow
def test_what_we_write_is_read_whole_wherever_members_would_end(
    tensorflow: OtherReader, tmp_path: Path
) -> None:
    dice = random.Random(5)
    large = dice.randbytes(INPUT_BUFFER)
    rest = [b"record %d" % number for number in range(3)]

    def written(payload: bytes, *, apart: bool) -> bytes:
        encoder = GzipEncoder(8, apart=apart)
        return b"".join(encoder.write(framed(each)) for each in (payload, *rest)) + encoder.close()

    alone = GzipEncoder(apart=True)
    more = len(alone.write(framed(large)) + alone.close()) - INPUT_BUFFER
    cases = []
    for behind in range(-1, 13):
        payload = large[: INPUT_BUFFER - more + behind]
        for apart in (False, True):
            data = written(payload, apart=apart)
            cases.append(Mutant(len(cases), "gzip", (payload, *rest), data, (str(apart),)))
    lost = 0
    for made, theirs in readings(tensorflow, cases, tmp_path):
        assert disagreement(made, theirs) == ""
        whole = tuple(record_mark(payload) for payload in made.payloads)
        assert theirs.records == whole or made.done == ("True",)
        lost += theirs.records != whole
    # Of what does not compress, nothing but the eight bytes of the trailer makes nothing.
    assert lost == 8, "without moving them, TensorFlow loses the end of these"


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("followed", [True, False])
def test_lengths_that_no_file_could_hold_crash_tensorflow_where_it_is_said(
    compression: str, followed: bool, tensorflow: OtherReader, tmp_path: Path
) -> None:
    lengths = (2**31 + 1, 2**32, 2**35, 2**40, 2**62, 2**63 - 5, 2**63 - 4, 2**64 - 5, 2**64 - 1)
    cases = []
    for number, length in enumerate(lengths):
        data = framed(b"first") + frame_header(length) + (b"data" if followed else b"")
        packed = data if compression == "none" else gzip.compress(data)
        cases.append(Mutant(number, compression, (), packed, (str(length),)))  # type: ignore[arg-type]  # parametrized text
    crashed = []
    for made, theirs in readings(tensorflow, cases, tmp_path):
        assert disagreement(made, theirs) == "", made.done
        if theirs.crash:
            crashed.append(int(made.done[0]))
    assert crashed == (list(lengths[2:6]) if compression == "none" and followed else [])
