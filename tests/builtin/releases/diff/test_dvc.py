"""Where DVC keeps the bytes of the parent, its cache is where its records are read."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from diff_support import example, put_build
from git_support import start

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from check_support import framed

from tfrecreg import engine as open_engine
from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.builtin.dvc import dvc
from tfrecreg.builtin.releases.diff.result import diff
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import int64_feature
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.text import json_data


def put_shard(path: Path, **more: object) -> Path:
    """Records of another tool, each with its own `id`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for number in range(20):
            payload = encode({**example(number, id=int64_feature(number)), **more})  # type: ignore[dict-item]
            file.write(framed(payload))
    return path


def take(root: Path, path: Path) -> None:
    adopt(open_registry(root), AdoptRequest(name="d", paths=(str(path),), key="id"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A registry in git and DVC, with `d` released as 1.0.0 and built anew with a feature more."""
    root = start(tmp_path / "root")
    init(root)
    take(root, put_shard(tmp_path / "one/train-00000-of-00001.tfrecord"))
    schema = root / "schemas/d.pbtxt"
    released = release(open_registry(root), ReleaseRequest(name="d", version="1.0.0"))
    assert released.manifest.release is not None
    assert released.manifest.release.dvc is not None
    schema.write_text(schema.read_text() + 'feature { name: "width" type: INT }\n')
    shard = tmp_path / "two/train-00000-of-00001.tfrecord"
    take(root, put_shard(shard, width=int64_feature(28)))
    return root


def test_added_features_are_minor_though_the_parent_is_in_the_cache_alone(root: Path) -> None:
    assert resolve(open_registry(root), "d@1.0.0").folder is None
    result = diff("d@1.0.0", "d", registry=root)
    assert (result.compared, result.unread) == (20, 0)
    with closing(open_engine("futures:executors_support:threads")) as engine:
        there = diff("d@1.0.0", "d", registry=root, engine=engine)
    assert json_data(there) == json_data(result)
    made = release(open_registry(root), ReleaseRequest(name="d"))
    assert str(made.version) == "1.1.0"
    assert made.change.reasons[0] == "the feature `width` was added to 20 examples"


def test_without_the_cache_the_number_is_the_safe_one_and_says_why(root: Path) -> None:
    shutil.rmtree(root / ".dvc/cache")
    result = diff("d@1.0.0", "d", registry=root)
    assert result.hint == "tfrecreg pull d@1.0.0"
    with closing(open_engine("futures:executors_support:threads")) as engine:
        there = diff("d@1.0.0", "d", registry=root, engine=engine)
    assert json_data(there) == json_data(result)
    made = release(open_registry(root), ReleaseRequest(name="d"))
    assert str(made.version) == "2.0.0"
    assert made.change.reasons[:2] == [
        "20 examples of the split `train` were changed",
        "it is unknown whether they only gained features: "
        "the bytes of `d@1.0.0` are not on this machine",
    ]


def test_a_damaged_object_of_the_cache_is_told(root: Path) -> None:
    kept = dvc.cached_files(str(root), str(_hash(root)))
    shard = Path(
        next(place for path, place in kept.items() if path.endswith(".tfrecord-00000-of-00001"))
    )
    data = bytearray(shard.read_bytes())
    data[200] ^= 1
    shard.chmod(0o644)
    shard.write_bytes(bytes(data))
    result = diff("d@1.0.0", "d", registry=root)
    assert (result.compared, result.unread) == (19, 1)
    assert " of d@1.0.0`, at byte " in result.unread_reason


def _hash(root: Path) -> str | None:
    release_ = resolve(open_registry(root), "d@1.0.0").manifest.release
    return release_.dvc if release_ is not None else None


def test_a_build_is_in_its_folder_and_not_in_the_cache(root: Path) -> None:
    put_build(root, {"train": [{"q": example(1)}]}, name="other")
    assert diff("other", "other", registry=root).same
