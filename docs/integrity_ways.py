"""Makes the table of faults by way of asking in `docs/integrity.md`: who finds what.

``python docs/integrity_ways.py`` puts it into the page; ``--check`` writes nothing and exits with 1
if the page has another one. Each fault is done to a released build with two shards in each of two
splits, and everybody who can be asked about the build is asked.

What is not found has to be explained in `_READS`, or a test fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integrity_table import put, starts, swap

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.audit import audit_releases
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.builtin.training.open import data_source
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.gate import gate
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.run import check
from tfrecreg.core.records.framing import frame
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.shards import ShardPolicy

BEGIN = "<!-- Made by `python docs/integrity_ways.py`: do not edit. -->\n"
END = "<!-- End of the table by way of asking. -->\n"
SHARD = "digits-train.tfrecord-00000-of-00002"
OTHER = "digits-train.tfrecord-00001-of-00002"
_OPTIONS = CheckOptions(only=("crc", "manifest", "registry", "schema"))
_BUCKET = "memory://lake/digits"
# A store that ends with the process: refused unless the environment names it.
os.environ.setdefault("TFRECREG_REMOTE_PROTOCOLS", "memory")


@dataclass(frozen=True)
class State:
    """A registry with the fault, and where its build was copied to afterwards."""

    root: Path
    copy: Path
    older: Path
    """A report from before the fault."""

    @property
    def folder(self) -> Path:
        """The build."""
        return self.root / "data/digits"


@dataclass(frozen=True)
class Fault:
    """One thing done to a registry."""

    name: str
    do: Callable[[Path], None]
    """Called with the registry's root."""


def _shard(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return _file(f"data/digits/{SHARD}", change)


def _file(path: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def do(root: Path) -> None:
        data = (root / path).read_bytes()
        (root / path).unlink()  # the file may be a hard link
        (root / path).write_bytes(change(data))

    return do


def _nothing(root: Path) -> None:
    del root


def _become(text: bytes, path: str) -> Callable[[Path], None]:
    return lambda root: (root / path).write_bytes(text) and None


def _gone(path: str) -> Callable[[Path], None]:
    return lambda root: (root / path).unlink()


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _replaced(data: bytes) -> bytes:
    """Other records of the same lengths with right checksums."""
    made = b""
    for at in starts(data):
        size = int.from_bytes(data[at : at + 8], "little")
        payload = data[at + 12 : at + 12 + size]
        at_label = payload.index(b"image/class/label") + 17 + 4
        payload = _flip(payload, at_label + 2)
        header, footer = frame(payload)
        made += header + payload + footer
    return made


def _count(data: bytes) -> bytes:
    """Another number of records."""
    return _flip(data, data.index(b'"records":') + len(b'"records":'))


def _exchange(root: Path) -> None:
    swap(root / f"data/digits/{SHARD}", root / f"data/digits/{OTHER}")


def _extra(root: Path) -> None:
    shutil.copy(root / f"data/digits/{SHARD}", root / "data/digits/more.tfrecord")


_INDEX = f"data/digits/index/{SHARD}.index"
FAULTS = (
    Fault("nothing", _nothing),
    Fault("a shard cut between two records", _shard(lambda data: data[: starts(data)[4]])),
    Fault("a shard cut in a record", _shard(lambda data: data[: starts(data)[4] + 99])),
    Fault("a bit of a record flipped", _shard(lambda data: _flip(data, starts(data)[4] + 50))),
    Fault("a shard replaced: other records, same lengths", _shard(_replaced)),
    Fault("two shards swapped", _exchange),
    Fault("a shard missing", _gone(f"data/digits/{SHARD}")),
    Fault("a shard added", _extra),
    Fault("an index missing", _gone(_INDEX)),
    Fault("an index damaged", _file(_INDEX, lambda data: _flip(data, len(data) // 2))),
    Fault("the class names changed", _become(b"{}", "data/digits/labels.json")),
    Fault(
        "a digit of the manifest changed",
        _file("data/digits/manifest.json", _count),
    ),
    Fault("the manifest cut", _file("data/digits/manifest.json", lambda data: data[:300])),
    Fault("the manifest missing", _gone("data/digits/manifest.json")),
    Fault("the schema in the folder missing", _gone("data/digits/schema.pbtxt")),
    Fault("the working schema missing", _gone("schemas/digits.pbtxt")),
    Fault(
        "the manifest of the release changed",
        _file("registry/digits/1.0.0/manifest.json", _count),
    ),
    Fault(
        "the hash in DVC's pointer changed",
        _file("data/digits.dvc", lambda data: data.replace(b"md5: ", b"md5: 0")),
    ),
    Fault("DVC's pointer missing", _gone("data/digits.dvc")),
)


def _told(reports: Sequence[Report]) -> str:
    """The codes that fail, and whether a check is incomplete."""
    failed = [report for report in reports if report.status != "pass"]
    codes = sorted({each.code for report in failed for each in report.findings})
    words = [f"`{code}`" for code in codes]
    if any(report.status == "error" for report in reports):
        words.append("incomplete")
    return ", ".join(words)


def _checks(target: str) -> Callable[[State], str]:
    def ask(state: State) -> str:
        named = target.format(folder=state.folder, copy=state.copy)
        return _told(check(named, registry=state.root, options=_OPTIONS))

    return ask


def _check_url(state: State) -> str:
    import fsspec

    system: Any = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    system.put(str(state.copy), "/lake/digits", recursive=True)
    return _told(check(_BUCKET, registry=state.root, options=_OPTIONS))


def _load(state: State) -> str:
    import tensorflow as tf

    import tfrecreg

    try:
        for split in ("train", "test"):
            for _ in tfrecreg.load("digits", split, registry=state.root):
                pass
    except tf.errors.InvalidArgumentError:
        return "`InvalidArgumentError`"
    return ""


def _data_source(state: State) -> str:
    def read(*, verify: bool) -> None:
        for split in ("train", "test"):
            for _ in data_source("digits", split, registry=state.root, verify=verify):
                pass

    read(verify=False)
    try:
        read(verify=True)
    except TfrecregError as error:
        return f"with `verify=True` `{type(error).__name__}`"
    return ""


def _gate(state: State) -> str:
    path = state.root / "now.json"
    options = CheckOptions(only=_OPTIONS.only, fail_on="never")
    (report,) = check("digits", registry=state.root, options=options)
    path.write_text(json.dumps(report.to_json()), "utf-8")
    return _told([gate(open_registry(state.root), "digits", path)])


def _gate_older(state: State) -> str:
    return _told([gate(open_registry(state.root), "digits", state.older)])


def _audit(state: State) -> str:
    return _told([audit_releases(open_registry(state.root))])


WAYS: Mapping[str, Callable[[State], str]] = {
    "`check digits`": _checks("digits"),
    "`check data/digits`": _checks("{folder}"),
    "`check` of a copy": _checks("{copy}"),
    "`check` of a URL": _check_url,
    "`check data/digits/*tfrecord*`": _checks("{folder}/*tfrecord*"),
    "`audit`": _audit,
    "`gate`, new report": _gate,
    "`gate`, older report": _gate_older,
    "`data_source`": _data_source,
    "`load`": _load,
}
"""Who is asked, by the title of the column."""

_NO_REGISTRY = "a copy has no registry"
_NO_MANIFEST = "without a manifest, `check` judges only the shards, and the report says so"
_OTHER_FILES = "it reads records, not these files"
_READS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "`check` of a copy": {
        _NO_REGISTRY: ("working schema", "of the release", "DVC"),
        _NO_MANIFEST: ("manifest missing",),
    },
    "`check` of a URL": {
        _NO_REGISTRY: ("working schema", "of the release", "DVC"),
        _NO_MANIFEST: ("manifest missing",),
    },
    "`audit`": {
        "it reads releases, not builds": (
            *("shard", "record", "index", "class names", "of the manifest", "manifest cut"),
            *("manifest missing", "schema in the folder"),
        ),
    },
    "`gate`, older report": {
        "it judges only the report, which a pipeline renews when bytes change": (
            *("shard", "record", "index", "class names", "schema in the folder", "of the release"),
            "DVC",
        ),
    },
    "`data_source`": {
        _OTHER_FILES: ("added", "class names", "schema in the folder", "of the release", "DVC"),
    },
    "`load`": {
        _OTHER_FILES: (
            *("added", "class names", "schema in the folder", "of the release", "index"),
            "DVC",
        ),
        "it compares sizes and checksums, not digests": ("swapped", "replaced"),
    },
}
"""What each does not find: words of the names of these faults, by the reason."""


def reason(way: str, fault: Fault) -> str | None:
    """Why a way of asking does not find a fault; None if it should."""
    for why, words in _READS.get(way, {}).items():
        if any(word in fault.name for word in words):
            return why
    return None


def notes() -> list[str]:
    """The reasons, in the order of their numbers in the table."""
    return list(dict.fromkeys(why for reasons in _READS.values() for why in reasons))


def sound(folder: Path, *, with_dvc: bool = True) -> Path:
    """The registry before the fault."""
    root = folder / "sound"
    write_digits(LocalStorage(folder / "raw"), train=20, test=10, seed=1)
    init(root, with_dvc=with_dvc)
    registry = open_registry(root)
    policy = ShardPolicy(shards=2)
    build(
        registry,
        BuildRequest(name="digits", source="mnist", raw=str(folder / "raw"), policy=policy),
    )
    release(registry, ReleaseRequest(name="digits", version="1.0.0"))
    options = CheckOptions(only=_OPTIONS.only, fail_on="never")
    (report,) = check("digits", registry=root, options=options)
    (root / "older.json").write_text(json.dumps(report.to_json()), "utf-8")
    toml = root / "tfrecreg.toml"
    validators = ", ".join(f'"{name}"' for name in _OPTIONS.only)
    toml.write_text(f"{toml.read_text('utf-8')}\n[gates.digits]\nvalidators = [{validators}]\n")
    return root


UNEXPLAINED = "**nothing**"
"""What is not found, without a reason: a defect."""


def cell(way: str, fault: Fault, state: State) -> str:
    """What a way of asking says of a fault."""
    try:
        found = WAYS[way](state)
    except TfrecregError as error:
        found = f"`{type(error).__name__}`"
    if found or fault.name == "nothing":
        return found or "pass"
    why = reason(way, fault)
    return UNEXPLAINED if why is None else f"no ({notes().index(why) + 1})"


@contextlib.contextmanager
def state_of(fault: Fault, root: Path, folder: Path) -> Iterator[State]:
    """A registry with the fault, and a copy of its build."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        here = Path(shutil.copytree(root, Path(work) / "registry"))
        fault.do(here)
        copy = Path(shutil.copytree(here / "data/digits", Path(work) / "copy"))
        yield State(here, copy, here / "older.json")


def row(fault: Fault, root: Path, folder: Path, ways: Sequence[str]) -> list[str]:
    """The cells of a fault."""
    found = []
    for way in ways:
        # Each asks about a registry of its own: an answer may leave a cache behind.
        with state_of(fault, root, folder) as state:
            found.append(cell(way, fault, state))
    return found


def table(folder: Path) -> str:
    """The whole table, and its notes."""
    root = sound(folder)
    lines = [["fault", *WAYS], ["---"] * (len(WAYS) + 1)]
    lines += [[fault.name, *row(fault, root, folder, list(WAYS))] for fault in FAULTS]
    shown = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return shown + "\n" + "".join(f"{number}. {why}\n" for number, why in enumerate(notes(), 1))


def main() -> int:
    """Make the table, or look whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = table(Path(folder))
    return put(made, BEGIN, END, check=arguments.check)


if __name__ == "__main__":
    sys.exit(main())
