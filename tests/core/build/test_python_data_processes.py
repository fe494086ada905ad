"""Killed builds of a program's data never mix two states; processes do not change the bytes."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child_support import Child
from memory_support import PRINT_PEAK, on_linux
from python_data_support import COUNT, Elements, element, made, refused, stage
from python_data_support import registry as registry  # the fixture
from tests_support import Watcher, tree

import tfrecreg
from tfrecreg.builtin.python_data import source
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.shards import ShardPolicy


def shards(registry: Registry) -> dict[str, Any]:
    return tree(Path(registry.storage.root, "data/shapes"))


@pytest.mark.parametrize("form", ["sequence", "spooled"])
def test_a_killed_build_goes_on_and_never_mixes_two_states(tmp_path: Path, form: str) -> None:
    def data(version: str, dies_at: int = 0) -> dict[str, Any]:
        elements = Elements(COUNT, version, dies_at)
        return {"train": elements if form == "sequence" else (elements[n] for n in range(COUNT))}

    def fresh(name: str) -> Registry:
        init(tmp_path / name, with_dvc=False)
        return open_registry(tmp_path / name)

    policy = ShardPolicy(shards=4)
    killed, clean = fresh("killed"), fresh("clean")
    # A sequence dies on its second pass, in the third shard; an iterable is read only once.
    at = COUNT + 25 if form == "sequence" else 25
    ended = Child(lambda tell: made(killed, data("a", at), policy=policy)).join()
    assert ended.killed
    again = made(killed, data("a"), policy=policy)
    assert again.resumed == (2 if form == "sequence" else 0)
    expected = made(clean, data("a"), policy=policy)
    assert again.manifest == expected.manifest
    assert shards(killed) == shards(clean)
    assert not stage(killed).exists()

    assert Child(lambda tell: made(killed, data("b", at), policy=policy)).join().killed
    other = made(killed, data("c"), policy=policy)
    assert other.resumed == 0
    assert other.manifest.content == made(clean, data("c"), policy=policy).manifest.content
    assert shards(killed) == shards(clean)


# Where data are read.


def test_a_changed_pickle_is_never_unpickled(registry: Registry, tmp_path: Path) -> None:
    storage = registry.storage.below(".tfrecreg/stage/x/data")
    split = source.SequenceSplit("train", None, [element(0)])
    with source.parcels([split], storage, 2, Watcher()) as ((mine,), travels):
        assert travels
        assert mine.open() is split
    assert mine.open().record(0).payload == split.record(0).payload  # as another process does
    source._unpacked.cache_clear()
    Path(storage.root, "train.pickle").write_bytes(pickle.dumps(split) + b"x")
    with pytest.raises(TfrecregError) as caught:
        mine.open()
    assert caught.value.message == "`train.pickle` was changed in the staging folder of the build"


# With processes, and in sessions.


def script(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_processes_do_not_change_the_bytes(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "WORTH_SECONDS", 0.0)  # processes from the second part on
    policy = ShardPolicy(shards=3)
    data: Sequence[Any] = Elements(1000)
    expected = made(registry, {"train": data, "test": Elements(300)}, policy=policy, key="id")
    for jobs in (2, 3):
        progress = Watcher()
        both = {"train": data, "test": (element(number) for number in range(300))}
        found = made(registry, both, policy=policy, key="id", jobs=jobs, progress=progress)
        assert found.manifest == expected.manifest
        assert progress.notes == []


@pytest.mark.slow
def test_an_error_in_a_process_is_the_same_error(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "WORTH_SECONDS", 0.0)

    bad = [{"x": 1}] * 700 + [{"x": np.array([0.1])}]
    error = refused(registry, {"train": bad}, jobs=2)
    assert error.message.startswith("split `train`, element 700, key `00700`: feature `x`: float32")


@pytest.mark.slow
def test_tensors_of_tensorflow_are_arrays(registry: Registry) -> None:
    tf = pytest.importorskip("tensorflow")
    arrays = {"x": np.arange(24, dtype=np.uint8).reshape(4, 2, 3), "y": np.arange(4)}
    expected = made(registry, {"train": arrays}).manifest
    tensors = {name: tf.constant(array) for name, array in arrays.items()}
    assert made(registry, {"train": tensors}).manifest == expected
    dataset = tf.data.Dataset.from_tensor_slices(arrays)
    assert made(registry, {"train": dataset}).manifest == expected
    spec = {"x": tf.TensorSpec((2, 3), tf.uint8)}
    loaded = tfrecreg.load("shapes", "train", registry=registry, tensors=spec)
    found = {int(each["y"]): each["x"].numpy() for each in loaded}
    np.testing.assert_array_equal(np.stack([found[number] for number in range(4)]), arrays["x"])


@on_linux
@pytest.mark.slow
def test_memory_does_not_grow_with_a_generator(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import sys, tfrecreg
        def elements(count):
            for number in range(count):
                yield {"number": number, "text": bytes(20_000)}
        tfrecreg.init(".", with_dvc=False)
        registry = tfrecreg.open(".")
        registry["texts"].build(data={"train": elements(int(sys.argv[1]))})
        """
    )
    code += PRINT_PEAK
    used = []
    for count in ("500", "10000"):
        (tmp_path / count).mkdir()
        done = script(tmp_path / count, "", "-c", code, count)
        assert done.returncode == 0, done.stderr
        used.append(int(done.stdout) >> 10)
    assert used[1] - used[0] < 60, used  # MiB, of 190 MiB that are built
