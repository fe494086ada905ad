"""The pipeline as people run it: git, DVC and the command line, from raw data to a release.

One story a test, for each call of DVC takes a second or two.
"""

from __future__ import annotations

import gzip
import json
import re
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from page_support import read_page
from shell_support import Shell, open_shell
from tests_support import flip, tree

from tfrecreg.builtin.dvc.pipeline import pipeline
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("dvc") is None, reason="the extra `dvc` is missing"),
]

MNIST = 'source = "mnist"\nraw = "raw/mnist"\nshards = 2\n'
MORE = 'source = "mnist"\nraw = "raw/more"\n'

CONFIG = """
[gates.default]
limits.inflation = { ratio = 1.10, allowance = 512, base = "decoded" }
"""

ALL = [f"{kind}-{name}" for name in ("mnist", "more") for kind in ("build", "check", "gate")]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = open_shell(tmp_path)
    root = shell.root
    shell("git init --quiet")
    shell("tfrecreg init")
    write_digits(LocalStorage(root / "raw/mnist"), train=60, test=20, seed=1)
    write_digits(LocalStorage(root / "raw/more"), train=30, test=10, seed=2)
    (root / ".gitignore").write_text("/raw/\n")
    shell.edit("tfrecreg.toml", lambda text: text + CONFIG)
    (root / "datasets").mkdir()
    (root / "datasets/mnist.toml").write_text(MNIST)
    (root / "datasets/more.toml").write_text(MORE)
    return shell


def test_only_what_depends_on_a_change_runs_again(shell: Shell) -> None:
    root = shell.root
    strangers = "# ours\nstages:\n  train:\n    cmd: echo trained\n    deps:\n    - data/mnist\n"
    (root / "dvc.yaml").write_text(strangers)
    assert "dvc.yaml is out of date" in shell("tfrecreg pipeline --check", expect=1)
    assert (root / "dvc.yaml").read_text() == strangers
    said = shell("tfrecreg pipeline")
    assert "added: build-mnist, check-mnist, gate-mnist, build-more" in said
    assert (root / "dvc.yaml").read_text().startswith(strangers)
    shell("tfrecreg pipeline --check")
    assert sorted(shell.repro()) == sorted([*ALL, "train"])
    assert shell.repro() == []
    before = tree(root / "data/mnist")
    shell("git add .")
    shell("git commit --quiet -m built")

    # One raw file.
    write_digits(LocalStorage(root / "raw/more"), train=31, test=10, seed=2)
    assert shell.repro() == ["build-more", "check-more", "gate-more"]
    found = shell.document("dvc metrics diff --json")["reports/more/metrics.json"]
    assert found["records"]["diff"] == found["splits.train"]["diff"] == 1
    assert found["records"]["new"] == 41

    # The schema.
    shell.edit("schemas/mnist.pbtxt", lambda text: text + "# reviewed\n")
    assert shell.repro() == ["build-mnist", "train", "check-mnist", "gate-mnist"]

    # What is for people, and another dataset.
    shell.edit("datasets/more.toml", lambda text: f'{text}owner = "ada"\n# ours\n')
    assert shell.repro() == ["gate-more"]

    # Severities of one dataset, and a comment: nothing is measured again.
    shell.edit("tfrecreg.toml", lambda text: text + '\n[gates.more]\nseverity.ANN005 = "info"\n')
    assert shell.repro() == ["gate-mnist", "gate-more"]
    shell.edit("tfrecreg.toml", lambda text: text + "# a comment\n")
    assert shell.repro() == ["gate-mnist", "gate-more"]

    # Keys that were not there before: the gate asks for `pipeline`, and then all is well.
    shell.edit("tfrecreg.toml", lambda text: text + "limits.inflation.ratio = 1.2\n")
    said = shell("dvc repro", expect=255)
    assert "`dvc.yaml` lacks settings that `check-more` depends on" in said
    shell("tfrecreg pipeline")
    assert shell.repro() == ["check-more", "gate-more"]
    shell.edit("datasets/more.toml", lambda text: f"shards = 3\n{text}")
    said = shell("dvc repro", expect=255)
    assert "`dvc.yaml` lacks settings that `build-more` depends on" in said
    shell("tfrecreg pipeline")
    assert shell.repro() == ["build-more", "check-more", "gate-more"]
    # From then on they are parameters like others.
    shell.edit("datasets/more.toml", lambda text: text.replace("shards = 3", "shards = 1"))
    assert shell.repro() == ["build-more", "check-more", "gate-more"]
    said = shell("dvc exp run --set-param datasets/more.toml:shards=2 build-more")
    assert "Running stage 'build-more'" in said
    assert "shards = 2\n" in (root / "datasets/more.toml").read_text()
    assert shell.repro() == ["check-more", "gate-more"]
    # And a key that goes is a change, too.
    shell.edit("datasets/more.toml", lambda text: text.replace("shards = 2\n", ""))
    assert "'shards' are missing from 'datasets/more.toml'" in shell("dvc repro", expect=255)
    shell("tfrecreg pipeline")
    assert shell.repro() == ["build-more", "check-more", "gate-more"]

    # A release takes the hash that the stage noted; the next build makes the same bytes.
    said = shell("tfrecreg release mnist --version 1.0.0")
    released = "git add registry/mnist/1.0.0 registry/.gitattributes schemas/mnist.pbtxt"
    assert f"{released} datasets/mnist.toml dvc.lock\n" in said
    assert not (root / "data/mnist.dvc").exists()
    lock = (root / "dvc.lock").read_text()
    manifest = json.loads((root / "registry/mnist/1.0.0/manifest.json").read_text())
    assert f"md5: {manifest['release']['dvc']}" in lock
    built = tree(root / "data/mnist")
    assert shell.repro() == ["build-mnist", "check-mnist"]
    assert tree(root / "data/mnist") == built != before
    shell("git add .")
    shell("git commit --quiet -m 'Release mnist@1.0.0'")
    assert shell.repro() == []

    # What DVC shows.
    shown = shell.document("dvc metrics show --json")[""]["data"]
    numbers = shown["reports/mnist/metrics.json"]["data"]
    assert numbers["records"] == 80
    assert numbers["findings"] == {"error": 0, "warning": 0, "info": 0}
    assert numbers["inflation"]["ratio_decoded"] > 0
    plots = shell.document("dvc plots show --json")
    splits = plots["data"]["reports/mnist/plots/splits.csv"][0]["content"]["data"]["values"]
    assert [(each["split"], each["records"]) for each in splits] == [
        ("test", "20"),
        ("train", "60"),
    ]
    assert not plots.get("errors")

    # A dataset that is gone takes its stages with it.
    (root / "datasets/more.toml").unlink()
    shell.edit("tfrecreg.toml", lambda text: text[: text.index("[gates.more]")])
    assert "removed: build-more, check-more, gate-more" in shell("tfrecreg pipeline")
    assert sorted(shell.repro()) == ["gate-mnist"]


def test_a_page_is_an_output_that_a_clone_gets_or_makes_again(shell: Shell, tmp_path: Path) -> None:
    root, page = shell.root, "reports/mnist/page.html"
    shell.edit("datasets/mnist.toml", lambda text: f"page = true\n{text}")
    (root / "datasets/more.toml").unlink()
    shell("tfrecreg pipeline")
    assert sorted(shell.repro()) == ["build-mnist", "check-mnist", "gate-mnist", "page-mnist"]
    assert "mnist" in read_page((root / page).read_text("utf-8")).headings[0]
    assert "/page.html" in (root / "reports/mnist/.gitignore").read_text()
    (entry,) = shell.document(f"dvc ls --json . {page}")
    assert entry["isout"]
    shell(f"dvc remote add --default --local store {tmp_path / 'store'}")
    shell("dvc push --quiet")
    shell("git add .")
    shell("git commit --quiet -m built")

    # What the page says of owners and waivers is new; nothing is built or measured again.
    before = (root / page).read_bytes()
    shell.edit("datasets/mnist.toml", lambda text: f'{text}owner = "ada"\n')
    assert shell.repro() == ["gate-mnist", "page-mnist"]
    assert "ada" in (root / page).read_text("utf-8")

    # Where the page was not pulled, its stage alone makes it again, to the byte.
    (root / page).unlink()
    assert shell.repro() == []
    assert (root / page).is_file()
    shell("git checkout --quiet datasets/mnist.toml dvc.lock")
    shell("dvc pull --quiet --force page-mnist")
    assert (root / page).read_bytes() == before

    # A gate that fails does not keep the page away.
    shell.edit("tfrecreg.toml", lambda text: text.replace("ratio = 1.10", "ratio = 0.01"))
    shell.edit("tfrecreg.toml", lambda text: text.replace("allowance = 512", "allowance = 0"))
    shell("dvc repro --keep-going", expect=255)
    assert "INF001" in (root / page).read_text("utf-8")


def test_damage_stops_it_and_every_format_names_it(shell: Shell) -> None:
    root = shell.root
    shell("tfrecreg pipeline mnist")
    shell.repro()
    name = "mnist-train.tfrecord-00001-of-00002"
    shard = root / "data/mnist" / name
    shard.chmod(0o644)
    flip(shard, shard.stat().st_size // 2)

    # What is released is what the stage made: not this.
    said = shell("tfrecreg release mnist --version 1.0.0", expect=1)
    assert "the gate failed, so nothing was released" in said

    said = shell("dvc repro --single-item check-mnist gate-mnist", expect=255)
    assert re.findall(r"Running stage '([^']*)'", said) == ["check-mnist", "gate-mnist"]
    assert "error CRC002 data-checksum" in said
    # The stage that measured is done, and what it found is there.
    report = json.loads((root / "reports/mnist/check.json").read_text())
    assert (report["status"], report["judged"]) == ("pass", False)
    (finding,) = report["findings"]
    place = finding["locations"][0]
    assert (finding["code"], place["shard"]) == ("CRC002", name)
    record = f"{name}, record {place['record']}, offset {place['offset']}"

    gate = "tfrecreg gate mnist --report reports/mnist/check.json"
    assert record in shell(gate, expect=1)
    judged = json.loads(shell(f"{gate} --json", expect=1))
    assert judged["findings"] == report["findings"]
    assert (judged["status"], judged["fail_on"], judged["judged"]) == ("fail", "error", True)
    (failure,) = fromstring(shell(f"{gate} --format junit", expect=1)).iter("failure")
    assert failure.get("type") == "CRC002"
    assert record in (failure.text or "")
    (result,) = json.loads(shell(f"{gate} --format sarif", expect=1))["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("CRC002", "error")
    where = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert where == f"data/mnist/{name}"
    shell.environment["GITHUB_STEP_SUMMARY"] = str(root / "summary.md")
    command = shell(f"{gate} --format github", expect=1).splitlines()[0]
    assert command.startswith(
        f"::error file=data/mnist/{name},title=CRC002 data-checksum%3A mnist::"
    )
    assert record in command
    page = shell(f"{gate} --format markdown", expect=1)
    assert "### `mnist`: fail" in page
    assert f"`{record}" in page
    assert (root / "summary.md").read_text() == page
    shown = read_page(shell(f"{gate} --format html", expect=1)).text
    assert f"{name} {place['record']} {place['offset']:,}" in shown

    # The whole pipeline makes it good: the build is not what its stage made.
    # What is measured then is what the gate has passed before.
    assert shell.repro() == ["build-mnist", "check-mnist"]
    said = shell(gate)
    assert said.splitlines()[-1].startswith("pass: 0 errors")


def test_a_leak_in_the_raw_data_stops_it(shell: Shell) -> None:
    root = shell.root
    strict = '\n[gates.default.severity]\nDUP002 = "error"\n'
    shell.edit("tfrecreg.toml", lambda text: text + strict)
    shell("tfrecreg pipeline mnist")
    assert shell.repro() == ["build-mnist", "check-mnist", "gate-mnist"]
    # The first image of the test set is the last one of the training set, too.
    for kind, head, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
        train, test = (root / f"raw/mnist/{of}-{kind}-ubyte.gz" for of in ("train", "t10k"))
        data = gzip.decompress(train.read_bytes())
        copied = gzip.decompress(test.read_bytes())[head : head + size]
        train.write_bytes(gzip.compress(data[:-size] + copied, mtime=0))

    said = shell("dvc repro", expect=255)
    ran = re.findall(r"^Running stage '([^']*)'", said, re.MULTILINE)
    assert ran == ["build-mnist", "check-mnist", "gate-mnist"]
    assert "error DUP002 duplicate-across-splits" in said
    (found,) = [
        each
        for each in json.loads((root / "reports/mnist/check.json").read_text())["findings"]
        if each["code"] == "DUP002"
    ]
    (place,) = found["locations"]
    assert f"{place['shard']}, record {place['record']}" in said
    # It stays stopped for as long as the leak is there.
    assert shell.repro(expect=255) == ["gate-mnist"]
    write_digits(LocalStorage(root / "raw/mnist"), train=60, test=20, seed=1)
    assert shell.repro()[0] == "build-mnist"


def test_a_verdict_is_of_today_and_of_what_is_there(shell: Shell) -> None:
    root = shell.root
    shell("tfrecreg pipeline mnist")
    shell.edit(
        "tfrecreg.toml",
        lambda text: (
            f'{text}\n[[waivers]]\ncode = "IMG*"\nowner = "ada"\nreason = "known"\n'
            "expires = 2021-01-31\n"
        ),
    )
    # On a day on which the waiver held; then today.
    pipeline(open_registry(root), ["mnist"], today=date(2021, 1, 1))
    assert " --until 2021-01-31\n" in (root / "dvc.yaml").read_text()
    shell.repro()
    assert shell.repro() == []
    assert "to be updated: gate-mnist" in shell("tfrecreg pipeline --check mnist", expect=1)
    assert "updated: gate-mnist" in shell("tfrecreg pipeline mnist")
    shell("tfrecreg pipeline --check mnist")
    assert shell.repro() == ["gate-mnist"]

    # A report about another build is not judged.
    write_digits(LocalStorage(root / "raw/mnist"), train=61, test=20, seed=1)
    shell("tfrecreg build mnist")
    said = shell("tfrecreg gate mnist --report reports/mnist/check.json", expect=2)
    assert "is about another state of `mnist`: expected digest" in said
    assert "hint: `tfrecreg check mnist --fail-on never --format json --output" in said
    # Nor is a build released that is not what its stage made.
    said = shell("tfrecreg release mnist --version 1.0.0", expect=2)
    assert "`data/mnist` differs from what `dvc.lock` records for the stage `build-mnist`" in said
    assert "or keep the current data with `dvc commit build-mnist`" in said
    shell("dvc commit --force build-mnist")
    shell("tfrecreg release mnist --version 1.0.0")


def test_what_dvc_tracks_without_a_stage_is_not_taken_over(shell: Shell) -> None:
    shell("tfrecreg build mnist --release 1.0.0")
    said = shell("tfrecreg pipeline mnist", expect=2)
    assert "DVC already tracks `data/mnist` with `data/mnist.dvc`" in said
    assert not (shell.root / "dvc.yaml").exists()
    shell("dvc remove data/mnist.dvc")
    shell("tfrecreg pipeline mnist")
    before = tree(shell.root / "data/mnist")
    assert shell.repro() == ["build-mnist", "check-mnist", "gate-mnist"]
    assert tree(shell.root / "data/mnist") == before
