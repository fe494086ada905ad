"""Which paths a local storage takes, and what it says of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from storage_support import names, put

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError


class TestPaths:
    WRONG = ("/etc/passwd", "../x", "a/../../x", "a/..", "./a", "a//b", "a/", "a\0b", "a\ud800b")

    @pytest.mark.parametrize("path", WRONG)
    @pytest.mark.parametrize(
        "call",
        [
            lambda s, p: s.stat(p),
            lambda s, p: s.list(p),
            lambda s, p: s.open(p),
            lambda s, p: s.read(p),
            lambda s, p: s.create(p),
            lambda s, p: s.put_if_absent(p, b""),
            lambda s, p: s.rename_dir(p, "t"),
            lambda s, p: s.rename_dir("s", p),
            lambda s, p: s.replace_dir(p, "t"),
            lambda s, p: s.replace_dir("s", p),
            lambda s, p: s.sync_dir(p),
            lambda s, p: s.link(p, "t"),
            lambda s, p: s.link("s", p),
            lambda s, p: s.remove(p),
        ],
    )
    def test_path_that_leaves_the_root_is_refused_by_every_method(
        self, storage: LocalStorage, call: object, path: str
    ) -> None:
        put(storage, "s/file")
        with pytest.raises(UsageError) as caught:
            call(storage, path)  # type: ignore[operator]  # a lambda
        assert caught.value.message.endswith(f"is not a path below `{storage.root}`")

    @pytest.mark.parametrize(
        "call",
        [
            lambda s: s.create(""),
            lambda s: s.put_if_absent("", b""),
            lambda s: s.remove(""),
            lambda s: s.rename_dir("", "t"),
            lambda s: s.link("s", ""),
        ],
    )
    def test_the_root_itself_is_never_written_moved_or_removed(
        self, storage: LocalStorage, call: object
    ) -> None:
        put(storage, "s")
        with pytest.raises(UsageError, match=r"(?m)is the root of the storage, not a name in it$"):
            call(storage)  # type: ignore[operator]  # a lambda
        assert names(storage) == ["s"]

    @pytest.mark.parametrize(
        "call",
        [
            lambda s: s.create("out/new"),
            lambda s: s.put_if_absent("out/new", b""),
            lambda s: s.remove("out/file"),
            lambda s: s.rename_dir("out/folder", "t"),
            lambda s: s.rename_dir("folder", "out/t"),
            lambda s: s.replace_dir("folder", "out/folder"),
            lambda s: s.link("s", "out/new"),
            lambda s: s.remove("in/out/file"),
        ],
    )
    def test_nothing_is_changed_through_a_link_that_leaves_the_root(
        self, storage: LocalStorage, tmp_path: Path, call: object
    ) -> None:
        outside = tmp_path / "outside"
        (outside / "folder").mkdir(parents=True)
        (outside / "file").write_bytes(b"x")
        put(storage, "s")
        put(storage, "folder/file")
        (Path(storage.root) / "out").symlink_to(outside)
        (Path(storage.root) / "in").symlink_to(".")
        before = sorted(outside.rglob("*"))
        with pytest.raises(UsageError) as caught:
            call(storage)  # type: ignore[operator]  # a lambda
        assert caught.value.message.endswith(
            f"is not below `{storage.root}`, because a symbolic link on the way leads to "
            f"`{outside}`; nothing is changed there"
        )
        assert sorted(outside.rglob("*")) == before

    def test_links_inside_the_root_are_followed_when_writing(self, storage: LocalStorage) -> None:
        put(storage, "real/a")
        (Path(storage.root) / "alias").symlink_to("real")
        with storage.create("alias/b") as writer:
            writer.write(b"b")
        assert storage.read("real/b") == b"b"

    def test_names_that_are_not_utf8_work(self, storage: LocalStorage) -> None:
        name = os.fsdecode(b"caf\xe9/\xff\xfe")
        with storage.create(name) as writer:
            writer.write(b"x")
        assert names(storage) == [os.fsdecode(b"caf\xe9"), name]
        assert storage.read(name) == b"x"
        entry = storage.stat(name)
        assert entry is not None
        assert entry.path == name
