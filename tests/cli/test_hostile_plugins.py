"""Whatever a plugin does, a command ends with one line that names it, and never with 0 or 1."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hostile_plugin_support import VALIDATOR, plant, plant_source, plant_validator
from scan_support import files, stream
from tests_support import interruptible

from tfrecreg.operations.init import init

EVIL = "`hostile` 6.6"
SLOW = pytest.mark.slow


@dataclass
class Place:
    """A folder with a registry `r`, raw data, a TFRecord file, and room for a plugin."""

    root: Path

    @property
    def site(self) -> Path:
        return self.root / "site"

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tfrecreg", *arguments],
            cwd=self.root,
            env={
                **os.environ,
                "PYTHONPATH": f"{self.site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
                **{"NO_COLOR": "1", "COLUMNS": "100", "TFRECREG_JOBS": "1", **env},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def build(self, **env: str) -> tuple[int, str, str]:
        return self.run("-C", "r", "build", "d", "--source", "evil", "--raw", "raw", **env)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    init(tmp_path / "r", with_dvc=False)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.txt").write_text("hello")
    files(tmp_path, stream(5), stream(4))
    return Place(tmp_path)


def expect_one_line(done: tuple[int, str, str], *words: str) -> None:
    code, out, err = done
    assert code == 3, (out, err)
    lines = [line for line in err.splitlines() if not line.startswith("next:")]
    (line,) = [line for line in lines if line.startswith("error: ")]
    for word in (EVIL, *words):
        assert word in line
    assert [each.partition(":")[0] for each in lines] == ["error", "hint"]
    assert out == ""


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
    expect_one_line(done, "the validator `evil`", "did not come back from `finish`: its process")


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
    "command", [["check", "0.tfrecord"], ["plugins", "list"], ["explain", "CRC001"]]
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
        "it\nhint: uninstall them one by one to find out which of them ends it\n"
    )


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
    expect_one_line(done, "did not come back from `example`: its process ended with exit code 0")


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


# What a source does wrong. In this process: none of it ends one.

RAISED = {
    "an error": "raise RuntimeError('oh no')",
    "an exit": "sys.exit(0)",
    "an exit that says 1": "raise SystemExit(1)",
    "no interrupt": "raise GeneratorExit",
    "too deep": "f = lambda: f(); f()",
    "no memory": "raise MemoryError",
    "a refusal": "from tfrecreg.errors import RefusedError; raise RefusedError('no')",
    "an error that looks like ours": (
        "raise type('Mine', (UsageError,), {'exit_code': 0, '__module__': 'x'})('fine')"
    ),
    "two lines": "raise UsageError('one\\ntwo')",
    "no words": "raise UsageError(None)",
    "an error that cannot be told": (
        "raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})()"
    ),
}


def raised_in(places: Iterable[str]) -> list[Any]:
    """Everything that is raised, everywhere: an exit everywhere, and the others slowly."""
    return [
        pytest.param(where, what, marks=[] if what == "an exit" or where == "items" else SLOW)
        for where in places
        for what in RAISED
    ]


METHODS = {
    "__init__": "def __init__(self, raw, options): {}",
    "raw_files": "def raw_files(self): {}",
    "labels": "def labels(self): {}",
    "items": "def items(self): {}",
    "items, later": "def items(self):\n    yield from super().items()\n    {}",
    "example": "def example(self, item): {}",
    "schema": "def schema(self): {}",
    "codecs": "def codecs(self): {}",
    "pickling": "def __reduce__(self): {}",
    "unpickling": "def __getstate__(self): return {{'a': 1}}\ndef __setstate__(self, state): {}",
}


class InProcess:
    """The command line in this process, and a plugin for it."""

    def __init__(self, cli: Any, place: Place) -> None:
        self._cli, self._root, self.site = cli, place.root, place.site

    def run(self, *arguments: str | Path) -> Any:
        from tfrecreg.plugins import plugins

        plugins.cache_clear()
        sys.modules.pop("hostile_plugin", None)
        return self._cli(*arguments)

    def build(self, *more: str) -> tuple[int, str, str]:
        options = ("--source", "evil", "--raw", self._root / "raw", *more)
        done = self.run("-C", self._root / "r", "build", "d", *options)
        return done.code, done.out, done.err

    def check(self, *more: str) -> Any:
        shards = (self._root / "0.tfrecord", self._root / "1.tfrecord")
        return self.run("check", *shards, "--json", *more)


@pytest.fixture
def here(cli: Any, place: Place, monkeypatch: pytest.MonkeyPatch) -> Any:
    from tfrecreg.plugins import plugins

    place.site.mkdir()
    monkeypatch.syspath_prepend(str(place.site))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield InProcess(cli, place)
    plugins.cache_clear()
    sys.modules.pop("hostile_plugin", None)


@pytest.mark.parametrize(("where", "what"), raised_in(METHODS))
def test_whatever_a_source_raises_is_one_line(here: InProcess, where: str, what: str) -> None:
    plant_source(here.site, METHODS[where].format(RAISED[what]))
    expect_one_line(here.build(), "the source `evil`")


@pytest.mark.parametrize("what", RAISED)
def test_whatever_it_raises_when_it_describes_is_one_line(here: InProcess, what: str) -> None:
    plant_source(here.site, f"def describe(self): {RAISED[what]}")
    expect_one_line(here.build("--dry-run"), "the source `evil`", "`describe`")


@pytest.mark.parametrize("what", RAISED)
def test_whatever_its_options_raise_is_one_line(here: InProcess, what: str) -> None:
    more = (
        "@dataclass(frozen=True)\nclass Bad:\n    shade: str = 'dark'\n"
        f"    def __post_init__(self): {RAISED[what]}\n"
        "Evil.Options = Bad\n"
    )
    plant_source(here.site, "", more=more)
    expect_one_line(here.build(), "the source `evil`", "options")


WRONG = {
    "an item that is a tuple": (
        "def items(self): yield ('train', '0', 1, b'')",
        "failed in `items`: expected an Item, a Skipped or a Remark, found an object of type",
    ),
    "items that are none": ("def items(self): return None", "`items`: None is no iterator"),
    "a state": (
        "def items(self): yield Item('train', '0', 1, {})",
        "`state` of the item `0` should be bytes, found an object of type `dict`",
    ),
    "a negative size": (
        "def items(self): yield Item('train', '0', -1)",
        "`size` of the item `0` is -1, expected at least 0",
    ),
    "a size in words": ("def items(self): yield Item('train', '0', 'a')", "should be a whole"),
    "a split": ("def items(self): yield Item('a/b', '0', 1)", "the split `a/b` should be letters"),
    "no key": ("def items(self): yield Item('train', None, 1)", "the key of an item should be a"),
    "a key that no file holds": ("def items(self): yield Item('train', '\\ud800', 1)", "the key"),
    "a key twice": (
        "def items(self): return [Item('train', '0', 1)] * 2",
        "lists `0` twice in the split `train`",
    ),
    "a code from nowhere": (
        "def items(self): yield Skipped('train', '0', 'OWN001', 'x')",
        "`OWN001` is no code of a source",
    ),
    "a detail": ("def items(self): yield Skipped('train', '0', 'SRC001', 1)", "the detail of a"),
    "a remark that is never": (
        "def items(self): yield Remark('train', '0', 'SRC023', 'x', 0)",
        "`times` of a Remark is 0, expected at least 1",
    ),
    "raw files": ("def raw_files(self): yield 'a.txt'", "`raw_files`: expected a RawFile"),
    "negative raw files": ("def raw_files(self): yield RawFile('a.txt', -5, 5)", "`stored` of"),
    "labels that are a text": (
        "def labels(self): return {'label': 'one'}",
        "`labels`: class names of `label` should be a list, found an object of type `str`",
    ),
    "labels that are none": ("def labels(self): return None", "`labels`: expected feature names"),
    "labels of numbers": ("def labels(self): return {'label': [1]}", "a class name of `label`"),
    "labels that no file holds": ("def labels(self): return {'label': ['\\udc80']}", "no text"),
    "no schema": ("def schema(self): return None", "`schema`: the schema should be a text"),
    "a schema that is none": ("def schema(self): return 'feature {'", "in `schema`: schema:1:"),
    "codecs": ("def codecs(self): return {'a': 1}", "`codecs`: a text should be a text"),
    "no example": ("def example(self, item): return None", "failed on `"),
    "an example of numbers": ("def example(self, item): return {'label': 1}", "failed on `"),
    "an example without a name": (
        "def example(self, item): return {1: int64_feature(1)}",
        "failed on `",
    ),
    "remarks": ("def example(self, item): return Written({}, ['x'])", "expected a Remark"),
    "another item": (
        "def example(self, item): return Skipped('other', item.key, 'SRC001', 'x')",
        "of `other` in its place",
    ),
    "a code of an example": (
        "def example(self, item): return Skipped('train', item.key, 'NOT', 'x')",
        "`NOT` is no code of a source",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_answer_that_is_none_is_one_line(here: InProcess, what: str) -> None:
    body, words = WRONG[what]
    plant_source(here.site, body)
    expect_one_line(here.build(), "the source `evil`", words)


def test_a_raw_file_that_is_not_there_is_told_of_with_the_distribution(here: InProcess) -> None:
    plant_source(here.site, "def raw_files(self): yield RawFile('gone.txt', 5, 5)")
    code, _, err = here.build()
    assert code == 2
    assert err.startswith(
        "error: the source `evil` of `hostile` 6.6 lists the raw file `gone.txt`, which is not "
        "there\n"
    )


@pytest.mark.parametrize("path", ["../r/tfrecreg.toml", "/etc/passwd", "a\0b", ""])
def test_a_raw_file_outside_of_the_raw_data_is_one_line(here: InProcess, path: str) -> None:
    plant_source(here.site, f"def raw_files(self): yield RawFile({path!r}, 5, 5)")
    code, _, err = here.build()
    assert code in (2, 3)
    assert [line.partition(":")[0] for line in err.splitlines()] == ["error", "hint"]


def test_what_a_source_says_of_raw_data_is_passed_on(here: InProcess) -> None:
    plant_source(here.site, "def items(self): raise RawDataError('no data', hint='bring some')")
    code, _, err = here.build()
    assert (code, err) == (2, "error: no data\nhint: bring some\n")


# What a validator does wrong. The others have their verdicts, and the check is incomplete.

OF_VALIDATORS = {
    "__init__": "def __init__(self): {}",
    "name": "@property\ndef name(self): {}",
    "applies": "def applies(self, target): {}",
    "needs": "@property\ndef needs(self): {}",
    "begin": "def begin(self, target, options): {}",
    "begin, later": (
        "def begin(self, target, options): return self\ndef __call__(self, shard): {}"
    ),
    "part_key": "part_codec = None\ndef part_key(self, target, options): {}",
    "merge": "def merge(self, part, more): {}",
    "finish": "def finish(self, target, parts): {}",
    "finish, later": "def finish(self, target, parts):\n    yield Measure('e', 1, 'x')\n    {}",
}
OF_VISITORS = ("__init__", "batch", "close")


def expect_incomplete(done: Any, *words: str) -> None:
    assert done.code == 3, (done.out, done.err)
    found = done.json
    assert found["status"] == "error"
    (error,) = found["errors"]
    for word in ("the validator `evil` of `hostile` 6.6", *words):
        assert word in error
    assert error.isprintable()
    assert {"crc", "manifest"} <= set(found["validators"])


@pytest.mark.parametrize(("where", "what"), raised_in(OF_VALIDATORS))
def test_whatever_a_validator_raises_costs_its_own_verdict(
    here: InProcess, where: str, what: str
) -> None:
    plant_validator(here.site, OF_VALIDATORS[where].format(RAISED[what]))
    expect_incomplete(here.check())


@pytest.mark.parametrize(("where", "what"), raised_in(OF_VISITORS))
def test_whatever_a_visitor_raises_costs_the_verdict_of_its_validator(
    here: InProcess, where: str, what: str
) -> None:
    more = f"class Eye(GoodEye):\n    def {where}(self, given): {RAISED[what]}\n"
    plant_validator(here.site, "", more=more)
    expect_incomplete(here.check(), "failed on `")


FINDING = (
    "Finding(**{**dict(code='EVL001', rule='evil', severity=Severity.ERROR, message='m', hint='h', "
    "fingerprint='f', count=1), **dict(%s)})"
)
NONSENSE = {
    "a reason that is none": ("def applies(self, target): return 5", "its `applies` said 5"),
    "an empty reason": ("def applies(self, target): return ''", "its `applies` said ''"),
    "needs": ("needs = 'frames'", "its `needs` should be a Need"),
    "a lambda": ("def begin(self, target, options): return lambda shard: 1", "pickle"),
    "no visitor": ("def begin(self, target, options): return int", "failed on"),
    "no findings": ("def finish(self, target, parts): return None", "NoneType"),
    "a text": ("def finish(self, target, parts): yield 'fine'", "it yielded 'fine'"),
    "a code from nowhere": (
        f"def finish(self, target, parts): yield {FINDING % 'code=%r' % 'EVL999'}",
        "it yielded the code 'EVL999', which it does not announce",
    ),
    "a code of ours": (
        f"def finish(self, target, parts): yield {FINDING % 'code=%r' % 'CRC001'}",
        "it yielded the code 'CRC001', which it does not announce",
    ),
    "a count of none": (
        f"def finish(self, target, parts): yield {FINDING % 'count=0'}",
        "`count` of a finding is 0, expected at least 1",
    ),
    "a severity": (
        f"def finish(self, target, parts): yield {FINDING % 'severity=%r' % 'error'}",
        "`severity` of a finding is 'error'",
    ),
    "a location": (
        "def finish(self, target, parts):\n"
        f"    yield {FINDING % 'locations=[Location(record=%r)]' % 'x'}",
        "`record` of a location is 'x', expected int",
    ),
    "a measure": ("def finish(self, target, parts): yield Measure('evil.x', [1], 'x')", "is [1]"),
    "a measure that is no JSON": (
        "def finish(self, target, parts): yield Measure('evil.x', {'x': b''}, 'x')",
        "not JSON serializable",
    ),
    "a measure without words": (
        "def finish(self, target, parts): yield Measure('evil.x', 1, None)",
        "a measure says None, expected a text",
    ),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_of_a_validator_costs_its_own_verdict(here: InProcess, what: str) -> None:
    body, words = NONSENSE[what]
    plant_validator(here.site, body)
    expect_incomplete(here.check(), words)


def test_what_a_validator_says_of_its_options_is_passed_on(here: InProcess) -> None:
    plant_validator(
        here.site, "def begin(self, target, options): raise UsageError('no such option')"
    )
    done = here.check()
    assert done.code == 2
    assert done.json["error"]["message"] == "no such option"


def test_codes_of_tfrecreg_are_no_strangers_to_announce(here: InProcess) -> None:
    text = VALIDATOR.replace("EVL001", "CRC002")
    plant(here.site, f"{text}    pass\n")
    done = here.run("plugins", "list")
    assert "`evil` has the code `CRC002`, which is tfrecreg's own" in " ".join(done.out.split())


def test_a_source_that_is_gone_is_told_of_with_its_distribution(here: InProcess) -> None:
    plant_source(here.site, "")
    assert here.build()[0] == 0
    plant(here.site, "")
    code, _, err = here.build()
    assert code == 2
    assert err.splitlines()[-2:] == [
        "error: no source named `evil`; `hostile` 6.6 brought it for the build of `d` before",
        "hint: install that distribution, such as by `pip install hostile`",
    ]
