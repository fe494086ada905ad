"""A small shard, and the compiled scanner."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from salvage_support import Made, make

from tfrecreg.core.records import scanner as scanner_module
from tfrecreg.core.values.errors import FailureError


@pytest.fixture(scope="session")
def small_shard() -> Made:
    """200 records of 0 to 200 bytes."""
    source = random.Random(20240229)
    return make([source.randbytes(source.choice((0, 1, 5, 20, 60, 200))) for _ in range(200)])


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The compiled scanner's library: the one that is installed, else one made for the tests."""
    try:
        scanner_module.load_scanner()
    except FailureError:
        pass
    else:
        yield scanner_module.LIBRARY
        return
    hatch_build = pytest.importorskip("hatch_build", reason="the checkout's build hook is needed")
    library = tmp_path_factory.mktemp("compiled") / scanner_module.LIBRARY.name
    try:
        hatch_build.compile_scanner(scanner_module.SOURCE, library, os.environ)
    except hatch_build.NotCompiledError as error:
        pytest.skip(f"the scanner cannot be compiled here: {error}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner_module, "LIBRARY", library)
        scanner_module.load_scanner.cache_clear()
        yield library
    scanner_module.load_scanner.cache_clear()
