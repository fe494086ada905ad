from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tfrecreg.core.plugins.manager import Plugins, discover
from tfrecreg.core.plugins.records import SourceRecord, ValidatorRecord
from tfrecreg.core.values.errors import PluginError

Site = Any  # of conftest.py, which test modules cannot import


def load() -> Plugins:
    """The plugins of the distributions in the folder, without those of this package."""
    return Plugins(each for each in discover() if each.distribution != "tfrecreg")


def names(found: Plugins) -> list[tuple[str, str]]:
    return [(one.name, one.distribution) for one in found.every(SourceRecord)]


def test_a_plugin_is_found_and_described_without_loading_its_class(site: Site) -> None:
    site.source("lines-plugin", "lines", version="2.1")
    found = load()
    (source,) = found.every(SourceRecord)
    assert (source.name, source.distribution, source.version) == ("lines", "lines-plugin", "2.1")
    assert (source.entry_point, source.qualified) == ("main", "lines-plugin:lines")
    assert source.record.summary == "a source for tests"
    assert found.every(ValidatorRecord) == found.broken == found.clashes == []
    assert "fake_lines_plugin_source" not in sys.modules
    assert found.load(SourceRecord, "lines").__name__ == "Lines"


HOOK = "from tfrecreg.api import SourceRecord, hookimpl\n@hookimpl\n"
BROKEN = {
    "raises-at-import": ("1 / 0", "ZeroDivisionError: division by zero"),
    "misses-a-module": (
        "import no_such_module_at_all",
        "ModuleNotFoundError: No module named 'no_such_module_at_all'",
    ),
    "exits-at-import": ("import sys; sys.exit('good night')", "SystemExit: good night"),
    "has-bad-syntax": ("def", "SyntaxError: invalid syntax"),
    "has-no-hook": (
        "def tfrecreg_sources(): return []",
        "implements no hook: expected `tfrecreg_sources`, `tfrecreg_validators`, "
        "`tfrecreg_exporters`, `tfrecreg_report_formats`, `tfrecreg_engines`, `tfrecreg_commands` "
        "or `tfrecreg_decoders`, marked `hookimpl`",
    ),
    "misspells-the-hook": (
        HOOK + "def tfrecreg_sorces(): return []",
        "`tfrecreg_sorces` is not a hook; did you mean `tfrecreg_sources`?",
    ),
    "hook-raises": (
        HOOK + 'def tfrecreg_sources(): raise RuntimeError("first line\\nsecond line")',
        "RuntimeError: first line",
    ),
    "returns-none": (
        HOOK + "def tfrecreg_sources(): return None",
        "TypeError: 'NoneType' object is not iterable",
    ),
    "yields-a-bad-name": (
        HOOK + 'def tfrecreg_sources(): yield SourceRecord("My\\x1b[31mSource", "", int)',
        r"`tfrecreg_sources` yielded the name `My\x1b[31mSource`, expected `[a-z][a-z0-9_]*`",
    ),
    "cannot-be-loaded": (
        HOOK + 'def tfrecreg_sources(): yield SourceRecord("a", "summary", "module:Class")',
        "`tfrecreg_sources`: `a` needs text in `summary` and a function in `load`",
    ),
}


@pytest.mark.parametrize("distribution", BROKEN)
def test_a_broken_plugin_is_named_and_harms_nobody(site: Site, distribution: str) -> None:
    text, reason = BROKEN[distribution]
    site.source("a-good-one", "lines")
    site.plugin(distribution, text, version="0.3")
    site.source("z-good-one", "words")
    found = load()
    assert names(found) == [("lines", "a-good-one"), ("words", "z-good-one")]
    (broken,) = found.broken
    where = broken.entry_point, broken.distribution, broken.version
    assert where == ("main", distribution, "0.3")
    assert re.sub(r" \(fake_\w+\.py, line \d+\)$", "", broken.reason) == reason


def test_interrupting_is_not_taken_for_a_broken_plugin(site: Site) -> None:
    site.plugin("interrupted", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load()


def test_every_entry_point_of_a_distribution_is_loaded(site: Site) -> None:
    site.source("several", "lines")
    site.module("fake_second", "1 / 0")
    site.module("fake_third", "class Plugin: pass")
    info = site.folder / "several-1.0.dist-info" / "entry_points.txt"
    more = "second = fake_second\nthird = fake_third:Missing\n"
    info.write_text(info.read_text() + more)
    found = load()
    assert [(one.entry_point, one.reason) for one in found.broken] == [
        ("second", "ZeroDivisionError: division by zero (fake_second.py, line 1)"),
        ("third", "AttributeError: module 'fake_third' has no attribute 'Missing'"),
    ]
    assert names(found) == [("lines", "several")]


def test_what_a_plugin_prints_stays_out_of_stdout(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.plugin("talker", "print('hello from a plugin')")
    load()
    out, err = capsys.readouterr()
    assert (out, err) == ("", "hello from a plugin\n")


def test_a_clash_is_listed_and_neither_wins(site: Site) -> None:
    site.source("beta", "lines", version="2.0")
    site.source("alpha", "lines", version="1.0")
    site.source("gamma", "words")
    found = load()
    assert names(found) == [("lines", "alpha"), ("lines", "beta"), ("words", "gamma")]
    (clash,) = found.clashes
    assert [one.qualified for one in clash] == ["alpha:lines", "beta:lines"]
    assert {one.record.kind for one in clash} == {"source"}
    with pytest.raises(PluginError) as caught:
        found.find(SourceRecord, "lines")
    assert caught.value.message == (
        "the source `lines` is announced by `alpha` 1.0 and by `beta` 2.0"
    )
    assert caught.value.hint == "choose one: `--source alpha:lines` or `--source beta:lines`"
    with pytest.raises(PluginError):
        found.load(SourceRecord, "lines")
    assert found.find(SourceRecord, "beta:lines").version == "2.0"
    assert found.load(SourceRecord, "alpha:lines").__module__ == "fake_alpha_source"
    assert found.find(SourceRecord, "words").distribution == "gamma"


def test_a_qualified_name_takes_any_spelling_of_the_distribution(site: Site) -> None:
    site.source("My.Lines-plugin", "lines")
    assert load().find(SourceRecord, "my-lines_plugin:lines").distribution == "My.Lines-plugin"


def test_one_distribution_found_twice_counts_once(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.source("lines-plugin", "lines", version="2.0")
    again = type(site)(tmp_path / "again")
    again.distribution("Lines_Plugin", {"main": "fake_lines_plugin"}, version="1.0")
    for place, version in ((site, "2.0"), (again, "1.0")):
        monkeypatch.syspath_prepend(str(place.folder))
        assert [(one.name, one.version) for one in load().every(SourceRecord)] == [
            ("lines", version)
        ]


def test_an_unknown_name_suggests_a_known_one(site: Site) -> None:
    site.source("a", "mnist")
    site.source("b", "coco")
    found = load()
    with pytest.raises(PluginError) as caught:
        found.find(SourceRecord, "mnits")
    assert caught.value.message == "no source named `mnits`; did you mean `mnist`?"
    assert caught.value.hint == "available: `coco` and `mnist`"
    with pytest.raises(PluginError) as caught:
        found.find(SourceRecord, "b:mnist")
    assert caught.value.message == "no source named `b:mnist`; did you mean `a:mnist`?"


def run(site: Site, code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site.folder), *sys.path])}
    command = [sys.executable, "-W", "error", "-c", dedent(code)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_another_process_finds_the_class_that_was_pickled(site: Site) -> None:
    site.source("lines-plugin", "lines")
    payload = pickle.dumps(load().load(SourceRecord, "lines"))
    assert run(site, f"import pickle; print(pickle.loads({payload!r}).__module__)") == (
        "fake_lines_plugin_source\n"
    )


def test_listing_plugins_imports_nothing_heavy(site: Site) -> None:
    site.source("lines-plugin", "lines")
    heavy = {"tensorflow", "apache_beam", "dvc", "pyarrow", "pandas", "PIL", "torch", "rich"}
    shown = run(
        site,
        """
        import sys
        import tfrecreg.core.plugins.manager
        from tfrecreg.core.plugins.records import (PLUGIN_KINDS)
        print("pluggy" in sys.modules)
        found = tfrecreg.core.plugins.manager.plugins()
        [found.every(kind) for kind in PLUGIN_KINDS], found.clashes
        print("pluggy" in sys.modules)
        print(*{name.partition(".")[0] for name in sys.modules})
        """,
    ).splitlines()
    assert shown[:2] == ["False", "True"]
    assert not heavy & set(shown[2].split())
