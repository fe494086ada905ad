"""The damage of the demo: one bit, and only in a copy."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tfrecreg.cli.demo.run import _damaged_copies
from tfrecreg.core.registry.manifest.file import parse_manifest


def test_one_bit_of_the_first_copy_is_flipped(digits_original: Path, tmp_path: Path) -> None:
    data = (digits_original / "data/digits/manifest.json").read_bytes()
    manifest = parse_manifest(data, "manifest.json")
    built: Any = SimpleNamespace(manifest=manifest, folder="data/digits")
    (tmp_path / "data").symlink_to(digits_original / "data")
    copies = Path(_damaged_copies(tmp_path, built))
    names = sorted(each.name for each in copies.iterdir())
    assert names == [f"digits-test.tfrecord-{number:05}-of-00002" for number in range(2)]
    flipped = [
        (name, at, before ^ after)
        for name in names
        for at, (before, after) in enumerate(
            zip(
                (tmp_path / "data/digits" / name).read_bytes(),
                (copies / name).read_bytes(),
                strict=True,
            )
        )
        if before != after
    ]
    size = (copies / names[0]).stat().st_size
    assert flipped == [(names[0], size // 2, 0x10)]
