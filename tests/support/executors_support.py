"""Executors for `--engine futures:executors_support:NAME`."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor


def threads(max_workers: int = 2) -> Executor:
    return ThreadPoolExecutor(max_workers)


def processes(max_workers: int = 2) -> Executor:
    return ProcessPoolExecutor(max_workers, multiprocessing.get_context("spawn"))


def strangers(hidden: str) -> Executor:
    """Processes that cannot import the distributions of that folder."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, context, initializer=_hide, initargs=(hidden,))


def _hide(folder: str) -> None:
    sys.path.remove(folder)


def older() -> Executor:
    """Processes with another version of tfrecreg."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_age)


def _age() -> None:
    from tfrecreg.core.workers import executor

    executor.__version__ = "0.0.1"
