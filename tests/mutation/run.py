"""Which faults in the code would the quick tests notice? ``make mutants`` samples them.

    python tests/mutation/run.py --count 100 --seed 7 tfrecreg/records
    python tests/mutation/run.py --since main

Each mutant is one small change of one line (see `mutation_support.py`), in a copy of the checkout,
under tests that execute that line, the quickest first. The sample depends on the seed and the code
alone. A mutant that no test notices survives: either a test is missing, or the change has no
effect. Exit code 1 if one survives.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mutation_support import Mutation, compiles, mutated, mutations

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGES = ("tfrecreg", "plugins")
ROUND = 60
"""Tests that a mutant meets at a time, in two rounds."""
LAST_SECONDS = 120.0
"""A third round has all the others, the quickest first, as long as they take together."""
PATIENCE = 60.0
"""Seconds that a mutant has beyond three times what its tests take."""


class Chosen(NamedTuple):
    """A mutant of the sample."""

    path: str
    mutation: Mutation
    description: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.mutation.line}"


class Tests(NamedTuple):
    """The tests of the run that measured them."""

    seconds: Mapping[str, float]
    """Duration of each that passed, by its id."""
    by_line: Mapping[tuple[str, int], frozenset[str]]
    by_file: Mapping[str, frozenset[str]]

    def of(self, mutant: Chosen) -> list[list[str]]:
        """The tests to run, in rounds: those that execute the line, or, if it is executed while its
        module is imported, those that execute anything of the module.

        A line may be executed by thousands. First come a third named as the module is, which are
        about it, a third that is quick, and a third by chance; then as many by chance; then the
        others. Tests in the module's own file count even if only a process that they start executes
        the line, where nothing is measured.
        """
        at_line = self.by_line.get((mutant.path, mutant.mutation.line), frozenset())
        known = [
            each for each in at_line or self.by_file.get(mutant.path, ()) if each in self.seconds
        ]
        known.sort(key=self._quickest)
        third = ROUND // 3
        stem = Path(mutant.path).stem.strip("_")
        chosen = [each for each in known if stem in each.partition("::")[0]][:third]
        file = f"/test_{stem}.py::"
        own = (each for each in self.seconds if file in f"/{each}")
        chosen += _without(sorted(own, key=self._quickest), chosen)[: third - len(chosen)]
        chosen += _without(known, chosen)[: 2 * third - len(chosen)]
        others = _without(known, chosen)
        random.Random(mutant.place).shuffle(others)
        chosen += others[: ROUND - len(chosen)]
        rest = _without(others, chosen)
        last = sorted(rest[ROUND:], key=self._quickest)
        taken = itertools.accumulate(self.seconds[each] for each in last)
        last = last[: bisect_right(list(taken), LAST_SECONDS)]
        rounds = (chosen, rest[:ROUND], last)
        return [sorted(each, key=self._quickest) for each in rounds if each]

    def _quickest(self, test: str) -> tuple[float, str]:
        return self.seconds[test], test


def _without(tests: Iterable[str], left_out: Iterable[str]) -> list[str]:
    """The other tests, in their order."""
    out = frozenset(left_out)
    return [each for each in tests if each not in out]


def main() -> int:
    arguments = _arguments()
    lines = _lines_since(arguments.since) if arguments.since else None
    sample = _sample(arguments.paths, lines, arguments.count, arguments.seed)
    print(f"{len(sample)} mutants, seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Path(folder) / f"copy{number}" for number in range(arguments.jobs)]
        for copy in copies:
            _copy_checkout(copy)
        tests = _measure(copies[0], sorted({each.path for each in sample}), arguments.jobs)
        print(f"{len(tests.seconds)} tests execute these files", flush=True)
        verdicts = Counter(_judge_all(sample, tests, copies))
    killed = verdicts["killed"] + verdicts["timed out"]
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    print(f"{killed} of {len(sample)} killed")
    return 0 if killed == len(sample) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", default=PACKAGES, help="files and folders to mutate")
    parser.add_argument("--count", type=int, default=100, help="mutants in the sample")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--since", help="mutate only lines changed since this git revision")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once")
    return parser.parse_args()


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _lines_since(revision: str) -> dict[str, set[int]]:
    """The lines that changed, by file."""
    lines: dict[str, set[int]] = defaultdict(set)
    path = ""
    for line in _git("diff", "--unified=0", "--no-color", revision).splitlines():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif line.startswith("@@"):
            start, _, count = line.split("+", 1)[1].split(" ", 1)[0].partition(",")
            lines[path].update(range(int(start), int(start) + int(count or 1)))
    return lines


def _sample(
    paths: Iterable[str], lines: Mapping[str, set[int]] | None, count: int, seed: int
) -> list[Chosen]:
    everything = list(_all(paths, lines))
    random.Random(seed).shuffle(everything)
    return sorted(itertools.islice(filter(_compiles, everything), count))


def _compiles(mutant: Chosen) -> bool:
    source = (CHECKOUT / mutant.path).read_text(encoding="utf-8")
    return compiles(mutated(source, mutant.mutation))


def _all(paths: Iterable[str], lines: Mapping[str, set[int]] | None) -> Iterator[Chosen]:
    for name in sorted(_git("ls-files", "--", *paths).splitlines()):
        if not name.endswith(".py") or not name.startswith(PACKAGES):
            continue
        if lines is not None and name not in lines:
            continue
        source = (CHECKOUT / name).read_text(encoding="utf-8")
        for each in mutations(source):
            if lines is None or each.line in lines[name]:
                yield Chosen(name, each, each.describe(source))


def _copy_checkout(copy: Path) -> None:
    for name in _git("ls-files").splitlines():
        if (CHECKOUT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / name, copy / name)
    for built in (CHECKOUT / "tfrecreg/records").glob("libwalk.so.*"):
        shutil.copy(built, copy / "tfrecreg/records")


def _pytest(copy: Path, *arguments: str, seconds: float, **more: str) -> int | None:
    """The exit code of pytest in a copy of the checkout; None if it took too long."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (copy, copy / "plugins", copy / "tests")))
    temporary = copy.parent / f"{copy.name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    options = ("-q", "-p", "no:cacheprovider", f"--basetemp={temporary}")
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    with subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None


def _measure(copy: Path, files: Sequence[str], jobs: int) -> Tests:
    """One run of the quick tests, which tells who executes what."""
    import coverage

    folder = copy.parent / "coverage"
    folder.mkdir()
    _pytest(
        copy,
        *("-m", "not slow", "-n", str(jobs), "-p", "line_coverage_support"),
        seconds=3600,
        LINE_COVERAGE=str(folder),
        LINE_COVERAGE_FILES=os.pathsep.join(str(copy / each) for each in files),
    )
    seconds: dict[str, float] = {}
    for line in (folder / "tests.jsonl").read_text(encoding="utf-8").splitlines():
        each = json.loads(line)
        if each["passed"]:
            seconds[each["test"]] = each["seconds"]
    by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
    by_file: dict[str, set[str]] = defaultdict(set)
    for path in folder.glob("*.coverage"):
        data = coverage.CoverageData(str(path))
        data.read()
        for name in data.measured_files():
            file = Path(name).relative_to(copy).as_posix()
            for number, contexts in data.contexts_by_lineno(name).items():
                by_line[file, number].update(filter(None, contexts))
                by_file[file].update(filter(None, contexts))
    return Tests(
        seconds,
        {place: frozenset(each) for place, each in by_line.items()},
        {file: frozenset(each) for file, each in by_file.items()},
    )


def _judge_all(sample: Sequence[Chosen], tests: Tests, copies: Sequence[Path]) -> Iterator[str]:
    free = list(copies)
    lock = threading.Lock()

    def judge(mutant: Chosen) -> tuple[Chosen, str, int]:
        rounds = tests.of(mutant)
        with lock:
            copy = free.pop()
        try:
            return mutant, _judge(mutant, rounds, tests, copy), sum(map(len, rounds))
        finally:
            with lock:
                free.append(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        for mutant, verdict, count in pool.map(judge, sample):
            if verdict != "killed":
                print(
                    f"{verdict}: {mutant.place}: {mutant.description} ({count} tests)", flush=True
                )
            yield verdict


def _judge(mutant: Chosen, rounds: Sequence[list[str]], tests: Tests, copy: Path) -> str:
    if not rounds:
        return "not executed"
    path = copy / mutant.path
    source = path.read_text(encoding="utf-8")
    path.write_text(mutated(source, mutant.mutation), encoding="utf-8")
    try:
        for selected in rounds:
            seconds = 3 * sum(tests.seconds[each] for each in selected) + PATIENCE
            code = _pytest(copy, "-x", "-n", "0", *selected, seconds=seconds)
            if code != 0:
                return "timed out" if code is None else "killed"
    finally:
        path.write_text(source, encoding="utf-8")
    return "survived"


if __name__ == "__main__":
    began = time.monotonic()
    result = main()
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(result)
