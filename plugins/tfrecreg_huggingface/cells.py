"""The values of one row as features."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrecreg.api import (
    Example,
    Feature,
    RawDataError,
    bytes_feature,
    float_feature,
    int64_feature,
    read_header,
    safe,
    truncation_text,
)
from tfrecreg_huggingface.arrow import arrow
from tfrecreg_huggingface.columns import FIXED, LIST, Leaf

_MAX_BYTES = 1 << 30
"""Most bytes of a value: a record may have twice as many."""


class UnusableValue(Exception):
    """A value that no feature holds; the code and the reason."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Cells:
    """Turns values of Arrow into features."""

    def __init__(self, round_floats: bool) -> None:
        self._pa = arrow()
        self._round = round_floats

    def features(self, leaf: Leaf, cell: Any) -> tuple[Example, str]:
        """The features of a leaf, and a remark on an image that is cut short, or nothing."""
        values, lengths = self._values(leaf, cell)
        if values is None:
            return {}, ""
        if leaf.form == "image":
            return self._images(leaf, values)
        if leaf.form == "bytes":
            return {leaf.name: bytes_feature(self._blobs(leaf, values)[0])}, ""
        if leaf.form == "media":
            return self._media(leaf, values), ""
        if leaf.form == "class":
            return self._classes(leaf, values), ""
        features: Example = {leaf.name: self._feature(leaf, values)}
        if leaf.row_lengths:
            features = {**features, f"{leaf.name}/row_lengths": int64_feature(lengths)}
        return features, ""

    def _values(self, leaf: Leaf, cell: Any) -> tuple[Any, list[int]]:
        """All values of the row, and the lengths of inner lists; None if there is no value."""
        lengths: list[int] = []
        inside = False
        for step in leaf.steps:
            cell = self._plain(cell)
            if cell.null_count and not inside:
                return None, []
            if cell.null_count and step in (LIST, FIXED):
                raise self._null(leaf)
            if step in (LIST, FIXED):
                if inside and step == LIST and leaf.row_lengths:
                    lengths = [len(each) for each in cell]
                inside = True
                cell = cell.flatten()
            else:
                names = [cell.type.field(number).name for number in range(cell.type.num_fields)]
                cell = cell.flatten()[names.index(step[1:])]
        cell = self._plain(cell)
        if cell.null_count:
            if not inside:
                return None, []
            raise self._null(leaf)
        return cell, lengths

    def _plain(self, array: Any) -> Any:
        if isinstance(array, self._pa.ExtensionArray):
            array = array.storage
        if isinstance(array, self._pa.DictionaryArray):
            array = array.dictionary_decode()
        return array

    def _null(self, leaf: Leaf) -> UnusableValue:
        return UnusableValue("SRC081", f"`{safe(leaf.name)}` has a null in a list")

    def _feature(self, leaf: Leaf, values: Any) -> Feature:
        types, kind = self._pa.types, values.type
        if leaf.kind == "FLOAT":
            return float_feature(self._floats(leaf, values))
        if leaf.kind == "INT":
            return int64_feature(self._integers(leaf, values))
        if types.is_decimal(kind):
            return bytes_feature([str(each) for each in values.to_pylist()])
        found = self._bytes(values)
        if leaf.is_text:
            for each in found:
                try:
                    each.decode()
                except UnicodeDecodeError as error:
                    raise UnusableValue(
                        "SRC081", f"`{safe(leaf.name)}` is not UTF-8 at byte {error.start}"
                    ) from None
        return bytes_feature(found if len(found) != 1 else found[0])

    def _bytes(self, values: Any) -> list[bytes]:
        types, kind = self._pa.types, values.type
        if types.is_large_string(kind):
            values = values.cast(self._pa.large_binary())
        elif types.is_string(kind) or str(kind) == "string_view":
            values = values.cast(self._pa.binary())
        found: list[bytes] = values.to_pylist()
        if sum(map(len, found)) > _MAX_BYTES:
            raise UnusableValue("SRC081", f"a value of more than {_MAX_BYTES} bytes")
        return found

    def _integers(self, leaf: Leaf, values: Any) -> Any:
        pa = self._pa
        kind = values.type
        if pa.types.is_temporal(kind):
            # Days, or units since the epoch, as they are stored.
            wide = pa.int64() if kind.bit_width == 64 else pa.int32()
            values = values.view(wide)
        elif pa.types.is_boolean(kind):
            values = values.cast(pa.int64())
        found = values.to_numpy(zero_copy_only=False)
        if found.dtype == np.uint64 and found.size and int(found.max()) >= 2**63:
            raise UnusableValue(
                "SRC081", f"`{safe(leaf.name)}` is {int(found.max())}, which no int64 holds"
            )
        return found.astype(np.int64)

    def _floats(self, leaf: Leaf, values: Any) -> Any:
        found = values.to_numpy(zero_copy_only=False)
        if found.dtype == np.float32:
            return found
        with np.errstate(all="ignore"):
            single = found.astype(np.float32)
            lost = ~((single == found) | np.isnan(found))
        too_large = np.isinf(single) & ~np.isinf(found)
        if self._round and not too_large.any():
            return single
        if lost.any():
            bad = found[too_large if too_large.any() else lost][0]
            leave = "leave the column out: `--option columns=NAME,NAME`"
            raise RawDataError(
                f"float32 does not hold {bad} of the column `{safe(leaf.column)}` "
                "exactly, and an example has no other floats",
                hint=leave
                if too_large.any()
                else f"round them: `--option float64=round`; or {leave}",
            )
        return single

    def _blobs(self, leaf: Leaf, values: Any) -> tuple[list[bytes], list[str]]:
        """The bytes of images or sounds, and their paths; empty texts for none."""
        if not self._pa.types.is_struct(values.type):
            return self._bytes(values), [""] * len(values)
        parts = dict(
            zip(
                [values.type.field(each).name for each in range(values.type.num_fields)],
                values.flatten(),
                strict=True,
            )
        )
        paths = [each or "" for each in parts["path"].to_pylist()]
        data = parts["bytes"]
        if data.null_count:
            path = next((each for each in paths if each), "")
            where = f"a path, `{safe(path)}`, and " if path else ""
            raise UnusableValue("SRC082", f"`{safe(leaf.column)}` has {where}no bytes")
        return self._bytes(data), paths

    def _images(self, leaf: Leaf, values: Any) -> tuple[Example, str]:
        data, paths = self._blobs(leaf, values)
        headers = [read_header(each) for each in data]
        found = {
            f"{leaf.name}/encoded": bytes_feature(data),
            f"{leaf.name}/format": bytes_feature([each.format for each in headers]),
            f"{leaf.name}/height": int64_feature([each.height for each in headers]),
            f"{leaf.name}/width": int64_feature([each.width for each in headers]),
        }
        if any(paths):
            found[f"{leaf.name}/filename"] = bytes_feature(paths)
        return found, next(filter(None, map(truncation_text, data, headers)), "")

    def _media(self, leaf: Leaf, values: Any) -> Example:
        data, paths = self._blobs(leaf, values)
        found = {f"{leaf.name}/encoded": bytes_feature(data)}
        if any(paths):
            found[f"{leaf.name}/filename"] = bytes_feature(paths)
        return found

    def _classes(self, leaf: Leaf, values: Any) -> Example:
        labels = self._integers(leaf, values).tolist()
        names = []
        for label in labels:
            if leaf.names and not -1 <= label < len(leaf.names):
                raise UnusableValue(
                    "SRC081",
                    f"`{safe(leaf.column)}` is {label}, and there are {len(leaf.names)} classes",
                )
            names.append(leaf.names[label] if leaf.names and label >= 0 else "")
        found = {leaf.label: int64_feature(labels)}
        if any(names) or leaf.is_list:
            found[leaf.text] = bytes_feature(names)
        return found
