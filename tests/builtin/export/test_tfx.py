"""The folders of TFX's components, as TFDV and tfx_bsl read them."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests_support import flip, tree

import tfrecreg
from tfrecreg.builtin.export.run import export
from tfrecreg.builtin.statistics.tfx import tfx_path
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.plugins.exporters import (
    ShardToExport,
    export_gzip,
    export_plain,
    export_unchanged,
)
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RefusedError

SCHEMA = """
feature { name: "x" type: BYTES presence { min_fraction: 1 } shape {} }
feature { name: "n" type: INT presence { min_fraction: 1 } shape {} }
"""
NAME = tfx_path("things-train.tfrecord-00000-of-00001", "train")


def examples(count: int) -> list[dict[str, tfrecreg.Feature]]:
    return [{"x": bytes_feature(b"value"), "n": int64_feature(each)} for each in range(count)]


@pytest.fixture
def task(tmp_path: Path) -> ShardToExport:
    source = LocalStorage(tmp_path / "source")
    with ShardWriter(source, "s/shard") as writer:
        for number, example in enumerate(examples(40)):
            writer.write(encode(example), digest=bytes(16), key=str(number))
    return ShardToExport(
        reference="things@1.0.0",
        storage=source,
        entry=ShardEntry.of("s/shard", writer.written, split="train", index=""),
        compression="none",
        folder=LocalStorage(tmp_path / "stage"),
        name=NAME,
    )


def test_shards_are_called_as_by_example_gen() -> None:
    assert NAME == "examples/Split-train/data_tfrecord-00000-of-00001.gz"
    assert tfx_path("x-minival2017.tfrecord-00007-of-00012", "minival2017") == (
        "examples/Split-minival2017/data_tfrecord-00007-of-00012.gz"
    )


def test_a_plain_shard_is_compressed_with_the_same_records(
    task: ShardToExport, tmp_path: Path
) -> None:
    done = export_gzip(task)
    assert done.how == "compressed"
    written = (tmp_path / "stage" / NAME).read_bytes()
    assert gzip.decompress(written) == (tmp_path / "source/s/shard").read_bytes()
    export_gzip(replace(task, name="again.gz"))
    assert (tmp_path / "stage/again.gz").read_bytes() == written


def test_an_empty_shard_is_an_empty_file(task: ShardToExport, tmp_path: Path) -> None:
    with ShardWriter(LocalStorage(tmp_path / "source"), "s/empty") as writer:
        pass
    entry = ShardEntry.of("s/empty", writer.written, split="train", index="")
    export_gzip(replace(task, entry=entry))
    assert (tmp_path / "stage" / NAME).read_bytes() == b""


def test_damage_is_named_before_anything_is_written(task: ShardToExport, tmp_path: Path) -> None:
    flip(tmp_path / "source/s/shard", 700)
    with pytest.raises(
        RefusedError, match=r"^`s/shard` of .* cannot be exported: CRC00[12] at byte "
    ):
        export_gzip(task)
    assert not (tmp_path / "stage" / NAME).exists()
    (tmp_path / "source/s/shard").unlink()
    for put in (export_gzip, export_plain, export_unchanged):
        with pytest.raises(RefusedError, match="cannot be exported: it is missing"):
            put(task)


READ = """
import sys
from pathlib import Path
import tensorflow_data_validation as tfdv
from tfx_bsl.tfxio import dataset_options, tf_example_record

for folder in map(Path, sys.argv[1:]):
    schema = tfdv.load_schema_text(str(folder / "schema/schema.pbtxt"))
    for split in sorted(path.name for path in (folder / "examples").iterdir()):
        # As TFX's components make it: every file of the folder of a split.
        reader = tf_example_record.TFExampleRecord(
            str(folder / "examples" / split / "*"), schema=schema, telemetry_descriptors=["t"]
        )
        options = dataset_options.RecordBatchesOptions(
            batch_size=7, num_epochs=1, shuffle=False, drop_final_batch=False
        )
        records = sum(batch.num_rows for batch in reader.RecordBatches(options))
        path = folder / "statistics" / split / "FeatureStats.pb"
        statistics = tfdv.load_stats_binary(str(path))
        anomalies = tfdv.validate_statistics(statistics, schema).anomaly_info
        (dataset,) = statistics.datasets
        names = [feature.path.step[0] for feature in dataset.features]
        print(split, records, dataset.num_examples, len(anomalies), *sorted(names))
exec(sys.stdin.read())  # the block of the page
"""
DOCS = Path(__file__).parents[3] / "docs/export.md"
BLOCK = re.compile(r"^```python\n(import tensorflow_data_validation.*?)^```$", re.M | re.S)


@pytest.mark.slow
def test_tfx_reads_examples_statistics_and_schema(
    place_build: Callable[..., Registry], digits_registry: Path, tmp_path: Path
) -> None:
    """And the block for TFDV in `docs/export.md` works as written."""
    if find_spec("tensorflow_data_validation") is None:
        pytest.skip("the extra `tfdv` is not installed")
    splits = {"train": [examples(30), [], examples(3)], "eval": [examples(5)], "none": []}
    for compression, how in (("none", "compressed"), ("gzip", "linked")):
        registry = place_build(splits, SCHEMA, compression=compression)
        result = export(registry, "things", tmp_path / compression, to="tfx")
        assert sorted(tree(tmp_path / compression)) == sorted(result.files)
        assert sorted(result.files) == [
            "examples/Split-eval/data_tfrecord-00000-of-00001.gz",
            "examples/Split-train/data_tfrecord-00000-of-00003.gz",
            "examples/Split-train/data_tfrecord-00001-of-00003.gz",
            "examples/Split-train/data_tfrecord-00002-of-00003.gz",
            "schema/schema.pbtxt",
            "statistics/Split-eval/FeatureStats.pb",
            "statistics/Split-train/FeatureStats.pb",
        ]
        assert result.shards == {how: 4}
        assert result.content is None
        assert result.notes == (
            "the split `none` has no shards and is left out: TFX cannot read empty splits",
        )
    folders = [str(tmp_path / each) for each in ("none", "gzip")]
    export(tfrecreg.open(digits_registry), "digits", tmp_path / "digits-tfx", to="tfx")
    (block,) = BLOCK.findall(DOCS.read_text("utf-8"))
    done = subprocess.run(
        [sys.executable, "-c", READ, *folders],
        input=block,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    splits_read = ["Split-eval 5 5 0 n x", "Split-train 33 33 0 n x"]
    assert done.stdout.splitlines() == [*splits_read, *splits_read, "{}"], done.stderr[-4000:]
