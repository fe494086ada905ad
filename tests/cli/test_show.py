"""`tfrecreg show --code`: the code, its JSON document, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_support import SEQUENCES, put

NUMPY = """\
import tfrecreg

train = tfrecreg.data_source('digits@1.0.0', 'train', decode=True)
order = train.order(seed=1, epoch=0)
for batch in train.batches(32, order):
    print({name: getattr(value, "shape", len(value)) for name, value in batch.items()})
    break
"""


def test_code_is_printed_as_it_is(cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = cli("show", "digits@latest", "--code", "numpy")
    assert (done.code, done.out, done.err) == (0, NUMPY, "")
    monkeypatch.setenv("COLUMNS", "20")
    assert cli("show", "digits@1.0.0", "--code", "numpy").out == NUMPY


def test_json_has_the_code(cli, here: Path) -> None:
    done = cli("show", "digits@1.0.0", "--code", "numpy", "--json")
    assert done.json == {
        "format_version": 1,
        "reference": "digits@1.0.0",
        "framework": "numpy",
        "code": NUMPY,
    }


def test_records_that_are_no_examples_are_read_as_payloads(cli, here: Path) -> None:
    lines = [b"\xff" * (3 + number) for number in range(5)]
    put(here / "logs/train-00000-of-00001.tfrecord", *lines)
    done = cli("adopt", "logs", "logs")
    assert done.code == 0, done.err
    script = cli("show", "logs", "--code", "numpy").out
    printed: list[object] = []
    exec(script, {"print": printed.append})
    assert printed[0] in [len(payload) for payload in lines]
    for framework, name in (("tfds", "TensorFlow Datasets"), ("keras", "Keras")):
        done = cli("show", "logs", "--code", framework)
        assert done.code == 2
        assert done.err.startswith(
            f"error: there is no code for {name} that fits `logs`: its records are not Examples\n"
        )


def test_sequences_are_read_by_context_and_lists(cli, here: Path) -> None:
    put(here / "clips/train-00000-of-00001.tfrecord", *SEQUENCES)
    assert cli("adopt", "clips", "clips").code == 0
    printed: list[object] = []
    exec(cli("show", "clips", "--code", "numpy").out, {"print": printed.append})
    assert printed == [{"n": (5,), "s": 5}]
    for framework in ("tfds", "keras"):
        assert cli("show", "clips", "--code", framework).code == 2
