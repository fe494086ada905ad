"""Distributions with one module and one entry point."""

from __future__ import annotations

import os
from pathlib import Path


def install(site: Path, name: str, plugin: str, version: str = "1.0") -> None:
    """Put a distribution into a folder: its one module has the hooks.

    Args:
        site: the folder, which goes on `sys.path`.
        name: of the distribution; its module is ``name_plugin``.
        plugin: the text of the module.
        version: of the distribution.
    """
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (site / f"{name}_plugin.py").write_text(plugin)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[tfrecreg]\n{name} = {name}_plugin\n")


def with_site(site: Path) -> dict[str, str]:
    """The environment variable that makes the folder's distributions importable."""
    found = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(site), found]))}
