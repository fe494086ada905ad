"""Helpers for tests and examples: test classes for plugins, shards to check, raw data for builds.

The names keep their meaning until the next major version, as in :mod:`tfrecreg.api`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfrecreg.testing.kit import build_examples as build_examples
    from tfrecreg.testing.kit import check_validator as check_validator
    from tfrecreg.testing.kit import examples as examples
    from tfrecreg.testing.kit import write_digits as write_digits
    from tfrecreg.testing.kit import write_shard as write_shard
    from tfrecreg.testing.source_tests import SourceTests as SourceTests
    from tfrecreg.testing.validator_tests import ValidatorTests as ValidatorTests

_LATER = {
    "tfrecreg.testing.kit": "build_examples check_validator examples write_digits write_shard",
    "tfrecreg.testing.source_tests": "SourceTests",
    "tfrecreg.testing.validator_tests": "ValidatorTests",
}
_HOMES = {name: module for module, names in _LATER.items() for name in names.split()}

__all__ = sorted(_HOMES)

if not TYPE_CHECKING:  # mypy takes the names from the imports above

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
