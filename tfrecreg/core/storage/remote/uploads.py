"""Writing to a store: whole files, and only under names that are free.

The store decides whether a name is free (`If-None-Match: *` on S3), so of two writers at once one
wins.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from tfrecreg.core.storage.remote.file_systems import invoke, patiently
from tfrecreg.core.values.errors import StorageError
from tfrecreg.core.values.text import safe

_PART = 8 << 20
_PARTS_AT_ONCE = 2
"""Size of the parts of a file, and number sent at once: memory does not grow with the file."""
_SLOWEST = 1 << 20
"""Bytes per second that an upload may count on, beyond the time of any request."""
_CREATE = "create"


def put_bytes(system: Any, full: str, shown: str, data: bytes) -> bool:
    """Create a small file unless its name is taken; False if it is."""
    return _unless_taken(system, "pipe_file", full, shown, len(data), full, data)


def put_file(system: Any, full: str, shown: str, source: str) -> bool:
    """Create a file with the bytes of a local one unless its name is taken; False if it is."""
    known = inspect.signature(getattr(system, "_put_file", system.put_file)).parameters
    limits = {"chunksize": _PART, "max_concurrency": _PARTS_AT_ONCE}
    options = {name: value for name, value in limits.items() if name in known}
    size = Path(source).stat().st_size
    return _unless_taken(system, "put_file", full, shown, size, source, full, **options)


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
        "not to",
        hint="S3, Google Cloud Storage and MinIO support conditional writes; update the store or "
        "its library",
    )
