"""What a remote is asked, for stores that a test can be."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from s3_support import web_server

from tfrecreg.builtin.dvc.cache import RemoteObject, RemoteObjects, Verified, _listed

DATA = {hashlib.md5(data).hexdigest(): data for data in (b"one", b"three", b"a list")}
ONE, THREE, LIST = DATA


def database(kind: str, path: str) -> Any:
    from dvc_data.hashfile.db import get_odb

    if kind == "http":
        from dvc_http import HTTPFileSystem as FileSystem
    else:
        from dvc_objects.fs.local import LocalFileSystem as FileSystem
    return get_odb(FileSystem(), path, hash_name="md5")


def faults(remote: RemoteObjects, *, content: bool) -> dict[str, str]:
    return remote.faults({oid: len(data) for oid, data in DATA.items()}, content=content)


def test_a_web_server_that_lists_nothing_is_asked_for_each_object(tmp_path: Path) -> None:
    files = {f"/dvc/{oid[:2]}/{oid[2:]}": data for oid, data in DATA.items()}
    with web_server(files) as port:
        remote = RemoteObjects(database("http", f"http://127.0.0.1:{port}/dvc"))
        assert faults(remote, content=True) == {}
        assert remote.verified == Verified(listed=3, read=3, bytes=sum(map(len, DATA.values())))
        target = tmp_path / "object"
        assert remote.get(ONE, str(target))
        assert target.read_bytes() == b"one"
        assert remote.read_list(LIST) == b"a list"
        path = f"/dvc/{ONE[:2]}/{ONE[2:]}"
        files[path] = b"two"
        assert not remote.get(ONE, str(target))
        assert remote.read_list(ONE) is None
        assert faults(remote, content=False) == {}
        other = hashlib.md5(b"two").hexdigest()
        assert faults(remote, content=True) == {ONE: f"should have the MD5 {ONE} but has {other}"}
        del files[path]
        assert faults(remote, content=False) == {ONE: ""}
        assert remote.digest(ONE) is None


def test_what_a_web_server_gives_without_a_size_is_read() -> None:
    files = {f"/dvc/{oid[:2]}/{oid[2:]}": data for oid, data in DATA.items()}
    with web_server(files, sizes=False) as port:
        remote = RemoteObjects(database("http", f"http://127.0.0.1:{port}/dvc"))
        assert faults(remote, content=False) == {}
        assert remote.verified == Verified(listed=3, read=3, bytes=sum(map(len, DATA.values())))


def test_a_folder_is_listed_by_prefixes(tmp_path: Path) -> None:
    remote = RemoteObjects(database("folder", str(tmp_path)))
    assert faults(remote, content=False) == dict.fromkeys(DATA, "")
    for oid, data in DATA.items():
        source = tmp_path / "source"
        source.write_bytes(data)
        remote.put(oid, str(source))
    assert faults(remote, content=True) == {}
    place = tmp_path / THREE[:2] / THREE[2:]
    place.unlink()
    place.mkdir()
    assert faults(remote, content=False) == {THREE: ""}
    place.rmdir()
    place.write_bytes(b"thr")
    assert faults(remote, content=False) == {THREE: "has 3 bytes but should have 5"}
    # A size that nobody knows is no reason to trust what is there.
    assert list(remote.faults({THREE: None}, content=False)) == [THREE]


@pytest.mark.parametrize(
    ("info", "md5"),
    [
        ({"ETag": f'"{ONE}"'}, ONE),
        ({"ETag": f'"{ONE}-2"'}, None),
        ({"md5Hash": base64.b64encode(bytes.fromhex(ONE)).decode()}, ONE),
        ({"md5Hash": "not base64"}, None),
        ({"md5Hash": None}, None),
        ({}, None),
    ],
)
def test_checksums_that_stores_state(info: dict[str, Any], md5: str | None) -> None:
    assert _listed({"size": 3, **info}) == RemoteObject(3, md5)


def test_what_this_machine_cannot_read_is_not_damage_of_the_remote(tmp_path: Path) -> None:
    remote = RemoteObjects(database("folder", str(tmp_path / "remote")))
    source = tmp_path / "source"
    source.write_bytes(DATA[ONE])
    remote.put(ONE, str(source))
    with pytest.raises(IsADirectoryError):  # they came, and cannot be read there
        remote.get(ONE, str(tmp_path))
