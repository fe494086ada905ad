"""Writing to a store: whole files, and only under names that are free.

A file appears when all of it was sent, and is never replaced, but by a repair. The store decides
whether a name is free (`If-None-Match: *` on S3), so of two writers at once one wins. A store that
ignores the condition is refused by :func:`expect_condition`, before anything else is written.
"""

from __future__ import annotations

import inspect
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from tfrecreg.errors import MissingFileError, StorageError
from tfrecreg.storage.file_systems import invoke, patiently
from tfrecreg.storage.interface import PROBE, Appendable, Reader
from tfrecreg.text import safe

_PART = 8 << 20
_PARTS_AT_ONCE = 2
"""Size of the parts of a file, and number sent at once: memory does not grow with the file."""
_SLOWEST = 1 << 20
"""Bytes per second that an upload may count on, beyond the time of any request."""
_CREATE = "create"


def put_bytes(system: Any, full: str, shown: str, data: bytes) -> bool:
    """Create a small file unless its name is taken; False if it is.

    Args:
        full: its path of the file.
        shown: the URL in messages, without secrets and not escaped.

    Raises:
        StorageError: the store refused, or does not support the condition.
    """
    return _unless_taken(system, "pipe_file", full, shown, len(data), full, data)


def put_file(system: Any, full: str, shown: str, source: str) -> bool:
    """Create a file with the bytes of a local one unless its name is taken; False if it is.

    Args:
        full: its path of the file.
        shown: as for :func:`put_bytes`.

    Raises:
        StorageError: the store refused, or does not support the condition.
    """
    size = Path(source).stat().st_size
    options = _limits(system)
    return _unless_taken(system, "put_file", full, shown, size, source, full, **options)


def _limits(system: Any) -> dict[str, int]:
    known = inspect.signature(getattr(system, "_put_file", system.put_file)).parameters
    limits = {"chunksize": _PART, "max_concurrency": _PARTS_AT_ONCE}
    return {name: value for name, value in limits.items() if name in known}


def has_bytes_of(reader: Reader, source: str) -> bool:
    """Whether an open file in a store has the bytes of a local one.

    Raises:
        StorageError: it cannot be read.
    """
    at = 0
    with Path(source).open("rb") as local:
        while piece := local.read(_PART):
            if reader.read_at(at, len(piece)) != piece:
                return False
            at += len(piece)
    return at == reader.size


def expect_condition(store: Appendable) -> None:
    """As :meth:`tfrecreg.storage.interface.Appendable.expect_condition`."""
    probe = f"{PROBE}{secrets.token_hex(8)}"
    # If an attempt was lost on its way back, the next one finds the name taken: by this probe.
    try:
        store.put_if_absent(probe, b"1")
    except MissingFileError as error:
        raise MissingFileError(
            f"`{safe(store.root, limit=1000)}` cannot be written: there is no such bucket",
            hint="create the bucket, or correct its name",
        ) from error
    try:
        overwritten = store.put_if_absent(probe, b"2")
    finally:
        # Nothing else is removed, so that permission may be missing.
        with suppress(StorageError):
            store.remove(probe)
    if overwritten:
        raise _unconditional(store.root)


def _unless_taken(
    system: Any, method: str, full: str, shown: str, size: int, *arguments: Any, **options: Any
) -> bool:
    def attempt(timeout: float) -> bool:
        try:
            invoke(timeout + size / _SLOWEST, system, method, *arguments, mode=_CREATE, **options)
        except Exception as error:
            if _is_taken(error):
                return False
            unknown = isinstance(error, TypeError) and "mode" in str(error)
            if unknown or isinstance(error, NotImplementedError):
                raise _unconditional(shown) from error
            raise
        return True

    # Its directory listing may be cached from before.
    system.invalidate_cache(full)
    return patiently("write", shown, attempt)


def _is_taken(error: BaseException) -> bool:
    """Whether the error means that the condition does not hold."""
    if isinstance(error, FileExistsError):
        return True
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            code = response.get("Error", {}).get("Code")
            return code in ("PreconditionFailed", "412")
        cause = cause.__cause__
    return False


def _unconditional(shown: str) -> StorageError:
    return StorageError(
        f"`{safe(shown, limit=1000)}` is in a store that overwrites files although it was asked "
        "not to: two builds could replace each other's bytes",
        hint="S3, Google Cloud Storage and MinIO support conditional writes; update the store or "
        "its library",
    )
