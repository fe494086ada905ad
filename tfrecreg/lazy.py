"""Names of a package that are imported when they are first used.

A package that exports them has them in its ``__all__``, imports them for type checkers, and answers
``__getattr__`` (PEP 562). So importing one module of it does not import all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(package: str, exports: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Args:
        package: its ``__name__``.
        exports: names by module; a module may be relative to the package.

    Returns:
        A function from a name to its object, which raises AttributeError for any other name.
    """
    homes = {name: module for module, names in exports.items() for name in names}

    def load(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name], package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
