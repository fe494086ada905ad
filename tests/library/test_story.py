"""One program with every kind of verb, line by line as a person types it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dask_support import cluster
from git_support import commit, start

import tfrecreg
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

PROGRAM = """\
import tfrecreg as tr

reg = tr.open("registry")                       # or tr.init("registry"); found upwards like git
mnist = reg["mnist"]                            # Dataset: name, schema, build, latest, versions
build = mnist.build(source="mnist", raw="raw/mnist", shards=4, jobs=8)
build = reg["shapes"].build(data={"train": {"image": images, "label": labels}}, labels={"label": names})
report = build.check(only=["crc", "schema"]);   report.raise_for_findings("warning")
release = mnist.release(bump="auto", note="first");   release.push();   reg["mnist@1.*"].pull()
v1, v2 = reg["mnist@1.0.0"], reg["mnist@latest"]
v1.diff(v2);   v2.export("out", to="parquet");   v2.tag("prod");   v2.yank(reason="labels mixed up")
train = tr.load("mnist@1.0.0", "train[:80%]", decode=True)          # these stay as they are
source = tr.data_source("mnist@1.0.0", "train", decode=True)
tr.check("s3://bucket/shards-*.tfrecord")       # files need no registry
with tr.engine("dask", address="tcp://…") as engine: mnist.build(engine=engine)
"""  # noqa: E501 - as documents have it

TESTS = str(Path(__file__).parents[1] / "support")


@pytest.mark.slow
def test_a_program_with_every_verb(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tensorflow", "dvc", "distributed", "pyarrow"):
        pytest.importorskip(module)
    root = start(tmp_path / "registry")
    tfrecreg.init(root, with_dvc=True)
    (root / ".dvc/config").write_text(
        "[core]\n    remote = store\n['remote \"store\"']\n    url = ../../store\n"
    )
    write_digits(LocalStorage(root / "raw/mnist"), train=200, test=60, seed=1)
    monkeypatch.chdir(root)
    known: dict[str, Any] = {
        "images": np.arange(96, dtype=np.uint8).reshape(6, 4, 4, 1),
        "labels": np.array([0, 1, 1, 0, 1, 0]),
        "names": ["round", "square"],
    }
    with cluster(tmp_path, env={"PYTHONPATH": TESTS}) as dask:
        places = {
            '"registry"': '"."',
            "s3://bucket": "memory://bucket",
            "tcp://…": dask.address,
        }
        for line in PROGRAM.splitlines():
            for place, real in places.items():
                line = line.replace(place, real)
            exec(line, known)
            if line.startswith("release ="):
                commit(root)  # a tag names the commit of its release
                memory.put(
                    str(next((root / "data/mnist").glob("*train*"))), "/bucket/shards-0.tfrecord"
                )
    assert repr(known["v2"]) == "<Release mnist@1.0.0: 200 train, 60 test records in 8 shards>"
    assert repr(known["source"]) == "<DataSource 200 records of mnist@1.0.0>"
    assert known["train"].cardinality() == 160
    assert len(list((root / "out").rglob("*.parquet"))) == 8
    assert [each.reason for each in known["v1"].yanks] == ["labels mixed up"]
    assert known["mnist"].built.check().status == "pass"
