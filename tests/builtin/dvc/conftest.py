"""A registry with two releases that DVC keeps, and a remote: in a folder, or in S3."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from git_support import git
from radosgw_support import ENVIRONMENT
from remote_support import (
    Cache,
    Place,
    S3Place,
    clone,
    configure,
    files_of_release,
    made,
    registry_at,
)
from s3_support import S3, s3_server


@dataclass
class Story:
    """A registry with `digits@1.0.0` and `digits@2.0.0`, which is its build."""

    root: Path
    remote: Place

    @property
    def cache(self) -> Cache:
        return Cache(self.root)

    def objects(self, version: str) -> dict[str, str]:
        """The object by path of a release's file; the empty path is that of their list."""
        return files_of_release(self.root, version, self.cache, self.remote)

    def elsewhere(self, name: str = "clone") -> Story:
        """The same registry on another machine."""
        return Story(clone(self.root, self.root.with_name(name)), self.remote)


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with two releases and no remote."""
    pytest.importorskip("dvc", reason="the extra `dvc` is not installed")
    root = registry_at(tmp_path_factory.mktemp("released") / "registry")
    made(root, 1, "1.0.0")
    made(root, 2, "2.0.0")
    return root


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    pytest.importorskip("dvc_s3", reason="DVC's support of S3 is not installed")
    with s3_server() as server:
        yield server


@pytest.fixture
def story(released: Path, tmp_path: Path) -> Story:
    """With an empty remote in a folder."""
    root = Path(shutil.copytree(released, tmp_path / "registry", symlinks=True))
    configure(root, str(tmp_path / "remote"))
    git(root, "commit", "-qam", "A remote")
    return Story(root, Place(tmp_path / "remote"))


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def placed(request: pytest.FixtureRequest, story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """With an empty remote in a folder, and in S3."""
    if request.param == "folder":
        return story
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    server: S3 = request.getfixturevalue("s3")
    bucket = f"bucket-{abs(hash(str(story.root))):x}"
    server.client.create_bucket(Bucket=bucket)
    endpoint = f"http://127.0.0.1:{server.port}"
    configure(story.root, f"s3://{bucket}/dvc", endpointurl=endpoint)
    git(story.root, "commit", "-qam", "A remote")
    return Story(story.root, S3Place(server, bucket))
