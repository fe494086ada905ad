"""Locks: commands wait, say so, and make the files that git and DVC ignore."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from registry_support import empty_registry

from tfrecreg.core.registry.layout import lock_path
from tfrecreg.core.registry.lock import dataset_lock
from tfrecreg.core.registry.registry import Registry


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return empty_registry(tmp_path)


def is_free(registry: Registry, name: str) -> bool:
    handle = os.open(Path(registry.storage.root) / lock_path(name), os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def test_it_is_held_in_the_block_and_free_behind_it(registry: Registry) -> None:
    told: list[str] = []
    with dataset_lock(registry, "mnist", lambda: told.append("waiting")):
        assert not is_free(registry, "mnist")
        with dataset_lock(registry, "other", lambda: told.append("other")):
            assert not is_free(registry, "other")
    assert is_free(registry, "mnist")
    with dataset_lock(registry, "mnist", lambda: told.append("again")):
        assert not is_free(registry, "mnist")
    assert told == []


def test_who_holds_it_takes_it_again(registry: Registry) -> None:
    told: list[str] = []
    with dataset_lock(registry, "mnist", int):
        with dataset_lock(registry, "mnist", lambda: told.append("waiting")):
            assert not is_free(registry, "mnist")
        assert not is_free(registry, "mnist")
    assert is_free(registry, "mnist")
    assert told == []


def test_who_comes_second_is_told_and_waits(registry: Registry) -> None:
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        def tell() -> None:
            order.append("told")
            waiting.set()

        with dataset_lock(registry, "mnist", tell):
            order.append("second")

    with dataset_lock(registry, "mnist", int):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["told", "first", "second"]


def test_a_killed_holder_holds_nothing(registry: Registry) -> None:
    code = (
        "import sys, time; from tfrecreg.core.registry.registry import open_registry\n"
        "from tfrecreg.core.registry.lock import dataset_lock\n"
        "with dataset_lock(open_registry(sys.argv[1]), 'mnist', int):\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", code, registry.storage.root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert not is_free(registry, "mnist")
        holder.kill()
        holder.wait(10)
    told: list[str] = []
    with dataset_lock(registry, "mnist", lambda: told.append("waiting")):
        assert told == []


def test_what_it_makes_is_ignored_in_a_cloned_registry(registry: Registry) -> None:
    root = Path(registry.storage.root)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    with dataset_lock(registry, "mnist", int):
        pass
    status = ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(status, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["??", "tfrecreg.toml"]
    assert (root / ".tfrecreg/.dvcignore").read_bytes() == b"*\n"
    assert (root / "versions/.dvcignore").read_bytes() == b"*\n"
