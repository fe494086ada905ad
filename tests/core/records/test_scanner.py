"""Which scanner reads, and that it does not matter: batches and faults are the same."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_support import MemoryFolder, see
from salvage_support import compress, make
from sweep_support import part

from tfrecreg.core.records import scanner as scanner_module
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.frame_scan import PythonFrameScanner
from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.scanner import (
    VARIABLE,
    NativeFrameScanner,
    make_frame_scanner,
    scanner,
    scanner_kind,
)
from tfrecreg.core.values.codes import CodeList
from tfrecreg.core.values.errors import FailureError, TfrecregError, UsageError

WINDOWS: tuple[dict[str, Any], ...] = (
    {},
    {"batch_bytes": 1},
    {"batch_bytes": 333},
    {"batch_bytes": 16, "hold_limit": 10},
)
CODES = {code.code for code in CodeList("CRC*")}


def account(data: bytes, **options: Any) -> list[Any]:
    """Every event of a scan, in order and in full."""
    told: list[Any] = []
    for event in scan(MemoryFolder({"x": data}), "x", **options):  # type: ignore[arg-type]
        if isinstance(event, RecordBatch):
            columns = [list(each) for each in (event.offsets, event.starts, event.lengths)]
            told.append((event.first, columns, event.memory, event.whole))
        else:
            told.append(event)
    return told


@pytest.fixture
def both(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The account of a file, which is that of either scanner."""

    def compare(data: bytes, **options: Any) -> list[Any]:
        monkeypatch.setenv(VARIABLE, "python")
        expected = account(data, **options)
        monkeypatch.setenv(VARIABLE, "native")
        assert account(data, **options) == expected
        return expected

    return compare


def codes_of(told: list[Any]) -> set[str]:
    return {each.code for each in told if hasattr(each, "code")}


@pytest.fixture(scope="module")
def little() -> Any:
    """12 records of 0 to 60 bytes: so few bytes that each of them can be damaged."""
    source = random.Random(12)
    lengths = (20, 0, 1, 60, 5, 0, 33, 7, 8, 9, 24, 3)
    return make([source.randbytes(length) for length in lengths])


def damaged(stream: bytes) -> Iterator[bytes]:
    """Everything that is done to a stream, each once at each of its bytes."""
    source = random.Random(4)
    for at in range(len(stream)):
        yield stream[:at]
        yield stream[:at] + bytes([stream[at] ^ 1 << source.randrange(8)]) + stream[at + 1 :]
        yield stream[:at] + stream[at + 1 :]
        yield stream[:at] + b"\x07" + stream[at:]
        yield stream[:at] + bytes(16) + stream[at + 16 :]
        yield stream[:at] + source.randbytes(12) + stream[at + 12 :]


@pytest.mark.parametrize(
    "window",
    [WINDOWS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in WINDOWS[1:])],
    ids=str,
)
def test_damage_of_any_byte_is_told_alike(window: dict[str, Any], little: Any, both: Any) -> None:
    codes = set()
    for data in damaged(little.stream):
        codes |= codes_of(both(data, **window))
    assert codes >= {"CRC001", "CRC002", "CRC003", "CRC004"}


@pytest.mark.slow
def test_damage_of_any_byte_of_gzip_is_told_alike(little: Any, both: Any) -> None:
    codes = set()
    for member_bytes in (1, 100, 1 << 20):
        data, members = compress(little, member_bytes)
        for number, each in enumerate(damaged(data)):
            hints = {"known_offsets": little.offsets, "members": members} if number % 2 else {}
            codes |= codes_of(both(each, digest=number % 3 == 0, **hints))
    assert codes >= {"CRC007"}


def specials(little: Any, compress: Any) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """What no single byte does."""
    stream, starts = little.stream, little.offsets
    for length in (2**31, 2**31 + 1, 2**40, 2**64 - 17, 2**64 - 1):
        yield frame_header(length) + bytes(66), {}
        yield stream[: starts[3]] + frame_header(length) + stream[starts[3] + 12 :], {}
        yield stream + frame_header(length), {}
    for count in (1, 11, 12, 15, 16, 17, 3000):
        yield stream + bytes(count), {}
        yield stream + random.Random(count).randbytes(count), {}
        yield bytes(count), {}
    yield b"", {}
    yield b"This is not a TFRecord.\n" * 40, {}
    yield b"version https://git-lfs.github.com/spec/v1\n", {}
    yield stream, {"declared": "gzip"}
    yield compress(little)[0], {"declared": "none"}
    yield compress(little)[0] + b"rest", {"declared": "gzip"}
    parts = (stream[: starts[6]], b"", stream[starts[6] :])
    yield b"".join(gzip.compress(part, mtime=0) for part in parts), {}
    broken = bytearray(stream)
    for number in (0, 3, 4, 8):
        broken[starts[number] + 9] ^= 0x10
    yield bytes(broken), {}
    yield bytes(broken), {"known_offsets": starts}
    yield bytes(broken), {"known_offsets": [each + 1 for each in starts]}


def test_every_code_is_told_alike(little: Any, both: Any) -> None:
    codes = set()
    for data, options in specials(little, compress):
        for window in WINDOWS:
            codes |= codes_of(both(data, **options, **window))
    for data in (little.stream[:-1], little.stream[:-1] + b"\0", compress(little)[0][:-1]):
        codes |= codes_of(both(data))
    assert codes == CODES


def test_larger_shards_are_told_alike(both: Any) -> None:
    source = random.Random(6)
    lengths = [source.choice((0, 900, 5000, 200_000)) for _ in range(60)]
    made = make([source.randbytes(length) for length in lengths])
    assert len(both(made.stream)) > 3
    for _ in range(12):
        data = bytearray(made.stream)
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        assert codes_of(both(bytes(data), digest=True))


@pytest.mark.slow
def test_any_of_10000_random_damages_is_told_alike(small_shard: Any, both: Any) -> None:
    for number in part(range(10_000)):
        source = random.Random(number)
        data = bytearray(small_shard.stream)
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(data))
            size = source.choice((1, 1, 4, 12, 100))
            action = source.randrange(3)
            data[at : at + size] = (b"", source.randbytes(size), bytes(size))[action]
        both(bytes(data), **source.choice(WINDOWS))


def test_compiled_scanner_is_taken_where_it_is(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("auto", "native", ""):
        monkeypatch.setenv(VARIABLE, value)
        assert scanner_kind() == "native"
        assert scanner().detail in scanner_module.ENGINES
        assert isinstance(make_frame_scanner(), NativeFrameScanner)
    monkeypatch.delenv(VARIABLE)
    assert scanner_kind() == "native"


def test_python_is_taken_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "python")
    assert scanner() == ("python", "TFRECREG_SCANNER=python")
    assert isinstance(make_frame_scanner(), PythonFrameScanner)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for the library where there is none."""
    library = tmp_path / "libwalk.so.1"
    monkeypatch.setattr(scanner_module, "LIBRARY", library)
    scanner_module.load_scanner.cache_clear()
    yield library
    scanner_module.load_scanner.cache_clear()


def refusal(kind: type[TfrecregError]) -> TfrecregError:
    with pytest.raises(kind) as caught:
        scanner_kind()
    return caught.value


def test_without_a_library_python_reads(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, small_shard: Any
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert scanner() == ("python", "there is no compiled scanner: it was not compiled")
    assert see(small_shard.stream).records == small_shard.records


def test_asked_for_and_not_there_it_is_a_failure(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "native")
    error = refusal(FailureError)
    assert error.exit_code == 3
    assert error.message == "there is no compiled scanner: it was not compiled"


def test_what_is_no_library_is_not_used(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere.write_bytes(b"not a library")
    monkeypatch.setenv(VARIABLE, "native")
    error = refusal(FailureError)
    assert error.message.startswith("there is no compiled scanner: it cannot be loaded: ")
    monkeypatch.setenv(VARIABLE, "auto")
    assert scanner_kind() == "python"


def test_library_of_another_source_is_not_used(
    compiled: Path, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere.write_bytes(compiled.read_bytes())
    source = tmp_path / "walk.c"
    source.write_bytes(scanner_module.SOURCE.read_bytes() + b"\n")
    monkeypatch.setattr(scanner_module, "SOURCE", source)
    monkeypatch.setenv(VARIABLE, "native")
    assert refusal(FailureError).message == (
        "there is no compiled scanner: it was compiled from another `walk.c`"
    )
    # A wheel has no source to compare with: its library came with it.
    source.unlink()
    assert scanner_kind() == "native"


def test_variable_that_names_no_scanner_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "fast\x1b")
    error = refusal(UsageError)
    assert error.exit_code == 2
    assert error.message == (
        r"`TFRECREG_SCANNER` should be `auto`, `native` or `python`, found `fast\x1b`"
    )
