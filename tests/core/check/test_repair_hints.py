"""The hint of damaged bytes is the command that brings them back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests_support import flip

from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.values.findings import Finding

SHARD = "data/digits/digits-test.tfrecord-00000-of-00002"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9000\n"


def crc(target: str, root: Path) -> Finding:
    (report,) = check([target], registry=root, options=CheckOptions(only=("crc",)))
    (finding,) = report.findings
    return finding


@pytest.mark.parametrize(
    ("path", "reference"),
    [
        (SHARD, "digits"),
        (SHARD.replace("data/digits", "versions/digits/1.0.0"), "digits@1.0.0"),
    ],
)
def test_a_damaged_shard_names_its_repair(digits_registry: Path, path: str, reference: str) -> None:
    if reference != "digits":
        (digits_registry / "data/digits/manifest.json").unlink()  # so that the copy is looked at
    flip(digits_registry / path, 40)
    finding = crc(reference, digits_registry)
    assert finding.code == "CRC002"
    assert finding.hint == (
        f"`tfrecreg repair {reference}` rebuilds the damaged files, byte for byte"
    )


def test_bare_files_have_no_build_to_repair(digits_registry: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(digits_registry / SHARD, tmp_path))
    flip(copy, 40)
    hint = crc(str(copy), digits_registry).hint
    assert hint == "restore the shard from DVC or a backup, or build it again from the raw data"


@pytest.mark.parametrize("target", ["digits", "file"])
def test_a_pointer_of_git_lfs_names_what_fetches_the_file(
    digits_registry: Path, target: str
) -> None:
    shard = digits_registry / SHARD
    shard.unlink()
    shard.write_bytes(POINTER)
    finding = crc("digits" if target == "digits" else str(shard), digits_registry)
    assert finding.code == "CRC008"
    assert finding.hint == "`git lfs pull` fetches the files behind git-LFS pointers"
