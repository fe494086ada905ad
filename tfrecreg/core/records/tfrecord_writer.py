"""TFRecord files written by hand: records one after the other, from any program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.values import to_example
from tfrecreg.core.example.wire import NotAnExampleError
from tfrecreg.core.records.digests import record_digest
from tfrecreg.core.records.writer import ShardWriter, WrittenShard
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.remote.urls import expect_no_url
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe, type_text


class TFRecordWriter:
    """Writes one TFRecord file, which TensorFlow and every other tool reads.

    The file appears when the ``with`` block ends, complete and synced to disk. If the block ends
    with an error, nothing appears. Equal records give equal bytes.

    Args:
        path: of the file. A file that exists is replaced.
        compression: ``none`` or ``gzip``; None for gzip if the name ends in ``.gz``.
        index: whether to write ``index/NAME.index`` beside the file. It holds the keys of the
            records, and readers find records by their number without reading the file first.

    Attributes:
        records: number of records so far.

    Example:
        >>> with tr.TFRecordWriter("points.tfrecord") as file:
        ...     file.write({"x": [0.0, 1.0], "label": 0})
        ...     file.write({"x": [1.0, 0.0], "label": 1})
        >>> file.records
        2
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        compression: Literal["none", "gzip"] | None = None,
        index: bool = False,
    ) -> None:
        expect_no_url(os.fsdecode(path), "a file")
        target = Path(os.fsdecode(path))
        if compression is None:
            compression = "gzip" if target.suffix == ".gz" else "none"
        if compression not in ("none", "gzip"):
            raise UsageError(
                f"no compression `{safe(str(compression))}`", hint="available: `none`, `gzip`"
            )
        if target.is_dir() or not target.name:
            raise UsageError(f"`{safe(str(target))}` is a folder", hint="name a file")
        self.records = 0
        self._path = str(target)
        self._shard = ShardWriter(
            LocalStorage(target.parent),
            target.name,
            compression=compression,
            index_path=f"index/{target.name}.index" if index else None,
        )
        self._keys: set[str] | None = set() if index else None
        self._is_closed = False

    def write(self, record: bytes | Mapping[str, object], *, key: str | None = None) -> None:
        """Append one record.

        Args:
            record: its payload, or a dictionary that :func:`tfrecreg.to_example` makes an example
                of. An example is written in canonical form.
            key: of the record in the index; None for its number.

        Raises:
            UsageError: the record is neither bytes nor a dictionary that an example stores without
                loss, or is larger than a record may be; its key is taken or is not a string; or
                the writer is closed.
            StorageError: the file cannot be written.
        """
        if self._is_closed:
            raise UsageError(
                f"the writer of `{safe(self._path)}` is closed",
                hint="write inside the `with` block, before `close()`",
            )
        key = str(self.records) if key is None else key
        if not isinstance(key, str):
            raise UsageError(f"a key is a string, found {type_text(key)}", hint="`key=str(number)`")
        if isinstance(record, Mapping):
            try:
                payload = encode(to_example(record))
            except UsageError as error:
                error.message = f"record `{safe(key)}`: {error.message}"
                raise
            same = payload
        elif isinstance(record, (bytes, bytearray, memoryview)):
            payload = bytes(record)
            same = _canonical(payload)
        else:
            raise UsageError(
                f"record `{safe(key)}` is {type_text(record)}, expected bytes or a dictionary",
                hint="a protobuf message gives its bytes by `message.SerializeToString()`",
            )
        if self._keys is not None:
            if key in self._keys:
                raise UsageError(
                    f"the key `{safe(key)}` is taken by an earlier record",
                    hint="give every record a key of its own, or none of them",
                )
            self._keys.add(key)
        self._shard.write(payload, digest=record_digest(same), key=key)
        self.records += 1

    def close(self) -> WrittenShard:
        """Finish the file; it is durable when this returns.

        Raises:
            StorageError: the file cannot be written.

        Example:
            >>> file = tr.TFRecordWriter("points.tfrecord")
            >>> file.write({"x": [0.0, 1.0]})
            >>> file.close().records
            1
        """
        self._is_closed = True
        return self._shard.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._is_closed = True
        self._shard.__exit__(kind, *rest)


def _canonical(payload: bytes) -> bytes:
    """The canonical form of an example; any other payload as it is."""
    try:
        return canonical(payload)
    except NotAnExampleError:
        return payload
