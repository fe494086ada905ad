"""Shards that cannot be read: the check is incomplete, says which and why, and never passes."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from check_support import framed
from tests_support import flip


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """A whole set of three shards."""
    paths = [tmp_path / f"set/x-{number:05d}-of-00003.tfrecord" for number in range(3)]
    paths[0].parent.mkdir()
    for number, path in enumerate(paths):
        path.write_bytes(framed(*(b"%d" % (100 * number + n) * 100 for n in range(50))))
    return paths


def incomplete(report: dict[str, object], path: Path, reason: str) -> None:
    """The report says that this shard was not read, and why; and nothing else of it."""
    assert report["status"] == "error"
    (error,) = report["errors"]  # type: ignore[misc]  # JSON
    assert error.startswith(f"`{path}` was not read: ")
    assert reason in error


@pytest.mark.parametrize("what", ["fifo", "link"])
@pytest.mark.parametrize("named", ["folder", "glob", "path"])
def test_a_fifo_or_a_dangling_link_in_a_shards_place(
    cli, shards: list[Path], what: str, named: str
) -> None:
    shards[1].unlink()
    if what == "fifo":
        os.mkfifo(shards[1])
    else:
        shards[1].symlink_to("gone")
    folder = shards[0].parent
    target = {"folder": [folder], "glob": [f"{folder}/x-*"], "path": shards}[named]
    done = cli("check", *target, "--json")
    assert done.code == 3
    reason = "it is not a regular file" if what == "fifo" else "does not exist"
    incomplete(done.json, shards[1], reason)
    assert done.json["findings"] == []
    assert done.json["summary"]["records"] == 100
    text = cli("check", *target)
    assert text.code == 3
    assert f"incomplete: `{shards[1]}` was not read" in text.out
    assert text.out.rstrip().splitlines()[-1].startswith("incomplete: 0 errors")


def test_what_is_found_elsewhere_is_told_and_the_exit_code_is_3(cli, shards: list[Path]) -> None:
    flip(shards[2], 50)
    shards[1].unlink()
    os.mkfifo(shards[1])
    for form in ((), ("--fail-on", "never"), ("--fail-on", "warning")):
        done = cli("check", shards[0].parent, "--json", *form)
        assert done.code == 3
        assert [each["code"] for each in done.json["findings"]] == ["CRC002"]


def test_a_folder_in_a_shards_place_is_a_missing_shard(cli, shards: list[Path]) -> None:
    """A folder is not a file that cannot be read: others write shards into folders called so."""
    shards[1].unlink()
    shards[1].mkdir()
    done = cli("check", shards[0].parent, "--json")
    assert done.code == 1
    (finding,) = done.json["findings"]
    assert finding["code"] == "SHD001"
    assert finding["locations"][0]["shard"] == str(shards[1])


def mortal() -> None:
    """Root may read everything: take that away from what runs next."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.medium
@pytest.mark.skipif(sys.platform != "linux", reason="how root is kept out is Linux's")
@pytest.mark.parametrize("locked", ["file", "folder"])
def test_a_shard_that_may_not_be_read(shards: list[Path], locked: str) -> None:
    folder = shards[0].parent
    (shards[1] if locked == "file" else folder).chmod(0o000)
    probe = [sys.executable, "-c", f"open({str(shards[1])!r}).close()"]
    program = [sys.executable, "-m", "tfrecreg", "check", *map(str, shards), "--json"]
    try:
        probed = subprocess.run(probe, preexec_fn=mortal, capture_output=True, timeout=60)
        done = subprocess.run(
            program,
            preexec_fn=mortal,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "TFRECREG_JOBS": "1"},
        )
    finally:
        folder.chmod(0o755)
    if probed.returncode == 0:
        pytest.skip("this user may read everything, whatever is done")
    assert "Traceback" not in done.stderr
    assert done.returncode == 3, done.stderr
    if locked == "file":
        incomplete(json.loads(done.stdout), shards[1], "Permission denied")
    else:
        # Not even whether there is anything can be told, and that is no reason to pass.
        errors = json.loads(done.stdout)["errors"]
        assert len(errors) == 3
        assert all("Permission denied" in error for error in errors)
