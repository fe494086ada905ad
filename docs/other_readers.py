"""How other readers of TFRecord files read a file: TensorFlow, Beam and `tfrecord` of PyPI.

They crash, so each reads in a process of its own. :class:`OtherReader` drives one; run as a program
(``python other_readers.py NAME``) this file is what it drives, in any environment that has the
reader. `docs/integrity_table.py` makes a table with it, and tests hold tfrecreg against it.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import islice
from types import TracebackType
from typing import Any

__all__ = ["OtherReader", "Reading", "record_mark"]

MEMORY = 1 << 35
"""Bytes of address space that a reader has: below what is taken for the length that crashes
TensorFlow, machines differ; from there on this makes them equal."""

_BATCH = 250
"""Files that are read in one process, unless one of them ends it."""

Read = Callable[[str, str], Iterable[bytes]]
"""The records of a file, of compression ``none`` or ``gzip``."""


@dataclass(frozen=True)
class Reading:
    """How one file was read."""

    records: tuple[str, ...] = ()
    """A mark of each record that was delivered, see :func:`record_mark`; none after a crash."""
    error: str = ""
    """The exception that ended it; empty where none did."""
    crash: str = ""
    """The signal that ended the process; empty where none did."""

    @property
    def silent(self) -> bool:
        """Whether it came to an end without an error."""
        return not self.error and not self.crash


def record_mark(payload: bytes) -> str:
    """What a record is known by: equal payloads, equal marks."""
    return blake2b(payload, digest_size=8).hexdigest()


class OtherReader:
    """A process that reads files as another reader does.

    Args:
        name: ``tensorflow``, ``beam`` or ``tfrecord``.
        python: an interpreter that has it; None for this one.

    Raises:
        RuntimeError: it cannot be imported there.
    """

    def __init__(self, name: str, python: str | None = None) -> None:
        hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
        self._process = subprocess.Popen(
            [python or sys.executable, __file__, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={key: value for key, value in os.environ.items() if key not in hidden},
        )
        self.version = ""
        try:
            self.version = self._answer()["version"]
        except RuntimeError:
            self.close()
            raise

    def read(self, files: Iterable[tuple[str, str]]) -> Iterator[Reading]:
        """How each of `files` is read: pairs of a path and a compression, ``none`` or ``gzip``."""
        todo = iter(files)
        assert self._process.stdin is not None
        while batch := list(islice(todo, _BATCH)):
            self._process.stdin.write(json.dumps(batch) + "\n")
            self._process.stdin.flush()
            # All answers first: who stops listening halfway leaves none for the next question.
            for found in [self._answer() for _ in batch]:
                yield Reading(tuple(found["records"]), found["error"], found["crash"])

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(30)

    def __enter__(self) -> OtherReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the reader ended: {self._process.wait(30)}")
        found: dict[str, Any] = json.loads(line)
        if "missing" in found:
            raise RuntimeError(found["missing"])
        return found


def _tensorflow() -> Read:
    import tensorflow as tf

    # To trace and optimize the graph of each small file takes twice as long as all else, and
    # changes nothing of how the file is read.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False

    @cache
    def dataset(kind: str) -> Callable[[str], Any]:
        def made(path: Any) -> Any:
            return tf.data.TFRecordDataset(path, compression_type=kind).with_options(options)

        return tf.function(made, input_signature=[tf.TensorSpec((), tf.string)])

    def read(path: str, compression: str) -> Iterable[bytes]:
        return dataset("GZIP" if compression == "gzip" else "")(path).as_numpy_iterator()

    return read


def _beam() -> Read:
    """The source of `ReadFromTFRecord`, which every runner runs, without a runner."""
    from apache_beam.coders import BytesCoder
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.range_trackers import OffsetRangeTracker
    from apache_beam.io.tfrecordio import _TFRecordSource

    def read(path: str, compression: str) -> Iterable[bytes]:
        kind = CompressionTypes.GZIP if compression == "gzip" else CompressionTypes.UNCOMPRESSED
        source = _TFRecordSource(path, BytesCoder(), kind, validate=False)
        return source.read_records(path, OffsetRangeTracker(0, OffsetRangeTracker.OFFSET_INFINITY))

    return read


def _tfrecord() -> Read:
    from tfrecord.reader import tfrecord_iterator

    def read(path: str, compression: str) -> Iterable[bytes]:
        kind = "gzip" if compression == "gzip" else None
        return map(bytes, tfrecord_iterator(path, compression_type=kind))

    return read


READERS: dict[str, tuple[str, Callable[[], Read]]] = {
    "tensorflow": ("tensorflow", _tensorflow),
    "beam": ("apache-beam", _beam),
    "tfrecord": ("tfrecord", _tfrecord),
}
"""By name: the distribution, and what imports it."""


def main() -> None:
    """Read what stdin names, a list of files a line, and say on stdout what came of each."""
    logging.disable()
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    distribution, load = READERS[sys.argv[1]]
    try:
        read = load()
    except ImportError as error:
        _say({"missing": str(error)})
        return
    _say({"version": importlib.metadata.version(distribution)})
    for line in sys.stdin:
        _read_all(json.loads(line), read)


def _read_all(files: Sequence[tuple[str, str]], read: Read) -> None:
    """Read `files` in processes of their own: a new one behind each file that ends one.

    A fork has what was imported. This process itself reads nothing, for what starts threads in it
    would be of no use in its forks.
    """
    done = 0
    while done < len(files):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with os.fdopen(writing, "w") as answers:
                for path, compression in files[done:]:
                    answers.write(json.dumps(_read(read, path, compression)) + "\n")
                    answers.flush()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answers:
            for answer in answers:
                sys.stdout.write(answer)
                done += 1
        _, status = os.waitpid(child, 0)
        if done < len(files):
            name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
            _say({"records": [], "error": "", "crash": name})
            done += 1
        sys.stdout.flush()


def _read(read: Read, path: str, compression: str) -> dict[str, object]:
    records: list[str] = []
    error = ""
    try:
        records.extend(record_mark(payload) for payload in read(path, compression))
    except Exception as raised:  # whatever it raises is what is asked for
        lines = str(raised).strip().splitlines() or [""]
        # TensorFlow begins with {{names of its own}}.
        words = re.sub(r"^\{\{.*?\}\} *", "", lines[0])
        error = f"{type(raised).__name__}: {words[:200]}"
    return {"records": records, "error": error, "crash": ""}


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
