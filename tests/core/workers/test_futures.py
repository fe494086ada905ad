"""Executors of `concurrent.futures`: the contract of every engine, and what workers check first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from engines_support import (
    exit_hard,
    fail,
    late_first,
    leave,
    process_of,
    refuse_two,
    shout,
    touch_late,
    trap,
)

from tfrecreg.core.plugins.engines import open_engine
from tfrecreg.core.plugins.entry_points import code_of, digest_of_packages
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import FailureError, RawDataError, install_command
from tfrecreg.core.workers.handshake import terms
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.remote import AHEAD

KINDS = ("threads", "processes")


@pytest.fixture(autouse=True)
def light(light_workers: None) -> None:
    """Spawned workers do not import pytest."""


@pytest.fixture(scope="module")
def engines() -> Iterator[Callable[[str], Engine]]:
    """Engines that stay open for the module: processes take long to start."""
    made: dict[str, Engine] = {}

    def engine(kind: str) -> Engine:
        if kind not in made:
            made[kind] = open_engine(f"futures:executors_support:{kind}", jobs=2)
        return made[kind]

    yield engine
    for each in made.values():
        each.close()


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest, engines: Callable[[str], Engine]) -> Engine:
    return engines(request.param)


@pytest.mark.medium
def test_results_come_in_the_order_of_the_tasks(engine: Engine) -> None:
    assert engine.jobs == 2
    assert list(engine.run(late_first, range(7))) == [0, 1, 4, 9, 16, 25, 36]
    assert list(engine.run(late_first, [])) == []


def test_errors_arrive_as_they_were_raised(engine: Engine) -> None:
    results = engine.run(refuse_two, range(5))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(RawDataError) as caught:
        next(results)
    assert (caught.value.message, caught.value.hint) == ("`two` is one too many", "leave it out")
    with pytest.raises(ZeroDivisionError) as bug:
        list(engine.run(fail, range(3)))
    assert "return 1 // 0" in str(bug.value.__cause__)
    with pytest.raises(FailureError, match=r"a task tried to end the program: exit\('good night'"):
        list(engine.run(leave, range(3)))
    with pytest.raises(FailureError, match="cannot be unpacked: ValueError: it is a trap"):
        list(engine.run(trap, range(3)))


@pytest.mark.medium
def test_tasks_are_taken_as_they_are_needed(engine: Engine) -> None:
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for number in range(50):
            taken += 1
            yield number

    results = engine.run(late_first, tasks())
    assert taken == 0
    for done, _ in enumerate(results):
        assert taken <= done + AHEAD * 2
    assert taken == 50


def test_stopping_early_starts_no_more_tasks(engine: Engine, tmp_path: Path) -> None:
    results = engine.run(touch_late, (str(tmp_path / str(number)) for number in range(100)))
    next(results)
    results.close()
    assert 1 <= len(list(tmp_path.iterdir())) <= AHEAD * 2


def test_threads_run_one_task_at_a_time_and_leave_stdout_alone(
    engines: Callable[[str], Engine], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sys.stdout
    assert list(engines("threads").run(shout, range(20))) == list(range(20))
    assert sys.stdout is before
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("a plugin prints") == 20


@pytest.mark.medium
def test_a_worker_that_dies_is_a_failure_and_the_engine_is_useful_again() -> None:
    with closing(open_engine("futures:executors_support:processes", jobs=2)) as engine:
        with pytest.raises(FailureError) as caught:
            list(engine.run(exit_hard, range(4)))
        assert "`futures:executors_support:processes`" in caught.value.message
        assert caught.value.hint.startswith("run the command again")
        engine.close()
        assert len(set(engine.run(process_of, range(3)))) <= 2


def plant(folder: Path, name: str, version: str) -> None:
    """An installed distribution with a plugin."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[tfrecreg]\npets = pets_plugin\n")


@pytest.fixture
def plugins_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a plugin `pets` 1.2, which this process finds."""
    plant(tmp_path, "pets", "1.2")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    for each in (terms, code_of, digest_of_packages):
        each.cache_clear()


def test_a_worker_without_a_plugin_names_the_distribution(plugins_of_workers: Path) -> None:
    assert terms().versions["pets"] == "1.2"
    options = {"hidden": str(plugins_of_workers)}
    with (
        closing(open_engine("futures:executors_support:strangers", **options)) as engine,
        pytest.raises(FailureError) as caught,
    ):
        list(engine.run(late_first, range(3)))
    assert caught.value.message == (
        f"the worker on `{terms().host}` lacks the plugin distribution `pets` 1.2"
    )
    assert caught.value.hint == (
        f"install it in the workers' environment: {install_command('pets', version='1.2')}"
    )


def refused(hidden: Path, site: Path) -> FailureError:
    """What is said where workers find the distributions of `site` in place of the hidden ones."""
    sys.path.insert(1, str(site))
    options = {"hidden": str(hidden)}
    try:
        with (
            closing(open_engine("futures:executors_support:strangers", **options)) as engine,
            pytest.raises(FailureError) as caught,
        ):
            engine.warm(late_first)
    finally:
        sys.path.remove(str(site))
    return caught.value


def test_another_version_is_an_error_before_work_starts(
    plugins_of_workers: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    older = tmp_path_factory.mktemp("older")
    plant(older, "pets", "1.1")
    here = terms().host
    assert refused(plugins_of_workers, older).message == (
        f"the worker on `{here}` has pets 1.1, expected 1.2 as on `{here}`"
    )


def test_other_code_of_an_editable_plugin_is_an_error_before_work_starts(
    plugins_of_workers: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (plugins_of_workers / "pets_plugin.py").write_text("LEGS = 4\n")
    forget()
    assert terms().code["pets"]
    other = tmp_path_factory.mktemp("other")
    plant(other, "pets", "1.2")
    (other / "pets_plugin.py").write_text("LEGS = 2\n")
    error = refused(plugins_of_workers, other)
    here = terms().host
    assert error.message == (
        f"the worker on `{here}` has other code of pets 1.2 than `{here}`: one of them has it as "
        "an editable or local install"
    )
    assert error.hint == "install the same code in the workers' environment as here"
    assert error.exit_code == 3


@dataclass(frozen=True)
class Place:
    storage: LocalStorage


class Vanishing(Place):
    """Its folder is renamed when it has been packed: workers do not have it under that name."""

    def __reduce__(self) -> tuple[object, ...]:
        root = Path(self.storage.root).parent
        root.rename(f"{root}-moved")
        return Place, (self.storage,)


def size_of(place: Place) -> int:
    return len(list(place.storage.list()))


def test_a_worker_that_does_not_see_a_folder_names_it(
    engines: Callable[[str], Engine], tmp_path: Path
) -> None:
    folder = tmp_path / "registry"
    folder.mkdir()
    stage = LocalStorage(folder / "stage")  # does not exist: the one above it has to
    engine = engines("processes")
    assert list(engine.run(size_of, [Place(LocalStorage(folder))])) == [0]
    with pytest.raises(FailureError) as caught:
        list(engine.run(size_of, [Vanishing(stage)]))
    assert caught.value.message == (
        f"the worker on `{terms().host}` does not see the folder `{folder}`"
    )
    assert "under the same paths" in caught.value.hint
