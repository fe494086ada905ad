"""What parts claim is held against bytes and plan: each forgery is refused, and named."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from parts_support import Site, StoredSite, stored_site
from receipts_support import item_keys, receipt_path, reseal, write_shard
from tests_support import flip, tree

from tfrecreg.errors import NewerFormatError, RefusedError, StorageError, UsageError
from tfrecreg.example.decode import decode
from tfrecreg.operations.builds.parts.plan_model import PlanDocument, render_plan, seal_plan
from tfrecreg.records.access import Records

SHARD = ("train", 1)


@pytest.fixture(
    params=["folder", *(pytest.param(each, marks=pytest.mark.slow) for each in ("bucket", "plan"))]
)
def made(made: Site, request: pytest.FixtureRequest) -> Site:
    """All parts of a plan: in a folder, or in a store with the shards in a bucket or beside it."""
    if request.param == "folder":
        return made
    return stored_site(made, request.getfixturevalue("memory"), request.param == "bucket")


def receipt_of(site, split: str, number: int) -> Path:
    return receipt_path(site.plan, site.shard(split, number))


def refusal(site, **more: Any) -> str:
    before = tree(site.folder / "registry", ignore=(".tfrecreg",))
    with pytest.raises(RefusedError) as caught:
        site.collect(**more)
    assert tree(site.folder / "registry", ignore=(".tfrecreg",)) == before
    assert site.shard(*SHARD) in caught.value.message
    assert caught.value.message.startswith("nothing was published: ")
    assert caught.value.hint
    return caught.value.message


def test_other_bytes_under_a_right_name(made) -> None:
    flip(made.plan / "build" / made.shard(*SHARD), 100)
    assert "its bytes are not those of its receipt" in refusal(made)


def test_the_shard_of_another_name(made) -> None:
    build = made.plan / "build"
    shutil.copy(build / made.shard("train", 0), build / made.shard(*SHARD))
    assert "its bytes are not those of its receipt" in refusal(made)


def test_an_index_that_somebody_put_beside_a_shard_is_not_read(made, original_site) -> None:
    name = f"index/{made.shard(*SHARD)}.index"
    index = made.plan / "build" / name
    index.parent.mkdir()
    shutil.copy(original_site / "whole/data/digits" / name, index)
    flip(index, 60)
    if isinstance(made, StoredSite) and made.shards != "/lake/plan/build":
        with pytest.raises(StorageError, match=rf"{index.name}` exists with other bytes"):
            made.collect()
        assert not (made.data / "digits").exists()
        return
    made.collect(parts_only=True)
    assert tree(made.data) == tree(original_site / "whole/data")


def test_a_receipt_that_was_changed(made) -> None:
    path = receipt_of(made, *SHARD)
    path.write_bytes(path.read_bytes().replace(b'"records":10', b'"records":11'))
    assert "it was changed after it was written" in refusal(made)


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 100_000, b'{"format_version":1}', b"\xff"])
def test_a_receipt_that_does_not_parse(made, data: bytes) -> None:
    receipt_of(made, *SHARD).write_bytes(data)
    assert "its receipt cannot be used" in refusal(made)


def test_the_receipt_of_another_shard(made) -> None:
    shutil.copy(receipt_of(made, "train", 0), receipt_of(made, *SHARD))
    assert f"its receipt is that of `{made.shard('train', 0)}`" in refusal(made)


def test_the_receipt_of_another_plan(made) -> None:
    def other(plain: Any) -> None:
        plain["plan"] = "ab" * 32

    reseal(made.plan, made.shard(*SHARD), other)
    assert "its receipt is of the plan `abababababababab…`" in refusal(made)


def test_other_versions(made) -> None:
    def other(plain: Any) -> None:
        plain["versions"]["codecs"]["zlib"] = "0.9"

    reseal(made.plan, made.shard(*SHARD), other)
    assert "names other versions or options than the plan" in refusal(made)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("records", 9, "says 9 items written and 0 skipped, the plan has 10"),
        ("payload_bytes", 1, "its receipt says 10 records of 1 bytes, found 10 of"),
        ("split", "test", "its receipt names another split than `train`"),
        ("bytes", 5, "its bytes are not those of its receipt: expected 5 bytes"),
        ("blake3", "00" * 32, "its bytes are not those of its receipt"),
        ("sha256", "00" * 32, "its receipt has a `sha256` of the shard"),
        ("stream_blake3", "00" * 32, "another digest of its decompressed stream"),
    ],
)
@pytest.mark.sweep
def test_right_bytes_with_a_wrong_receipt(made, field: str, value: Any, message: str) -> None:
    def lie(plain: Any) -> None:
        plain["shard"][field] = value

    reseal(made.plan, made.shard(*SHARD), lie)
    assert message in refusal(made)


def test_other_sizes_of_features(made) -> None:
    def lie(plain: Any) -> None:
        plain["features"]["image/encoded"] -= 1

    reseal(made.plan, made.shard(*SHARD), lie)
    assert "other sizes of features than its records have" in refusal(made)


def test_other_numbers_of_items(made) -> None:
    def lie(plain: Any) -> None:
        plain["items"] = 11

    reseal(made.plan, made.shard(*SHARD), lie)
    assert "its receipt says 11 items, the plan has 10" in refusal(made)


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ("train", "says 10 items written and 1 skipped, the plan has 10"),
        ("x", "another split than"),
    ],
)
def test_a_ledger_with_a_row_too_many(made, split: str, said: str) -> None:
    def lie(plain: Any) -> None:
        plain["skipped"] = [[split, "nobody", "SRC002", "empty"]]

    reseal(made.plan, made.shard(*SHARD), lie)
    assert said in refusal(made)


def rewrite(site, left_out: Sequence[int], ledger: Sequence[str] = ()) -> None:
    """Write the shard again without some of its records, with a receipt that fits the bytes.

    Args:
        site: the plan.
        left_out: numbers of the records.
        ledger: keys that the receipt lists as skipped.
    """
    name = site.shard(*SHARD)
    with Records(str(site.plan / "build" / name)) as records:
        kept = [bytes(each) for number, each in enumerate(records) if number not in left_out]
    sizes: Counter[str] = Counter()
    for payload in kept:
        for feature, values in decode(payload).items():
            sizes[feature] += values.wire_bytes

    def change(plain: Any) -> None:
        plain["features"] = dict(sizes)
        plain["skipped"] = [["train", key, "SRC002", "empty"] for key in ledger]

    write_shard(site.plan, name, kept, change=change)


def test_a_missing_ledger_row(made) -> None:
    rewrite(made, [3])
    assert "says 9 items written and 0 skipped, the plan has 10" in refusal(made)


@pytest.mark.parametrize("twice", [False, True])
def test_a_ledger_with_rows_of_other_items(site, twice: bool) -> None:
    shutil.rmtree(site.plan)
    site.write_plan(max_skipped=2)
    site.part(1, 1)
    keys = item_keys(site.plan, site.shard(*SHARD))
    wrong = keys[3] if twice else "nobody"
    rewrite(site, [3, 4], [keys[3], wrong])
    for verify in (None, "100%"):
        assert (
            f"its receipt lists the skipped item `{wrong}`, which is unknown to the plan or "
            "listed twice"
        ) in refusal(site, verify=verify)


def test_a_shard_that_only_pretends_to_be_of_the_base(made) -> None:
    def lie(plain: Any) -> None:
        plain["kept"] = True

    reseal(made.plan, made.shard(*SHARD), lie)
    assert "says that it is a shard of the base, which it is not" in refusal(made)


def test_every_forgery_is_named(made) -> None:
    class Notes:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

        def note(self, message: str) -> None:
            self.lines.append(message)

    flip(made.plan / "build" / made.shard("test", 0), 100)
    flip(made.plan / "build" / made.shard("train", 2), 100)
    notes = Notes()
    with pytest.raises(RefusedError, match=made.shard("test", 0)):
        made.collect(progress=notes)
    assert any(made.shard("train", 2) in line for line in notes.lines)


def other_code(site) -> None:
    """Parts whose labels are all one too high: records, index and receipts fit each other."""
    import tfrecreg_mnist.source as mnist
    from tfrecreg.api import int64_feature

    original = mnist.MnistSource.example

    def wrong(self: Any, item: Any) -> Any:
        made = dict(original(self, item))
        made["image/class/label"] = int64_feature((int(item.key) + 1) % 10)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mnist.MnistSource, "example", wrong)
        site.part(1, 1)


def test_a_shard_of_other_code_is_found_by_making_it_again(site) -> None:
    other_code(site)
    with pytest.raises(RefusedError) as caught:
        site.collect(verify="100%")
    message = caught.value.message
    assert (
        f"`{site.shard('test', 0)}` differs from what the raw data produce here: record 0, `"
        in message
    )
    assert message.endswith("`, differs")
    assert not (site.data / "digits").exists()
    site.collect()  # what nobody makes again, nobody finds


def test_a_skipped_item_that_could_be_made_is_found_by_making_it_again(made) -> None:
    rewrite(made, [3], item_keys(made.plan, made.shard(*SHARD))[3:4])
    message = refusal(made, verify="100%")
    assert "differs from what the raw data produce here: record 3 is `" in message


def test_without_raw_data_nothing_can_be_made_again(site) -> None:
    site.part(1, 1)
    shutil.rmtree(site.raw)
    with pytest.raises(UsageError, match="and the raw data are not on this machine"):
        site.collect(verify="1")


def change_plan(site, change: Callable[[Any], None], *, seal: bool) -> None:
    path = site.plan / "plan.json"
    plain = json.loads(path.read_bytes())
    change(plain)
    document = msgspec.convert(plain, PlanDocument)
    path.write_bytes(render_plan(seal_plan(document) if seal else document))


@pytest.mark.parametrize("work", ["part", "collect"])
def test_a_plan_that_was_changed_is_refused(made, work: str) -> None:
    def change(plain: Any) -> None:
        plain["max_skipped"] = "100"

    change_plan(made, change, seal=False)
    with pytest.raises(UsageError, match=r"plan.json` was changed after it was written"):
        made.part(1, 1) if work == "part" else made.collect()


def test_receipts_do_not_fit_a_plan_that_was_sealed_again(made) -> None:
    def change(plain: Any) -> None:
        plain["max_skipped"] = "100"

    change_plan(made, change, seal=True)
    with pytest.raises(RefusedError, match="its receipt is of the plan"):
        made.collect()


def test_a_shard_with_another_name_is_refused(made) -> None:
    def change(plain: Any) -> None:
        plain["shards"][0]["path"] = "../../registry/tfrecreg.toml"

    change_plan(made, change, seal=True)
    with pytest.raises(UsageError, match="names the shard"):
        made.part(1, 1)


@pytest.mark.parametrize(("field", "value"), [("max_skipped", "many"), ("settings", "[")])
def test_a_plan_whose_settings_do_not_parse_is_refused(made, field: str, value: str) -> None:
    def change(plain: Any) -> None:
        plain[field] = value

    change_plan(made, change, seal=True)
    with pytest.raises(UsageError, match=r"plan.json` is not a plan: "):
        made.part(1, 1)


def test_versions_that_differ_are_refused_before_any_work(site) -> None:
    def change(plain: Any) -> None:
        plain["versions"]["codecs"]["zlib"] = "0.9"
        plain["versions"]["tfrecreg"] = "0.0.1"

    change_plan(site, change, seal=True)
    with pytest.raises(UsageError, match=r"tfrecreg 0\.1\.0 in place of 0\.0\.1; zlib .* 0\.9"):
        site.part(1, 1)
    assert not (site.plan / "build").exists()


@pytest.mark.parametrize("size", [-5, 10**12])
def test_a_list_that_lies_about_its_size_is_refused(made, size: int) -> None:
    def change(plain: Any) -> None:
        plain["shards"][0]["items"]["bytes"] = size

    change_plan(made, change, seal=True)
    with pytest.raises(UsageError, match="is not the file that the plan names"):
        made.part(1, 1)


def test_a_plan_that_is_too_large_is_refused_unread(site) -> None:
    os.truncate(site.plan / "plan.json", 1 << 40)  # sparse
    with pytest.raises(StorageError, match=f"has {1 << 40} bytes, more than the {1 << 30} that"):
        site.part(1, 1)


def test_a_newer_format_is_refused(made) -> None:
    path = made.plan / "plan.json"
    text = path.read_text().replace('"format_version":1,"kind"', '"format_version":2,"kind"')
    path.write_text(text)
    with pytest.raises(NewerFormatError, match="has plan format 2, this tfrecreg supports 1"):
        made.part(1, 1)


@pytest.mark.parametrize("name", ["items/{}.jsonl.gz", "raw.jsonl.gz", "listed.jsonl.gz"])
@pytest.mark.parametrize("how", ["other", "cut", "more", "garbage"])
@pytest.mark.sweep
def test_a_list_of_the_plan_that_was_changed_is_refused(made, name: str, how: str) -> None:
    path = made.plan / name.format(made.shard(*SHARD))
    data = path.read_bytes()
    text = gzip.decompress(data)
    changed = {
        "other": gzip.compress(text.replace(b'"', b"'", 1) + (b"" if text else b"[]\n")),
        "cut": data[:-9],
        "more": gzip.compress(text + b'["x",1,""]\n'),
        "garbage": b"garbage",
    }
    path.write_bytes(changed[how])
    with pytest.raises(UsageError, match="is not the file that the plan names"):
        made.collect()
