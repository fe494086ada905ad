"""Reading a local file at any place, and what is refused."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from storage_support import put, run

from tfrecreg.core.storage import local as reader_module
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import MissingFileError, StorageError


class TestOpen:
    def test_reads_at_any_place(self, storage: LocalStorage) -> None:
        put(storage, "a", bytes(range(100)))
        with storage.open("a") as reader:
            assert reader.size == 100
            assert reader.read_at(0, 100) == bytes(range(100))
            assert reader.read_at(90, 100) == bytes(range(90, 100))
            assert reader.read_at(100, 1) == b""
            assert reader.read_at(5000, 1) == b""
            assert reader.read_at(10, 0) == b""

    def test_sees_what_was_appended_and_what_was_cut(self, storage: LocalStorage) -> None:
        path = put(storage, "a", b"12345")
        with storage.open("a") as reader:
            with path.open("ab") as file:
                file.write(b"678")
            assert reader.read_at(3, 100) == b"45678"
            os.truncate(path, 2)
            assert reader.read_at(0, 5) == b"12"
            assert reader.read_at(3, 2) == b""

    def test_short_reads_are_continued(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(storage, "a", b"0123456789")
        pread = os.pread
        # The kernel reads short from local files only when signals or 2 GiB come into it.
        monkeypatch.setattr(reader_module.os, "pread", lambda f, n, at: pread(f, min(n, 3), at))
        with storage.open("a") as reader:
            assert reader.read_at(0, 10) == b"0123456789"
            assert reader.read_at(2, 7) == b"2345678"
            assert reader.read_at(8, 7) == b"89"

    def test_missing_file_is_told_apart(self, storage: LocalStorage) -> None:
        put(storage, "a")
        (Path(storage.root) / "dangling").symlink_to("nothing")
        for path in ("b", "a/b", "b/c", "dangling"):
            with pytest.raises(MissingFileError) as caught:
                storage.open(path)
            assert caught.value.message == f"`{storage.root}/{path}` does not exist"
            assert caught.value.exit_code == 2

    def test_what_is_no_regular_file_is_refused_without_waiting(
        self, storage: LocalStorage, tmp_path: Path
    ) -> None:
        put(storage, "folder/file")
        os.mkfifo(Path(storage.root) / "fifo")
        (Path(storage.root) / "null").symlink_to("/dev/null")
        for path in ("folder", "fifo", "null"):
            with pytest.raises(StorageError) as caught:
                storage.open(path)
            assert caught.value.message == (
                f"cannot read `{storage.root}/{path}`: it is not a regular file"
            )

    def test_links_are_followed_wherever_they_lead(
        self, storage: LocalStorage, tmp_path: Path
    ) -> None:
        put(storage, "a")
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "x").write_bytes(b"cached")
        (Path(storage.root) / "x").symlink_to(tmp_path / "cache" / "x")
        (Path(storage.root) / "d").symlink_to(tmp_path / "cache")
        assert storage.read("x") == b"cached"
        assert storage.read("d/x") == b"cached"

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
    def test_input_output_error_is_a_storage_error(self) -> None:
        # Address 0 of a process is never mapped: reading it is a true EIO.
        with LocalStorage("/proc/self").open("mem") as reader:
            reader.size = 1 << 40
            with pytest.raises(StorageError) as caught:
                reader.read_at(0, 16)
        assert caught.value.message == "cannot read `/proc/self/mem`: Input/output error"
        assert isinstance(caught.value.__cause__, OSError)

    def test_permission_denied_is_one_line(self) -> None:
        script = (
            "import os, sys\n"
            "from tfrecreg.core.values.errors import StorageError\n"
            "from tfrecreg.core.storage.local import LocalStorage\n"
            "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
            "storage = LocalStorage(sys.argv[1])\n"
            "def tell(call):\n"
            "    try: call()\n"
            "    except StorageError as error: print(error.message)\n"
            "tell(lambda: storage.read('secret'))\n"
            "tell(lambda: storage.stat('closed/x'))\n"
            "tell(lambda: list(storage.list()))\n"
            "tell(lambda: storage.create('closed/new'))\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            secret, closed = Path(folder) / "secret", Path(folder) / "closed"
            secret.write_bytes(b"x")
            secret.chmod(0)
            closed.mkdir()
            closed.chmod(0)
            done = run(script, folder)
            closed.chmod(0o755)
        assert done.stdout.splitlines() == [
            f"cannot read `{folder}/secret`: Permission denied",
            f"cannot look at `{folder}/closed/x`: Permission denied",
            f"cannot list `{folder}/closed/`: Permission denied",
            f"cannot write `{folder}/closed/new`: Permission denied",
        ], done.stderr
