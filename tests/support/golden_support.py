"""Stories: commands one after the other, and all that they print, as one text.

What differs between runs and machines is replaced: paths, times, durations, digests, versions,
encoded images. `make accept` writes the texts that `tests/golden` compares with: look at the
difference before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from tfrecreg.cli.main import main

OUTPUTS = Path(__file__).parents[1] / "golden" / "outputs"
_CHANGES = (
    (re.compile(r"<(style|script)>.*?</\1>", re.DOTALL), r"<\1></\1>"),
    (re.compile(r"sha256-[A-Za-z0-9+/=]+"), "SHA256"),
    (re.compile(r"data:(image/\w+|font/\w+);base64,[A-Za-z0-9+/=]+"), r"data:\1"),
    (re.compile(r"\b(?:sha256:|blake3:)?(?=[0-9a-f]*\d)[0-9a-f]{12,}\b"), "HEX"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z| UTC|\+00:00)?"), "TIME"),
    (re.compile(r"20[23]\d-\d\d-\d\d"), "DATE"),
    (re.compile(r"\b\d+ (?:second|minute)s? ago\b"), "NOW"),
    (re.compile(r'("(?:seconds|mtime_ns|inode|device|time)": )[\d.]+'), r"\1N"),
    (re.compile(r'(time=")[\d.]+'), r"\1N"),
    (re.compile(r"(wrote \S+\.html), [\d.]+ kB"), r"\1"),
    (re.compile(r"(codecs +)\w.*"), r"\1VERSIONS"),
    (re.compile(r"(scanner: \w+) \(.*\)"), r"\1"),
    (re.compile(r"\b3\.1[0-9]\.\d+\w*\b"), "PYTHON"),
)


class Story:
    """Commands in a registry of a folder of its own.

    Args:
        folder: the current folder, with the raw data.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._text: list[str] = []

    def run(self, *arguments: str) -> None:
        """Add a command and what it prints."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments])
        self._text.append(f"$ tfrecreg {' '.join(arguments)}\n")
        self._text.append(out.getvalue())
        self._text.append("".join(f"! {line}\n" for line in err.getvalue().splitlines()))
        self._text.append(f"({code})\n\n" if code else "\n")

    def show(self, path: str) -> None:
        """Add a file that a command wrote, or the names and sizes of a folder."""
        found = self.folder / path
        self._text.append(f"# {path}\n")
        if found.is_dir():
            files = sorted(each for each in found.rglob("*") if each.is_file())
            self._text += [f"{each.relative_to(found)}\n" for each in files]
        elif not found.exists():
            self._text.append("is not there\n")
        else:
            self._text.append(found.read_text("utf-8").rstrip("\n") + "\n")
        self._text.append("\n")

    @property
    def text(self) -> str:
        """All of it, with what differs replaced."""
        text = "".join(self._text).replace(str(self.folder), "HERE")
        for pattern, put in _CHANGES:
            text = pattern.sub(put, text)
        return text


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """A place where commands print the same on each machine."""
    here = Path.cwd()
    settings = {
        "COLUMNS": "160",
        "NO_COLOR": "1",
        "TFRECREG_JOBS": "1",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    with mock.patch.dict(os.environ, settings):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def told(name: str, folder: Path) -> str:
    """The text of a story that is told in an empty folder."""
    story = Story(folder)
    with _alone(folder):
        STORIES[name](story)
    return story.text


def bmp(seed: int, side: int = 12) -> bytes:
    """An image of one color, without compression: no library changes its bytes."""
    row = bytes((seed * 37 % 256, seed * 91 % 256, seed * 11 % 256)) * side
    pixels = (row + b"\0" * (-len(row) % 4)) * side
    size = (54 + len(pixels)).to_bytes(4, "little")
    sides = side.to_bytes(4, "little") * 2
    head = b"BM" + size + b"\0" * 4 + (54).to_bytes(4, "little")
    return head + (40).to_bytes(4, "little") + sides + b"\1\0\x18\0" + b"\0" * 24 + pixels


def _put(folder: Path, name: str, data: bytes | str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def _animals(folder: Path) -> None:
    for number in range(12):
        _put(folder, f"raw/train/{'cat' if number % 3 else 'dog'}/{number:02}.bmp", bmp(number))
    for number in (20, 20.5, 21):  # the second is a copy of the first
        _put(folder, f"raw/test/dog/{number}.bmp", bmp(int(number)))
    _put(folder, "raw/test/cat/22.bmp", bmp(22, side=40))
    _put(folder, "raw/train/cat/empty.bmp", b"")


def life(story: Story) -> None:
    """From raw data to the second release."""
    _animals(story.folder)
    run = story.run
    run("init", "registry", "--no-dvc")
    os.chdir("registry")
    raw = ("--source", "imagefolder", "--raw", "../raw")
    run("list")
    run("build", "animals", "--raw", "../raw", "--dry-run")
    run("build", "animals", *raw)
    run("build", "animals", *raw, "--max-skipped", "1", "--shards", "2", "--save-options")
    story.show("registry/datasets/animals.toml")
    story.show("registry/data/animals")
    for command in ("list", "show", "check", "stats", "digest", "head"):
        run(command, *(["animals"] if command != "list" else []))
    run("check", "animals", "--format", "markdown")
    run("check", "animals", "--raw", "../raw", "--same-as", "animals", "--expect", "train=13")
    run("release", "animals", "--note", "the first")
    _put(story.folder, "raw/train/dog/30.bmp", bmp(30))
    (story.folder / "raw/train/cat/01.bmp").unlink()
    run("build", "animals", *raw, "--max-skipped", "1")
    run("diff", "animals@1.0.0", "animals", "--records")
    run("release", "animals")
    for command in ("list", "log", "show", "audit"):
        run(command, *(["animals"] if command not in ("list", "audit") else []))
    run("show", "animals@1.0.0", "--provenance")
    run("yank", "animals@1.0.0", "--reason", "a copy in both splits")
    run("log", "animals")


def damage(story: Story) -> None:
    """Damaged shards: what each command says, and what is left."""
    _animals(story.folder)
    run = story.run
    run("init", "registry", "--no-dvc")
    os.chdir("registry")
    raw = ("--source", "imagefolder", "--raw", "../raw", "--max-skipped", "1", "--shards", "3")
    run("build", "animals", *raw, "--release", "1.0.0")
    data = story.folder / "registry/data/animals"
    first, second, third = (
        data / f"animals-train.tfrecord-{number:05}-of-00003" for number in range(3)
    )
    whole = first.read_bytes()
    first.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
    second.write_bytes(second.read_bytes()[:-7])
    third.unlink()
    (data / "stray.txt").write_text("stray")
    for form in ("text", "github"):
        run("check", "animals", "--format", form)
    run("check", str(first.relative_to(Path.cwd())))
    run("check", "animals", "--save-json", "report.json", "--fail-on", "never")
    run("gate", "animals", "--report", "report.json")
    run("audit")
    run("salvage", "data/animals", "--output", "../saved")
    story.show("saved")
    run("repair", "animals", "--raw", "../raw")
    run("check", "animals")
    run("explain", "CRC002")
    run("list")


STORIES: dict[str, Callable[[Story], None]] = {each.__name__: each for each in (life, damage)}
"""All stories, by their names."""


def _write() -> None:
    OUTPUTS.mkdir(exist_ok=True)
    for name in sys.argv[1:] or STORIES:
        with tempfile.TemporaryDirectory() as folder:
            text = told(name, Path(folder).resolve())
        (OUTPUTS / f"{name}.txt").write_text(text, "utf-8")


if __name__ == "__main__":
    _write()
