"""The size of raw data, with and without compression."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from tfrecreg.core.registry.files import raw_totals
from tfrecreg.core.registry.manifest import RawTotals


def test_whole_file_compression_is_taken_off_and_nothing_else(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(5000)) + gzip.compress(bytes(300))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.gz").write_bytes(packed)
    (tmp_path / "named.gz").write_bytes(b"not gzip at all")
    (tmp_path / "plain").write_bytes(bytes(100))
    (tmp_path / ".hidden").write_bytes(bytes(7))
    size = raw_totals(str(tmp_path))
    assert size.stored == len(packed) + 15 + 100 + 7
    assert size.decoded == 5300 + 15 + 100 + 7


def test_damaged_gzip_counts_as_it_lies(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(os.urandom(500))[:200])
    assert raw_totals(str(tmp_path)) == RawTotals(files=1, stored=200, decoded=200)


def test_links_count_as_what_they_lead_to_and_each_folder_once(tmp_path: Path) -> None:
    cache, raw, other = tmp_path / "cache", tmp_path / "raw", tmp_path / "other"
    for folder in (cache, raw, other):
        folder.mkdir()
    (other / "file").write_bytes(bytes(7))
    (other / "back").symlink_to(raw)
    (raw / "other").symlink_to(other)
    (raw / "other again").symlink_to("../other")
    packed = gzip.compress(bytes(1000))
    (cache / "blob").write_bytes(packed)
    (raw / "a.gz").symlink_to(cache / "blob")
    (raw / "again").symlink_to("a.gz")
    (raw / "loop").symlink_to(raw)
    os.mkfifo(raw / "fifo")
    size = raw_totals(str(raw))
    assert (size.stored, size.decoded) == (2 * len(packed) + 7, 2007)
