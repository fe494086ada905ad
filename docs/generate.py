"""Makes the pictures that come from the program itself.

``python docs/generate.py`` writes `docs/images/*.svg`;
``python docs/generate.py --check`` writes nothing, names what is stale and exits with 1.
``--only NAME`` (repeatable) leaves the others alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drawing import concepts_drawing
from picture import demo_picture, words

DOCS = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Product:
    """One file that is made."""

    path: str
    make: Callable[[], str]
    essence: Callable[[str], str] = str
    """What of its text has to be up to date."""


PRODUCTS = (
    Product("images/concepts.svg", concepts_drawing),
    # The sizes in it depend on the zlib that made the demo's pictures.
    Product("images/demo.svg", demo_picture, words),
)


def main() -> int:
    """Make them, or look whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    names = [product.path for product in PRODUCTS]
    parser.add_argument("--only", action="append", choices=names, help="this one; repeatable")
    arguments = parser.parse_args()
    stale = False
    for product in PRODUCTS:
        if arguments.only and product.path not in arguments.only:
            continue
        path = DOCS / product.path
        text = product.make()
        before = path.read_text("utf-8") if path.exists() else ""
        if product.essence(before) == product.essence(text):
            continue
        stale = True
        if arguments.check:
            sys.stderr.write(f"docs/{product.path} is stale: python docs/generate.py\n")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
            sys.stdout.write(f"wrote docs/{product.path}\n")
    return int(arguments.check and stale)


if __name__ == "__main__":
    sys.exit(main())
