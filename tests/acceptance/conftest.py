"""The S3 server of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from s3_support import S3, SERVER, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """One server for all tests, because Ceph's starts in fifteen seconds. Each module has buckets
    of its own.
    """
    with s3_server(SERVER) as server:
        yield server
