"""The number of a release: the smallest legal one, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from registry_support import put_build, put_release

from tfrecreg.builtin.releases.release import choose_number
from tfrecreg.core.registry.manifest import Change, Manifest
from tfrecreg.core.values.errors import RefusedError
from tfrecreg.core.values.reference import Version


def change(level: str, *reasons: str) -> Change:
    return Change(level=level, reasons=list(reasons))  # type: ignore[arg-type]


@pytest.fixture
def parent(tmp_path: Path) -> Manifest:
    return put_release(tmp_path, put_build(tmp_path, "m"), "1.2.3")


def choose(parent: Manifest | None, level: str, **options) -> str:
    version = options.pop("version", None)
    settings = {
        "name": "m",
        "version": Version(*version) if version else None,
        "bump": "auto",
        "parent": parent,
        "change": change(level, "this", "and that"),
        "versions": [Version(1, 2, 3)],
        **options,
    }
    return str(choose_number(**settings))


@pytest.mark.parametrize(
    ("level", "asked", "number"),
    [
        ("patch", {"bump": "auto"}, "1.2.4"),
        ("minor", {"bump": "auto"}, "1.3.0"),
        ("major", {"bump": "auto"}, "2.0.0"),
        ("patch", {"bump": "minor"}, "1.3.0"),
        ("patch", {"bump": "major"}, "2.0.0"),
        ("minor", {"bump": "major"}, "2.0.0"),
        ("patch", {"version": (1, 2, 9)}, "1.2.9"),
        ("minor", {"version": (1, 4, 7)}, "1.4.7"),
        ("major", {"version": (3, 1, 4)}, "3.1.4"),
        ("patch", {"version": (7, 0, 0)}, "7.0.0"),
    ],
)
def test_it_counts_on_from_the_parent(parent: Manifest, level, asked, number) -> None:
    assert choose(parent, level, **asked) == number


def test_a_number_below_another_one_may_add_nothing(parent: Manifest) -> None:
    """1.4.0 was made without it, and would seem to hold it."""
    versions = [Version(1, 2, 3), Version(1, 4, 0), Version(2, 0, 0)]
    with pytest.raises(RefusedError) as caught:
        choose(parent, "minor", version=(1, 3, 0), versions=versions)
    assert caught.value.message == (
        "`1.3.0` would come before 1.4.0, but 1.4.0 lacks the changes since 1.2.3"
    )
    assert caught.value.hint == "`tfrecreg release m --bump auto` takes the next number"
    assert [each.code for each in caught.value.findings] == ["REG005"]
    assert caught.value.findings[0].message == caught.value.message
    assert choose(parent, "patch", version=(1, 2, 4), versions=versions) == "1.2.4"
    assert choose(parent, "minor", version=(1, 5, 0), versions=versions) == "1.5.0"
