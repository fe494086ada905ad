"""The schema that a source's package carries as data."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from tfrecreg.core.values.errors import PluginError
from tfrecreg.core.values.text import safe


def bundled_schema(package: str, name: str) -> str:
    """Text of the schema ``<name>.pbtxt`` that the import package `package` ships.

    An installed package has it beside its modules. In a checkout of this project, where the
    schemas stand in one folder for all, it is ``<package>/../../schemas/<name>.pbtxt``.

    Raises:
        PluginError: there is no such package or no such file in it.
    """
    file = f"{name}.pbtxt"
    try:
        root = resources.files(package)
    except (ImportError, TypeError) as error:
        raise PluginError(
            f"the schema `{safe(file)}` is to come from `{safe(package)}`, "
            f"which is not a package that can be imported",
            hint="install the plugin again: its package data are incomplete",
        ) from error
    places = [root.joinpath(file)]
    if isinstance(root, Path):
        places.append(root.parent.parent / "schemas" / file)
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise PluginError(
        f"the package `{safe(package)}` has no schema `{safe(file)}`: looked for "
        + " and ".join(f"`{safe(str(place))}`" for place in places),
        hint="reinstall the distribution that ships the package",
    )
