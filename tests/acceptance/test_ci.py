"""The jobs of docs/ci.md in a fresh clone: green for sound data, and red for damage."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import pytest
from action_support import open_runner
from shell_support import Shell, open_shell
from tests_support import flip

from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("dvc") is None, reason="the extra `dvc` is missing"),
]

YAML: Any = pytest.importorskip("ruamel.yaml", reason="the extra `dvc` is missing").YAML
PAGE = Path(__file__).parents[2] / "docs/ci.md"
SHARD = "data/mnist/mnist-train.tfrecord-00001-of-00002"


def commands(heading: str) -> list[str]:
    """What the first job below a heading of the page runs, but for what it installs."""
    below = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2]
    block = re.search(r"^```yaml\n(.*?)^```$", below, re.MULTILINE | re.DOTALL)
    assert block is not None, heading
    job = YAML(typ="safe", pure=True).load(block[1])
    job = job["jobs"]["gate"]["steps"] if "jobs" in job else job["gate"]["script"]
    lines = [step if isinstance(step, str) else step.get("run", "") for step in job]
    found = [line for line in lines if line and not line.startswith("pip install ")]
    assert found, heading
    return found


JOBS = {heading: commands(heading) for heading in ("GitHub Actions", "GitLab")}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A clone of a repository with a release. Only the remote beside it has the bytes."""
    folder = tmp_path_factory.mktemp("ci") / "all"
    folder.mkdir()
    shell = open_shell(folder, "origin")
    write_digits(LocalStorage(shell.root / "raw"), train=60, test=20, seed=1)
    (shell.root / ".gitignore").write_text("/raw/\n")
    shell("git init --quiet --initial-branch=main")
    shell("tfrecreg init")
    shell("dvc remote add --default store ../remote")
    shell("tfrecreg build mnist --source mnist --raw raw --shards 2 --release 1.0.0")
    shell("git add .")
    shell("git commit --quiet --message Release")
    shell("tfrecreg push")
    shell.at(folder)("git clone --quiet origin clone")
    shutil.rmtree(shell.root)
    return shell.at(folder / "clone")


@pytest.fixture
def clone(released: Shell, tmp_path: Path) -> Shell:
    """A copy of the clone and of the remote."""
    folder = shutil.copytree(released.root.parent, tmp_path / "all", symlinks=True)
    summary = {"GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    return Shell(folder / "clone", {**released.environment, **summary})


def run(shell: Shell, lines: list[str], *, expect: int = 0) -> str:
    """Run the commands of a job, of which the last one ends with an exit code."""
    *before, last = lines
    for line in before:
        shell(line)
    return shell(last, expect=expect)


def before_and_after_pull(job: str) -> tuple[list[str], list[str]]:
    lines = JOBS[job]
    at = next(number for number, line in enumerate(lines) if line.startswith("dvc pull "))
    assert lines[at - 1] == "tfrecreg pull"
    assert at + 1 < len(lines)
    return lines[: at + 1], lines[at + 1 :]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_green_where_all_is_well_and_red_where_a_shard_is_damaged(
    clone: Shell, job: str
) -> None:
    fetch, judge = before_and_after_pull(job)
    run(clone, fetch)
    run(clone, judge)
    summary = clone.root.parent / "summary.md"
    assert job == "GitLab" or "### `mnist`: pass" in summary.read_text("utf-8")
    flip(clone.root / SHARD, (clone.root / SHARD).stat().st_size // 2)
    said = run(clone, judge, expect=1)
    if job == "GitLab":
        (failure,) = parse(clone.root / "report.xml").iter("failure")
        assert failure.get("type") == "CRC002"
        assert re.search(rf"{Path(SHARD).name}, record \d+, offset \d+", failure.text or "")
    else:
        assert f"\n::error file={SHARD},title=CRC002 data-checksum%3A mnist::" in said
        assert "### `mnist`: fail" in summary.read_text("utf-8")


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_red_where_the_remote_is_damaged(clone: Shell, job: str) -> None:
    fetch, _ = before_and_after_pull(job)
    objects = [path for path in (clone.root.parent / "remote").rglob("*") if path.is_file()]
    victim = max(objects, key=lambda path: path.stat().st_size)
    victim.chmod(0o644)
    flip(victim, victim.stat().st_size // 2)
    said = run(clone, fetch[:-1], expect=1)
    assert "of `mnist@1.0.0` is damaged in the remote, and this machine has no intact copy" in said
    assert "push --repair mnist@1.0.0`" in said
    assert not (clone.root / "versions/mnist/1.0.0").exists()


def test_a_release_that_was_rewritten_is_red_on_github(clone: Shell) -> None:
    clone.edit(
        "registry/mnist/1.0.0/manifest.json",
        lambda text: text.replace('"records":60', '"records":59'),
    )
    clone("git commit --quiet --all --message 'Nobody will notice'")
    said = clone(JOBS["GitHub Actions"][0], expect=1)
    assert "::error file=registry/mnist/1.0.0/manifest.json,title=REG002 " in said


def test_the_action_is_green_as_printed_and_red_for_damage(clone: Shell) -> None:
    """The second job of the page for GitHub, in a pull request that adds nothing."""
    below = PAGE.read_text("utf-8").partition("\n## GitHub Actions\n")[2]
    printed = re.findall(r"^```yaml\n(.*?)^```$", below, re.MULTILINE | re.DOTALL)[1]
    checkout, action = YAML(typ="safe", pure=True).load(printed)["jobs"]["gate"]["steps"]
    assert checkout["with"] == {"fetch-depth": 0}
    texts = {True: "true", False: "false"}
    inputs = {
        name.replace("-", "_"): texts.get(value, str(value))
        for name, value in action["with"].items()
    }
    assert inputs["base"] == "origin/${{ github.base_ref }}"
    inputs["base"] = "origin/main"
    temp = clone.root.parent / "runner"
    temp.mkdir()
    runner = open_runner(clone.root, temp)
    clone("git switch --quiet --create work")
    said = runner.step("Check", **inputs)
    assert "\ntfrecreg: the releases, with those of origin/main: pass\n" in said
    assert said.endswith("tfrecreg: mnist: pass\n")
    assert runner.outputs["status"] == "pass"
    # The release is fetched where it is named.
    shutil.rmtree(clone.root / "data/mnist")
    said = runner.step("Check", pull="true", targets="mnist@latest")
    assert said.endswith("tfrecreg: mnist@1.0.0: pass\n")
    shutil.rmtree(clone.root / "versions")
    assert runner.step("Check", pull="true").endswith("tfrecreg: mnist: pass\n")
    flip(clone.root / SHARD, (clone.root / SHARD).stat().st_size // 2)
    said = runner.step("Check", expect=1, **inputs | {"pull": ""})
    assert f"::error file={SHARD},title=CRC002 " in said
    assert runner.outputs["status"] == "fail"
    # A build is fetched by DVC.
    shutil.rmtree(clone.root / "data/mnist")
    said = runner.step("Check", pull="true", targets="mnist")
    assert said.endswith("\ntfrecreg: mnist: pass\n")
    clone.edit(
        "registry/mnist/1.0.0/manifest.json",
        lambda text: text.replace('"records":60', '"records":59'),
    )
    said = runner.step("Check", expect=2, **inputs)
    assert "::error file=registry/mnist/1.0.0/manifest.json,title=REG002 " in said
    # As `actions/checkout` leaves it without `fetch-depth`.
    clone.at(temp)(f"git clone --quiet --depth 1 file://{clone.root} shallow")
    runner.here = temp / "shallow"
    said = runner.step("Check", expect=3, **inputs | {"base": "", "registry": "only"})
    assert "::error title=incomplete%3A the releases::a shallow clone: " in said
