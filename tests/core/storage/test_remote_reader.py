"""An open file of a store: ranges, retries, and bytes that differ between two reads."""

from __future__ import annotations

import os
import random
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from blake3 import blake3
from s3_support import SIGNATURE, Faults, faulty, web_server

from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.storage.raw import storage_of
from tfrecreg.core.storage.remote_reader import BLOCK_BYTES, RemoteReader
from tfrecreg.core.values.errors import MissingFileError, StorageError, TransferError, UsageError

DATA = random.Random(1).randbytes(2 * BLOCK_BYTES + 12345)
FILES = {"/a/large": DATA, "/a/small": DATA[:1000], "/secret/x": b"secret"}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with web_server(FILES) as port:
        yield port


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "8")
    monkeypatch.setenv("TFRECREG_REMOTE_SECONDS", "60")


def opened(port: int, path: str = "/a/large") -> RemoteReader:
    storage, inside = storage_of(f"http://127.0.0.1:{port}{path}")
    reader = storage.open(inside)
    assert isinstance(reader, RemoteReader)
    return reader


def whole(reader: RemoteReader, step: int = 1 << 20) -> bytes:
    pieces = []
    at = 0
    while piece := reader.read_at(at, step):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def test_a_file_is_read_from_front_to_back(port: int) -> None:
    with opened(port) as reader:
        assert reader.size == len(DATA)
        assert whole(reader) == DATA


def test_a_file_is_read_in_any_order(port: int) -> None:
    chosen = random.Random(2)
    with opened(port) as reader:
        for _ in range(30):
            start, length = chosen.randrange(len(DATA)), chosen.randrange(1 << 18)
            assert reader.read_at(start, length) == DATA[start : start + length]


def test_threads_may_share_a_reader(port: int) -> None:
    with opened(port) as reader, ThreadPoolExecutor(4) as pool:
        starts = range(0, len(DATA), 700_000)
        found = list(pool.map(lambda start: reader.read_at(start, 900_000), starts))
    assert found == [DATA[start : start + 900_000] for start in starts]


@pytest.mark.parametrize("kinds", [("cut",), ("503",), ("short",), ("cut", "503", "short")])
def test_requests_that_fail_are_tried_again(port: int, kinds: tuple[str, ...]) -> None:
    faults = Faults(0.4, *kinds, seed=3)
    with faulty(port, faults) as before, opened(before) as reader:
        assert whole(reader) == DATA
    assert faults.made


def test_retries_have_a_limit(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "2")
    faults = Faults(0)
    with faulty(port, faults) as before, opened(before) as reader:
        faults.share, faults.kinds = 1, ("503",)
        faults.gets = 0
        with pytest.raises(StorageError) as raised:
            reader.read_at(0, 100)
        assert faults.gets == 2
    assert raised.value.exit_code == 3
    assert raised.value.message.startswith(
        f"cannot read `http://127.0.0.1:{before}/a/large` after 2 attempts: ClientResponseError: "
        "503"
    )


@pytest.mark.parametrize("value", ["0", "abc", "nan", "1e6"])
def test_a_limit_that_is_no_number_is_refused(
    port: int, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", value)
    with pytest.raises(UsageError, match=f"should be a number above 0, found `{value}`"):
        opened(port)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "2")
    with web_server({}) as port:
        pass
    with pytest.raises(StorageError) as raised:
        opened(port)
    assert not isinstance(raised.value, MissingFileError)
    assert "after 2 attempts: ClientConnectorError" in raised.value.message


def test_a_server_that_delivers_half_of_each_range(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "2")
    faults = Faults(0)
    with faulty(port, faults) as before, opened(before) as reader:
        faults.share, faults.kinds = 1, ("short",)
        with pytest.raises(StorageError, match="expected 1000 bytes, received 500"):
            opened(before, "/a/small").read_at(0, 1000)
        assert reader.size == len(DATA)


def test_a_web_server_without_ranges_is_refused_for_large_files() -> None:
    with web_server(FILES, ranges=False) as port:
        assert whole(opened(port, "/a/small"), 400) == FILES["/a/small"]
        with pytest.raises(StorageError) as raised:
            opened(port)
    assert raised.value.message.endswith(
        "/a/large`, because its server sends no ranges: download the file first"
    )


def test_a_file_that_changes_is_not_taken_for_damage() -> None:
    files = dict(FILES)
    with web_server(files) as port:
        for change in (DATA[:-1], DATA[:-1] + b"x", None):
            files["/a/large"] = DATA
            with opened(port) as reader:
                reader.read_at(0, 1 << 20)
                if change is None:
                    del files["/a/large"]
                else:
                    files["/a/large"] = change
                with pytest.raises(StorageError, match="was changed while it was read"):
                    whole(reader)
                with pytest.raises(StorageError, match="was changed while it was read"):
                    reader.confirm(0, 10)


def test_a_second_read_gives_the_same_bytes(port: int) -> None:
    with opened(port) as reader:
        assert not reader.confirm(0, 100)
        reader.read_at(0, 100)
        assert reader.confirm(50, 60)
        assert not reader.confirm(BLOCK_BYTES, len(DATA))
        reader.read_at(2 * BLOCK_BYTES, 100)
        assert reader.confirm(2 * BLOCK_BYTES + 50, len(DATA))


@pytest.mark.parametrize("start", [0, 2 * BLOCK_BYTES])
def test_a_second_read_with_other_bytes_is_told(port: int, start: int) -> None:
    faults = Faults(0, "flip")
    with (
        faulty(port, faults, lambda body: bytes([body[0] ^ 1]) + body[1:]) as before,
        opened(before) as reader,
    ):
        faults.share = 1
        assert reader.read_at(start, 2) == bytes([DATA[start] ^ 1, DATA[start + 1]])
        faults.share = 0
        with pytest.raises(TransferError, match="had different bytes on a second read"):
            reader.confirm(start, start + 1)


def test_a_digest_of_altered_bytes_is_not_returned(port: int) -> None:
    expected = blake3(FILES["/a/small"]).hexdigest()
    faults = Faults(0, "flip")
    with faulty(port, faults, lambda body: bytes([body[0] ^ 1]) + body[1:]) as before:
        storage, path = storage_of(f"http://127.0.0.1:{before}/a/small")
        assert hash_file(storage, path, expected=expected) == (1000, expected, "")
        other = "0" * 64
        assert hash_file(storage, path, expected=other) == (1000, expected, "")
        faults.share, faults.most = 1, 1
        with pytest.raises(TransferError, match="had different bytes on a second read"):
            hash_file(storage, path, expected=expected)


def test_permissions_are_told_apart_from_what_is_missing(port: int) -> None:
    with pytest.raises(StorageError) as raised:
        opened(port, "/secret/x")
    assert raised.value.message == (
        f"cannot look at `http://127.0.0.1:{port}/secret/x`: permission denied"
    )
    assert "credentials come from the environment" in raised.value.hint
    with pytest.raises(MissingFileError, match="does not exist"):
        opened(port, "/a/nothing")


def test_a_presigned_url_is_read_and_never_shown(port: int) -> None:
    with opened(port, f"/secret/x?{SIGNATURE}") as reader:
        assert reader.read_at(0, 10) == b"secret"
    with pytest.raises(StorageError) as raised:
        opened(port, f"/secret/x?{SIGNATURE}wrong")
    assert "Signature" not in str(raised.value)


@pytest.mark.medium
def test_a_fork_reads_with_connections_of_its_own(port: int) -> None:
    from multiprocessing import get_context

    with opened(port) as reader:
        reader.read_at(0, 100)
        assert threading.active_count() > 1
        child = get_context("fork").Process(target=_read, args=(reader, port))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from Python 3.12 on, a fork beside threads warns
            child.start()
        child.join(30)
        assert child.exitcode == 0


def _read(reader: RemoteReader, port: int) -> None:
    assert whole(reader) == DATA
    assert reader.confirm(0, 100)
    with opened(port) as own:
        assert whole(own) == DATA
    os._exit(0)


@pytest.mark.medium
def test_a_server_that_does_not_go_on(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "2")
    monkeypatch.setenv("TFRECREG_REMOTE_SECONDS", "1")
    faults = Faults(0, "slow")
    with faulty(port, faults) as before, opened(before, "/a/small") as reader:
        faults.share = 1
        with pytest.raises(StorageError, match=r"after 2 attempts: .*Timeout.*: no answer in time"):
            reader.read_at(0, 100)
