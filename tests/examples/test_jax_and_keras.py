"""The code for JAX and Keras in `docs/frameworks.md`, with the frameworks that can be imported."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest
from package_support import CHECKOUT

pytestmark = pytest.mark.slow

DEVICES = 4
"""Devices of all processes together."""
COMPUTED = "    value = loss(images, labels)\n"
"""Left out with several processes: releases of JAX of 2024 do not compute with those on CPUs."""
PYTHON = re.compile(r"^```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    text = (CHECKOUT / f"docs/{page}.md").read_text("utf-8")
    return [found["text"] for found in PYTHON.finditer(text)]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the registry that the page on training begins with."""
    folder = tmp_path_factory.mktemp("here")
    subprocess.run([sys.executable, "-c", blocks("training")[0]], cwd=folder, check=True)
    return folder


MESH = """
import json

rows = {shard.index[0].start or 0: shard.data.tolist() for shard in labels.addressable_shards}
print(json.dumps([rows, images.shape, len(images.sharding.device_set), float(value)]))
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_mesh_has_the_global_batch(here: Path, processes: int) -> None:
    if find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    import tfrecreg

    (code,) = (each for each in blocks("frameworks") if "NamedSharding" in each)
    assert COMPUTED in code
    if processes > 1:
        code = code.replace(COMPUTED, "    value = 0.0\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = []
    for number in range(processes):
        first = ""
        if processes > 1:
            address = f"'127.0.0.1:{port}', {processes}, {number}"
            first = f"import jax\njax.distributed.initialize({address})\n"
        flags = f"--xla_force_host_platform_device_count={DEVICES // processes}"
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", first + code + MESH],
                cwd=here,
                env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    found: dict[int, list[int]] = {}
    values = set()
    printed = [each.communicate(timeout=120) for each in running]
    for each, (out, problem) in zip(running, printed, strict=True):
        assert each.returncode == 0, problem
        rows, shape, devices, value = json.loads(out.splitlines()[-1])
        found |= {int(start): labels for start, labels in rows.items()}
        assert (shape, devices) == ([120, 28, 28, 1], DEVICES)
        values.add(value)
    assert len(values) == 1
    assert sorted(found) == [0, 30, 60, 90]
    source = tfrecreg.data_source("mnist@1.0.0", "train", registry=here / "digits")
    last = source.order(seed=1, epoch=0)[480:600]
    expected = [int(each["image/class/label"]) for each in source.__getitems__(last)]
    assert list(chain.from_iterable(found[start] for start in sorted(found))) == [
        label for host in range(processes) for label in expected[host::processes]
    ]


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_keras_trains_on_other_backends_than_tensorflow(here: Path, backend: str) -> None:
    for name in ("keras", backend):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    (code,) = (each for each in blocks("frameworks") if "PyDataset" in each)
    done = subprocess.run(
        [sys.executable, "-c", code + "print(keras.backend.backend())"],
        cwd=here,
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"30 True\n{backend}\n"
