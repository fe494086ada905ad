"""`tfrecreg build`: what is made, what is said, and what is refused without a trace."""

from __future__ import annotations

import json
import shutil

import pytest
from tests_support import tree


def test_build_makes_shards_manifest_labels_ledger_and_schema(cli, raw, registry) -> None:
    done = cli("build", "digits", "--source", "mnist", "--raw", raw, "--shards", "2", "--json")
    assert done.code == 0, done.err
    assert done.json["splits"] == {"test": 20, "train": 60}
    assert done.json["shards"] == 4
    files = sorted(path.name for path in (registry / "data/digits").iterdir())
    assert files == [
        "digits-test.tfrecord-00000-of-00002",
        "digits-test.tfrecord-00001-of-00002",
        "digits-train.tfrecord-00000-of-00002",
        "digits-train.tfrecord-00001-of-00002",
        "index",
        "labels.json",
        "ledger.jsonl",
        "manifest.json",
        "schema.pbtxt",
    ]
    schema = (registry / "schemas/digits.pbtxt").read_bytes()
    assert (registry / "data/digits/schema.pbtxt").read_bytes() == schema
    assert json.loads((registry / "data/digits/labels.json").read_bytes()) == {
        "image/class/label": [str(number) for number in range(10)]
    }


def test_build_is_remembered_and_repeats_without_options(cli, raw, registry) -> None:
    made = ("--source", "mnist", "--raw", "../raw", "--shards", "2", "--compression", "gzip")
    first = cli("build", "digits", *made, "--json")
    config = (registry / "datasets/digits.toml").read_text()
    assert 'raw = "../raw"' in config
    again = cli("build", "digits", "--json")
    assert again.code == 0, again.err
    assert again.json["unchanged"] is True
    assert again.json["digest"] == first.json["digest"]
    assert (registry / "datasets/digits.toml").read_text() == config


def test_dry_run_shows_the_plan_and_writes_nothing(cli, raw, registry) -> None:
    before = tree(registry, ignore=(".tfrecreg",))
    done = cli("build", "digits", "--source", "mnist", "--raw", raw, "--dry-run", "--json")
    assert done.code == 0
    assert done.json["splits"]["train"]["items"] == 60
    assert tree(registry, ignore=(".tfrecreg",)) == before
    text = cli("build", "digits", "--source", "mnist", "--raw", raw, "--dry-run").out
    assert "nothing was written" in text


def test_a_failed_build_leaves_the_old_one_and_says_why(cli, raw, registry) -> None:
    assert cli("build", "digits", "--source", "mnist", "--raw", raw).code == 0
    before = tree(registry / "data")
    schema = registry / "schemas/digits.pbtxt"
    schema.write_text(schema.read_text().replace('value: "png"', 'value: "jpeg"'))
    done = cli("build", "digits")
    assert done.code == 1
    assert "the new build does not pass its own check, so the old one stays" in done.err
    assert "error SCH006" in done.err
    assert tree(registry / "data") == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shards", "0"), "shards"),
        (("--shard-size", "many"), "many"),
        (("--shards", "1", "--hosts", "2"), "exclude each other"),
        (("--option", "encodign=png"), "did you mean `encoding`"),
        (("--jobs", "0"), "--jobs should be at least 1, found 0"),
        (("--source", "mnits"), "did you mean `mnist`"),
    ],
)
def test_bad_options_are_refused_in_one_line(cli, raw, registry, options, message) -> None:
    base = () if "--source" in options else ("--source", "mnist")
    done = cli("build", "digits", *base, "--raw", raw, *options)
    assert done.code == 2, done.err
    assert message in done.err
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) <= 2
    assert not (registry / "data/digits").exists()


def test_a_registry_that_cannot_be_written_is_exit_3(cli, raw, registry) -> None:
    # A file where a folder should be refuses root as well.
    shutil.rmtree(registry / ".tfrecreg")
    (registry / ".tfrecreg").write_text("in the way")
    done = cli("build", "digits", "--source", "mnist", "--raw", raw)
    assert done.code == 3
    assert "cannot be written" in done.err


def test_json_is_one_document_even_when_it_fails(cli, registry) -> None:
    done = cli("build", "digits", "--json")
    assert done.code == 2
    assert done.json["status"] == "error"
    assert done.json["error"]["exit_code"] == 2
    assert done.json["error"]["message"] == "no source is known for `digits`"
