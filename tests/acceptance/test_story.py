"""A complete story at the command line: git, DVC, a remote, growth, refusals, and a clone."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from struct import pack

import pytest
from shell_support import Shell, open_shell
from tests_support import tree

from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("dvc") is None, reason="the extra `dvc` is missing"),
]

TRAIN, TEST, MORE = 4000, 500, 45
"""Images at first, and one per cent more of them."""


class Raw:
    """Drawn digits in MNIST's files, of which the first ones are there at first."""

    def __init__(self, folder: Path, drawn: Path) -> None:
        write_digits(LocalStorage(drawn), train=TRAIN + MORE, test=TEST, seed=1)
        shutil.copytree(drawn, folder)
        self.folder = folder
        pixels = gzip.decompress((drawn / "train-images-idx3-ubyte.gz").read_bytes())[16:]
        self.pixels = [pixels[at : at + 784] for at in range(0, len(pixels), 784)]
        labels = gzip.decompress((drawn / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
        self.labels = bytearray(labels)
        self.write(TRAIN)

    def write(self, count: int) -> None:
        """The first images of the split `train`, with their labels."""
        pixels = pack(">4I", 0x803, count, 28, 28) + b"".join(self.pixels[:count])
        labels = pack(">2I", 0x801, count) + bytes(self.labels[:count])
        for name, data in (("images-idx3", pixels), ("labels-idx1", labels)):
            file = self.folder / f"train-{name}-ubyte.gz"
            file.write_bytes(gzip.compress(data, mtime=0))


def hashes(folder: Path) -> dict[str, tuple[int, str]]:
    """Each file with its size and its SHA-256, by a library that is not ours."""
    return {
        name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in tree(folder).items()
    }


class Remote:
    """What came to the folder that is DVC's remote since it was last looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: set[str] = set()

    def new(self) -> dict[str, int]:
        """MD5, by which DVC names its objects, to bytes."""
        found = {
            f"{path.parent.name}{path.name}": path.stat().st_size
            for path in self.folder.rglob("*")
            if path.is_file()
        }
        new = {name: size for name, size in found.items() if name not in self.known}
        self.known |= found.keys()
        return new


def committed(shell: Shell, said: str) -> None:
    """Do what the command says to do next, as it says it."""
    steps = [line.strip() for line in said.partition("next:\n")[2].splitlines()]
    assert [step for step in steps if step.startswith("git add ")], said
    for step in steps:
        shell(step)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = open_shell(tmp_path, "digits")
    shell("git init --quiet --initial-branch=main")
    return shell


def test_from_raw_data_to_a_clone_that_trains_on_an_old_release(
    shell: Shell, tmp_path: Path
) -> None:
    root = shell.root
    raw = Raw(tmp_path / "raw", tmp_path / "drawn")
    remote = Remote(tmp_path / "remote")

    # The first release, tagged and pushed.
    shell("tfrecreg init")
    shell(f"dvc remote add --default store {remote.folder}")
    shell("tfrecreg build digits --source mnist --raw ../raw --shards 4")
    said = shell("tfrecreg release digits --version 1.0.0 --note 'the first'")
    assert "released digits@1.0.0 (initial)" in said
    shell("git add .")
    committed(shell, said)
    assert shell("git status --porcelain") == ""
    first = hashes(root / "data/digits")
    released = shell.document("tfrecreg show digits@1.0.0 --json")["manifest"]
    assert released["content"]
    assert "tagged digits@v1.0.0 at commit" in shell("tfrecreg tag digits@1.0.0 --stage prod")
    assert shell.document("tfrecreg push --json")["releases"] == ["digits@1.0.0"]
    sent = remote.new()
    assert sum(sent.values()) > sum(size for size, _ in first.values())

    # One per cent more: the number is found, and what goes to the remote is what was added.
    raw.write(TRAIN + MORE)
    shell("tfrecreg build digits")
    said = shell("tfrecreg release digits --bump auto")
    assert "released digits@1.1.0 (minor)" in said
    assert f"{MORE} examples were added to the split `train`" in said
    committed(shell, said)
    second = hashes(root / "data/digits")
    names = {
        hashlib.md5((root / "data/digits" / name).read_bytes()).hexdigest(): name for name in second
    }
    shell("tfrecreg push")
    sent = remote.new()
    pushed = {names.get(md5, "the folder's list"): size for md5, size in sent.items()}
    shards = sum(size for name, size in pushed.items() if name.endswith(tuple("0123456789")))
    manifests = [
        json.loads((root / f"registry/digits/{version}/manifest.json").read_text())
        for version in ("1.0.0", "1.1.0")
    ]
    before, after = (sum(each["payload_bytes"] for each in found["splits"]) for found in manifests)
    added = after - before
    assert 0.008 * before < added < 0.012 * before
    assert 0 < shards <= 1.1 * added
    beside = {name for name in pushed if "tfrecord" not in name}
    assert beside <= {"manifest.json", "the folder's list"}
    assert sum(name.endswith(".index") for name in pushed) == 1

    # A label changes: no small number passes, and the right one is found.
    raw.labels[7] = (raw.labels[7] + 1) % 10
    raw.write(TRAIN + MORE)
    shell("tfrecreg build digits")
    for wanted in ("--bump minor", "--bump patch", "--version 1.9.0"):
        said = shell(f"tfrecreg release digits {wanted}", expect=1)
        assert "error REG001 understated-number" in said
        assert "the smallest legal number is 2.0.0" in said
    assert not (root / "registry/digits/1.9.0").exists()
    said = shell("tfrecreg release digits --bump auto")
    assert "released digits@2.0.0 (major)" in said
    committed(shell, said)
    shell("tfrecreg push digits@2.0.0")
    new = remote.new()
    (rewritten,) = [size for size in new.values() if size > 0.1 * before]
    assert rewritten < 0.4 * before

    # A schema that the records break: neither built nor released.
    built = tree(root / "data/digits")
    shell.edit("schemas/digits.pbtxt", lambda text: text.replace("max: 255", "max: 8"))
    said = shell("tfrecreg check digits", expect=1)
    assert "error SCH" in said
    said = shell("tfrecreg release digits --bump auto", expect=2)
    assert "`schemas/digits.pbtxt` is not the schema that `digits` was built with" in said
    said = shell("tfrecreg build digits", expect=1)
    assert "error SCH" in said
    assert "image/class/label" in said
    assert tree(root / "data/digits") == built
    (listed,) = shell.document("tfrecreg list --json")["datasets"]
    assert (listed["releases"], listed["latest"]) == (3, "2.0.0")
    shell("git checkout --quiet schemas/digits.pbtxt")
    assert "pass: 0 errors" in shell("tfrecreg check digits")
    assert "pass: 0 errors" in shell("tfrecreg audit")

    # Elsewhere: what git has, and the remote.
    shell.at(tmp_path)("git clone --quiet digits elsewhere")
    clone = tmp_path / "elsewhere"
    other = shell.at(clone)
    assert not [name for name in other("git ls-files").splitlines() if "tfrecord" in name]
    shutil.move(root, tmp_path / "out of reach")
    said = other("tfrecreg pull digits@1.0.0")
    assert "all verified" in said
    pulled = hashes(clone / "versions/digits/1.0.0")
    assert pulled == first
    assert other.document("tfrecreg show digits@1.0.0 --json")["manifest"] == released
    assert "pass: 0 errors" in other("tfrecreg check digits@1.0.0")
    assert "pass: 0 errors" in other("tfrecreg audit")
    loads_as_drawn(clone, raw)


def loads_as_drawn(clone: Path, raw: Raw) -> None:
    """tf.data gives the images and labels of the first release, none of a later one."""
    pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")
    import tfrecreg

    loaded = sorted(
        (int(each["image/class/label"]), each["image/encoded"].tobytes())
        for each in tfrecreg.load(
            "digits@1.0.0", "train", registry=clone, decode=True
        ).as_numpy_iterator()
    )
    labels = bytearray(raw.labels)
    labels[7] = (labels[7] - 1) % 10
    assert loaded == sorted(zip(labels[:TRAIN], raw.pixels[:TRAIN], strict=True))
