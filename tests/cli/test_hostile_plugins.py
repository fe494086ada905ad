"""Whatever a plugin does, a command ends with one line that names it, and never with 0 or 1."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from hostile_plugin_support import (
    EVIL,
    SLOW,
    Place,
    expect_one_line,
    plant,
    plant_source,
    plant_validator,
)
from hostile_plugin_support import place as place  # the fixture
from scan_support import files, stream
from tests_support import flip, interruptible


def large(place: Place) -> list[str]:
    """Files that are worth worker processes."""
    files(place.root, *[stream(13, 10_000_000)] * 2)
    return ["0.tfrecord", "1.tfrecord"]


ENDINGS = {
    "exits": "os._exit(0)",
    "is replaced": "os.execv('/bin/true', ['true'])",
    "exits without Python": "ctypes.CDLL(None)._exit(0)",
    "kills itself": "os.kill(os.getpid(), signal.SIGKILL)",
    "crashes": "ctypes.string_at(0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDINGS)
def test_a_validator_that_ends_its_process_ends_no_check_with_0(place: Place, how: str) -> None:
    plant_validator(place.site, f"def finish(self, target, parts): {ENDINGS[how]}")
    done = place.run("check", "0.tfrecord")
    expect_one_line(done, "the validator `evil`", "did not return from `finish`: its process")


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "def __init__(self): os._exit(0)",
        "def applies(self, target): os._exit(0)",
        "def begin(self, target, options): os._exit(0)",
        "@property\ndef needs(self): os._exit(0)",
        "def part_key(self, target, options): os._exit(0)\npart_codec = None",
        "def merge(self, part, more): os._exit(0)",
    ],
)
def test_wherever_a_validator_does_it(place: Place, body: str) -> None:
    plant_validator(place.site, body)
    done = place.run("check", "0.tfrecord", "1.tfrecord")
    expect_one_line(done, "the validator `evil`", "its process ended with exit code 0")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(
    "body",
    [
        "def __init__(self, shard): os._exit(0)",
        "def batch(self, batch): os._exit(0)",
        "def close(self, end): os._exit(0)",
        "def close(self, end): return self\n\n    def __reduce__(self): os._exit(0)",
        "def close(self, end): return self\n\n    def __setstate__(self, state): os._exit(0)"
        "\n\n    def __getstate__(self): return {'a': 1}",
    ],
)
def test_wherever_a_visitor_does_it(
    place: Place, body: str, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_validator(place.site, "", more=f"class Eye(GoodEye):\n    {body}\n")
    done = place.run("check", *large(place), TFRECREG_JOBS=jobs)
    expect_one_line(done, "the validator `evil`", "its process ended with exit code 0")


@pytest.mark.medium
def test_whoever_asked_for_json_gets_a_document_all_the_same(place: Place) -> None:
    plant_validator(place.site, "def finish(self, target, parts): os._exit(0)")
    code, out, err = place.run("check", "0.tfrecord", "--json")
    assert code == 3
    found = json.loads(out)
    assert found["status"] == "error"
    assert EVIL in found["error"]["message"]
    assert err.startswith("error: ")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["junit", "sarif", "github", "markdown"])
def test_no_other_report_says_that_it_passed(place: Place, form: str) -> None:
    plant_validator(place.site, "def finish(self, target, parts): os._exit(0)")
    expect_one_line(place.run("check", "0.tfrecord", "--format", form))


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["check", "0.tfrecord"], ["plugins", "list"], ["explain", "XYZ001"]]
)
def test_a_plugin_that_ends_whoever_imports_it_is_named(place: Place, command: list[str]) -> None:
    plant(place.site, "import os; os._exit(0)")
    expect_one_line(place.run(*command), "the plugin `main`", "`import`")


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        "import atexit; atexit.register(os._exit, 0)",
        "import atexit; atexit.register(time.sleep, 60)",
    ],
)
def test_what_it_does_when_the_command_is_done_changes_nothing(place: Place, more: str) -> None:
    plant_validator(place.site, "", more=more)
    (place.root / "0.tfrecord").write_bytes(b"no record at all")
    code, out, err = place.run("check", "0.tfrecord")
    assert code == 1, err
    assert "CRC008" in out


@pytest.mark.slow
def test_a_thread_of_a_plugin_that_ends_the_process_is_told_of(place: Place) -> None:
    body = "def applies(self, target): threading.Timer(0.1, os._exit, [0]).start(); return 'later'"
    plant_validator(place.site, body)
    files(place.root, *[stream(400_000)] * 4)
    code, out, err = place.run("check", *(f"{number}.tfrecord" for number in range(4)))
    assert (code, out) == (3, "")
    assert err == (
        "error: the command ended with exit code 0 before it was done; plugins of `hostile` ran in "
        "it\nhint: uninstall them one by one to find out which one ends it\n"
    )


@pytest.mark.medium
def test_a_plugin_that_hangs_is_ended_and_named(place: Place) -> None:
    plant_validator(place.site, "def finish(self, target, parts): time.sleep(60)")
    done = place.run("check", "0.tfrecord", TFRECREG_PLUGIN_TIMEOUT="0.3")
    expect_one_line(done, "`finish` within 0.3 seconds")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_plugin_that_hangs_in_a_worker_is_ended_and_named(place: Place, jobs: str) -> None:
    plant_validator(
        place.site, "", more="class Eye(GoodEye):\n    def batch(self, b): time.sleep(99)"
    )
    done = place.run("check", *large(place), TFRECREG_JOBS=jobs, TFRECREG_PLUGIN_TIMEOUT="0.5")
    expect_one_line(done, "the validator `evil`", "`batch` within 0.5 seconds")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_source_that_ends_its_worker_is_named(place: Place, jobs: str) -> None:
    plant_source(
        place.site,
        """
        def items(self):
            for number in range(4):  # so much that workers pay
                yield Item("train", str(number), 1 << 29)

        def example(self, item): os._exit(0)
        """,
    )
    done = place.build(TFRECREG_JOBS=jobs)
    expect_one_line(done, "did not return from `example`: its process ended with exit code 0")


@pytest.mark.slow
def test_a_source_that_hangs_leaves_no_process_and_no_lock(place: Place) -> None:
    plant_source(place.site, "def items(self):\n    while True: pass")
    expect_one_line(place.build(TFRECREG_PLUGIN_TIMEOUT="0.5"), "`items` within 0.5 seconds")
    plant_source(place.site, "")
    code, _, err = place.build()
    assert code == 0, err


@pytest.mark.parametrize("text", ["soon", pytest.param("-1", marks=SLOW)])
def test_a_limit_that_is_none_is_refused(place: Place, text: str) -> None:
    plant_validator(place.site, "")
    code, _, err = place.run("check", "0.tfrecord", TFRECREG_PLUGIN_TIMEOUT=text)
    assert code == 2
    assert f"`TFRECREG_PLUGIN_TIMEOUT` should be a number of seconds, found `{text}`" in err


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["the command", "all"])
def test_an_interrupt_is_130_and_ends_the_child(place: Place, whom: str) -> None:
    plant_validator(
        place.site,
        "def finish(self, target, parts):\n    open('here', 'w').close()\n    time.sleep(60)",
    )
    with interruptible():
        process = place.start("check", "0.tfrecord")
    deadline = time.monotonic() + 30
    while not (place.root / "here").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (os.kill if whom == "the command" else os.killpg)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.strip()) == (130, "", "error: interrupted")


@pytest.mark.slow
def test_a_command_that_is_killed_leaves_no_child(place: Place) -> None:
    plant_validator(
        place.site,
        "def finish(self, target, parts):\n"
        "    with open('here.new', 'w') as file: file.write(str(os.getpid()))\n"
        "    os.rename('here.new', 'here')\n    time.sleep(60)",
    )
    process = place.start("check", "0.tfrecord")
    deadline = time.monotonic() + 30
    while not (place.root / "here").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child = int((place.root / "here").read_text())
    assert child != process.pid
    process.kill()
    process.communicate(timeout=30)
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_what_a_plugin_writes_to_stdout_is_in_no_document(place: Place) -> None:
    shout = "print('loud'); os.write(1, b'louder'); os.system('echo loudest')"
    plant_validator(place.site, f"def finish(self, target, parts):\n    {shout}\n    return ()")
    code, out, err = place.run("check", "0.tfrecord", "--json")
    assert code == 0, err
    assert json.loads(out)["status"] == "pass"
    assert {"loud", "louder", "loudest"} <= set(err.replace("louder", "louder ").split())


@pytest.mark.medium
@pytest.mark.parametrize(
    "patch",
    [
        "from tfrecreg.gating import FailOn; FailOn.fails = lambda self, severity: False",
        pytest.param("import builtins; builtins.any = lambda given: False", marks=SLOW),
    ],
)
def test_a_plugin_that_patches_the_judging_passes_no_damage(place: Place, patch: str) -> None:
    plant_validator(place.site, f"def finish(self, target, parts):\n    {patch}\n    return ()")
    assert place.run("check", "0.tfrecord")[0] == 0
    flip(place.root / "0.tfrecord", 30)
    code, out, err = place.run("check", "0.tfrecord")
    assert "error CRC00" in out
    assert code == 3
    assert err.splitlines() == [
        "error: the command passed although the report has findings that fail; plugins of "
        "`hostile` ran in it",
        "hint: uninstall them one by one to find out which one changes the verdict",
    ]
    assert place.run("check", "0.tfrecord", "--fail-on", "never")[0] == 0
