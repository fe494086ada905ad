"""The size of a gzip file without its compression."""

from __future__ import annotations

import gzip
from pathlib import Path

from tfrecreg.core.records.gzip.random_access import decoded_size
from tfrecreg.core.storage.local import LocalStorage


def test_decoded_size_is_that_of_all_members(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "two").write_bytes(gzip.compress(b"a" * 3_000_000) + gzip.compress(b"b" * 500))
    assert decoded_size(storage, "two") == 3_000_500
    (tmp_path / "padded").write_bytes(gzip.compress(b"a" * 5000) + bytes(512))
    assert decoded_size(storage, "padded") == 5000


def test_decoded_size_of_what_is_not_whole_gzip_is_unknown(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "plain").write_bytes(b"plain")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "cut").write_bytes(gzip.compress(b"a" * 5000)[:-3])
    assert [decoded_size(storage, name) for name in ("plain", "empty", "cut")] == [None] * 3
