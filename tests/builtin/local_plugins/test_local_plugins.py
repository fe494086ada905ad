"""Plugins in files of a registry: trusted code alone runs, and what other code made is not kept."""

from __future__ import annotations

import json
import pickle
import py_compile
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from local_plugin_support import SOURCE, LocalRegistry, local_registry
from sources_support import tfrecreg as command

import tfrecreg
from tfrecreg.builtin.local_plugins import change_trust, code_digest
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.testing.kit import Workers

__all__ = ["local_registry"]


UNPACK = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"


def build(home: LocalRegistry, **more: Any) -> tfrecreg.Build:
    registry = tfrecreg.open(home.root)
    arguments = {"source": home.word, "raw": home.root / "raw", "progress": False, **more}
    return registry["texts"].build(**arguments)


def refusal(function: Any, *arguments: Any, **more: Any) -> tuple[str, str, int]:
    with pytest.raises(TfrecregError) as caught:
        function(*arguments, **more)
    return caught.value.message, caught.value.hint, caught.value.exit_code


def texts(built: tfrecreg.Build) -> list[bytes]:
    return sorted(row["text"] for row in tfrecreg.data_source(built, split="train"))


def test_code_that_is_not_trusted_does_not_run(local_registry: LocalRegistry) -> None:
    local_registry.put("sources/texts.py", f"open({str(local_registry.root / 'ran')!r}, 'w')")
    assert refusal(build, local_registry) == (
        "the local plugin `./sources/texts.py` is not trusted on this machine, so it does not run",
        "read it, then: tfrecreg plugins trust",
        2,
    )
    assert not (local_registry.root / "ran").exists()


def test_a_trusted_source_builds_and_is_in_the_manifest(local_registry: LocalRegistry) -> None:
    local_registry.trust()
    built = build(local_registry)
    assert texts(built) == [b"Anna", b"Carl", b"berta"]
    source = built.manifest.source
    assert (source.distribution, source.name) == ("./sources/texts.py", "Lines")
    assert source.version == code_digest(str(local_registry.root / "sources"))
    saved = (local_registry.root / "datasets/texts.toml").read_text()
    assert 'source = "./sources/texts.py:Lines"' in saved
    assert texts(build(local_registry, source=None, raw=None)) == texts(built)


def test_what_former_code_made_is_not_kept(local_registry: LocalRegistry) -> None:
    local_registry.trust()
    fails = SOURCE.replace(
        'return {"text": bytes_feature(item.state)}',
        'if b"berta" in item.state:\n            raise ValueError("berta")\n'
        '        return {"text": bytes_feature(item.state.upper())}',
    )
    local_registry.put("sources/texts.py", fails)
    message, _, code = refusal(build, local_registry, records_per_shard=1)
    assert "the source `Lines` of `./sources/texts.py`" in message
    assert "ValueError: berta (texts.py, line 31)" in message
    assert code == 3
    local_registry.put("sources/texts.py", SOURCE)
    assert texts(build(local_registry, records_per_shard=1)) == [b"Anna", b"Carl", b"berta"]


@pytest.mark.medium
def test_worker_processes_load_the_code_that_the_command_has(
    local_registry: LocalRegistry,
) -> None:
    local_registry.trust()
    built = build(local_registry, engine=Workers(2), records_per_shard=1)
    assert len(built.manifest.shards) == 3


def test_a_worker_refuses_other_code(local_registry: LocalRegistry, tmp_path: Path) -> None:
    local_registry.trust()
    known = plugins_of(tfrecreg.open(local_registry.root).config)
    lines = known.load(SourceRecord, local_registry.word)
    (tmp_path / "pickled").write_bytes(pickle.dumps(lines))
    local_registry.put("sources/lines.py", "changed = True\n")
    done = subprocess.run(
        [sys.executable, "-c", UNPACK, str(tmp_path / "pickled")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "is not trusted here, or has changed" in done.stderr


@pytest.mark.parametrize("name", ["foo", "f_0", "f2f_", "foo.bar"])
def test_a_name_of_no_local_plugin_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module(f"tfrecreg.builtin.local_plugins.{name}")


def test_caches_of_python_in_the_registry_do_not_run(local_registry: LocalRegistry) -> None:
    marks = local_registry.root / "ran"
    evil = local_registry.put("evil.py", f"open({str(marks)!r}, 'w')\n")
    cache = local_registry.root / "sources/__pycache__"
    cache.mkdir()
    for name in ("texts", "lines"):
        py_compile.compile(
            str(evil),
            cfile=str(cache / f"{name}.{sys.implementation.cache_tag}.pyc"),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    local_registry.trust()
    build(local_registry)
    assert not marks.exists()


@pytest.mark.parametrize("name", ["Lines", "./sources/texts.py:Lines"])
def test_a_source_is_named_by_its_class(local_registry: LocalRegistry, name: str) -> None:
    local_registry.trust()
    assert build(local_registry, source=name).manifest.source.name == "Lines"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("./sources/no.py:Lines", "no source named `./sources/no.py:Lines`"),
        ("./sources/texts.py:Line", "no source named `./sources/texts.py:Line`"),
        ("Line", "no source named `Line`; did you mean `Lines`?"),
    ],
)
def test_a_word_for_no_source_of_the_registry_is_refused(
    local_registry: LocalRegistry, word: str, message: str
) -> None:
    local_registry.trust()
    found, hint, _ = refusal(build, local_registry, source=word)
    assert message in found
    assert hint


def test_code_outside_of_the_registry_does_not_run(local_registry: LocalRegistry) -> None:
    (local_registry.root.parent / "outside.py").write_text(SOURCE)
    (local_registry.root / "linked").symlink_to(local_registry.root.parent)
    local_registry.trust()
    for path in ("../outside.py", "linked/outside.py"):
        local_registry.name_files(path)
        message, _, code = refusal(build, local_registry, source=f"./{path}:Lines")
        assert (f"`./{path}` is not trusted" in message, code) == (True, 2)


def test_a_check_runs_local_validators(local_registry: LocalRegistry) -> None:
    local_registry.trust()
    build(local_registry)
    local_registry.with_check()
    change_trust(str(local_registry.root), trusted=False)
    registry = tfrecreg.open(local_registry.root)
    assert "`./checks/capitals.py` is not trusted" in refusal(registry["texts"].built.check)[0]
    local_registry.trust()
    report = tfrecreg.open(local_registry.root)["texts"].built.check()
    assert [(each.code, each.count) for each in report.findings] == [("LOC001", 1)]


def test_a_check_without_a_broken_local_validator_is_incomplete(
    local_registry: LocalRegistry,
) -> None:
    local_registry.trust()
    build(local_registry)
    local_registry.with_check("import no_such_module\n")
    local_registry.trust()
    report = tfrecreg.open(local_registry.root)["texts"].built.check()
    assert report.exit_code == 3
    assert report.errors == (
        "the local plugin `./checks/capitals.py` is broken: ModuleNotFoundError: No module named "
        "'no_such_module' (capitals.py, line 1)",
    )


@pytest.mark.medium
def test_a_check_of_raw_data_and_a_repair_find_the_source(
    local_registry: LocalRegistry,
) -> None:
    local_registry.trust()
    built = build(local_registry)
    report = built.check(raw=local_registry.root / "raw", only="source")
    assert any("`./sources/texts.py:Lines` does not make" in each.text for each in report.measures)
    (shard,) = (local_registry.root / "data/texts").glob("texts-train*")
    before = shard.read_bytes()
    shard.write_bytes(before[:-1])
    home = ["-C", str(local_registry.root)]
    change_trust(str(local_registry.root), trusted=False)
    refused = command(*home, "repair", "texts")
    assert "tfrecreg plugins trust" in refused.stderr
    assert refused.returncode == 2
    local_registry.trust()
    repaired = command(*home, "repair", "texts")
    assert repaired.returncode == 0, repaired.stderr
    assert shard.read_bytes() == before


def test_a_pattern_that_matches_nothing_is_refused(local_registry: LocalRegistry) -> None:
    local_registry.name_files("check/*.py")
    local_registry.trust()
    assert refusal(build, local_registry)[0] == (
        "`tfrecreg.toml`: `plugins.local` names `check/*.py`, but no file matches"
    )


@pytest.mark.parametrize("text", ["{", "[]", '{"format_version": 2}'])
def test_a_damaged_list_trusts_nothing(
    local_registry: LocalRegistry, tmp_path: Path, text: str
) -> None:
    place = tmp_path / "state/tfrecreg/trusted.json"
    place.parent.mkdir(parents=True)
    place.write_text(text)
    message, hint, code = refusal(build, local_registry)
    assert "is not trusted on this machine" in message
    assert (hint, code) == ("read it, then: tfrecreg plugins trust", 2)


@pytest.mark.medium
def test_trust_and_listings_at_the_command_line(local_registry: LocalRegistry) -> None:
    local_registry.with_check()
    home = ["-C", str(local_registry.root)]
    build_it = [*home, "build", "texts", "--source", local_registry.word, "--raw"]
    build_it.append(str(local_registry.root / "raw"))
    refused = command(*build_it)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[0] == (
        "error: the local plugin `./checks/capitals.py` is not trusted on this machine, so it does "
        "not run"
    )
    assert "broken: ./checks/capitals.py: not trusted on this machine: tfrecreg plugins trust" in (
        command(*home, "plugins", "list").stdout
    )
    trusted = command(*home, "plugins", "trust", "--json")
    assert json.loads(trusted.stdout)["trusted"] is True
    assert command(*build_it).returncode == 0
    listed = command(*home, "plugins", "list").stdout
    assert "Lines" in listed
    assert "capitals" in listed
    shown = command(*home, "plugins", "show", local_registry.word).stdout
    assert "Whether texts are in lower case." in shown
    assert "LOC001 no-capitals (error)" in command(*home, "explain", "loc001").stdout
    revoked = command(*home, "plugins", "trust", "--revoke")
    assert "no longer trusted" in revoked.stdout
    assert command(*build_it).returncode == 2
