"""Tar files made on the spot, and what the source makes of them."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.errors import TfrecregError
from tfrecreg.sources.interface import Item, Remark, Skipped, Written
from tfrecreg.storage.local import LocalStorage
from tfrecreg.typed_values import parse_options
from tfrecreg_webdataset.source import WebDatasetSource


@dataclass
class Made:
    """What became of every sample."""

    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By `split/key`: the values of each feature; a single one alone."""
    skipped: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By `split/key`: code and detail."""
    remarks: list[Remark] = field(default_factory=list)


def tar(
    members: Mapping[str, bytes], kind: int = tarfile.PAX_FORMAT, mode: str = "w"
) -> bytes:
    """A tar file with these members."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode, format=kind) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


class Raw:
    """A folder of tar files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)

    def put(self, name: str, data: bytes | Mapping[str, bytes]) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else tar(data))
        return path

    def source(self, *options: str) -> WebDatasetSource:
        parsed = parse_options(WebDatasetSource.Options, list(options), of="webdataset")
        return WebDatasetSource(LocalStorage(self.path), parsed)

    def made(self, *options: str) -> Made:
        """Every item, made by another object than it was listed by, as in a worker."""
        result = Made()
        source = self.source(*options)
        worker = pickle.loads(pickle.dumps(source))
        for item in source.items():
            if isinstance(item, Remark):
                result.remarks.append(item)
                continue
            made = worker.example(item) if isinstance(item, Item) else item
            place = f"{item.split}/{item.key}"
            assert place not in result.written
            if isinstance(made, Skipped):
                result.skipped[place] = made.code, made.detail
                continue
            if isinstance(made, Written):
                result.remarks.extend(made.remarks)
                made = made.example
            result.written[place] = {
                name: each.values[0] if each.count == 1 else list(each.values)
                for name, each in made.items()
            }
        return result

    def error(self, *options: str) -> TfrecregError:
        """Why it is refused, in one line."""
        with pytest.raises(TfrecregError) as caught:
            self.made(*options)
        assert caught.value.exit_code == 2
        assert "\n" not in caught.value.message
        assert caught.value.hint
        return caught.value


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path / "raw")
