"""The real MNIST test set, built, checked and released in a git repository, as a user types it."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from git_support import git

pytestmark = pytest.mark.realdata

IMAGES, LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = os.environ.get("TFRECREG_TEST_DATA")
    if not data:
        pytest.skip("TFRECREG_TEST_DATA is not set: no real MNIST to build")
    folder = tmp_path_factory.mktemp("mnist")
    (folder / "raw").mkdir()
    for name in (IMAGES, LABELS):
        shutil.copy(Path(data) / "mnist/mnist-t10k" / name, folder / "raw" / name)
    root = folder / "repository"
    root.mkdir()
    git(root, "init", "--quiet")
    tfrecreg(root, "init")
    tfrecreg(root, "build", "mnist", "--source", "mnist", "--raw", "../raw", "--release", "1.0.0")
    return root


def tfrecreg(root: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tfrecreg", *arguments],
        cwd=root,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.slow
def test_tensorflow_reads_every_image_and_label_as_the_idx_has_them(repository) -> None:
    tf = pytest.importorskip("tensorflow", reason="reading the release needs TensorFlow")
    from tfrecreg.builtin.training.load import load
    from tfrecreg.core.records.index import read_index

    raw = repository.parent / "raw"
    pixels = np.frombuffer(gzip.decompress((raw / IMAGES).read_bytes()), np.uint8, offset=16)
    pixels = pixels.reshape(-1, 28, 28)
    labels = np.frombuffer(gzip.decompress((raw / LABELS).read_bytes()), np.uint8, offset=8)
    index = read_index(
        (repository / "data/mnist/index/mnist-test.tfrecord-00000-of-00001.index").read_bytes(),
        "index",
    )
    seen = []
    dataset = load("mnist@1.0.0", split="test", registry=repository, decode=True)
    for number, example in enumerate(dataset.as_numpy_iterator()):
        item = int(index.key(number))
        seen.append(item)
        assert example["image/encoded"].shape == (28, 28, 1)
        assert np.array_equal(example["image/encoded"][..., 0], pixels[item])
        assert example["image/class/label"] == labels[item]
        assert (example["image/height"], example["image/width"]) == (28, 28)
    assert sorted(seen) == list(range(10_000))
    assert seen != sorted(seen)
    assert tf.__version__


@pytest.mark.medium
def test_the_release_checks_clean_and_says_its_inflation_on_both_bases(repository) -> None:
    said = tfrecreg(repository, "check", "mnist@1.0.0")
    assert "10,000 records" in said
    assert re.search(r": \d+\.\d\d × the raw files, \d+\.\d\d × the unpacked data\n", said)
    assert "pass: 0 errors, 0 warnings (" in said


@pytest.mark.slow
def test_the_same_release_again_is_fine_and_other_data_are_refused(repository, tmp_path) -> None:
    said = tfrecreg(repository, "build", "mnist", "--release", "1.0.0")
    assert "mnist@1.0.0 already exists with this content: nothing to do" in said
    data = Path(os.environ["TFRECREG_TEST_DATA"])
    for name in (IMAGES, LABELS):
        shutil.copy(data / "mnist/notmnist-t10k" / name, tmp_path / name)
    said = tfrecreg(
        repository, "build", "mnist", "--raw", str(tmp_path), "--release", "1.0.0", code=2
    )
    assert "error: `mnist@1.0.0` exists with other content" in said
    # The working build is the user's to change; the release stays, and so do its bytes in DVC.
    tfrecreg(repository, "build", "mnist")
    tfrecreg(repository, "check", "mnist@1.0.0")


@pytest.mark.medium
def test_git_and_dvc_hold_the_release_and_no_data(repository) -> None:
    pytest.importorskip("dvc", reason="tracking the bytes needs the extra `dvc`")
    git(repository, "add", "--all")
    tracked = git(repository, "ls-files").split()
    assert "registry/mnist/1.0.0/manifest.json" in tracked
    assert "registry/mnist/1.0.0/schema.pbtxt" in tracked
    assert "data/mnist.dvc" in tracked
    assert not [path for path in tracked if path.startswith(("data/mnist/", ".tfrecreg"))]
    status = subprocess.run(
        [sys.executable, "-m", "dvc", "status", "--quiet"],
        cwd=repository,
        check=False,
        env={**os.environ, "DVC_NO_ANALYTICS": "1"},
    )
    assert status.returncode == 0


@pytest.mark.medium
@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("mnist/mnist-t10k", "train-labels-idx1-ubyte.gz"),
        ("mnist/fashion-labels-only", "labels-idx1-ubyte.gz"),
        ("mnist/qmnist-labels", "qmnist-test-labels-idx2-int.gz"),
    ],
)
def test_real_folders_that_are_incomplete_are_refused(
    repository, realdata, folder, message
) -> None:
    said = tfrecreg(
        repository, "build", "other", "--source", "mnist", "--raw", str(realdata / folder), code=2
    )
    assert said.startswith("error: ")
    assert message in said
    assert len(said.splitlines()) <= 2
