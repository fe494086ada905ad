"""What the classes of tests have in common.

The base class has methods `verify_…` and no test, so that a module that imports it does not run it.
A class that inherits from it gets a test for each of them: `verify_keys` becomes `test_keys`.
"""

from __future__ import annotations

import shutil
import tempfile
import unittest
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeVar

from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.workers.local import LocalEngine

T = TypeVar("T")

_PREFIX = "verify_"


class Workers(LocalEngine):
    """Worker processes for any work, however small."""

    def for_work(self, costs: Iterable[float], worth: float = 0.0) -> LocalEngine:  # noqa: ARG002 - any
        return self


class KitTests(unittest.TestCase):
    """Base class of the kit: see :class:`SourceTests` and :class:`ValidatorTests`."""

    _shared: ClassVar[dict[str, Any]]
    """What the tests of one class share: made by the first that needs it."""
    _held: ClassVar[ExitStack]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if cls.__module__.startswith("tfrecreg.testing."):
            return
        cls._shared, cls._held = {}, ExitStack()
        for name in dir(cls):
            test = f"test_{name.removeprefix(_PREFIX)}"
            if name.startswith(_PREFIX) and not hasattr(cls, test):
                setattr(cls, test, getattr(cls, name))

    @classmethod
    def tearDownClass(cls) -> None:
        cls._shared.clear()
        cls._held.close()
        super().tearDownClass()

    def scratch(self) -> Path:
        """A new folder, which is removed after the last test of the class."""
        folder = tempfile.mkdtemp(prefix="tfrecreg-kit-")
        self._held.callback(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def entered(self, context: AbstractContextManager[T]) -> T:
        """Enter a context until the end of the test."""
        found = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return found

    def refuse(self, error: TfrecregError) -> NoReturn:
        """Fail with the message of an error, its hint and its findings."""
        found = [f"{each.code} {each.message}" for each in getattr(error, "findings", ())]
        hint = f"hint: {error.hint}" if error.hint else ""
        raise self.failureException("\n".join(filter(None, [error.message, hint, *found]))) from (
            error
        )

    def expect_told(self, error: TfrecregError, when: str) -> None:
        """Expect that an error has a message that can be printed as it is."""
        for text in (error.message, error.hint):
            if not text.isprintable():
                self.fail(f"{when}: {text!r} has characters of the raw data: use `safe`")
        if not error.message.strip():
            self.fail(f"{when}: the {type(error).__name__} has no message")
