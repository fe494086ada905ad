"""Collects the pages of the documentation site: `python docs/site_source.py FOLDER`.

The pages are written for the repository, where links may lead to any file. In the site a link to
a file outside `docs/` leads to the repository's address instead, or to the page that the file
becomes: the README is the landing page. The index of the decisions, and the reference of the
library, the commands and the codes are made here. `mkdocs.yml` reads the result, so no generator
needs a plugin for links.
"""

from __future__ import annotations

import argparse
import ast
import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "tutorials.md",
    "tfrecreg/core/values/codes": "codes.md",
}
"""What is outside `docs/` and a page of the site, by path: the name of the page."""

DECISIONS = "adr/index.md"
LIBRARY = "library.md"
COMMANDS = "cli.md"
CODES = "codes.md"

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")


class BrokenLinkError(Exception):
    """A page has a link to a file that does not exist."""


def collect(root: Path, folder: Path) -> None:
    """Write the pages of the site.

    Args:
        root: the repository.
        folder: where to write; its content is replaced.

    Raises:
        BrokenLinkError: a link of a page leads nowhere.
    """
    if folder.exists():
        shutil.rmtree(folder)
    pages = {path.relative_to(root).as_posix(): path for path in (root / "docs").rglob("*.md")}
    places = {path: path.removeprefix("docs/") for path in pages} | OUTSIDE
    places["docs/adr"] = DECISIONS
    places |= {
        f"tfrecreg/core/values/codes/{path.name}": CODES
        for path in root.glob("tfrecreg/core/values/codes/*.md")
    }
    for path in [*pages, *(path for path in OUTSIDE if path.endswith(".md"))]:
        text = relink((root / path).read_text("utf-8"), path, places, root)
        _write(folder / places[path], text)
    shutil.copytree(root / "docs/images", folder / "images")
    _write(folder / DECISIONS, decisions(root))
    _write(folder / LIBRARY, library(root))
    from pages import cli_page, codes_page  # of the program, which a broken link needs not

    _write(folder / COMMANDS, cli_page())
    _write(folder / CODES, codes_page())


def relink(text: str, path: str, places: dict[str, str], root: Path) -> str:
    """The text of a page with the links that it has in the site.

    Args:
        text: the page, in Markdown. Blocks of code stay as they are.
        path: its path in the repository.
        places: the page of the site for each file that becomes one.
        root: the repository.

    Raises:
        BrokenLinkError: a link leads to a file that does not exist.
    """

    def move(link: re.Match[str]) -> str:
        target, anchor = link["target"], link["anchor"] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return link[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if not (root / file).exists():
            raise BrokenLinkError(f"{path}: {target} does not exist")
        if file in places or file.startswith("docs/images/"):
            place = places.get(file, file.removeprefix("docs/"))
            start = posixpath.dirname(places[path]) or "."
            return f"]({posixpath.relpath(place, start)}{anchor})"
        kind = "tree" if (root / file).is_dir() else "blob"
        return f"]({repository(root)}/{kind}/main/{file}{anchor})"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(move, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(move, text[end:])])


def repository(root: Path) -> str:
    """The address of the repository, from `pyproject.toml`."""
    found = re.search(r'^Repository = "(.+)"$', (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert found, "pyproject.toml names no repository"
    return found[1]


def decisions(root: Path) -> str:
    """A page that lists the decision records."""
    lines = ["# Decisions", "", "Each has its context, the decision and the consequences.", ""]
    for path in sorted((root / "docs/adr").glob("*.md")):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        number, _, words = title.partition(". ")
        lines.append(f"- {number}: [{words}]({path.name})")
    return "\n".join(lines) + "\n"


def library(root: Path) -> str:
    """A page with the docstring of each public name, which mkdocstrings reads from the code."""
    parts = [
        "# Reference of the library",
        "The names in `tfrecreg.__all__`. [The Python library](python.md) shows how to use them, "
        "[training](training.md)\nhow to read data for training.",
        "`**context` stands for `engine`, what runs the work (None for this process); `progress`, "
        "False for no bar;\nand, of functions, `registry`, an open registry or a path in one.",
    ]
    parts += [f"::: {place}" for place in public_places(root, "tfrecreg/__init__.py")]
    parts += ["## For plugins", "The names in `tfrecreg.api`: [plugins](plugins.md)."]
    parts += [f"::: {place}" for place in public_places(root, "tfrecreg/api.py")]
    return "\n\n".join(parts) + "\n"


def public_places(root: Path, module: str) -> list[str]:
    """Where each name that a module imports by `as` can be read, without importing the module.

    Names with `__` are left out. Where a package has a module and a function of one name, such as
    `tfrecreg.core.example.decode`, the module would be found: the function is named by its module.
    A function that is made of a verb is read where the verb is declared.
    """
    tree = ast.parse((root / module).read_text("utf-8"))
    verbs = ast.parse((root / "tfrecreg/library/files.py").read_text("utf-8"))
    made = {
        ast.unparse(node.targets[0]): ast.unparse(node.value.args[0])
        for node in ast.walk(verbs)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).startswith("of_")
    }
    sources = {
        alias.asname: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }
    start = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    places = []
    for name, source in sorted(sources.items()):
        if (root / source.replace(".", "/") / f"{name}.py").exists():
            places.append(f"{source}.{name}.{name}")
        elif source == "tfrecreg.library.files":
            places.append(f"{source}.{made[name]}")
        elif not name.startswith("__"):
            places.append(f"{start}.{name}")
    return places


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write the pages; it is replaced")
    try:
        collect(ROOT, parser.parse_args().folder)
    except BrokenLinkError as error:
        sys.exit(f"error: {error}")
