"""The key `data` of a dataset: the bucket of its builds, and operations that are refused there."""

from __future__ import annotations

from tfrecreg.errors import UsageError
from tfrecreg.registry.registry import Dataset
from tfrecreg.storage.urls import is_bucket, is_url, named_url
from tfrecreg.text import safe

_HINT = '`data = "s3://bucket/folder"`; without the key, builds are in `data/`'


def bucket_of(dataset: Dataset) -> str | None:
    """The URL of the folder that the builds of all datasets with this key go to; None for `data/`.

    Raises:
        UsageError: the key is not the URL of a bucket, or a URL with a password.
    """
    url = dataset.config.data
    if url is None:
        return None
    if not is_url(url):
        raise UsageError(
            f"`{dataset.config_file}`: `data` should be a URL, found `{safe(url, limit=1000)}`",
            hint=_HINT,
        )
    root = named_url(url)
    if not is_bucket(root):
        raise UsageError(
            f"`{dataset.config_file}`: `data` should be a bucket, found `{safe(root, limit=1000)}`",
            hint=_HINT,
        )
    return root


def expect_no_bucket(dataset: Dataset, what: str) -> None:
    """Refuse an operation that is not possible for builds in a bucket.

    Args:
        what: the subject of the message: ``"a pipeline"``.

    Raises:
        UsageError: its builds go to one.
    """
    if bucket_of(dataset) is not None:
        raise UsageError(
            f"{what} is not supported for `{dataset}`: `{dataset.config_file}` puts its builds "
            "into a bucket",
            hint="remove the key `data` there, or use another dataset",
        )
