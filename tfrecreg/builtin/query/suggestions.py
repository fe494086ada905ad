"""Questions to try, that fit the columns of a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tfrecreg.builtin.query.ask import QueryTable

_COUNT = 3


def suggested(tables: Sequence[QueryTable]) -> list[str]:
    """Three questions about the first target."""
    columns = {each.name: {name for name, _ in each.columns} for each in tables}
    records = next((each.name for each in tables if each.name in ("a", "records")), "records")
    objects = "a_objects" if records == "a" else "objects"
    boxes = "boxes" in columns.get(records, ())
    return list(islice(_every(records, objects, columns.get(records, set()), boxes), _COUNT))


def _every(records: str, objects: str, columns: set[str], boxes: bool) -> Iterator[str]:
    if "label" in columns:
        yield f"SELECT split, label, count(*) FROM {records} GROUP BY ALL ORDER BY ALL"
    if boxes:
        yield f"SELECT label, count(*) FROM {objects} GROUP BY label ORDER BY 2 DESC"
        yield f"SELECT key, boxes, smallest_box FROM {records} WHERE boxes > 10 ORDER BY boxes DESC"
    if "width" in columns:
        yield f"SELECT width, height, count(*) FROM {records} GROUP BY ALL ORDER BY 3 DESC LIMIT 10"
    yield f"SELECT shard, record, key, bytes FROM {records} ORDER BY bytes DESC LIMIT 10"
    yield (
        f"SELECT digest, count(*), list(DISTINCT split) FROM {records} GROUP BY digest "
        "HAVING count(*) > 1"
    )
    yield f"SELECT split, payload, count(*), sum(bytes) FROM {records} GROUP BY ALL ORDER BY ALL"
