"""LocalStorage against the real file system: looking, listing, linking, removing."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_support import forbid_links, names, put

from tfrecreg.core.storage import writer as writer_module
from tfrecreg.core.storage.interface import Entry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import list_through_links
from tfrecreg.core.values.errors import StorageError, UsageError


class TestStat:
    def test_knows_every_kind(self, storage: LocalStorage, tmp_path: Path) -> None:
        file = put(storage, "a/b", b"12345").stat()
        root = Path(storage.root)
        # Its name begins like the root's, and it is outside all the same.
        (tmp_path / "root-2").mkdir()
        (tmp_path / "root-2" / "file").write_bytes(b"123")
        os.mkfifo(root / "fifo")
        for name, target in (
            *(("link", "a/b"), ("here", "."), ("dangling", "nothing"), ("loop", "loop")),
            *(("l", tmp_path / "root-2/file"), ("d", tmp_path / "root-2")),
        ):
            (root / name).symlink_to(target)
        assert storage.stat("a/b") == Entry("a/b", "file", 5, file.st_mtime_ns, file.st_ino)
        assert storage.stat("a/c") is storage.stat("a/b/c") is None
        for path, kind, size in (
            *(("", "dir", 0), ("a", "dir", 0), ("here", "dir", 0), ("link", "file", 5)),
            *(("dangling", "link", 0), ("loop", "link", 0), ("fifo", "other", 0)),
            *(("l", "link", 0), ("d", "link", 0), ("d/file", "link", 0)),
        ):
            entry = storage.stat(path)
            assert entry is not None
            assert (entry.path, entry.kind, entry.size) == (path, kind, size)

    def test_link_that_leaves_the_root_is_followed_where_that_is_asked_for(
        self, storage: LocalStorage, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "file").write_bytes(b"12345")
        put(storage, "a")
        (Path(storage.root) / "l").symlink_to(outside / "file")
        (Path(storage.root) / "d").symlink_to(outside)
        (Path(storage.root) / "gone").symlink_to("nothing")
        for path in ("l", "d/file"):
            entry = storage.stat(path, follow="all")
            assert entry is not None
            assert (entry.path, entry.kind, entry.size) == (path, "file", 5)
        gone = storage.stat("gone", follow="all")
        assert gone is not None
        assert gone.kind == "link"
        with pytest.raises(UsageError, match="nothing is changed there"):
            storage.create("d/new")
        assert [each.name for each in outside.iterdir()] == ["file"]

    def test_listing_through_links_passes_each_folder_once(
        self, storage: LocalStorage, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "file").write_bytes(b"12345")
        (outside / "back").symlink_to(storage.root)
        put(storage, "a/b")
        for name in ("one", "two", "a/three"):
            (Path(storage.root) / name).symlink_to(outside)
        (Path(storage.root) / "gone").symlink_to("nothing")
        found = {(entry.path, entry.kind) for entry in list_through_links(storage)}
        assert found == {("a/b", "file"), ("gone", "link"), ("one/file", "file")}

    def test_refusal_of_the_system_is_no_absence(self, storage: LocalStorage) -> None:
        put(storage, "a")
        with pytest.raises(StorageError, match=r"(?m)^cannot look at `.*`: File name too long$"):
            storage.stat("x" * 300)


class TestList:
    def test_order_is_that_of_the_bytes(self, storage: LocalStorage) -> None:
        for path in ("a/b", "a/b-c/d", "a-b", "a.b", "a0", "b", "a/b/c", "B", "é", "z"):
            if path != "a/b":
                put(storage, path)
        expected = ["B", "a", "a-b", "a.b", "a/b", "a/b-c", "a/b-c/d", "a/b/c", "a0", "b", "z", "é"]
        assert names(storage) == expected
        assert names(storage, "a") == ["a/b", "a/b-c", "a/b-c/d", "a/b/c"]
        assert names(storage, recursive=False) == ["B", "a", "a-b", "a.b", "a0", "b", "z", "é"]

    @given(
        st.sets(
            st.lists(
                st.sampled_from([b"a", b"a-", b"a.b", b"b", b"\xff", "é".encode(), b" ", b"0\n"]),
                min_size=1,
                max_size=4,
            ).map(tuple),
            max_size=12,
        )
    )
    @settings(max_examples=40)
    def test_total_order_holds_for_any_tree(self, paths: set[tuple[bytes, ...]]) -> None:
        with tempfile.TemporaryDirectory() as root:
            for parts in paths:
                folder = Path(root, *map(os.fsdecode, parts[:-1]))
                folder.mkdir(parents=True, exist_ok=True)
            made = {parts[:end] for parts in paths for end in range(1, len(parts))}
            for parts in paths - made:
                Path(root, *map(os.fsdecode, parts)).write_bytes(b"x")
            found = [os.fsencode(entry.path) for entry in LocalStorage(root).list()]
        assert found == sorted(found)
        assert found == sorted(b"/".join(parts) for parts in paths | made)

    def test_links_are_listed_and_not_followed(self, storage: LocalStorage) -> None:
        put(storage, "a/b")
        (Path(storage.root) / "up").symlink_to("..")
        (Path(storage.root) / "file").symlink_to("a/b")
        os.mkfifo(Path(storage.root) / "fifo")
        found = {entry.path: (entry.kind, entry.size) for entry in storage.list()}
        assert found == {
            "a": ("dir", 0),
            "a/b": ("file", 4),
            "fifo": ("other", 0),
            "file": ("link", 0),
            "up": ("link", 0),
        }

    @pytest.mark.parametrize(("removed", "left"), [("a", ["b", "b/c", "d"]), ("b", ["a/x", "d"])])
    def test_entries_that_vanish_meanwhile_are_skipped(
        self, storage: LocalStorage, removed: str, left: list[str]
    ) -> None:
        for path in ("a/x", "b/c", "d"):
            put(storage, path)
        listing = storage.list()
        assert next(listing).path == "a"
        storage.remove(removed)
        assert [entry.path for entry in listing] == left

    def test_depth_is_bounded_by_the_system_alone(self, tmp_path: Path) -> None:
        (tmp_path / "deep").mkdir()
        place = tmp_path / "deep"
        for _ in range(1100):
            place = place / "d"
            place.mkdir()
        try:
            assert len(names(LocalStorage(tmp_path / "deep"))) == 1100
        finally:
            subprocess.run(["rm", "-rf", str(tmp_path / "deep")], check=True)


def test_a_file_is_read_up_to_the_limit(storage: LocalStorage) -> None:
    put(storage, "a", b"12345")
    assert storage.read("a", limit=5) == b"12345"
    with pytest.raises(StorageError, match="has 5 bytes, but at most 4 bytes are read at once"):
        storage.read("a", limit=4)


class TestLink:
    def test_makes_a_hard_link(self, storage: LocalStorage) -> None:
        put(storage, "a", b"x")
        storage.link("a", "b/c")
        assert storage.stat("b/c") == dataclasses.replace(storage.stat("a"), path="b/c")

    def test_of_a_symbolic_link_is_the_file(self, storage: LocalStorage, tmp_path: Path) -> None:
        (tmp_path / "cached").write_bytes(b"x")
        put(storage, "a")
        (Path(storage.root) / "l").symlink_to(tmp_path / "cached")
        storage.link("l", "b")
        assert not (Path(storage.root) / "b").is_symlink()
        assert storage.read("b") == b"x"

    @pytest.mark.parametrize(("errno", "follow"), [(1, True), (18, True), (95, False)])
    def test_copies_where_links_are_refused(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, errno: int, follow: bool
    ) -> None:
        data = os.urandom(5_000_000)
        put(storage, "a", data)
        forbid_links(monkeypatch, errno)
        storage.link("a", "b/c", follow=follow)
        assert storage.read("b/c") == data
        assert storage.stat("b/c").inode != storage.stat("a").inode
        with pytest.raises(StorageError, match=r"(?m)^`.*/b/c` exists already$"):
            storage.link("a", "b/c")

    def test_copies_from_another_file_system(self, storage: LocalStorage, elsewhere: Path) -> None:
        (elsewhere / "a").write_bytes(b"far")
        put(storage, "x")
        (Path(storage.root) / "l").symlink_to(elsewhere / "a")
        storage.link("l", "b")
        (elsewhere / "a").unlink()
        assert storage.read("b") == b"far"

    def test_existing_target_is_an_error(self, storage: LocalStorage) -> None:
        put(storage, "a", b"1")
        put(storage, "b", b"2")
        with pytest.raises(StorageError, match=r"(?m)^`.*/b` exists already$"):
            storage.link("a", "b")
        assert storage.read("b") == b"2"


class TestRemove:
    def test_removes_files_folders_and_nothing(self, storage: LocalStorage) -> None:
        for path in ("a", "b/c/d", "e"):
            put(storage, path)
        for path in ("a", "b", "nothing", "no/thing", "e/x"):
            storage.remove(path)
        assert names(storage) == ["e"]

    def test_never_follows_links(self, storage: LocalStorage, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "file").write_bytes(b"x")
        put(storage, "a/b")
        for link in ("l", "a/l"):
            (Path(storage.root) / link).symlink_to(tmp_path / "outside")
        storage.remove("l")
        storage.remove("a")
        assert names(storage) == []
        assert (tmp_path / "outside" / "file").exists()

    def test_removal_by_many_at_once_is_no_error(self, storage: LocalStorage) -> None:
        for number in range(300):
            put(storage, f"a/{number % 10}/{number}")
        failed: list[BaseException] = []
        barrier = threading.Barrier(4)

        def attempt() -> None:
            barrier.wait()
            try:
                storage.remove("a")
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=attempt) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert storage.stat("a") is None


class TestSyncDir:
    def test_file_system_that_cannot_sync_folders_is_borne(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(storage, "a/b")

        def fsync(handle: int, number: int = 22) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(writer_module.os, "fsync", fsync)
        storage.sync_dir("a")
        monkeypatch.setattr(writer_module.os, "fsync", lambda handle: fsync(handle, 5))
        with pytest.raises(StorageError, match=r"(?m)Input/output error$"):
            storage.sync_dir("a")
