"""Registries with a DVC remote, and loss or damage of its objects."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from s3_support import ENVIRONMENT, S3

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.shards import ShardPolicy

_OBJECTS = "files/md5"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Place:
    """Objects of DVC, by hash. Every method reads the bytes themselves."""

    def all(self) -> dict[str, bytes]:
        raise NotImplementedError

    def put(self, oid: str, data: bytes) -> None:
        raise NotImplementedError

    def remove(self, oid: str) -> None:
        raise NotImplementedError

    def sound(self) -> dict[str, bytes]:
        """The objects with the bytes that their names say."""
        return {oid: data for oid, data in self.all().items() if _md5(data) == oid.split(".")[0]}


class FolderPlace(Place):
    """A remote in a folder, or the cache of a clone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / _OBJECTS

    def _path(self, oid: str) -> Path:
        return self.folder / oid[:2] / oid[2:]

    def all(self) -> dict[str, bytes]:
        return {
            path.parent.name + path.name: path.read_bytes()
            for path in self.folder.glob("??/*")
            if path.is_file() and not path.name.startswith(".")
        }

    def put(self, oid: str, data: bytes) -> None:
        """As a disk that decays: mode and links stay."""
        path = self._path(oid)
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode if path.exists() else 0o100444
        if path.exists():
            path.chmod(0o644)
        path.write_bytes(data)
        path.chmod(mode)

    def remove(self, oid: str) -> None:
        self._path(oid).unlink()


class Cache(FolderPlace):
    """The cache of a clone."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / ".dvc/cache")


class S3Place(Place):
    """A remote in a bucket."""

    def __init__(self, s3: S3, bucket: str) -> None:
        self.client: Any = s3.client
        self.bucket = bucket

    def _key(self, oid: str) -> str:
        return f"dvc/{_OBJECTS}/{oid[:2]}/{oid[2:]}"

    def all(self) -> dict[str, bytes]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        return {"".join(key.split("/")[-2:]): self._read(key) for key in keys}

    def _read(self, key: str) -> bytes:
        data: bytes = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return data

    def put(self, oid: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=self._key(oid), Body=data)

    def remove(self, oid: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=self._key(oid))


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def registry_at(root: Path) -> Path:
    """An empty registry in git, with DVC and no remote."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    init(root)
    return root


def configure(root: Path, url: str, **options: str) -> None:
    """Name the DVC remote of a registry, in the file that git has."""
    lines = [f"    {name} = {value}" for name, value in options.items()]
    text = "\n".join(["[core]", "    remote = store", "['remote \"store\"']", f"    url = {url}"])
    (root / ".dvc/config").write_text("\n".join([text, *lines]) + "\n")


def made(root: Path, seed: int, version: str, *, train: int = 30, test: int = 5) -> None:
    """Build digits, release and commit them."""
    raw = root.parent / f"raw{seed}"
    if not raw.exists():
        write_digits(LocalStorage(raw), train=train, test=test, seed=seed)
    registry = open_registry(root)
    request = BuildRequest(
        name="digits", source="mnist", raw=str(raw), policy=ShardPolicy(shards=2)
    )
    build(registry, request)
    release(registry, ReleaseRequest(name="digits", version=version))
    git(root, "add", "-A")
    git(root, "commit", "-qm", version)


def clone(root: Path, target: Path) -> Path:
    """The repository on another machine, as git has it."""
    git(root.parent, "clone", "-q", str(root), str(target))
    return target


def files_of_release(root: Path, version: str, *places: Place) -> dict[str, str]:
    """The objects of a release's files by path; the empty path is their list."""
    document = json.loads((root / f"registry/digits/{version}/manifest.json").read_bytes())
    value = document["release"]["dvc"]
    for place in places:
        data = place.sound().get(value)
        if data is not None:
            return {"": value, **{each["relpath"]: each["md5"] for each in json.loads(data)}}
    raise AssertionError(f"the list of {version} is nowhere")


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables, while the context lasts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


assert ENVIRONMENT
