"""Raw data behind a URL: listings, over fsspec's file system in memory and a web server."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.storage.listed import ListedStorage, listed_storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError, StorageError, UsageError

FILES = {"a/x.jpg": b"0123456789", "a/deep/y": b"y", "a-b": b"-", "b/z ü.png": b"zz", "k": b""}


@pytest.fixture
def local(tmp_path: Path) -> LocalStorage:
    for path, data in FILES.items():
        file = tmp_path / "raw" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return LocalStorage(tmp_path / "raw")


@pytest.fixture
def storage(memory: Any, local: LocalStorage) -> ListedStorage:
    memory.pipe({f"/lake/raw/{path}": data for path, data in FILES.items()})
    return listed_storage("memory://lake/raw/")


def told(storage: Any, path: str = "", *, recursive: bool = True) -> list[tuple[str, str, int]]:
    return [(each.path, each.kind, each.size) for each in storage.list(path, recursive=recursive)]


def test_a_listing_is_that_of_a_local_folder(storage: ListedStorage, local: LocalStorage) -> None:
    for path in ("", "a", "a/deep", "b", "k", "none", "none/x"):
        if path != "k":
            assert told(storage, path) == told(local, path)
            assert told(storage, path, recursive=False) == told(local, path, recursive=False)
    assert told(storage, "k") == []


def test_entries_tell_files_and_folders_apart(storage: ListedStorage) -> None:
    found = {path: storage.stat(path) for path in ("", "a", "b", "a/deep", "k", "a/x.jpg")}
    assert all(found.values())
    folders = [found[path] for path in ("", "a", "b", "a/deep")]
    assert len({each.inode for each in folders if each}) == 4
    assert {each.kind for each in folders if each} == {"dir"}
    assert storage.stat("none") is storage.stat("a/none") is storage.stat("none/x") is None
    with pytest.raises(UsageError, match="is not a path below"):
        storage.stat("../x")
    with pytest.raises(UsageError, match="is not a path below"):
        list(storage.list("../x"))


def test_a_change_is_seen_when_it_is_listed_again(storage: ListedStorage, memory: Any) -> None:
    before = storage.stat("a/x.jpg")
    memory.pipe_file("/lake/raw/a/x.jpg", b"9876543210")
    assert storage.stat("a/x.jpg") == before
    storage.forget()
    after = storage.stat("a/x.jpg")
    assert before is not None
    assert after is not None
    assert after.size == before.size
    assert after.mtime_ns != before.mtime_ns


def test_an_object_that_is_a_folder_too_is_refused(memory: Any) -> None:
    memory.pipe({"/lake/x": b"more", "/lake/c/y": b"y"})
    memory.store["/lake/c"] = memory.store.pop("/lake/x")
    with pytest.raises(RawDataError) as raised:
        list(listed_storage("memory://lake").list())
    assert raised.value.message == "`memory://lake/c` is both an object and a folder"


@pytest.mark.parametrize("key", ["a//b", "a/../b", "a/./b"])
def test_keys_that_are_no_paths_are_refused(memory: Any, key: str) -> None:
    memory.store.clear()
    memory.pipe({"/lake/a/x": b"x", f"/lake/{key}": b"y"})
    if f"/lake/{key}" not in memory.store:
        memory.store[f"/lake/{key}"] = memory.store["/lake/a/x"]
    with pytest.raises(RawDataError, match=r"`memory://lake/a` holds the key `.*/…`, which is not"):
        list(listed_storage("memory://lake").list())


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://key:secret@lake/x", "raw data are not read from `s3://lake/x`: the URL holds a"),
        ("https://host/raw?t=secret", "raw data are not read from `https://host/raw`: the URL"),
    ],
)
def test_urls_that_are_not_read(url: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        listed_storage(url)
    assert message in raised.value.message
    assert "secret" not in str(raised.value)


def test_a_place_without_a_folder_is_told(storage: ListedStorage, memory: Any) -> None:
    storage.expect_folder()
    for url, message in (
        ("memory://lake/none", "the raw data `memory://lake/none` does not exist"),
        ("memory://lake/raw/k", "the raw data `memory://lake/raw/k` is not a folder"),
    ):
        with pytest.raises(UsageError) as raised:
            listed_storage(url).expect_folder()
        assert (raised.value.message, raised.value.hint) == (message, "name the folder with --raw")


@pytest.fixture
def web(local: LocalStorage) -> Iterator[str]:
    """The URL of a web server that lists the folders of `local`."""
    pytest.importorskip("aiohttp")

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def list_directory(self, path: Any) -> Any:
            if "hidden" in str(path):
                self.send_error(403)
                return None
            return super().list_directory(path)

    handler = functools.partial(Handler, directory=local.root)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.medium
def test_a_web_server_that_lists_is_read(web: str, local: LocalStorage) -> None:
    storage = listed_storage(f"{web}/")
    storage.expect_folder()
    assert told(storage) == told(local)
    for path, data in FILES.items():
        assert storage.read(path) == data


def test_a_web_server_that_does_not_list_is_told(
    web: str, local: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFRECREG_REMOTE_ATTEMPTS", "1")
    Path(local.root, "hidden").mkdir()
    Path(local.root, "empty").mkdir()
    with pytest.raises(StorageError, match="permission denied"):
        listed_storage(f"{web}/hidden").expect_folder()
    for path in ("empty", "gone", "k"):
        with pytest.raises(UsageError) as raised:
            listed_storage(f"{web}/{path}").expect_folder()
        assert raised.value.message == (
            f"`{web}/{path}` lists no files: a web server with raw data must list its folders"
        )
