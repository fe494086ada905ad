"""A plugin can be switched off, for a process or for a registry, and nothing passes unnoticed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from plugin_support import install, with_site
from sources_support import new_registry, tfrecreg

PLUGIN = """
from tfrecreg.api import (
    Code, Item, RawFile, RecordValidator, Severity, Source, SourceRecord,
    ValidatorRecord, hookimpl, int64_feature,
)

EVEN = Code("EVE001", "even-tone", Severity.ERROR, "even", "make it odd", "Even is bad.")

class Tones(Source):
    def raw_files(self):
        yield RawFile("tones.txt", 5, 5)

    def items(self):
        for number in range(4):
            yield Item("train", str(number), 10)

    def example(self, item):
        return {"tone": int64_feature(int(item.key))}

    def schema(self):
        return 'feature { name: "tone" type: INT shape {} }'

class Even(RecordValidator):
    name = "even"
    codes = (EVEN,)
    features = ("tone",)

    def look(self, example):
        return "it is even" if example["tone"].values[0] % 2 == 0 else None

@hookimpl
def tfrecreg_sources():
    yield SourceRecord("tones", "tones", lambda: Tones)

@hookimpl
def tfrecreg_validators():
    yield ValidatorRecord("even", "even tones", [EVEN], lambda: Even)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tones") / "site"
    install(folder, "tones", PLUGIN)
    return with_site(folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, site: dict[str, str]) -> Path:
    """A registry with a build, to copy and not to change."""
    folder = tmp_path_factory.mktemp("original")
    found = new_registry(folder / "registry")
    raw = folder / "raw"
    raw.mkdir()
    (raw / "tones.txt").write_text("tones")
    done = tfrecreg("-C", found, "build", "tones", "--source", "tones", "--raw", raw, env=site)
    assert done.returncode == 0, done.stderr
    return found


@pytest.fixture
def registry(tmp_path: Path, original: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "registry"))


def by_the_process(site: dict[str, str], names: str) -> dict[str, str]:
    return {**site, "TFRECREG_DISABLE": names}


def by_the_registry(registry: Path, *names: str) -> None:
    config = registry / "tfrecreg.toml"
    config.write_text(f"plugins.disable = {json.dumps(names)}\n{config.read_text()}")


@pytest.mark.medium
def test_a_check_runs_without_it_and_says_so(registry: Path, site: dict[str, str]) -> None:
    done = tfrecreg("-C", registry, "check", "tones", env=site)
    assert (done.returncode, "EVE001" in done.stdout) == (1, True)
    off = by_the_process(site, " images , tones:even")
    done = tfrecreg("-C", registry, "check", "tones", env=off)
    assert done.returncode == 0, done.stderr
    assert "EVE001" not in done.stdout
    assert "the validator `even` of `tones` 1.0 is disabled by `TFRECREG_DISABLE`" in done.stdout
    by_the_registry(registry, "even")
    done = tfrecreg("-C", registry, "check", "tones", "--skip", "even", env=site)
    assert done.returncode == 0, done.stderr
    where = "`plugins.disable` in `tfrecreg.toml`"
    assert f"the validator `even` of `tones` 1.0 is disabled by {where}" in done.stdout


@pytest.mark.medium
@pytest.mark.parametrize("by", ["process", "registry"])
def test_to_name_it_is_exit_2(registry: Path, site: dict[str, str], by: str) -> None:
    environment, where = by_the_process(site, "even,tones"), "`TFRECREG_DISABLE`"
    if by == "registry":
        by_the_registry(registry, "even", "tones")
        environment, where = site, "`plugins.disable` in `tfrecreg.toml`"
    for kind, name, *command in (
        ("validator", "even", "check", "tones", "--only", "even"),
        ("source", "tones", "build", "tones"),
        ("validator", "even", "plugins", "show", "even"),
    ):
        done = tfrecreg("-C", registry, *command, env=environment)
        assert done.returncode == 2
        assert done.stderr == f"error: the {kind} `{name}` is disabled by {where}\n"


@pytest.mark.medium
def test_it_is_listed_as_disabled(registry: Path, site: dict[str, str]) -> None:
    by_the_registry(registry, "even")
    off = by_the_process(site, "tones")
    text = tfrecreg("-C", registry, "plugins", env=off).stdout
    assert "disabled: the source `tones:tones`, by `TFRECREG_DISABLE`\n" in text
    done = tfrecreg("-C", registry, "plugins", "--json", env=off)
    listed = json.loads(done.stdout)
    assert listed["disabled"] == [
        {"kind": "source", "name": "tones:tones", "by": "`TFRECREG_DISABLE`"},
        {"kind": "validator", "name": "tones:even", "by": "`plugins.disable` in `tfrecreg.toml`"},
    ]
    assert "tones" not in [each["name"] for each in listed["sources"]]
    assert json.loads(tfrecreg("plugins", "--json", env=site).stdout).get("disabled") is None


@pytest.mark.medium
def test_a_gate_misses_what_only_the_check_did_without(
    registry: Path, site: dict[str, str], tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    check = ("check", "tones", "--fail-on", "never", "--format", "json", "--output", report)
    done = tfrecreg("-C", registry, *check, env=by_the_process(site, "even"))
    assert done.returncode == 0, done.stderr
    done = tfrecreg("-C", registry, "gate", "tones", "--report", report, env=site)
    assert done.returncode == 2
    assert "lacks `even`" in done.stderr


@pytest.mark.parametrize("name", ["crc", "manifest", "schema"])
def test_what_every_build_has_to_pass_stays(
    registry: Path, site: dict[str, str], name: str
) -> None:
    done = tfrecreg("-C", registry, "check", "tones", env=by_the_process(site, name))
    assert done.returncode == 2
    assert f"`TFRECREG_DISABLE` disables the validator `{name}`, which cannot be" in done.stderr


@pytest.mark.medium
def test_without_what_compares_an_expectation_is_not_met(
    registry: Path, site: dict[str, str]
) -> None:
    off = by_the_process(site, "content,even")
    done = tfrecreg("-C", registry, "check", "tones", "--expect", "train=4", env=off)
    assert done.returncode == 3
    assert "no validator compares the records with the expected records" in done.stdout
