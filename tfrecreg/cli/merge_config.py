"""``python -m tfrecreg.cli.merge_config BASE OURS THEIRS``: what git runs for `tfrecreg.toml`.

`tfrecreg init` tells git so. Where it cannot say what the file should be, it leaves it alone and
exits with 1, and git goes on to merge the lines, with its marks of a conflict.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tfrecreg.registry.config_merge import merged_config

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Write what both sides say into the second of three files; the exit code."""
    base, ours, theirs = (Path(each).read_bytes() for each in arguments)
    try:
        text = merged_config(*(each.decode("utf-8") for each in (base, ours, theirs)))
    except UnicodeDecodeError:
        text = None
    if text is None:
        return 1
    Path(arguments[1]).write_bytes(text.encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
