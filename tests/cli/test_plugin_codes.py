"""Codes of plugins are codes like others: in the ledger, `explain`, SARIF and on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plugin_support import install, with_site
from sources_support import new_registry, tfrecreg

PLUGIN = """
from tfrecreg.api import (
    Code, Item, RawFile, RecordValidator, Remark, Severity, Skipped, Source, SourceRecord,
    ValidatorRecord, hookimpl, int64_feature,
)

def code(name, rule, page):
    return Code(name, rule, Severity.WARNING, f"{rule} happened", f"mend the {rule}", page)

DULL = code("TON001", "dull-tone", "A dull tone carries <no> meaning.\\n\\nLook at its file.")
LOST = code("TON002", "lost-tone", "A lost tone.")
EVEN = code("TON003", "even-tone", "An even tone is \\x1b[31mred.")

class Tones(Source):
    def raw_files(self):
        yield RawFile("tones.txt", 5, 5)

    def items(self):
        yield Remark("train", "tones.txt", "TON002", "one is lost")
        for number in range(4):
            yield Item("train", str(number), 10)

    def example(self, item):
        if item.key == "3":
            return Skipped("train", "3", self.options.code, "it is dull")
        return {"tone": int64_feature(int(item.key))}

    def schema(self):
        return 'feature { name: "tone" type: INT shape {} }'

class Even(RecordValidator):
    name = "even"
    codes = (EVEN,)
    features = ("tone",)

    def look(self, example):
        return "it is even" if example["tone"].values[0] % 2 == 0 else None

from dataclasses import dataclass

@dataclass(frozen=True)
class Options:
    code: str = "TON001"

Tones.Options = Options

@hookimpl
def tfrecreg_sources():
    yield SourceRecord("tones", "tones", lambda: Tones, codes=[DULL, LOST])

@hookimpl
def tfrecreg_validators():
    yield ValidatorRecord("even", "even tones", [EVEN], lambda: Even)
"""


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """An environment with a distribution that brings a source and a validator."""
    folder = tmp_path / "site"
    install(folder, "tones", PLUGIN)
    return with_site(folder)


@pytest.fixture
def built(tmp_path: Path, site: dict[str, str]) -> Path:
    registry = new_registry(tmp_path / "registry")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "tones.txt").write_text("tones")
    done = build(registry, site)
    assert done.returncode == 0, done.stderr
    assert "1 skipped\n  skipped  1 × dull-tone happened (TON001, train): " in done.stdout
    return registry


def build(registry: Path, site: dict[str, str], *more: str):
    raw = ("--source", "tones", "--raw", str(registry.parent / "raw"), "--max-skipped", "1")
    return tfrecreg("-C", registry, "build", "tones", *raw, "--jobs", "2", *more, env=site)


@pytest.mark.medium
def test_explain_knows_codes_of_sources(site: dict[str, str]) -> None:
    done = tfrecreg("explain", "ton001", env=site)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("TON001 dull-tone (warning)\n")
    assert "A dull tone carries <no> meaning." in done.stdout
    assert "TON002" in tfrecreg("explain", env=site).stdout


@pytest.mark.medium
def test_sarif_and_the_page_describe_codes_of_plugins(built: Path, site: dict[str, str]) -> None:
    done = tfrecreg("-C", built, "check", "tones", "--format", "sarif", env=site)
    assert done.returncode == 0, done.stderr
    (rule,) = json.loads(done.stdout)["runs"][0]["tool"]["driver"]["rules"]
    assert rule == {
        "id": "TON003",
        "name": "even-tone",
        "shortDescription": {"text": "even-tone happened."},
        "fullDescription": {"text": "An even tone is \\x1b[31mred."},
        "help": {"text": "An even tone is \\x1b[31mred.\n\nWhat to do: mend the even-tone."},
        "defaultConfiguration": {"level": "warning"},
    }
    page = built.parent / "page.html"
    done = tfrecreg("-C", built, "report", "tones", "--output", page, env=site)
    assert done.returncode == 0, done.stderr
    assert "An even tone is" in page.read_text("utf-8")
