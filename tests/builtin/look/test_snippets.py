"""The code that `show --code` prints, run as a user runs it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from foreign_support import SEQUENCES, put

import tfrecreg
from tfrecreg.builtin.look.snippets import FRAMEWORKS, snippet
from tfrecreg.core.values.errors import UsageError

NEEDED = {
    "tf": "tensorflow",
    "keras": "keras",
    "grain": "grain",
    "torch": "torch",
    "mlflow": "mlflow",
    "wandb": "wandb",
}
"""The module that code needs besides what every installation has."""


def code(root: Path, framework: str, reference: str = "digits@1.0.0") -> str:
    registry = tfrecreg.open(root)
    return snippet(registry.find(reference), framework, registry=str(root))


def run(script: str, folder: Path, **environment: str) -> str:
    """What a script prints, in a folder of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def need(framework: str) -> None:
    module = NEEDED[framework]
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


@pytest.mark.slow
def test_tf_reads_batches(digits_original: Path, tmp_path: Path) -> None:
    need("tf")
    out = run(code(digits_original, "tf"), tmp_path)
    assert "'image/encoded': TensorShape([32])" in out


@pytest.mark.slow
def test_keras_trains_an_epoch(digits_original: Path, tmp_path: Path) -> None:
    need("keras")
    script = code(digits_original, "keras")
    assert "keras.Input((28, 28, 1))" in script
    assert "keras.layers.Dense(10, " in script
    out = run(script, tmp_path)
    assert "accuracy: " in out


@pytest.mark.medium
def test_numpy_reads_batches(digits_original: Path, tmp_path: Path) -> None:
    out = run(code(digits_original, "numpy"), tmp_path)
    shapes = ast.literal_eval(out)
    assert shapes["image/encoded"] == (32, 28, 28, 1)
    assert shapes["image/class/label"] == (32,)


def test_grain_reads_batches(digits_original: Path, tmp_path: Path) -> None:
    need("grain")
    assert run(code(digits_original, "grain"), tmp_path) == "32\n"


def test_torch_reads_batches(digits_original: Path, tmp_path: Path) -> None:
    need("torch")
    out = run(code(digits_original, "torch"), tmp_path)
    assert "'image/encoded': torch.Size([32, 28, 28, 1])" in out
    assert "'image/class/label': torch.Size([32])" in out


def test_torch_reads_payloads(tmp_path: Path) -> None:
    need("torch")
    put(tmp_path / "raw/train.tfrecord", b"no example", b"nor this")
    registry = tfrecreg.init(tmp_path / "registry", with_dvc=False)
    registry["s"].adopt(str(tmp_path / "raw"))
    script = code(registry.root, "torch", "s")
    assert "from tfrecreg.torch import OrderSampler\n" in script
    assert run(script, tmp_path) == "2\n"


def test_mlflow_logs_the_facts(digits_original: Path, tmp_path: Path) -> None:
    need("mlflow")
    run(code(digits_original, "mlflow"), tmp_path, MLFLOW_TRACKING_URI=f"file:{tmp_path}/runs")
    (logged,) = tmp_path.glob("runs/*/*/artifacts/dataset.json")
    release = tfrecreg.open(digits_original)["digits@1.0.0"]
    assert json.loads(logged.read_text()) == release.describe()
    (tag,) = tmp_path.glob("runs/*/*/tags/dataset")
    assert tag.read_text() == "digits@1.0.0"


def test_wandb_logs_the_facts(digits_original: Path, tmp_path: Path) -> None:
    need("wandb")
    run(code(digits_original, "wandb"), tmp_path, WANDB_MODE="offline", WANDB_SILENT="true")
    (log,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    content = tfrecreg.open(digits_original).find("digits@1.0.0").describe()["content"]
    assert content.encode() in log.read_bytes()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_code_compiles_and_fits_in_a_line(framework: str, digits_original: Path) -> None:
    registry = tfrecreg.open(digits_original)
    for reference in ("digits", "digits@latest"):
        resolved = registry.find(reference)
        script = snippet(resolved, framework)
        compile(script, framework, "exec")
        assert "registry" not in script
        assert max(map(len, script.splitlines())) <= 100
        if framework != "tfds":
            assert re.search(rf"\(\n? *{resolved.name!r}", script)


@pytest.mark.medium
def test_names_that_come_from_data_stay_literals(digits_original: Path, tmp_path: Path) -> None:
    """A registry in a folder whose name would end a literal or a comment."""
    root = tmp_path / 'it\'s\n"here"\nraise SystemExit(9)\n#'
    root.symlink_to(digits_original)
    out = run(code(root, "numpy"), tmp_path)
    assert "(32, 28, 28, 1)" in out
    compile(code(root, "tfds"), "tfds", "exec")
    assert "\nraise" not in code(root, "tfds")


def test_the_bytes_may_be_elsewhere(digits_registry: Path) -> None:
    for shard in (digits_registry / "data/digits").glob("*.tfrecord-*"):
        shard.unlink()
    assert "keras.Input((224, 224, 3))" in code(digits_registry, "keras")


def test_a_framework_that_is_not_known_is_refused(digits_original: Path) -> None:
    with pytest.raises(UsageError) as caught:
        code(digits_original, "kera")
    assert caught.value.message == "no code for `kera`; did you mean `keras`?"
    assert caught.value.hint.startswith("available: `tf`, `keras`, ")


@pytest.mark.medium
@pytest.mark.parametrize("framework", ["numpy", "tf", "torch"])
def test_sequences_are_read_by_context_and_lists(tmp_path: Path, framework: str) -> None:
    if framework != "numpy":
        need(framework)
    put(tmp_path / "raw/train.tfrecord", *SEQUENCES)
    registry = tfrecreg.init(tmp_path / "registry", with_dvc=False)
    registry["s"].adopt(str(tmp_path / "raw"))
    printed = run(code(registry.root, framework, "s"), tmp_path)
    assert "'n'" in printed
    assert "'s'" in printed
    with pytest.raises(UsageError, match="its records are not Examples"):
        code(registry.root, "tfds", "s")
