"""Cases of the codes of sources, where tests tell them apart by the detail of an entry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

_CASES = {
    "SRC110": {
        "costly": "at most [0-9]+ are decoded|^it took too long|^decoding it takes more|"
        "^DecompressionBomb",
        "empty": "^the file has no bytes",
        "format": "^expected a JPEG, PNG, GIF, WebP or BMP, found ",
        "header": "^a [A-Z]+[a-zP]* (whose|with a (segment|frame|canvas|width)|without a frame|"
        "of ([0-9]+|colour|the unknown)|that (does not begin|ends after))",
        "media": "^(not a sound or a video|a damaged|the sound or video has no bytes|"
        "this [A-Z0-9]+ has no sound|expected a video)",
        "pixels": r"^(it decodes to|Pillow cannot read|(?!Decompression)\w+(\.\w+)*: )",
        "size": "^the header states a size of ",
    },
    "SRC111": {"link": "^a symbolic link"},
    "SRC112": {"missing": "^there is no (file|image of) |^the column .* has no usable name: "},
    "SRC113": {
        "box": "(, which (is not finite|has no area|sticks out)|, outside of the|has no box|"
        ", not 4).*; --option bad_boxes",
        "row": "^expected [0-9]+ cells, found",
    },
    "SRC115": {
        "category": "refers? to (a category|an image) that is not listed",
        "keypoints": "^the keypoints of ",
        "mask": "^the mask of |was left out: |^it is segmented, and has no PNG",
        "object": "(, expected (numbers|a whole number|four numbers)|a row of `task=.*`|has no name"
        "); it was dropped",
        "value": "the area of its box is used|the box around its mask is used|has no text, and|"
        "has no value in the cells",
    },
    "SRC116": {
        "clipped": "sticks out and was clipped",
        "no labels": "^(no label file|no XML), so no objects",
        "path": "outside the raw folder|out of the raw folder, so ",
    },
    "SRC117": {
        "image": "^no annotation file that was read names|^no row names these|^in no split: |"
        "^no XML and no list",
    },
}


def case(code: str, detail: str) -> str:
    """``SRC110 empty``: the code, and the case that the detail tells; else the code alone."""
    what = re.sub("^`[^`]*`, (line|row) [0-9]+: (the column `[^`]*`: )?", "", detail)
    if code == "SRC110":
        what = re.sub("^`[^`]*`: ", "", what)  # a file of the item
    for name, pattern in _CASES.get(code, {}).items():
        if re.search(pattern, what):
            return f"{code} {name}"
    return code


def with_case(entry: Any) -> Any:
    """A skipped item or a remark, with its case in its code."""
    return entry._replace(code=case(entry.code, entry.detail))


def count_cases(entries: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How often each case is in the lines of a ledger."""
    found: Counter[str] = Counter()
    for each in entries:
        found[case(each["code"], each["detail"])] += each.get("times", 1)
    return dict(found)
