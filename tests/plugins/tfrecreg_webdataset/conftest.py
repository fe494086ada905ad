"""Tar files made on the spot, and what the source makes of them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from raw_source_support import RawFiles

from tfrecreg_webdataset.source import WebDatasetSource


def tar(members: Mapping[str, bytes], kind: int = tarfile.PAX_FORMAT, mode: str = "w") -> bytes:
    """A tar file with these members."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode, format=kind) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


class Raw(RawFiles):
    """A folder of tar files."""

    kind = WebDatasetSource

    def put(self, name: str, data: bytes | str | Mapping[str, bytes]) -> Path:
        return super().put(name, data if isinstance(data, (bytes, str)) else tar(data))


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path / "raw")
