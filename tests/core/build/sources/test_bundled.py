from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tfrecreg.core.build.sources.interface import bundled_schema
from tfrecreg.core.values.errors import PluginError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a package `fake_bundle` in its folder `plugins`."""
    package = tmp_path / "plugins" / "fake_bundle"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (tmp_path / "schemas").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "plugins"))
    monkeypatch.delitem(sys.modules, "fake_bundle", raising=False)
    return tmp_path


def test_a_schema_beside_the_package_is_read(root: Path) -> None:
    (root / "plugins" / "fake_bundle" / "a.pbtxt").write_text("# é installed\n", "utf-8")
    (root / "schemas" / "a.pbtxt").write_text("# in the checkout\n")
    assert bundled_schema("fake_bundle", "a") == "# é installed\n"


def test_a_checkout_has_it_in_its_schemas_folder(root: Path) -> None:
    (root / "schemas" / "a.pbtxt").write_text("# in the checkout\n")
    assert bundled_schema("fake_bundle", "a") == "# in the checkout\n"


def test_a_schema_that_is_nowhere_names_both_places(root: Path) -> None:
    with pytest.raises(PluginError) as caught:
        bundled_schema("fake_bundle", "a")
    assert "the package `fake_bundle` has no schema `a.pbtxt`" in caught.value.message
    assert str(root / "plugins" / "fake_bundle" / "a.pbtxt") in caught.value.message
    assert str(root / "schemas" / "a.pbtxt") in caught.value.message


@pytest.mark.parametrize("package", ["fake_no_such_package", "fake_bundle.no_such_part"])
def test_a_package_that_is_not_there_is_named(root: Path, package: str) -> None:
    with pytest.raises(PluginError, match=f"`{package}`, which is not a package"):
        bundled_schema(package, "a")
