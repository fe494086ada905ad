"""Writing a local file: unseen until it is whole, then durable."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest
from storage_support import forbid_links, names, put, run

from tfrecreg.core.storage import writer as writer_module
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.errors import StorageError


class TestCreate:
    def test_appears_when_it_is_closed(self, storage: LocalStorage) -> None:
        writer = storage.create("a/b/c")
        writer.write(b"12")
        writer.write(memoryview(b"345"))
        assert storage.stat("a/b/c") is None
        assert [is_temporary(path) for path in names(storage)] == [False, False, True]
        writer.close()
        writer.close()
        assert storage.read("a/b/c") == b"12345"
        assert names(storage) == ["a", "a/b", "a/b/c"]

    @pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_000])
    def test_writes_every_byte_whatever_the_pieces(self, storage: LocalStorage, size: int) -> None:
        data = os.urandom(size)
        with storage.create("a") as writer:
            position, step = 0, 1
            while position < size:
                writer.write(memoryview(data)[position : position + step])
                position, step = position + step, step * 3
        assert storage.read("a") == data

    def test_replaces_what_was_there(self, storage: LocalStorage) -> None:
        put(storage, "a", b"old")
        put(storage, "b", b"linked")
        (Path(storage.root) / "l").symlink_to("b")
        for path in ("a", "l"):
            with storage.create(path) as writer:
                writer.write(b"new")
                assert storage.read(path) != b"new"
        assert storage.read("a") == b"new"
        assert not (Path(storage.root) / "l").is_symlink()
        assert storage.read("b") == b"linked"

    def test_exception_drops_it_without_a_trace(self, storage: LocalStorage) -> None:
        put(storage, "a", b"old")
        with contextlib.suppress(KeyError), storage.create("a") as writer:
            writer.write(b"new")
            raise KeyError
        assert names(storage) == ["a"]
        assert storage.read("a") == b"old"

    def test_abort_drops_it_and_closing_then_does_nothing(self, storage: LocalStorage) -> None:
        with storage.create("a") as writer:
            writer.write(b"new")
            writer.abort()
            writer.abort()
        assert names(storage) == []

    def test_mode_follows_the_umask(self, storage: LocalStorage) -> None:
        before = os.umask(0o027)
        try:
            with storage.create("folder/a"):
                pass
            storage.put_if_absent("b", b"")
        finally:
            os.umask(before)
        root = Path(storage.root)
        assert [(root / n).stat().st_mode & 0o777 for n in ("folder/a", "b", "folder")] == [
            0o640,
            0o640,
            0o750,
        ]

    @pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "." * 255, "x" * 232 + "é" * 11])
    def test_names_may_be_as_long_as_the_system_allows(
        self, storage: LocalStorage, name: str
    ) -> None:
        with storage.create(name) as writer:
            (temporary,) = names(storage)
            assert is_temporary(temporary)
            writer.write(b"x")
        assert names(storage) == [name]

    def test_folder_in_its_place_is_kept(self, storage: LocalStorage) -> None:
        put(storage, "a/b")
        writer = storage.create("a")
        with pytest.raises(StorageError, match=r"(?m)^cannot write `.*/a`: Is a directory$"):
            writer.close()
        assert names(storage) == ["a", "a/b"]

    def test_failed_write_makes_close_refuse(self, tmp_path: Path) -> None:
        script = (
            "import resource, sys\n"
            "from tfrecreg.core.values.errors import StorageError\n"
            "from tfrecreg.core.storage.local import LocalStorage\n"
            "storage = LocalStorage(sys.argv[1])\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
            "writer = storage.create('a')\n"
            "for call in (lambda: writer.write(bytes(2_000_000)), lambda: writer.write(b'x'),\n"
            "             writer.close, writer.close):\n"
            "    try: call()\n"
            "    except StorageError as error:\n"
            "        print(error.message, type(error.__cause__).__name__, sep='|')\n"
            "    print([entry.path for entry in storage.list()])\n"
            "writer.abort()\n"
            "try:\n"
            "    with storage.create('b') as writer: writer.write(bytes(200_000))\n"
            "except StorageError as error: print(error.message)\n"
            "try: storage.put_if_absent('c', bytes(200_000))\n"
            "except StorageError as error: print(error.message)\n"
            "print([entry.path for entry in storage.list()])\n"
        )
        done = run(script, str(tmp_path))
        refused = f"cannot write `{tmp_path}/a`: File too large"
        assert done.stdout.splitlines() == [
            *[f"{refused}|OSError", "[]"] * 4,
            f"cannot write `{tmp_path}/b`: File too large",
            f"cannot write `{tmp_path}/c`: File too large",
            "[]",
        ], done.stderr

    def test_killed_writer_leaves_only_a_temporary_file(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"old")
        script = (
            "import os, sys\n"
            "from tfrecreg.core.storage.local import LocalStorage\n"
            "writer = LocalStorage(sys.argv[1]).create('a')\n"
            "writer.write(bytes(3_000_000))\n"
            "os.kill(os.getpid(), 9)\n"
        )
        assert run(script, str(tmp_path)).returncode == -9
        storage = LocalStorage(tmp_path)
        assert storage.read("a") == b"old"
        rest = [path for path in names(storage) if path != "a"]
        assert len(rest) == 1
        assert is_temporary(rest[0])
        assert storage.remove_abandoned(rest[0]) is True
        assert storage.remove_abandoned(rest[0]) is False  # it is not there any more
        assert names(storage) == ["a"]

    def test_the_temporary_file_of_a_living_writer_is_not_abandoned(
        self, storage: LocalStorage
    ) -> None:
        with storage.create("a") as writer:
            writer.write(b"new")
            (temporary,) = names(storage)
            assert storage.remove_abandoned(temporary) is False
            assert names(storage) == [temporary]
        assert storage.read("a") == b"new"

    @pytest.mark.parametrize("number", [errno.ENOLCK, errno.EIO])
    def test_where_locks_fail_no_temporary_file_is_removed(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        def flock(handle: int, operation: int) -> None:
            raise OSError(number, os.strerror(number))

        name = ".a.0123456789abcdef.tmp"
        put(storage, name)
        monkeypatch.setattr(fcntl, "flock", flock)
        if number == errno.ENOLCK:  # a file system without locks
            assert storage.remove_abandoned(name) is False
        else:
            with pytest.raises(StorageError, match=r"cannot remove .*: Input/output error"):
                storage.remove_abandoned(name)
        assert names(storage) == [name]


class TestPutIfAbsent:
    def test_first_one_wins(self, storage: LocalStorage) -> None:
        assert storage.put_if_absent("a/b", b"1") is True
        assert storage.put_if_absent("a/b", b"2") is False
        assert storage.read("a/b") == b"1"
        assert names(storage) == ["a", "a/b"]

    def test_whatever_is_there_is_kept(self, storage: LocalStorage) -> None:
        put(storage, "folder/a")
        (Path(storage.root) / "dangling").symlink_to("nothing")
        assert storage.put_if_absent("folder", b"") is False
        assert storage.put_if_absent("dangling", b"") is False
        assert names(storage) == ["dangling", "folder", "folder/a"]

    @pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
    def test_of_many_at_once_one_wins(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, links: bool
    ) -> None:
        if not links:
            forbid_links(monkeypatch)
        won: list[int] = []
        barrier = threading.Barrier(8)

        def attempt(number: int) -> None:
            barrier.wait()
            if storage.put_if_absent("a", b"%d" % number):
                won.append(number)

        threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert storage.read("a") == b"%d" % won[0]
        assert names(storage) == ["a"]

    def test_claim_is_given_back_where_the_rename_fails(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(source: str, target: str) -> None:
            raise OSError(5, "Input/output error")

        forbid_links(monkeypatch)
        monkeypatch.setattr(writer_module.os, "replace", fail)
        with pytest.raises(StorageError, match=r"(?m)Input/output error$"):
            storage.put_if_absent("a", b"1")
        assert names(storage) == []
