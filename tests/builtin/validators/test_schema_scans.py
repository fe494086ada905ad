"""The validator behind a real scanner, on files of ours and of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.builtin.schemas.validator import SchemaValidator
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.check.scan.run import ScanResult, run_scan
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.reader import scan
from tfrecreg.core.schema.infer import SchemaSketch
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.workers.local import LocalEngine

TAXI = "tfrecord/tfx/components/testdata/csv_example_gen"


def shards(folder: Path, *globs: tuple[str, str]) -> list[Shard]:
    """Files by split and glob."""
    return [
        Shard(split, number, path.name, LocalStorage(str(path.parent)), path.name, None, None, None)
        for split, glob in globs
        for number, path in enumerate(sorted(folder.glob(glob)))
    ]


def check(schema: str, files: list[Shard]) -> ScanResult:
    target = Target("files", "files", "", files, None, None, schema, "s.pbtxt", None)
    validator = SchemaValidator()
    assert validator.applies(target) is None
    result = run_scan(target, [validator], LocalEngine(1))
    assert result.complete
    return result


def shown(findings: list[Finding]) -> list[tuple[str, str, int]]:
    return sorted((finding.code, finding.message, finding.count) for finding in findings)


@pytest.mark.realdata
def test_data_of_tfx_keep_the_schema_of_tfx(realdata: Path) -> None:
    penguin = realdata / "schema/tfx/components/testdata/penguin"
    files = shards(penguin, ("train", "data/Split-train/*"), ("eval", "data/Split-eval/*"))
    result = check((penguin / "schema/schema.pbtxt").read_text(), files)
    assert result.findings == []
    assert result.records == 334


@pytest.mark.slow
@pytest.mark.realdata
def test_what_is_wrong_with_other_data_of_tfx_is_found(realdata: Path) -> None:
    schemas = realdata / "schema/tfx"
    files = shards(realdata, ("train", f"{TAXI}/Split-train/*"))
    pipeline = schemas / "examples/chicago_taxi_pipeline/data/user_provided_schema/schema.pbtxt"
    assert shown(check(pipeline.read_text(), files).findings) == [
        ("SCH006", "`company` should be one of the 50 strings of its domain", 11)
    ]
    strict = (schemas / "components/testdata/schema_gen/schema.pbtxt").read_text()
    found = shown(check(strict, files).findings)
    assert {code for code, _, _ in found} == {"SCH002"}
    assert ("SCH002", "`company` should be in every example", 3361) in found
    assert ("SCH002", "`pickup_census_tract` should be in every example", 9908) in found


@pytest.mark.medium
@pytest.mark.realdata
def test_transformed_data_keep_the_schema_that_transform_wrote(realdata: Path) -> None:
    graph = realdata / "schema/tfx/components/testdata/transform/transform_graph"
    files = shards(
        realdata,
        ("train", "tfrecord/tfx/components/testdata/transform/transformed_examples/Split-train/*"),
    )
    result = check((graph / "transformed_metadata/schema.pbtxt").read_text(), files)
    assert result.findings == []
    assert result.records > 0


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize(
    "glob",
    [
        f"{TAXI}/Split-eval/*",
        "tfrecord/raccoon/data/*.record",
        "tfrecord/tfx/examples/mnist/data/*.tfrecord",
        "tfrecord/iodine/*.tfrecords",
        "imagefolder/tfrecorder/sample_tfrecords/train-*",
    ],
)
def test_real_data_pass_the_draft_that_was_made_from_them(realdata: Path, glob: str) -> None:
    files = shards(realdata, ("train", glob))
    assert files
    sketch = SchemaSketch()
    for each in files:
        for event in scan(each.storage, each.path, declared=None, digest=False):
            if isinstance(event, RecordBatch):
                for example in event.examples:
                    sketch.add(example)
    assert sketch.examples > 0
    assert check(sketch.render("real"), files).findings == []


@pytest.mark.realdata
def test_messages_of_other_kinds_are_no_examples(realdata: Path) -> None:
    files = shards(realdata, ("", "tfrecord/nucleus/*.tfrecord"))
    result = check('feature { name: "x" type: INT presence { min_fraction: 1 } }', files)
    (finding,) = result.findings
    assert finding.code == "SCH001"
    assert finding.count == result.records
