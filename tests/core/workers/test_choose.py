"""Engines by name: `open_engine`, `--engine` and their errors."""

from __future__ import annotations

import re
import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.cli.main import main
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.values.errors import MissingExtraError, UsageError, install_command
from tfrecreg.core.workers.local import LocalEngine

FUTURES = "futures:executors_support:threads"
SHARD = "data/digits/digits-test.tfrecord-00000-of-00002"


def test_the_default_is_the_local_engine() -> None:
    assert isinstance(tfrecreg.engine(), LocalEngine)
    assert tfrecreg.engine("local", jobs=3).jobs == 3


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dsak", {}, "no engine is named `dsak`; did you mean `dask`?"),
        ("local", {"a": "1"}, "the engine `local` has no options, found `a`"),
        ("dask", {"adress": "x"}, "did you mean `address`?"),
        ("dask", {"timeout": "soon"}, "`timeout` of `dask` should be a number, found `soon`"),
        ("dask", {"timeout": 0}, "`timeout` should be above 0, found 0"),
        pytest.param(
            "ray",
            {"retries": -1},
            "`retries` should be at least 0, found -1",
            marks=pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
        ),
        ("beam", {"runner": "FlinkRunner"}, "`runner` needs `folder`"),
        ("beam", {"folder": "s3://bucket/tasks"}, "should be a writable folder"),
        ("beam", {"batch": "0"}, "`batch` should be at least 1, found 0"),
    ],
)
def test_a_wrong_name_or_option_is_a_usage_error(
    name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        tfrecreg.engine(name, **options)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["local", "dask", "beam", FUTURES])
def test_less_than_one_job_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="--jobs should be at least 1, found 0"):
        tfrecreg.engine(name, jobs=0)


@pytest.mark.parametrize(
    ("name", "module"), [("dask", "distributed"), ("beam", "apache_beam"), ("ray", "ray")]
)
def test_a_missing_library_is_an_error_with_the_command_that_installs_it(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in [each for each in sys.modules if each.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, each)
    plugins()  # found while they can be
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(MissingExtraError) as caught:
        tfrecreg.engine(name)
    assert caught.value.message == (
        f"the engine `{name}` needs the extra `{name}`, which is not installed"
    )
    assert caught.value.hint == install_command(extra=name)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("futures:loky", {}, "ModuleNotFoundError"),
        ("futures:no_such:x", {}, "ModuleNotFoundError"),
        ("futures:os:nothing", {}, "AttributeError"),
        ("futures:os:getcwd", {}, "TypeError: it returned str"),
        ("futures:os:listdir", {"a": "b"}, "TypeError"),
    ],
)
def test_a_function_that_makes_no_executor_is_a_usage_error(
    name: str, options: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path.cwd()))
    before = [*sys.path]
    with pytest.raises(UsageError, match=f"^the engine `{name}` has no executor: {reason}"):
        list(tfrecreg.engine(name, **options).run(len, [b""]))
    assert sys.path == before


def test_an_executor_gets_the_jobs_and_typed_options(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}

    def make(max_workers: int = 0, **options: object) -> Executor:
        given.update(options, max_workers=max_workers)
        return ThreadPoolExecutor(1)

    monkeypatch.setattr("executors_support.threads", make)
    texts = {"a": "True", "b": "false", "c": "none", "d": "-7", "e": "7.5"}
    assert list(tfrecreg.engine(FUTURES, jobs=3, **texts).run(len, [b"x"])) == [1]
    expected = {"max_workers": 3, "a": True, "b": False, "c": None, "d": -7, "e": "7.5"}
    assert given == expected


@pytest.fixture
def typed(
    digits_original: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def call(*options: str) -> tuple[int, str, str]:
        code = main(["-C", str(digits_original), "check", str(digits_original / SHARD), *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_command_works_on_the_engine_that_is_named(
    typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = typed("--json")
    assert plain[0] == 0
    named = ("--engine", FUTURES, "--engine-option", "max_workers=1")
    assert typed("--json", *named) == plain
    monkeypatch.setenv("TFRECREG_ENGINE", FUTURES)
    assert typed("--json") == plain
    monkeypatch.setenv("TFRECREG_ENGINE", "nothing")
    assert typed("--json", "--engine", "local") == plain
    assert typed()[0] == 2


def test_a_worker_with_another_tfrecreg_is_one_line_and_exit_code_3(
    typed, light_workers: None
) -> None:
    code, out, err = typed("--engine", "futures:executors_support:older")
    assert (code, out) == (3, "")
    (error,) = err.strip().splitlines()
    assert "has tfrecreg 0.0.1" in error
    assert f"but the command has {tfrecreg.__version__}" in error


def test_a_wrong_option_is_one_line_and_exit_code_2(typed) -> None:
    code, out, err = typed("--engine", "dask", "--engine-option", "timeout")
    assert (code, out) == (2, "")
    error, *hint = err.strip().splitlines()
    assert error == "error: `--engine-option timeout` should be `--engine-option NAME=VALUE`"
    assert all(line.startswith("hint: ") for line in hint)
