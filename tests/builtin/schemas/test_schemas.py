"""Drafting a schema from records, and finding the one that is in force."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from check_support import framed
from registry_support import SCHEMA, empty_registry, manifest, put_build, put_release, write
from scan_support import Watched, files, payload, shard, stream, target
from tests_support import Watcher, flip

from tfrecreg.builtin.schemas.accept import propose
from tfrecreg.core.check.infer import infer_schema
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import int64_feature
from tfrecreg.core.registry.find import find_target
from tfrecreg.core.registry.schemas import find_schema
from tfrecreg.core.schema.payload_kinds import described
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import FailureError, ManifestError, UsageError
from tfrecreg.core.workers.local import LocalEngine

ENGINE = LocalEngine(1)


def test_a_draft_accepts_the_records_it_was_made_from(
    digits_original: Path, tmp_path: Path
) -> None:
    draft, _ = infer_schema(find_target("digits", registry=digits_original), ENGINE)
    names = {feature.name for feature in parse_schema(draft, "draft").features}
    assert names >= {"image/encoded", "image/class/label", "image/height", "image/width"}
    path = tmp_path / "draft.pbtxt"
    path.write_text(draft)
    options = CheckOptions(only=("schema",), schema=str(path))
    (report,) = check(["digits"], registry=digits_original, options=options)
    assert report.status == "pass"
    assert report.findings == ()


def test_a_draft_says_what_it_was_made_from(tmp_path: Path) -> None:
    draft, _ = infer_schema(files(tmp_path, stream(3)), ENGINE)
    assert "# Drafted from 3 examples of files.\n" in draft


def mixed(tmp_path: Path, *payloads: bytes) -> Target:
    return files(tmp_path, b"".join(map(framed, payloads)))


EXAMPLE = encode({"n": int64_feature(1)})
EMPTY, SEQUENCE, OTHER = b"", b"\x12\x00", b"\x12\x03abc"


def test_a_draft_is_made_from_what_a_check_calls_examples(tmp_path: Path) -> None:
    found = mixed(tmp_path, EXAMPLE, SEQUENCE, OTHER, EXAMPLE, b"text")
    draft, _ = infer_schema(found, ENGINE)
    assert "# Drafted from 2 examples of files.\n" in draft
    assert "# Not a tf.train.Example, so left out: 3 records.\n" in draft
    assert [feature.name for feature in parse_schema(draft, "draft").features] == ["n"]
    (report,) = check([str(tmp_path / "*")], options=CheckOptions(only=("manifest",)))
    assert report.kinds == {"example": 2, "sequence_example": 1, "other": 2}


@pytest.mark.parametrize(
    ("payloads", "found"),
    [
        ((EMPTY, OTHER, OTHER), "1 Example, 2 of other kinds"),
        ((SEQUENCE,), "1 SequenceExample"),
        ((EMPTY, EMPTY), "2 Examples"),
        ((b"text",), "1 of another kind"),
    ],
)
def test_a_draft_without_a_feature_is_refused(
    tmp_path: Path, payloads: tuple[bytes, ...], found: str
) -> None:
    with pytest.raises(UsageError) as caught:
        infer_schema(mixed(tmp_path, *payloads), ENGINE)
    assert caught.value.exit_code == 2
    assert caught.value.message == (
        f"`files` has no Example with a feature, so there is no schema to infer: found {found}"
    )


def test_real_messages_of_other_types_are_classified_alike(realdata: Path) -> None:
    paths = sorted((realdata / "tfrecord/nucleus").glob("*.tfrecord"))
    assert paths
    for path in paths:
        (report,) = check([str(path)], options=CheckOptions(only=("manifest",)))
        assert report.kinds == {"other": report.records}
        with pytest.raises(UsageError) as caught:
            infer_schema(find_target(str(path)), ENGINE)
        assert caught.value.message.endswith(f": found {described(report.kinds)}")


def test_one_job_and_two_draft_the_same(digits_original: Path) -> None:
    found = find_target("digits", registry=digits_original)
    assert infer_schema(found, ENGINE) == infer_schema(found, LocalEngine(2))


def test_damaged_records_say_nothing(tmp_path: Path) -> None:
    found = files(tmp_path, framed(b"\xffno example") + stream(5))
    flip(tmp_path / "0.tfrecord", 14)
    assert "text" in infer_schema(found, ENGINE)[0]


def test_without_records_there_is_nothing_to_infer_from(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        infer_schema(files(tmp_path, b"", b""), ENGINE)
    assert caught.value.message == "`files` has no readable record to infer a schema from"


def test_a_shard_that_cannot_be_read_spoils_it(tmp_path: Path) -> None:
    (tmp_path / "a\x1b").write_bytes(framed(payload(1)))
    storage = Watched(LocalStorage(tmp_path), {"a\x1b": -1})
    watcher = Watcher()
    with pytest.raises(FailureError) as caught:
        infer_schema(target(shard(storage, "a\x1b")), ENGINE, watcher)
    assert caught.value.message.startswith(r"`files` was not read completely: `a\x1b`: cannot read")
    assert watcher.stopped == 1


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """`mnist`, built and released, with a working schema that has changed since."""
    root = tmp_path / "root"
    empty_registry(root, plain='source = "mnist"\n')
    put_release(root, put_build(root, "mnist"), "1.0.0")
    write(root / "schemas/mnist.pbtxt", "# newer\n")
    return root


def test_a_name_is_the_working_schema(root: Path) -> None:
    assert find_schema("mnist", registry=root) == ("# newer\n", "schemas/mnist.pbtxt")


@pytest.mark.parametrize("reference", ["mnist@1.0.0", "mnist@latest", "mnist@1.*"])
def test_a_release_has_the_schema_it_was_released_with(root: Path, reference: str) -> None:
    assert find_schema(reference, registry=root) == (
        SCHEMA,
        "registry/mnist/1.0.0/schema.pbtxt",
    )


def test_a_schema_needs_no_build(root: Path) -> None:
    shutil.rmtree(root / "data")
    assert find_schema("mnist", registry=root)[0] == "# newer\n"


def test_a_file_needs_no_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "some.pbtxt", SCHEMA)
    write(tmp_path / "mnist", "a file with the name of a dataset")
    assert find_schema("some.pbtxt") == (SCHEMA, "some.pbtxt")
    assert find_schema("./mnist") == ("a file with the name of a dataset", "./mnist")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mnits", "no dataset `mnits`; did you mean `mnist`?"),
        ("plain", "`plain` has no schema: there is no `schemas/plain.pbtxt`"),
        ("plain@latest", "no release `plain@latest`"),
        ("mnist@2.0.0", "no release `mnist@2.0.0`"),
        ("no/such.pbtxt", "the schema `no/such.pbtxt` cannot be read: No such file or directory"),
        ("/tmp", "the schema `/tmp` cannot be read: Is a directory"),
        ("a\x1b.pbtxt", r"the schema `a\x1b.pbtxt` cannot be read: No such file or directory"),
    ],
)
def test_a_schema_that_there_is_not_is_refused(root: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_schema(name, registry=root)
    assert caught.value.message == message
    assert caught.value.hint


def test_a_released_schema_that_was_changed_is_found(root: Path) -> None:
    write(root / "registry/mnist/1.0.0/schema.pbtxt", "# looser\n")
    with pytest.raises(ManifestError, match="was changed after it was released"):
        find_schema("mnist@1.0.0", registry=root)


def test_a_dataset_that_is_only_released_says_which_schemas_there_are(root: Path) -> None:
    put_release(root, manifest("old"), "1.0.0")
    assert find_schema("old@1.0.0", registry=root)[0] == SCHEMA
    with pytest.raises(UsageError, match=r"`old` has no schema: there is no `schemas/old\.pbtxt`"):
        find_schema("old", registry=root)


def test_files_are_held_against_a_schema_by_the_gate_of_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = '[gates.default.limits.schema]\nenvironment = "SERVING"\n'
    empty_registry(tmp_path / "root", config)
    (tmp_path / "other").mkdir()
    files(tmp_path, stream(3))
    always = "presence { min_fraction: 1 min_count: 1 }"
    declared = f'name: "label" type: INT {always} not_in_environment: "SERVING"'
    text = 'default_environment: "TRAINING" default_environment: "SERVING"\n'
    text += f'feature {{ {declared} }}\nfeature {{ name: "text" type: BYTES }}\n'
    schema = str(write(tmp_path / "some.pbtxt", text))

    def edited(registry: Path | None) -> set[str]:
        proposal = propose(str(tmp_path / "0.tfrecord"), registry=registry, schema=schema)
        assert proposal.refused == ()
        return {each.feature for each in proposal.edits}

    monkeypatch.chdir(tmp_path / "other")
    assert edited(None) == {"label"}
    assert edited(tmp_path / "root") == set()
    monkeypatch.chdir(tmp_path / "root")
    assert edited(None) == set()
