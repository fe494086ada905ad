"""The contract of every engine, and the facts that workers of other libraries compare first."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from engines_support import late_first, misbehave, process_of, shout, touch_late

from tfrecreg import engine as open_engine
from tfrecreg.builtin.engines.dask import DaskEngine
from tfrecreg.core.plugins.code_digest import code_of, digest_of_packages
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import FailureError, RawDataError
from tfrecreg.core.workers.executor import AHEAD, ExecutorEngine, versions
from tfrecreg.core.workers.interface import Engine

# `importorskip` would import them, which takes seconds.
OTHERS = {"dask": "distributed", "beam": "apache_beam", "ray": "ray"}
KINDS = [
    pytest.param("local 1", id="one job"),
    pytest.param("local 2", id="two jobs"),
    pytest.param("futures:executors_support:threads", id="threads"),
    pytest.param("futures:executors_support:processes", id="processes"),
    *(
        pytest.param(
            name,
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(find_spec(library) is None, reason=f"{library} is missing"),
            ],
        )
        for name, library in OTHERS.items()
    ),
]


@pytest.fixture(autouse=True)
def light(light_workers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spawned workers do not import pytest, and find the functions of tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "support"), os.pathsep)


@pytest.fixture(scope="module")
def engines() -> Iterator[Callable[[str], Engine]]:
    """Engines that stay open for the module: workers take long to start."""
    made: dict[str, Engine] = {}

    def engine(kind: str) -> Engine:
        if kind not in made:
            name, _, jobs = kind.partition(" ")
            made[kind] = open_engine(name, jobs=int(jobs or 2))
        return made[kind]

    yield engine
    for each in made.values():
        each.close()


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest, engines: Callable[[str], Engine]) -> Engine:
    return engines(request.param)


@pytest.mark.medium
def test_results_come_in_the_order_of_the_tasks(engine: Engine) -> None:
    assert list(engine.run(late_first, range(7))) == [0, 1, 4, 9, 16, 25, 36]
    assert list(engine.run(late_first, [])) == []


def test_errors_arrive_as_they_were_raised(engine: Engine) -> None:
    results = engine.run(partial(misbehave, "refuse"), range(5))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(RawDataError) as caught:
        next(results)
    assert (caught.value.message, caught.value.hint) == ("`two` is one too many", "leave it out")
    with pytest.raises(StopIteration):
        next(results)
    with pytest.raises(ZeroDivisionError) as bug:
        list(engine.run(partial(misbehave, "bug"), range(3)))
    with pytest.raises(FailureError, match=r"a task tried to end the program: exit\('good night'"):
        list(engine.run(partial(misbehave, "exit"), range(3)))
    if engine.jobs > 1:
        assert "return 1 // 0" in str(bug.value.__cause__)
        with pytest.raises(FailureError, match="cannot be unpacked: ValueError: it is a trap"):
            list(engine.run(partial(misbehave, "trap"), range(3)))


@pytest.mark.medium
def test_tasks_are_taken_as_they_are_needed(engine: Engine) -> None:
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for number in range(300):
            taken += 1
            yield number

    most = engine.ahead() if isinstance(engine, ExecutorEngine) else 4
    results = engine.run(late_first, tasks())
    assert taken == 0
    for done, _ in enumerate(results):
        assert taken <= done + most
    assert taken == 300


def test_stopping_early_starts_no_more_tasks(engine: Engine, tmp_path: Path) -> None:
    results = engine.run(touch_late, (str(tmp_path / str(number)) for number in range(100)))
    next(results)
    results.close()
    assert 1 <= len(list(tmp_path.iterdir())) <= AHEAD * 2


def test_threads_run_one_task_at_a_time_and_leave_stdout_alone(
    engines: Callable[[str], Engine], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sys.stdout
    threads = engines("futures:executors_support:threads")
    assert list(threads.run(shout, range(20))) == list(range(20))
    assert sys.stdout is before
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("a plugin prints") == 20


@pytest.mark.medium
def test_a_worker_that_dies_is_a_failure_and_the_engine_is_useful_again() -> None:
    with closing(open_engine("futures:executors_support:processes", jobs=2)) as engine:
        with pytest.raises(FailureError) as caught:
            list(engine.run(partial(misbehave, "die"), range(4)))
        assert "the engine `futures` failed: BrokenProcessPool: " in caught.value.message
        engine.close()
        assert len(set(engine.run(process_of, range(3)))) <= 2


class Forgetful(ThreadPoolExecutor):
    """Loses results as Dask may if a worker dies: the first `losses` that it is asked for."""

    losses = 1

    def submit(self, *given: Any, **named: Any) -> Future[Any]:
        future = super().submit(*given, **named)
        if self.losses:
            self.losses -= 1
            future.result()
            future = Future()
            future.set_exception(ValueError("too many values to unpack (expected 3)"))
        return future


@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is missing")
def test_a_task_whose_result_dask_loses_is_sent_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DaskEngine, "executor", lambda self: Forgetful(1))
    with closing(open_engine("dask", jobs=1)) as engine:
        assert list(engine.run(late_first, range(3))) == [0, 1, 4]
    monkeypatch.setattr(Forgetful, "losses", 9)
    with (
        closing(open_engine("dask", jobs=1)) as engine,
        pytest.raises(FailureError, match="ValueError: too many values to unpack"),
    ):
        list(engine.run(late_first, range(3)))


def plant(folder: Path, name: str, version: str) -> None:
    """An installed distribution with a plugin."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[tfrecreg]\npets = pets_plugin\n")
    (info / "RECORD").touch()  # it was installed: its version identifies its code


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a plugin `pets` 1.2, which this process finds."""
    plant(tmp_path, "pets", "1.2")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    for each in (versions, code_of, digest_of_packages, plugins):
        each.cache_clear()


@pytest.mark.parametrize(
    ("change", "found", "expected"),
    [
        ("missing", "no pets", "1.2"),
        ("older", "pets 1.1", "1.2"),
        ("edited", "pets 1.2 [0-9a-f]{16}", "1.2 [0-9a-f]{16}"),
    ],
)
def test_a_worker_with_another_version_of_a_plugin_is_refused(
    here: Path, tmp_path_factory: pytest.TempPathFactory, change: str, found: str, expected: str
) -> None:
    there = tmp_path_factory.mktemp("there")
    if change != "missing":
        plant(there, "pets", "1.1" if change == "older" else "1.2")
    if change == "edited":
        for folder, legs in ((here, 4), (there, 2)):
            (folder / "pets-1.2.dist-info/RECORD").unlink()
            (folder / "pets_plugin.py").write_text(f"LEGS = {legs}\n")
    sys.path.insert(1, str(there))
    try:
        with (
            closing(open_engine("futures:executors_support:strangers", hidden=str(here))) as engine,
            pytest.raises(FailureError, match=f"{found}, but the command has {expected}") as caught,
        ):
            list(engine.run(late_first, range(3)))
    finally:
        sys.path.remove(str(there))
    assert caught.value.exit_code == 3


@dataclass(frozen=True)
class Place:
    storage: LocalStorage


class Vanishing(Place):
    """Its folder is renamed when it has been packed: workers do not have it under that name."""

    def __reduce__(self) -> tuple[object, ...]:
        Path(self.storage.root).rename(f"{self.storage.root}-moved")
        return Place, (self.storage,)


def size_of(place: Place) -> int:
    return len(list(place.storage.list()))


def test_a_worker_that_does_not_see_a_folder_is_refused(
    engines: Callable[[str], Engine], tmp_path: Path
) -> None:
    folder = tmp_path / "registry"
    folder.mkdir()
    engine = engines("futures:executors_support:processes")
    assert list(engine.run(size_of, [Place(LocalStorage(folder))])) == [0]
    with pytest.raises(FailureError) as caught:
        list(engine.run(size_of, [Vanishing(LocalStorage(folder))]))
    assert f"does not see the folder `{folder}`" in caught.value.message
    assert caught.value.exit_code == 3
