"""A shard in another format: nothing is lost, and what is lost is noticed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests_support import flip

from tfrecreg.builtin.export.parquet import ParquetFormat
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.plugins.convert import RecordFormat, ShardConversion
from tfrecreg.core.plugins.exporters import ShardRecord, ShardToExport
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.values.errors import FailureError, ManifestError, RefusedError, UsageError

from .conftest import FORMATS, NASTY, MakeTask, renamed


def digests(payloads: list[bytes]) -> bytes:
    return b"".join(record_digest(canonical(each)) for each in payloads)


def test_whatever_an_example_holds_comes_back(
    record_format: RecordFormat, nasty: ShardToExport
) -> None:
    done = pickle.loads(pickle.dumps(ShardConversion(record_format)))(nasty)
    assert done.how == "converted"
    assert done.digests == digests([encode(each) for each in NASTY])
    again = [canonical(each) for each in record_format.read(nasty)]
    assert again == [encode(each) for each in NASTY]
    assert pickle.loads(pickle.dumps(done)) == done


def test_a_shard_without_records_has_a_file(
    record_format: RecordFormat, make_task: MakeTask, tmp_path: Path
) -> None:
    done = ShardConversion(record_format)(make_task([]))
    assert done.digests == b""
    assert (tmp_path / "stage/out").is_file()
    assert list(record_format.read(make_task([]))) == []


def test_equal_records_have_equal_bytes(
    record_format: RecordFormat, nasty: ShardToExport, tmp_path: Path
) -> None:
    ShardConversion(record_format)(nasty)
    first = (tmp_path / "stage/out").read_bytes()
    (tmp_path / "stage/out").unlink()
    ShardConversion(record_format)(nasty)
    assert (tmp_path / "stage/out").read_bytes() == first


_NAMES = st.sampled_from(["text", "name", "raw", "score", "boxes", "sizes", "image/encoded", "x"])
_FEATURES = st.one_of(
    st.lists(st.one_of(st.binary(max_size=5), st.text(max_size=3)), max_size=3).map(bytes_feature),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(int64_feature),
    st.lists(st.floats(width=32), max_size=3).map(float_feature),
    st.just(unset_feature()),
)


@pytest.mark.parametrize("name", ["jsonl", "parquet", "webdataset"])
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(examples=st.lists(st.dictionaries(_NAMES, _FEATURES, max_size=6), max_size=4))
def test_any_examples_come_back(make_task: MakeTask, tmp_path: Path, name: str, examples) -> None:
    payloads = [encode(each) for each in examples]
    assert ShardConversion(FORMATS[name]())(make_task(payloads)).digests == digests(payloads)


def test_what_is_not_canonical_comes_back_with_the_same_content(
    record_format: RecordFormat, make_task: MakeTask
) -> None:
    one, two = (encode({name: int64_feature(1)}) for name in ("b", "a"))
    payload = one + two  # protobuf merges the two maps
    assert canonical(payload) != payload
    assert ShardConversion(record_format)(make_task([payload])).digests == digests([payload])


@pytest.mark.parametrize(
    ("name", "payload"),
    [("jsonl", b"no Example"), ("parquet", b"\x1a\x01x"), ("webdataset", b"no Example")],
)
def test_a_record_that_is_no_example_is_named(
    make_task: MakeTask, name: str, payload: bytes, tmp_path: Path
) -> None:
    task = make_task([encode(NASTY[0]), payload])
    with pytest.raises(UsageError) as caught:
        ShardConversion(FORMATS[name]())(task)
    assert caught.value.message == (
        "record 1 of `s/shard` of `things@1.0.0` is not a tf.train.Example, or has fields that an "
        "Example does not have"
    )
    assert not (tmp_path / "stage/out").exists()


def test_array_records_hold_any_payload(make_task: MakeTask) -> None:
    payloads = [b"no Example", b"\x1a\x01x", b"", bytes(70_000)]
    made = FORMATS["arrayrecord"]()
    task = make_task(payloads)
    assert ShardConversion(made)(task).digests == digests(payloads)
    assert list(made.read(task)) == payloads  # canonical as they are


def test_a_damaged_shard_is_named(
    record_format: RecordFormat, nasty: ShardToExport, tmp_path
) -> None:
    flip(tmp_path / "source/s/shard", 400)
    with pytest.raises(RefusedError, match=r"^`s/shard` of `things@1\.0\.0` cannot be exported"):
        ShardConversion(record_format)(nasty)


@pytest.mark.parametrize("name", ["jsonl", "parquet", "webdataset"])
def test_an_index_of_other_records_is_refused(make_task: MakeTask, name: str) -> None:
    task = make_task([encode(each) for each in NASTY], [str(each) for each in range(len(NASTY))])
    with pytest.raises(ManifestError, match=r"`s/index` has 11 records, but its shard has 12"):
        ShardConversion(FORMATS[name]())(renamed(task, records=12))


@dataclass(frozen=True, slots=True)
class Faulty(RecordFormat):
    """A format whose disk loses, changes or repeats a record."""

    inner: RecordFormat
    fault: str

    def write(self, task: ShardToExport, records: Iterator[ShardRecord]) -> int:
        return self.inner.write(task, records)

    def read(self, task: ShardToExport) -> Iterator[bytes]:
        payloads = list(self.inner.read(task))
        if self.fault == "loses":
            del payloads[-1]
        elif self.fault == "changes":
            payloads[3] = encode({"x": int64_feature(1)})
        elif self.fault == "breaks":
            raise ValueError("no archive")
        else:
            payloads.append(payloads[0])
        return iter(payloads)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("loses", "record 10 is missing"),
        ("changes", "record 3 has different content"),
        ("repeats", "it has more than 11 records"),
    ],
)
def test_a_file_that_reads_otherwise_is_noticed(
    nasty: ShardToExport, fault: str, message: str
) -> None:
    with pytest.raises(FailureError) as caught:
        ShardConversion(Faulty(FORMATS["webdataset"](), fault))(nasty)
    assert caught.value.message == (
        f"`out` differs from the records of the shard `s/shard` in `things@1.0.0`: {message}"
    )
    assert caught.value.exit_code == 3


def test_a_file_that_cannot_be_read_again_is_noticed(nasty: ShardToExport) -> None:
    message = r"^`out` was written, but cannot be read back: no archive"
    with pytest.raises(FailureError, match=message):
        ShardConversion(Faulty(FORMATS["webdataset"](), "breaks"))(nasty)


def test_damage_to_the_written_file_is_noticed(
    record_format: RecordFormat, make_task: MakeTask, tmp_path: Path
) -> None:
    """Bytes changed here and there, and the file cut: never another exception."""
    payloads = [encode(each) for each in NASTY]
    task = make_task(payloads)
    ShardConversion(record_format)(task)
    path = tmp_path / "stage/out"
    sound = path.read_bytes()
    step = len(sound) // 40
    broken = [sound[:at] for at in range(0, len(sound), step)]
    if not isinstance(record_format, ParquetFormat):  # whose pages have no checksums
        broken += [
            sound[:at] + bytes((sound[at] ^ 0x55,)) + sound[at + 1 :]
            for at in range(0, len(sound), step)
        ]
    messages = []
    for data in broken:
        path.write_bytes(data)
        try:
            again = [canonical(each) for each in record_format.read(task)]
        except (FailureError, ValueError, LookupError, OSError, RuntimeError):
            messages.append("cannot be read again")
        else:
            messages += ["reads otherwise"] * (again != payloads)
    assert len(messages) > 10
