"""One distribution of others has one of each kind, by one module and one entry point."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from package_support import PYTHONS, NoNetworkError, find_python, fresh_environment, make_archives
from plugin_support import install, with_site

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "dots"
version = "1.0"

[project.entry-points.tfrecreg]
dots = "dots_plugin"

[tool.setuptools]
py-modules = ["dots_plugin"]
"""

PLUGIN = '''
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import click
import numpy as np

from tfrecreg.api import (
    Code, CommandRecord, DecoderRecord, EngineRecord, ExporterRecord, FeatureDecoder, Item,
    RawFile, RecordExporter, RecordFormat, RecordValidator, RemoteEngine, ReportFormat,
    ReportFormatRecord, Severity, Skipped, Source, SourceRecord, ValidatorRecord, bytes_feature,
    canonical, engine_failed, hookimpl, int64_feature, perform_work, session_command,
)

LOST = Code("DOT001", "dot-lost", Severity.WARNING, "A dot is lost", "draw it again", "A lost dot.")
DARK = Code("DOT002", "dot-dark", Severity.WARNING, "A dot is dark", "light it up", "A dark dot.")


class Dots(Source):
    def raw_files(self):
        yield RawFile("dots.txt", 5, 5)

    def items(self):
        for number in range(5):
            yield Item("train", str(number), 10)

    def example(self, item):
        number = int(item.key)
        if number == 3:
            return Skipped(item.split, item.key, "DOT001", "found none")
        return {"dot": bytes_feature(b"DOT" + bytes([number] * 4)), "number": int64_feature(number)}

    def schema(self):
        return """
            feature { name: "dot" type: BYTES presence { min_fraction: 1 } image_domain {} }
            feature { name: "number" type: INT presence { min_fraction: 1 } shape {} }
        """


class Dark(RecordValidator):
    name = "dark"
    codes = (DARK,)
    features = ("number",)

    def look(self, example):
        return "found 0" if example["number"].values == (0,) else None


class Hexadecimal(RecordFormat):
    def write(self, task, records):
        with task.folder.create(task.name) as file:
            for record in records:
                file.write(canonical(record.payload).hex().encode() + b"\\n")

    def read(self, task):
        with task.folder.open(task.name) as file:
            for line in file.read_at(0, file.size).splitlines():
                yield bytes.fromhex(line.decode())


class HexadecimalExporter(RecordExporter):
    def file_name(self, split, number, of):
        return f"{split}-{number}.hex"

    def format(self):
        return Hexadecimal()


class Codes(ReportFormat):
    def render(self, reports, context):
        found = [each.code for report in reports for each in report.findings]
        return "".join(f"{code}: {context.codes[code].summary}\\n" for code in found)


class Crew(RemoteEngine):
    def connect(self):
        with self.interrupts_held():
            self._pool = ProcessPoolExecutor(self.workers(), get_context("spawn"))

    def disconnect(self):
        self._pool.shutdown()

    def workers(self):
        return self.request.jobs or 1

    def submit(self, work):
        return self._pool.submit(perform_work, work)

    def result(self, handle):
        try:
            return handle.result()
        except Exception as error:
            raise engine_failed("crew", "lost a task", error, hint=self.RERUN) from error

    def cancel(self, handles):
        for handle in handles:
            handle.cancel()


@session_command("census")
def census(session):
    """Count the datasets."""
    session.out.print(f"{len(session.open().datasets())} in all")
    return 0


class Pictures(FeatureDecoder):
    def reads(self, feature, start):
        return start.startswith(b"DOT")

    def array(self, data):
        return np.frombuffer(data, np.uint8, offset=3).reshape(2, 2, 1)

    def caption(self, data):
        return "a dot, 2x2"


@hookimpl
def tfrecreg_sources():
    yield SourceRecord("dots", "five dots", lambda: Dots, codes=[LOST])


@hookimpl
def tfrecreg_validators():
    yield ValidatorRecord("dark", "dots that are dark", [DARK], lambda: Dark)


@hookimpl
def tfrecreg_exporters():
    yield ExporterRecord(name="hex", summary="hexadecimal", load=lambda: HexadecimalExporter)


@hookimpl
def tfrecreg_report_formats():
    yield ReportFormatRecord(name="codes", summary="codes alone", load=lambda: Codes)


@hookimpl
def tfrecreg_engines():
    yield EngineRecord(name="crew", summary="processes", load=lambda: Crew)


@hookimpl
def tfrecreg_commands():
    yield CommandRecord(name="census", summary="Count the datasets", load=lambda: census)


@hookimpl
def tfrecreg_decoders():
    yield DecoderRecord(name="drawn", summary="dots", load=lambda: Pictures)
'''

KINDS = {
    "source": "dots",
    "validator": "dark",
    "exporter": "hex",
    "report format": "codes",
    "engine": "crew",
    "command": "census",
    "decoder": "drawn",
}


Run = Callable[..., str]


def runner(python: str, registry: Path, env: Mapping[str, str]) -> Run:
    """What runs a command in the registry, and gives what it prints."""

    def run(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [python, "-m", "tfrecreg", *words],
            cwd=registry,
            env={**env, "NO_COLOR": "1", "COLUMNS": "120", "TFRECREG_JOBS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


def use_all_seven(run: Run, registry: Path) -> None:
    """Each does its work, and what it announces is shown where that of the package is."""
    rows = run("plugins", "list").splitlines()
    for kind, name in KINDS.items():
        assert [row for row in rows if re.match(rf"{kind} +{name} .* dots 1\.0$", row)], rows
    run("init", "--no-dvc")
    built = run("build", "points", "--source", "dots", "--max-skipped", "1", "--raw", "raw")
    assert "  items    4 written, 1 skipped\n" in built
    assert "  skipped  1 × A dot is lost (DOT001, train)\n" in built
    check = ("check", "points", "--only", "dark", "--engine", "crew", "--fail-on", "never")
    assert run(*check, "--format", "codes") == "DOT002: A dot is dark\n"
    sarif = json.loads(run(*check, "--format", "sarif"))["runs"][0]
    (rule,) = sarif["tool"]["driver"]["rules"]
    assert rule["id"] == "DOT002"
    assert "A dark dot." in json.dumps(rule)
    assert [each["ruleId"] for each in sarif["results"]] == ["DOT002"]
    for code, text in (("DOT001", "A lost dot."), ("DOT002", "A dark dot.")):
        assert text in run("explain", code)
    run("export", "points", "--to", "hex", "out")
    assert len((registry / "out/train-0.hex").read_text().splitlines()) == 4
    assert run("census") == "1 in all\n"
    assert "a dot, 2x2" in run("head", "points", "-n", "1")
    run("report", "points", "--output", "points.html")
    page = (registry / "points.html").read_text("utf-8")
    for shown in ("DOT001", "DOT002", "A dot is dark", "a dot, 2x2"):
        assert shown in page


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    (tmp_path / "registry/raw").mkdir(parents=True)
    (tmp_path / "registry/raw/dots.txt").write_text("dots\n")
    return tmp_path / "registry"


@pytest.mark.medium
def test_one_module_adds_one_of_each_kind(registry: Path, tmp_path: Path) -> None:
    install(tmp_path / "site", "dots", PLUGIN)
    env = {**os.environ, **with_site(tmp_path / "site")}
    use_all_seven(runner(sys.executable, registry, env), registry)


@pytest.mark.slow
def test_it_does_so_where_there_is_only_the_wheel(registry: Path, tmp_path: Path) -> None:
    """Installed like any distribution, in an environment of its own."""
    for folder in ("archives", "dots"):
        (tmp_path / folder).mkdir()
    (tmp_path / "dots/pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "dots/dots_plugin.py").write_text(PLUGIN)
    python = next(filter(None, map(find_python, PYTHONS)))
    wheel = make_archives(tmp_path / "archives").wheel
    try:
        made = fresh_environment(tmp_path / "env", python, str(wheel), str(tmp_path / "dots"))
    except NoNetworkError as error:
        pytest.skip(f"no package index: {error}")
    use_all_seven(runner(made.python, registry, made.env), registry)


def test_it_knows_nothing_of_the_project_but_the_api() -> None:
    assert set(re.findall(r"^(?:from|import) (tfrecreg\S*)", PLUGIN, re.MULTILINE)) == {
        "tfrecreg.api"
    }
