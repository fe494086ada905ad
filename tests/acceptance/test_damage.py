"""`check` finds every flip and every cut, also those that TensorFlow reads without an error."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import pytest
from tests_support import flip

from tfrecreg.builtin.python_data.build import build
from tfrecreg.cli.main import main
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.target import check_target
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.reader import scan
from tfrecreg.core.registry.find import bare_files, build_target, target_of
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.config import Config
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.workers.local import LocalEngine

ENGINE = LocalEngine(1)
OPTIONS = CheckOptions(only=("crc", "manifest"))


def write_idx(raw: Path) -> None:
    """Three images of 2 × 2 pixels: small records, so that every cut can be tried."""
    pixels = bytes(range(12))
    (raw / "t10k-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, 3, 2, 2) + pixels)
    (raw / "t10k-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 3) + bytes([7, 0, 9]))


class Built:
    """A build with one small shard in the split `test`, as files and as a target."""

    def __init__(self, folder: Path, compression: str) -> None:
        (folder / "raw").mkdir()
        write_idx(folder / "raw")
        init(folder, with_dvc=False)
        request = BuildRequest(
            name="digits",
            source="mnist",
            raw=str(folder / "raw"),
            policy=ShardPolicy(shards=1),
            compression=compression,  # type: ignore[arg-type]  # parametrized text
        )
        result = build(open_registry(folder), request)
        self.manifest = result.manifest
        self.folder = folder / result.folder
        self.shard = self.folder / "digits-test.tfrecord-00000-of-00001"
        self.bytes = self.shard.read_bytes()
        self.boundaries = self._boundaries()

    def _boundaries(self) -> list[int]:
        """Where records of the decompressed stream begin, and where it ends."""
        found = [0]
        for event in scan(LocalStorage(self.folder), self.shard.name):
            if isinstance(event, RecordBatch):
                found += [
                    offset + 16 + length
                    for offset, length in zip(event.offsets, event.lengths, strict=True)
                ]
        return found

    def write(self, data: bytes) -> None:
        self.shard.unlink()
        self.shard.write_bytes(data)

    def by_manifest(self) -> Report:
        target = build_target(
            self.manifest,
            LocalStorage(self.folder),
            schema=None,
            schema_path=None,
        )
        return check_target(target, Config(), OPTIONS, engine=ENGINE)

    def bare(self) -> Report:
        target = target_of(bare_files([str(self.shard)]))
        return check_target(target, Config(), OPTIONS, engine=ENGINE)


@pytest.fixture(params=["none", "gzip"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Built:
    return Built(tmp_path, request.param)


def silent_in_tensorflow(path: Path, compression: str) -> bool:
    """Whether TensorFlow reads the file to its end without an error."""
    import tensorflow as tf

    try:
        for _ in tf.data.TFRecordDataset(str(path), "GZIP" if compression == "gzip" else ""):
            pass
    except tf.errors.OpError:
        return False
    return True


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 41])
def test_every_cut_is_found_with_the_manifest_and_all_but_boundaries_without(built, step) -> None:
    pytest.importorskip("tensorflow", reason="how TensorFlow reads the cuts needs TensorFlow")
    compression = built.manifest.compression
    silent: list[int] = []
    unfound: list[int] = []
    # A cut of everything is an empty file: a TFRecord without records, which SHD007 remarks on.
    boundaries = built.boundaries[:-1] if compression == "none" else []
    cuts = sorted({*range(0, len(built.bytes), step), *boundaries})
    for cut in cuts:
        built.write(built.bytes[:cut])
        report = built.by_manifest()
        assert report.status == "fail", cut
        assert {each.code for each in report.findings} & {
            "CRC003",
            "CRC004",
            "CRC007",
            "CRC008",
            "SHD002",
        }, cut
        if not [each for each in built.bare().findings if each.code.startswith("CRC")]:
            unfound.append(cut)
        if silent_in_tensorflow(built.shard, compression):
            silent.append(cut)
    # Plain: between two records. gzip: between two members; this shard is one member.
    expected = built.boundaries[:-1] if compression == "none" else [0]
    assert unfound == expected
    print(
        f"\n{compression}: of {len(cuts)} cuts TensorFlow reads {len(silent)} without an "
        f"error; tfrecreg misses 0 with the manifest and {len(unfound)} without: {unfound}"
    )
    assert set(unfound) <= set(silent)


def test_flips_are_found_through_the_command_line(tmp_path, capsys, monkeypatch) -> None:
    built = Built(tmp_path, "none")
    monkeypatch.setenv("TFRECREG_JOBS", "1")
    rng = random.Random(8)
    copies = tmp_path / "copies"
    for _ in range(12):
        at = rng.randrange(len(built.bytes))
        shutil.rmtree(copies, ignore_errors=True)
        copies.mkdir()
        copy = copies / "one.tfrecord"
        copy.write_bytes(built.bytes)
        flip(copy, at, 1 << rng.randrange(8))
        assert main(["check", str(copy), "--only", "crc"]) == 1
        out = capsys.readouterr().out
        record = max(n for n, start in enumerate(built.boundaries) if start <= at)
        offset = built.boundaries[record]
        assert f"record {record}, offset {offset}" in " ".join(out.split()), (at, out)
        assert "CRC001" in out if at < offset + 12 else "CRC002" in out
