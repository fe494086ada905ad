"""What others put into their repositories: the GitHub Action and the hooks of pre-commit.

Their scripts are run as the runner and pre-commit run them, against a real registry.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from action_support import Runner, load, open_runner
from git_support import commit, git, start
from hostile_support import NAMES
from package_support import CHECKOUT
from page_support import read_page
from remote_support import configure, registry_at
from tests_support import flip

from tfrecreg.builtin.dvc import dvc
from tfrecreg.builtin.dvc.transfer import push
from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.shards import ShardPolicy

pytest.importorskip("ruamel.yaml", reason="the extra `dvc` is not installed")

for name in ("action.yml", ".pre-commit-hooks.yaml"):
    if not (CHECKOUT / name).exists():
        pytest.skip(f"{name} is not shipped", allow_module_level=True)

SHARD = "data/digits/digits-train.tfrecord-00001-of-00002"


ACTION = load("action.yml")
HOOKS = {hook["id"]: hook for hook in load(".pre-commit-hooks.yaml")}


@pytest.fixture
def runner(tmp_path: Path, digits_registry: Path) -> Runner:
    return open_runner(digits_registry, tmp_path)


def test_scripts_of_the_action_hold_no_expression() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "run" not in step or step["shell"] == "bash"
    used = " ".join(map(str, ACTION["runs"]["steps"]))
    assert {each for each in ACTION["inputs"] if f"inputs.{each}" not in used} == set()
    assert all(each["description"] and "default" in each for each in ACTION["inputs"].values())


@pytest.mark.medium
def test_the_action_checks_annotates_and_fails(runner: Runner, tmp_path: Path) -> None:
    said = runner.step("Check")
    first = "tfrecreg: digits 1.0.0 (the first): 260 records\n"
    assert said == f"{first}tfrecreg: digits: pass\n"
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("- digits 1.0.0 (the first): 260 records\n\n### `digits`: pass\n")
    flip(runner.here / SHARD, 30)
    said = runner.step("Check", expect=1, targets="digits\n")
    assert said.startswith(f"{first}::error file={SHARD},title=CRC002 data-checksum%3A digits::")
    said = runner.step("Check", targets="digits", fail_on="never", format="text")
    assert "CRC002" in said
    said = runner.step("Check", expect=1, targets=f"{SHARD}\nschemas/../{SHARD}\n", format="junit")
    assert said.startswith("<?xml ")
    assert runner.step("Check", expect=1, format="sarif", output="report.sarif") == ""
    assert (runner.here / "report.sarif").exists()
    said = runner.step("Check", expect=2, targets="data/no-such-*")
    assert "no file matches `data/no-such-*`" in said


@pytest.mark.medium
def test_the_action_has_outputs_whatever_the_verdict(runner: Runner) -> None:
    runner.step("Check", targets="digits")
    found = runner.outputs
    report = found.pop("report")
    assert found == {"status": "pass", "errors": "0", "warnings": "0", "waived": "0"}
    assert json.loads(Path(report).read_text("utf-8"))["target"] == "digits"
    flip(runner.here / SHARD, 30)
    runner.step("Check", expect=1, targets=f"digits\n{SHARD}", format="junit")
    found = runner.outputs
    assert found.pop("report") != report
    assert found == {"status": "fail", "errors": "2", "warnings": "0", "waived": "0"}
    with (runner.here / "tfrecreg.toml").open("a") as config:
        config.write(
            '\n[[waivers]]\ncode = "CRC*"\nowner = "ada"\nreason = "known"\nexpires = 2099-01-31\n'
        )
    assert "::notice file=" in runner.step("Check")
    assert (runner.outputs["status"], runner.outputs["waived"]) == ("pass", "1")
    runner.step("Check", expect=2, targets="none-*")
    assert runner.outputs["status"] == "error"
    assert {"report", "releases-report", *found} == ACTION["outputs"].keys()
    for name, each in ACTION["outputs"].items():
        assert each["value"] == f"${{{{ steps.check.outputs.{name} }}}}"


@pytest.mark.medium
def test_the_action_passes_the_other_inputs_on(runner: Runner) -> None:
    said = runner.step("Check", format="text", cache="true", schema="schemas/digits.pbtxt")
    assert "cached: 0 of 4 shards were not read again" in said
    said = runner.step("Check", expect=2, schema="none.pbtxt")
    assert "none.pbtxt" in said
    runner.step("Check", raw="raw")
    basis = json.loads(Path(runner.outputs["report"]).read_text("utf-8"))["basis"]
    assert basis["raw"] == "raw"
    said = runner.step("Check", expect=2, registry="yes")
    assert said == "::error title=tfrecreg::registry should be true, false or only\n"
    assert "base needs registry" in runner.step("Check", expect=2, base="origin/main")


@pytest.mark.medium
def test_the_action_checks_the_releases_first_and_the_bytes_all_the_same(runner: Runner) -> None:
    manifest = runner.here / "registry/digits/1.0.0/manifest.json"
    assert runner.step("Check", registry="only") == "tfrecreg: the releases: pass\n"
    assert set(runner.outputs) == {"status", "releases-report", "errors", "warnings", "waived"}
    manifest.write_text(manifest.read_text().replace('"records":100', '"records":101', 1))
    said = runner.step("Check", expect=1, registry="true", targets="digits", output="out")
    assert "title=REG002" in said
    assert said.splitlines()[-1] == "tfrecreg: the releases: fail"
    assert (runner.here / "out").read_text("utf-8").endswith("tfrecreg: digits: fail\n")
    assert runner.outputs["status"] == "fail"
    assert {"report", "releases-report"} < set(runner.outputs)


@pytest.mark.slow
def test_the_page_is_written_whatever_the_verdict(runner: Runner) -> None:
    flip(runner.here / SHARD, 30)
    runner.step("Check", expect=1)
    said = runner.step("Page", targets="digits\n", page="page.html")
    assert said.startswith("digits: fail, 1 finding\nwrote page.html, ")
    page = read_page((runner.here / "page.html").read_text("utf-8"))
    assert "Fail : 1 of 1 finding fails" in page.text
    assert runner.step("Page", page="all.html").startswith("digits: fail, 1 finding\n")


@pytest.mark.medium
def test_datasets_that_the_job_does_not_have_fail_it(runner: Runner, tmp_path: Path) -> None:
    (runner.here / "datasets/absent.toml").write_text('source = "mnist"\nraw = "raw"\n')
    said = runner.step("Check", expect=3)
    assert "::error title=incomplete%3A absent::`absent` is not built; hint: tfrecreg build" in said
    assert "tfrecreg: digits: pass\n" in said
    assert "`absent`" in (tmp_path / "summary.md").read_text()
    said = runner.step("Check", ignore_missing="true")
    assert said.startswith("not checked: `absent` is not built\n")
    assert said.endswith("\ntfrecreg: digits: pass\n")


@pytest.mark.medium
def test_no_target_is_a_command_or_an_option(runner: Runner) -> None:
    lines = [line for name in NAMES for line in name.encode("utf-8", "replace").decode().split()]
    # What has the form of a reference is refused as one, before any file is looked for.
    names = [line for line in lines if not re.search("^[a-z]|[\0@#]", line)]
    targets = ["--output=pwned", "$(touch pwned)", "`touch pwned`", "; touch pwned", *names]
    said = runner.step("Check", expect=2, targets="\n".join(targets))
    assert "no file matches `--output=pwned`" in said
    # The one command is our own: it says why there is no report.
    commands = [line for line in said.splitlines() if line.lstrip().startswith("::")]
    assert ["--output=pwned" in line.split("::")[1] for line in commands] == [True]
    assert commands[0].count("::") == 2
    assert not list(runner.here.glob("pwned*"))


def test_the_core_is_installed_and_an_extra_only_if_asked(runner: Runner, tmp_path: Path) -> None:
    # What pip makes of it, the tests of the wheel see; here, what it is asked for.
    python = tmp_path / "bin/python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    asked = ["-m", "pip", "install", "--quiet"]
    assert runner.step("Install tfrecreg").split() == [*asked, "/the/action"]
    said = runner.step("Install tfrecreg", extras="dvc,images")
    assert said.split() == [*asked, "/the/action[dvc,images]"]
    assert runner.step("Install tfrecreg", pull="true").split() == [*asked, "/the/action[dvc]"]
    said = runner.step("Install tfrecreg", pull="true", extras="images")
    assert said.split() == [*asked, "/the/action[dvc,images]"]


def swap_labels(root: Path) -> None:
    """Every 3 is a 5 and every 5 a 3, in the raw data."""
    path = root.parent / "raw/train-labels-idx1-ubyte.gz"
    data = gzip.decompress(path.read_bytes())
    swapped = data[8:].translate(bytes.maketrans(b"\3\5", b"\5\3"))
    path.write_bytes(gzip.compress(data[:8] + swapped))
    build(open_registry(root), BuildRequest(name="digits", raw=str(root.parent / "raw")))


def release_swapped(root: Path) -> None:
    swap_labels(root)
    release(open_registry(root), ReleaseRequest(name="digits"))
    push(open_registry(root))


def track(root: Path, *, in_lock: bool) -> None:
    """Commit the build to DVC, as a pointer or as the output of a stage, and push it."""
    value, _ = dvc.keep(str(root), "data/digits", lambda: None)
    if in_lock:
        (root / "data/digits.dvc").unlink()
        stage = {"cmd": "true", "outs": ["data/digits"]}
        (root / "dvc.yaml").write_text(json.dumps({"stages": {"build-digits": stage}}))
        (root / "dvc.lock").write_text(
            "schema: '2.0'\nstages:\n  build-digits:\n    cmd: 'true'\n    outs:\n"
            f"    - path: data/digits\n      hash: md5\n      md5: {value}\n"
        )
    subprocess.run([sys.executable, "-m", "dvc", "push", "-q"], cwd=root, check=True)


def damage_shard(root: Path, *, in_lock: bool = False) -> None:
    shard = root / "data/digits/digits-train.tfrecord-00000-of-00001"
    flip(shard, shard.stat().st_size // 2)
    track(root, in_lock=in_lock)


def build_swapped(root: Path) -> None:
    swap_labels(root)
    track(root, in_lock=False)


def lose_build(root: Path) -> None:
    """A pointer to bytes that nobody has pushed."""
    path = root / "data/digits.dvc"
    path.write_text(re.sub("md5: [0-9a-f]{32}", f"md5: {'0' * 32}", path.read_text()))


def delete(root: Path, version: str) -> None:
    shutil.rmtree(root / "registry/digits" / version)


def edit_manifest(root: Path, version: str) -> None:
    path = root / "registry/digits" / version / "manifest.json"
    path.write_text(path.read_text().replace('"records":', '"records":1', 1))


def weaken(root: Path) -> None:
    (root / "tfrecreg.toml").write_text('[gates.default]\nfail_on = "never"\n')


CHANGE = r"digits 2\.0\.0 \(major after 1\.1\.0\): \d+ labels changed; "
UNRELEASED = r"digits, a build that is not released \((major|patch) after 1\.\d\.0\): "
BAD = {
    "labels swapped and released": (release_swapped, CHANGE, CHANGE),
    "labels swapped and built": (build_swapped, UNRELEASED, UNRELEASED),
    "shard damaged": (damage_shard, "CRC002", "CRC002"),
    "shard damaged, in dvc.lock": (partial(damage_shard, in_lock=True), "CRC002", None),
    "build not pushed": (lose_build, "this machine has no `data/digits`", None),
    "first release deleted": (partial(delete, version="1.0.0"), "REG002", "REG003"),
    "last release deleted": (partial(delete, version="1.1.0"), "REG002", UNRELEASED),
    "manifest edited": (partial(edit_manifest, version="1.0.0"), "REG002", "REG002"),
    "last manifest edited": (partial(edit_manifest, version="1.1.0"), "REG002", None),
    "gate weakened": (weaken, "tfrecreg.toml: ", "NO BASE"),
}
"""What a pull request does; what the action says of it; what it says without the history, if that
is tried. Without the base in the clone, the action fails.
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a registry of two releases, its remote and its raw data."""
    pytest.importorskip("dvc", reason="the extra `dvc` is not installed")
    folder = tmp_path_factory.mktemp("published")
    write_digits(LocalStorage(folder / "raw"), train=60, test=10, seed=1)
    root = registry_at(folder / "registry")
    configure(root, "../../remote")
    (root / "tfrecreg.toml").write_text("")
    for shards, bump in ((2, "auto"), (1, "minor")):
        raw, policy = str(folder / "raw"), ShardPolicy(shards=shards)
        request = BuildRequest(name="digits", source="mnist", raw=raw, policy=policy)
        build(open_registry(root), request)
        release(open_registry(root), ReleaseRequest(name="digits", bump=bump))
        commit(root, bump)
    push(open_registry(root))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "deep"),
    [(what, deep) for what in BAD for deep in (True, False) if deep or BAD[what][2]],
)
def test_a_bad_pull_request_is_red_or_begins_with_what_it_changes(
    published: Path, tmp_path: Path, what: str, deep: bool
) -> None:
    folder = Path(shutil.copytree(published, tmp_path / "there", symlinks=True))
    harm, found, shallow = BAD[what]
    root, expected = folder / "registry", found if deep else str(shallow)
    git(root, "switch", "--quiet", "--create", "work")
    harm(root)
    commit(root, "harmless")
    here = folder / "clone"
    depth = [] if deep else ["--depth=1"]
    git(folder, "clone", "--quiet", *depth, "--branch=work", f"file://{root}", str(here))
    runner = open_runner(here, tmp_path)
    asks_base = deep or expected == "NO BASE"
    inputs = {"registry": "true", "base": "origin/main"} if asks_base else {}
    text = runner.step("Check", expect=None, pull="true", **inputs)
    code = runner.code
    if expected == "NO BASE":
        assert code in (2, 3)
        return
    summary = (tmp_path / "summary.md").read_text("utf-8").splitlines()
    if code == 0:
        assert re.match(f"- (`* ?){expected}", summary[0])
        assert re.search(f"^tfrecreg: {expected}", text, re.MULTILINE)
    else:
        assert code in (1, 2, 3)
        assert re.search(expected, text)


def hook(runner: Runner, name: str, *files: str, expect: int = 0) -> str:
    """Run a hook as pre-commit does: split like a shell's words, the files behind."""
    words = shlex.split(HOOKS[name]["entry"])
    given = list(files) if HOOKS[name].get("pass_filenames", True) else []
    script = " ".join(shlex.quote(word) for word in [*words, *given])
    return runner.bash(script, expect=expect)


@pytest.mark.medium
def test_the_hook_of_schemas_names_the_one_that_does_not_parse(runner: Runner) -> None:
    (runner.here / "schemas/bad.pbtxt").write_text("feature {\n")
    good, bad = "schemas/digits.pbtxt", "schemas/bad.pbtxt"
    assert re.search(HOOKS["tfrecreg-schemas"]["files"], good)
    assert hook(runner, "tfrecreg-schemas", good) == ""
    said = hook(runner, "tfrecreg-schemas", good, bad, good, expect=2)
    assert said.startswith("error: schemas/bad.pbtxt:1:9: ")


@pytest.mark.slow
def test_the_hook_of_manifests_finds_a_release_that_was_changed(runner: Runner) -> None:
    manifest = runner.here / "registry/digits/1.0.0/manifest.json"
    path = manifest.relative_to(runner.here).as_posix()
    hook(runner, "tfrecreg-manifests", path)
    manifest.write_text(manifest.read_text().replace('"records":100', '"records":101', 1))
    assert "REG002" in hook(runner, "tfrecreg-manifests", path, expect=1)


@pytest.mark.medium
@pytest.mark.parametrize("removed", ["registry/digits/1.0.0", "schemas/digits.pbtxt"])
def test_a_commit_that_only_removes_is_looked_at(runner: Runner, removed: str) -> None:
    """pre-commit gives hooks the files that a commit adds or changes, and runs no other hook."""
    here = runner.here
    start(here)
    (here / ".gitignore").write_text("/data/\n/raw/\n/versions/\n")
    commit(here)
    script = here / ".git/hooks/pre-commit"
    entry = HOOKS["tfrecreg-manifests"]["entry"]
    given = "git diff --staged --name-only --diff-filter=ACMRTUXB | grep -q ."
    always = HOOKS["tfrecreg-manifests"].get("always_run", False)
    script.write_text(f"#!/bin/sh\n{'' if always else f'{given} || exit 0'}\nexec {entry}\n")
    script.chmod(0o755)
    runner.bash("git commit --quiet --allow-empty --message Fine")
    runner.bash(f"git rm -r --quiet {removed}")
    said = runner.bash("git commit --quiet --message Gone", expect=1)
    assert ("REG002" if removed.startswith("registry") else "REG010") in said


@pytest.mark.medium
def test_the_hook_of_the_pipeline_says_when_it_is_out_of_date(runner: Runner) -> None:
    said = hook(runner, "tfrecreg-pipeline", expect=1)
    assert "to be added: build-digits" in said
    runner.bash("tfrecreg pipeline")
    hook(runner, "tfrecreg-pipeline")
