"""All deeds by name, and a fixture."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from deed_support import Deed
from deeds_dvc_support import (
    DvcAdd,
    DvcCheckout,
    DvcRepro,
    GcDvc,
    Pull,
    Push,
    ReleaseDvc,
    ReleaseStage,
    Tag,
)
from deeds_outside_support import (
    ExportArrayRecord,
    ExportIndex,
    ExportParquet,
    ExportTfds,
    ExportWebDataset,
    Salvage,
)
from deeds_publish_support import (
    AdoptCopy,
    AdoptInPlace,
    AdoptLink,
    Build,
    First,
    Gc,
    Growth,
    Release,
    Repair,
    Yank,
)

__all__ = ["DEEDS", "WITH_DVC", "Deed", "deed"]

DEEDS: dict[str, Callable[[Path], Deed]] = {
    "build": Build,
    "growth": Growth,
    "first": First,
    "release": Release,
    "adopt-copy": AdoptCopy,
    "adopt-link": AdoptLink,
    "adopt-in-place": AdoptInPlace,
    "repair": Repair,
    "yank": Yank,
    "gc": Gc,
    "salvage": Salvage,
    "export-tfds": ExportTfds,
    "export-index": ExportIndex,
    "export-arrayrecord": ExportArrayRecord,
    "export-parquet": ExportParquet,
    "export-webdataset": ExportWebDataset,
}
WITH_DVC: dict[str, Callable[[Path], Deed]] = {
    "release-dvc": ReleaseDvc,
    "release-stage": ReleaseStage,
    "pull": Pull,
    "push": Push,
    "gc-dvc": GcDvc,
    "tag": Tag,
    "dvc-add": DvcAdd,
    "dvc-repro": DvcRepro,
    "dvc-checkout": DvcCheckout,
}


_LIBRARIES = {"export-arrayrecord": "array_record", "export-parquet": "pyarrow"}


@pytest.fixture(scope="module")
def deed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Deed:
    """The deed that a test names, by indirect parametrisation."""
    if find_spec(_LIBRARIES.get(request.param, "json")) is None:
        pytest.skip(f"{_LIBRARIES[request.param]} is not installed")
    if request.param in WITH_DVC:
        pytest.importorskip("dvc", reason="the extra `dvc` is not installed")
    make = (DEEDS | WITH_DVC)[request.param]
    return make(tmp_path_factory.mktemp(request.param))
