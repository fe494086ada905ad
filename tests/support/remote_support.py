"""Registries with a DVC remote, and loss or damage of its objects."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from git_support import git
from s3_support import S3

import tfrecreg
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.registry.init import init
from tfrecreg.core.storage.local import LocalStorage


class Place:
    """Objects of DVC, by hash, in a folder. Every method reads the bytes themselves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "files/md5"

    def all(self) -> dict[str, bytes]:
        return {
            path.parent.name + path.name: path.read_bytes()
            for path in self.folder.glob("??/*")
            if path.is_file() and not path.name.startswith(".")
        }

    def put(self, oid: str, data: bytes) -> None:
        """As a disk that decays: mode and links stay."""
        path = self.folder / oid[:2] / oid[2:]
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode if path.exists() else 0o100444
        if path.exists():
            path.chmod(0o644)
        path.write_bytes(data)
        path.chmod(mode)

    def remove(self, oid: str) -> None:
        (self.folder / oid[:2] / oid[2:]).unlink()

    def sound(self) -> dict[str, bytes]:
        """The objects with the bytes that their names say."""
        return {
            oid: data
            for oid, data in self.all().items()
            if hashlib.md5(data, usedforsecurity=False).hexdigest() == oid.split(".")[0]
        }


class Cache(Place):
    def __init__(self, root: Path) -> None:
        super().__init__(root / ".dvc/cache")


class S3Place(Place):
    def __init__(self, s3: S3, bucket: str) -> None:
        self.client, self.bucket = s3.client, bucket

    def _at(self, oid: str) -> dict[str, Any]:
        return {"Bucket": self.bucket, "Key": f"dvc/files/md5/{oid[:2]}/{oid[2:]}"}

    def all(self) -> dict[str, bytes]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        oids = ["".join(key.split("/")[-2:]) for key in keys]
        return {oid: self.client.get_object(**self._at(oid))["Body"].read() for oid in oids}

    def put(self, oid: str, data: bytes) -> None:
        self.client.put_object(**self._at(oid), Body=data)

    def remove(self, oid: str) -> None:
        self.client.delete_object(**self._at(oid))


def registry_at(root: Path) -> Path:
    """An empty registry in git, with DVC and no remote."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    init(root)
    return root


def configure(root: Path, url: str, **options: str) -> None:
    """Name the DVC remote of a registry, in the file that git has."""
    settings = "".join(f"    {name} = {value}\n" for name, value in {"url": url, **options}.items())
    text = f"[core]\n    remote = store\n['remote \"store\"']\n{settings}"
    (root / ".dvc/config").write_text(text)


def made(root: Path, seed: int, version: str, *, train: int = 30, test: int = 5) -> None:
    """Build digits, release and commit them."""
    raw = root.parent / f"raw{seed}"
    if not raw.exists():
        write_digits(LocalStorage(raw), train=train, test=test, seed=seed)
    dataset = tfrecreg.open(root)["digits"]
    dataset.build(source="mnist", raw=raw, shards=2, progress=False)
    dataset.release(version, progress=False)
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
