"""The values of one row as features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tfrecreg.api import (
    Example,
    RawDataError,
    bytes_feature,
    float_feature,
    int64_feature,
    read_header,
    safe,
    truncation_text,
)
from tfrecreg_huggingface.columns import FIXED, LIST, Leaf


class UnusableValue(Exception):
    """A value that no feature holds; the code and the reason."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def cell_features(leaf: Leaf, column: Any, at: int, rounds: bool) -> tuple[Example, str]:
    """The features of a leaf, and a remark on an image that is cut short, or nothing."""
    values, lengths = _values(leaf, column.slice(at, 1))
    if values is None:
        return {}, ""
    if leaf.form in ("image", "media", "bytes"):
        return _blobs(leaf, values)
    if leaf.form == "class":
        return _classes(leaf, _integers(leaf, values).tolist()), ""
    if leaf.kind == "FLOAT":
        features: Example = {leaf.name: float_feature(_floats(leaf, values, rounds))}
    elif leaf.kind == "INT":
        features = {leaf.name: int64_feature(_integers(leaf, values))}
    elif pa.types.is_decimal(values.type):
        features = {leaf.name: bytes_feature([str(each) for each in values.to_pylist()])}
    else:
        features = {leaf.name: bytes_feature(_bytes(leaf, values))}
    if leaf.row_lengths:
        features = {**features, f"{leaf.name}/row_lengths": int64_feature(lengths)}
    return features, ""


def _values(leaf: Leaf, cell: Any) -> tuple[Any, list[int]]:
    """All values of the row, and the lengths of inner lists; None if there is no value."""
    lengths: list[int] = []
    inside = False
    for step in (*leaf.steps, ""):
        if isinstance(cell, pa.ExtensionArray):
            cell = cell.storage
        if isinstance(cell, pa.DictionaryArray):
            cell = cell.dictionary_decode()
        if cell.null_count and not inside:
            return None, []
        if cell.null_count and not step.startswith("."):
            raise UnusableValue("SRC081", f"`{safe(leaf.name)}` has a null in a list")
        if step in (LIST, FIXED):
            if inside and step == LIST and leaf.row_lengths:
                lengths = [len(each) for each in cell]
            inside = True
            cell = cell.flatten()
        elif step:
            cell = cell.flatten()[cell.type.get_field_index(step[1:])]
    return cell, lengths


def _bytes(leaf: Leaf, values: Any) -> list[bytes]:
    if pa.types.is_large_string(values.type):
        values = values.cast(pa.large_binary())
    elif pa.types.is_string(values.type) or str(values.type) == "string_view":
        values = values.cast(pa.binary())
    found: list[bytes] = values.to_pylist()
    for each in found if leaf.is_text else ():
        try:
            each.decode()
        except UnicodeDecodeError as error:
            detail = f"`{safe(leaf.name)}` is not UTF-8 at byte {error.start}"
            raise UnusableValue("SRC081", detail) from None
    return found


def _integers(leaf: Leaf, values: Any) -> Any:
    if pa.types.is_temporal(values.type):
        # Days, or units since the epoch, as they are stored.
        values = values.view(pa.int64() if values.type.bit_width == 64 else pa.int32())
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.int64())
    found = values.to_numpy(zero_copy_only=False)
    if found.dtype == np.uint64 and found.size and int(found.max()) >= 2**63:
        detail = f"`{safe(leaf.name)}` is {int(found.max())}, which no int64 holds"
        raise UnusableValue("SRC081", detail)
    return found.astype(np.int64)


def _floats(leaf: Leaf, values: Any, rounds: bool) -> Any:
    found = values.to_numpy(zero_copy_only=False)
    if found.dtype == np.float32:
        return found
    with np.errstate(all="ignore"):
        single = found.astype(np.float32)
    too_large = np.isinf(single) & ~np.isinf(found)
    lost = too_large if rounds or too_large.any() else ~((single == found) | np.isnan(found))
    if lost.any():
        leave = "leave the column out: `--option columns=NAME,NAME`"
        raise RawDataError(
            f"float32 does not hold {found[lost][0]} of the column `{safe(leaf.column)}` exactly, "
            "and an example has no other floats",
            hint=leave if too_large.any() else f"round them: `--option float64=round`; or {leave}",
        )
    return single


def _blobs(leaf: Leaf, values: Any) -> tuple[Example, str]:
    """Images, sounds, or bytes that `tfrecreg export` wrote: their bytes and their paths."""
    paths: list[str] = []
    if pa.types.is_struct(values.type):
        parts = {values.type.field(at).name: each for at, each in enumerate(values.flatten())}
        paths = [each or "" for each in parts["path"].to_pylist()]
        values = parts["bytes"]
        if values.null_count:
            path = next(filter(None, paths), "")
            where = f"a path, `{safe(path)}`, and " if path else ""
            raise UnusableValue("SRC082", f"`{safe(leaf.column)}` has {where}no bytes")
    data = _bytes(leaf, values)
    if leaf.form == "bytes":
        return {leaf.name: bytes_feature(data)}, ""
    found: Example = {f"{leaf.name}/encoded": bytes_feature(data)}
    remark = ""
    if leaf.form == "image":
        headers = [read_header(each) for each in data]
        found = {
            **found,
            f"{leaf.name}/format": bytes_feature([each.format for each in headers]),
            f"{leaf.name}/height": int64_feature([each.height for each in headers]),
            f"{leaf.name}/width": int64_feature([each.width for each in headers]),
        }
        remark = next(filter(None, map(truncation_text, data, headers)), "")
    if any(paths):
        found = {**found, f"{leaf.name}/filename": bytes_feature(paths)}
    return found, remark


def _classes(leaf: Leaf, labels: list[int]) -> Example:
    unknown = [label for label in labels if leaf.names and not -1 <= label < len(leaf.names)]
    if unknown:
        detail = f"`{safe(leaf.column)}` is {unknown[0]}, and there are {len(leaf.names)} classes"
        raise UnusableValue("SRC081", detail)
    names = [leaf.names[label] if leaf.names and label >= 0 else "" for label in labels]
    found: Example = {f"{leaf.name}/label": int64_feature(labels)}
    if any(names) or leaf.is_list:
        found = {**found, f"{leaf.name}/text": bytes_feature(names)}
    return found
