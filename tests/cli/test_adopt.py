"""`tfrecreg adopt`: arguments, output and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_support import put, sequence, write_set
from tests_support import flip, tree

from tfrecreg.core.example.values import int64_feature


@pytest.fixture
def foreign(registry: Path, tmp_path: Path) -> Path:
    """Two splits of another tool, beside the registry that is the current folder."""
    write_set(tmp_path / "foreign", "train", 7, 2)
    write_set(tmp_path / "foreign", "val", 3, 1, first=100)
    return tmp_path / "foreign"


def test_the_whole_output(cli, foreign) -> None:
    done = cli("adopt", "pets", foreign)
    assert done.code == 0, done.err
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "adopted pets, in data/pets",
        "  size   820 B, 10 records in 3 shards",
        "  items  10 written, 0 skipped",
        "",
        "  split       records  shards  payload",
        "  train             7       2    462 B",
        "  validation        3       1    198 B",
        "",
        "payloads: 10 Examples",
    ]
    assert done.err.splitlines() == [
        "drafted schemas/pets.pbtxt from the records: review it, tighten it, keep it in git"
    ]
    done = cli("adopt", "pets", foreign)
    assert done.out.splitlines()[0] == "adopted pets again, the same as before, in data/pets"
    assert done.err == ""


def test_it_is_released_checked_shown_and_listed(cli, foreign) -> None:
    assert cli("adopt", "pets", foreign, "--key", "name").code == 0
    assert cli("release", "pets", "--version", "1.0.0").code == 0
    assert cli("check", "pets@1.0.0").code == 0
    shown = cli("show", "pets@1.0.0").out
    assert "source    adopt (tfrecreg " in shown
    assert "payloads=example, key=name" in shown or "key=name, payloads=example" in shown
    assert "pets" in cli("list").out
    assert "key item-0000" in cli("head", "pets@1.0.0", "-n", "1").out


def test_classes_in_another_order_are_major(cli, foreign) -> None:
    for number, order in (("1.0.0", "cat\ndog\ncow"), ("2.0.0", "dog\ncat\ncow")):
        (foreign / "names").write_text(order)
        done = cli("adopt", "pets", foreign, "--labels", f"label={foreign / 'names'}")
        assert done.code == 0, done.err
        assert "names of classes: label (3)" in done.out.splitlines()
        if number == "2.0.0":
            reason = "class 0 of `label` was `cat` and is `dog` now, and 1 more changed"
            shown = cli("diff", "pets@1.0.0", "pets", "--exit-code")
            assert shown.code == 1
            assert f"smallest legal number: 2.0.0 (major)\n  {reason}\n" in shown.out
            taken = cli("release", "pets", "--version", "1.0.0")
            assert taken.code == 2
            assert "error: `pets@1.0.0` exists with other class names" in taken.err
            refused = cli("release", "pets", "--bump", "patch")
            assert refused.code == 1
            assert f"it is major, not patch: {reason}" in refused.err
        done = cli("release", "pets")
        assert done.code == 0, done.err
        assert f"released pets@{number} " in done.out


def test_json_is_one_document(cli, foreign) -> None:
    document = cli("adopt", "pets", foreign, "--json").json
    assert document["format_version"] == 1
    assert (document["dataset"], document["folder"]) == ("pets", "data/pets")
    assert document["splits"] == {"train": 7, "validation": 3}
    assert document["kinds"] == {"example": 10}


def test_a_dry_run_shows_splits_and_names(cli, foreign, registry) -> None:
    before = tree(registry)
    done = cli("adopt", "pets", f"{foreign}/train-*", "--dry-run")
    assert done.code == 0
    assert [line.rstrip() for line in done.out.splitlines()] == [
        f"pets: 2 files below {foreign} would be copied",
        "  split  file                            size  in the build",
        "  train  train-00000-of-00002.tfrecord  328 B  pets-train.tfrecord-00000-of-00002",
        "  train  train-00001-of-00002.tfrecord  246 B  pets-train.tfrecord-00001-of-00002",
    ]
    document = cli("adopt", "pets", foreign, "--dry-run", "--json").json
    assert document["how"] == "copy"
    assert document["files"][2] == {
        "file": f"{foreign}/val-00000-of-00001.tfrecord",
        "split": "validation",
        "path": "pets-validation.tfrecord-00000-of-00001",
        "bytes": 246,
    }
    assert tree(registry) == before


def test_sequences_are_adopted_with_the_draft_of_a_schema(cli, registry, tmp_path) -> None:
    put(tmp_path / "s.tfrecord", sequence({"n": int64_feature(1)}, {"steps": []}))
    done = cli("adopt", "s", tmp_path / "s.tfrecord")
    assert done.code == 0, done.err
    assert done.out.rstrip().endswith("payloads: 1 SequenceExample")
    assert done.err.splitlines() == [
        "drafted schemas/s.pbtxt from the records: review it, tighten it, keep it in git",
    ]
    assert "##SEQUENCE##" in (registry / "schemas/s.pbtxt").read_text("utf-8")
    assert cli("check", "s").code == 0


def test_what_is_damaged_is_refused_with_its_findings(cli, foreign, registry) -> None:
    flip(foreign / "train-00001-of-00002.tfrecord", 14)
    done = cli("adopt", "pets", foreign)
    assert done.code == 1
    assert done.out == ""
    assert "CRC002" in done.err
    assert f"{foreign}/train-00001-of-00002.tfrecord, record 0, offset 0" in done.err
    assert "error: the files of `pets` are not adopted: " in done.err
    assert "hint: `tfrecreg salvage FILE.. --output DIR` saves the undamaged records" in done.err
    document = cli("adopt", "pets", foreign, "--json").json
    assert document["status"] == "fail"
    assert [each["code"] for each in document["findings"]] == ["CRC002"]
    assert not (registry / "data/pets").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pets",), "no files are named"),
        (("pets", "nothing-*"), "no file matches `nothing-*`"),
        (("pets", "{0}", "--link", "--in-place"), "exclude each other"),
        (("pets", "{0}", "--labels", "label=no"), "no label map `no`"),
        (("pets", "{0}", "--in-place"), "is not in `data/pets`"),
        (
            ("pets", "{0}/train-00000-of-00002.tfrecord"),
            "1 of the 2 shards of `{0}/train.tfrecord` are named, 1 more are in the same folder",
        ),
    ],
)
def test_what_cannot_be_is_a_mistake_in_the_call(
    cli, foreign, arguments: tuple[str, ...], message: str
) -> None:
    done = cli("adopt", *(each.format(foreign) for each in arguments))
    assert done.code == 2, done.err
    assert message.format(foreign) in done.err
    assert "Traceback" not in done.err
