"""The README and the guide pages: every block of code is run, and prints what stands there.

How a page is read, from top to bottom, in one folder that is empty at first:

- ``console``: lines that begin with ``$ `` are run; a comment ``# exit 1`` behind one names its
  exit code, otherwise it is 0. Lines below are what it prints, stdout and stderr together.
- ``bash`` and ``python`` are run as scripts; ``toml`` is read as a `tfrecreg.toml`, or as a
  dataset's file where its first line says so, and added to the `tfrecreg.toml` of a folder that its
  first line names; ``json`` is what the last command printed.
- ``yaml`` is a workflow of GitHub or jobs of GitLab: their commands are run, but for what they
  install.
- ``text`` is for people, unless ``<!-- its output -->`` stands above it: then it is what the last
  script printed.
- ``<!-- not run: REASON -->`` above a block leaves it out; ``<!-- in the test: NAME -->``
  prepares something, by a function of this module. ``<!-- in the test: an empty folder -->`` goes
  on in a new one.

Sizes in bytes and what follows from them are not compared: they depend on the machine's zlib.
Nor are the validators named in a verdict. A line ``…`` stands for any lines, and ``…`` at a line's
end for its rest.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tfrecreg.core.plugins.bundled import COMMANDS
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.config import parse_config, parse_dataset

ROOT = Path(__file__).parents[2]

EXCLUDED = {
    "docs/plugin-examples.md": "tests/plugins/test_guide.py puts its files in place and runs it",
    "docs/export.md": "tests/builtin/export runs it where TensorFlow Datasets is installed",
}

NEEDED = {"docs/statistics.md": ("tensorflow_data_validation",)}
"""What a page needs besides what all of them do."""

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/sources/*.md")),
]

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- (?P<text>.*?) -->", re.DOTALL)
EXIT = re.compile(r"\s+# exit (?P<code>\d+)$")


class Block(NamedTuple):
    language: str
    text: str
    notes: tuple[str, ...]
    """The comments between the block before and this one."""
    above: str = ""
    """The text between them, as it is shown."""

    @property
    def left_out(self) -> bool:
        return any(note.startswith("not run: ") for note in self.notes)


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text("utf-8")
    found, end = [], 0
    for fence in FENCE.finditer(text):
        between = text[end : fence.start()]
        notes = tuple(note["text"] for note in COMMENT.finditer(between))
        above = COMMENT.sub("", between)
        found.append(Block(fence["info"], fence["text"], notes, " ".join(above.split())))
        end = fence.end()
    return found


@dataclass
class Reader:
    """Somebody who types what a page says."""

    here: Path
    environment: dict[str, str]
    said: str = ""
    """What the last command or script printed."""
    ran: int = 0

    def read(self, block: Block) -> None:
        if block.left_out:
            return
        RUNNERS[block.language](self, block)
        self.ran += 1

    def call(self, script: str, *, expect: int = 0, together: bool = False) -> None:
        """Run a script of bash; the folder that it ends in is the next one's.

        Args:
            script: what to run.
            expect: its exit code.
            together: whether what it says is stdout and stderr, in their order, or stdout alone.
        """
        ending = self.here / ".ended-in"
        script = f"{script}\nstatus=$?; pwd > {shlex.quote(str(ending))}; exit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.here,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if together else None,
            text=True,
            timeout=120,
        )
        self.said = done.stdout
        assert done.returncode == expect, f"{script}\n{done.stdout}"
        if ending.exists():
            self.here = Path(ending.read_text("utf-8").strip())
            ending.unlink()


def console(reader: Reader, block: Block) -> None:
    for command, expected in commands(block.text):
        code = EXIT.search(command)
        reader.call(command, expect=int(code["code"]) if code else 0, together=True)
        if expected:
            compare(reader.said, expected, command)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command with what it prints; a line that ends with a backslash goes on."""
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, rest = piece.partition("\n")
        while command.endswith("\\"):
            more, _, rest = rest.partition("\n")
            command = f"{command}\n{more}"
        yield command, rest


def bash(reader: Reader, block: Block) -> None:
    reader.call(f"set -e\n{block.text}")


def python(reader: Reader, block: Block) -> None:
    reader.call(f"python - <<'END-OF-BLOCK'\n{block.text}\nEND-OF-BLOCK")


def toml(reader: Reader, block: Block) -> None:
    if block.text.startswith("# datasets/"):
        parse_dataset(block.text, "the page")
    else:
        parse_config(block.text)
    place, _, keys = block.text.partition("\n")
    if place.endswith("/tfrecreg.toml"):
        with (reader.here / place.removeprefix("# ")).open("a", encoding="utf-8") as file:
            file.write(keys)


def as_json(reader: Reader, block: Block) -> None:
    printed = json.dumps(json.loads(reader.said), indent=2)
    compare(printed, json.dumps(json.loads(block.text), indent=2), "the JSON")


def text(reader: Reader, block: Block) -> None:
    if "its output" in block.notes:
        compare(reader.said, block.text, "the script")


def jobs(reader: Reader, block: Block) -> None:
    """The commands of a workflow or a job, but for what they install: that is what is tested."""
    from ruamel.yaml import YAML

    found = YAML(typ="safe", pure=True).load(block.text)
    steps = [step for job in found.get("jobs", {}).values() for step in job["steps"]]
    lines = [step["run"] for step in steps if "run" in step]
    lines += [line for job in found.values() if "script" in job for line in job["script"]]
    for line in lines:
        if not line.startswith("pip install "):
            reader.call(line)


RUNNERS: dict[str, Callable[[Reader, Block], None]] = {
    "console": console,
    "bash": bash,
    "python": python,
    "toml": toml,
    "json": as_json,
    "text": text,
    "yaml": jobs,
}


def compare(printed: str, expected: str, what: str) -> None:
    found = [plain(line) for line in printed.rstrip().splitlines()]
    wanted = [plain(line) for line in expected.rstrip().splitlines()]
    assert matches(found, wanted), f"{what} prints\n\n{printed}\nand the page says\n\n{expected}"


VARYING = re.compile(
    r"""
    \d[\d.,]*(?=\ (?:[kMG]?B\b|bytes\b|%))     # sizes, and shares of them
    | (?<=record\ )\d+ | (?<=offset\ )\d+ | (?<=key\ )\d+
    | \b\d\.\d{3}\b                            # ratios
    | (?<=\ warnings\ )\([a-z, ]+\)$           # the validators that ran: plugins add to them
    | \b0x[0-9a-f]+\b | \b[0-9a-f]{16,}\b       # checksums and digests
    """,
    re.VERBOSE,
)


def plain(line: str) -> str:
    """Without what depends on the machine's zlib, and without the widths of columns."""
    line = re.sub(r"# [kMG]?B\b", "# B", VARYING.sub("#", line))
    return re.sub(r"\s+", " ", line).strip()


def matches(found: list[str], wanted: list[str]) -> bool:
    if not wanted or not found:
        return not found and all(line == "…" for line in wanted)
    if wanted[0] == "…":
        return matches(found, wanted[1:]) or matches(found[1:], wanted)
    head = wanted[0].removesuffix("…")
    same = found[0].startswith(head) if wanted[0].endswith("…") else found[0] == wanted[0]
    return same and matches(found[1:], wanted[1:])


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """An empty folder, and a PATH whose `tfrecreg` and `python` are those under test."""
    bin_, home, here = tmp_path / "bin", tmp_path / "home", tmp_path / "here"
    for folder in (bin_, home, here):
        folder.mkdir()
    for name, more in (("tfrecreg", "-m tfrecreg"), ("dvc", "-m dvc"), ("python", "")):
        program = bin_ / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {more} "$@"\n', "utf-8")
        program.chmod(0o755)
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    environment = {
        **kept,
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "NO_COLOR": "1",
        "TFRECREG_JOBS": "1",
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(tmp_path / "site"),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "CUDA_VISIBLE_DEVICES": "-1",
        "GIT_AUTHOR_NAME": "a reader",
        "GIT_AUTHOR_EMAIL": "reader@example.org",
        "GIT_COMMITTER_NAME": "a reader",
        "GIT_COMMITTER_EMAIL": "reader@example.org",
    }
    return Reader(here, environment)


FIRST = ("README.md", "docs/reference.md")
"""Run each time; the other pages take minutes."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page in FIRST else pytest.mark.slow)
        for page in PAGES
        if page not in EXCLUDED
    ],
)
def test_a_page_does_what_it_says(page: str, reader: Reader) -> None:
    for extra in ("dvc", "tensorflow", *NEEDED.get(page, ())):
        if find_spec(extra) is None:
            pytest.skip(f"the pages are written for an environment with {extra}")
    found = blocks(page)
    for block in found:
        reader.read(block)
    assert reader.ran == sum(not block.left_out for block in found)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_runner_or_a_reason(page: str) -> None:
    if page in EXCLUDED:
        assert EXCLUDED[page]
        return
    text = (ROOT / page).read_text("utf-8")
    found = blocks(page)
    assert len(re.findall(r"^\s*```", text, re.MULTILINE)) == 2 * len(found)
    for block in found:
        assert block.left_out or block.language in RUNNERS, block
        for note in block.notes:
            assert not note.startswith("not run:") or len(note) > len("not run: ..."), block


def test_the_reference_names_every_command() -> None:
    reference = (ROOT / "docs/reference.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in reference.splitlines() if line.startswith("| `")]
    named = {re.split(r"[ `]", word)[0] for row in rows for word in row.split("`")[1::2]}
    assert set(COMMANDS) <= named


def test_the_page_on_validators_has_a_row_for_each_with_globs_of_its_codes() -> None:
    page = (ROOT / "docs/validators.md").read_text("utf-8").partition("\n## ")[0]
    rows = re.findall(r"^\| \[?`(\w+)`\S* \| ([^|]+) \|", page, re.MULTILINE)
    globs = {name: cell.split("`")[1::2] for name, cell in rows}
    bundled = [
        each.record for each in plugins().every(ValidatorRecord) if each.distribution == "tfrecreg"
    ]
    assert sorted(globs) == sorted(each.name for each in bundled)
    for each in bundled:
        for code in each.codes:
            assert any(fnmatch(code.code, glob) for glob in globs[each.name]), code.code


def test_the_readme_lists_every_family_of_codes() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    listed = re.findall(
        r"^\|.*\[([A-Z]{3})\]\(tfrecreg/core/values/codes/\w+\.md#", readme, re.MULTILINE
    )
    assert sorted(listed) == sorted({code[:3] for code in CORE_CODES})


LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = FENCE.sub("", (ROOT / page).read_text("utf-8"))
    for link in LINK.finditer(text):
        target, _, anchor = link["target"].partition("#")
        if "://" in target:
            continue
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), f"{page}: {link[0]}"
        if anchor:
            assert anchor in anchors(file), f"{page}: {link[0]}"


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
