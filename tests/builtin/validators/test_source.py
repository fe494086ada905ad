"""The `source` validator: each code planted and found, and no other one with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases_support import count_cases
from check_support import document, framed
from image_support import png
from tests_support import flip

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.validators.source import SourceValidator
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature
from tfrecreg.core.registry.find import build_target
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.manifest import Ledger, Manifest
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.workers.local import LocalEngine


def record(image: bytes, digest: bytes | None = None) -> bytes:
    """The payload of an image's example, with its own digest unless another one is given."""
    if digest is None:
        digest = hashlib.sha256(image).hexdigest().encode()
    return encode(
        {"image/encoded": bytes_feature(image), "image/key/sha256": bytes_feature(digest)}
    )


def measure(found: dict[str, Any], name: str) -> Any:
    return found["measures"][name]


class Pets:
    """A registry with one build of the source `imagefolder`: 6 images in each of two splits."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.raw = root / "raw"
        for number in range(12):
            split = ("TRAIN", "TEST")[number % 2]
            path = self.raw / split / ("cat", "dog")[number // 6] / f"{number:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(9, 7, seed=number))
        init(root, with_dvc=False)
        self.build()

    def build(self, **options: str) -> Manifest:
        request = BuildRequest(
            name="pets",
            source="imagefolder",
            raw=str(self.raw),
            options=options,
            policy=ShardPolicy(shards=2),
        )
        return build(open_registry(self.root), request).manifest

    def check(self, **options: Any) -> dict[str, Any]:
        return document(["pets"], self.root, only=("source",), **options)

    def judge(self, change: Callable[[Manifest], Manifest]) -> list[Finding]:
        """What is found where the manifest says something else."""
        folder = self.root / "data/pets"
        registry = open_registry(self.root)
        manifest = registry.dataset("pets").build_manifest()
        assert manifest is not None
        target = build_target(change(manifest), LocalStorage(folder), None, None)
        result = run_scan(target, [SourceValidator()], LocalEngine(1))
        assert result.complete
        return result.findings


@pytest.fixture
def pets(tmp_path: Path) -> Pets:
    return Pets(tmp_path / "registry")


def test_a_build_agrees_with_itself_and_with_its_raw_files(pets) -> None:
    found = pets.check()
    assert found["status"] == "pass"
    assert found["findings"] == []
    assert measure(found, "source.images") == 12
    found = pets.check(raw=str(pets.raw))
    assert found["status"] == "pass"
    assert measure(found, "source.compared") == 12


class TestSRC016:
    def test_bytes_that_are_not_those_of_the_digest_are_found(self, tmp_path) -> None:
        good, bad = record(b"one"), record(b"two", hashlib.sha256(b"three").hexdigest().encode())
        path = tmp_path / "x.tfrecord"
        path.write_bytes(framed(good, bad, good))
        found = document([path], only=("source",))
        (finding,) = found["findings"]
        assert (finding["code"], finding["severity"], finding["count"]) == ("SRC016", "error", 1)
        assert finding["message"] == "`image/key/sha256` is not the SHA-256 of `image/encoded`"
        (place,) = finding["locations"]
        assert (place["record"], place["offset"]) == (1, len(good) + 16)
        assert place["feature"] == "image/encoded"
        expected, actual = (hashlib.sha256(text).hexdigest()[:16] for text in (b"three", b"two"))
        assert place["detail"] == f"expected {expected}…, found {actual}…"
        assert measure(found, "source.images") == 3
        assert found["status"] == "fail"

    @pytest.mark.parametrize(
        "example",
        [
            {},
            {"image/encoded": bytes_feature(b"x")},
            {"image/key/sha256": bytes_feature(b"x")},
            {"image/encoded": float_feature(1.0), "image/key/sha256": bytes_feature(b"x")},
            {"image/encoded": bytes_feature([b"x", b"y"]), "image/key/sha256": bytes_feature(b"x")},
            {"image/encoded": bytes_feature(b"x"), "image/key/sha256": bytes_feature([])},
        ],
    )
    def test_records_without_both_features_are_passed_over(
        self, tmp_path, example: Example
    ) -> None:
        path = tmp_path / "x.tfrecord"
        path.write_bytes(framed(encode(example), b"no example"))
        found = document([path], only=("source",))
        assert found["findings"] == []
        assert measure(found, "source.images") == 0


class TestSRC017:
    def test_a_raw_file_that_changed_is_found_by_its_key(self, pets) -> None:
        path = pets.raw / "TEST/dog/07.png"
        size = path.stat().st_size
        flip(path, size // 2)
        found = pets.check(raw=str(pets.raw))
        (finding,) = found["findings"]
        assert (finding["code"], finding["count"]) == ("SRC017", 1)
        (place,) = finding["locations"]
        assert (place["split"], place["key"]) == ("test", "dog/07.png")
        assert place["detail"] == (
            f"`TEST/dog/07.png` has {size} bytes, but the record's image has {size}"
        )
        assert measure(found, "source.compared") == 12


class TestSRC091:
    def test_a_raw_file_that_is_gone_is_found_by_its_key(self, pets) -> None:
        (pets.raw / "TRAIN/cat/00.png").unlink()
        (finding,) = pets.check(raw=str(pets.raw))["findings"]
        assert (finding["code"], finding["count"]) == ("SRC091", 1)
        (place,) = finding["locations"]
        assert (place["split"], place["key"]) == ("train", "cat/00.png")
        assert place["detail"] == "expected `TRAIN/cat/00.png`"
        assert finding["message"] == "the raw file that its key names does not exist"


class TestSRC019:
    def ledger(self, manifest: Manifest, **changes: Any) -> Manifest:
        ledger = replace(manifest.ledger["train"], **changes)
        return replace(manifest, ledger={**manifest.ledger, "train": ledger})

    def messages(self, pets: Pets, change: Callable[[Manifest], Manifest]) -> list[str]:
        findings = pets.judge(change)
        assert {finding.code for finding in findings} <= {"SRC019"}
        return [finding.message for finding in findings]

    def test_more_or_fewer_records_than_were_written_are_found(self, pets) -> None:
        for written in (5, 7):
            assert self.messages(pets, lambda m, n=written: self.ledger(m, written=n, items=n)) == [
                f"expected {written} records, found 6"
            ]

    def test_items_that_are_not_the_sum_are_found(self, pets) -> None:
        assert self.messages(pets, lambda manifest: self.ledger(manifest, items=8)) == [
            "expected 8 items, found 6 written and 0 skipped"
        ]

    def test_a_count_that_the_list_does_not_have_is_found(self, pets) -> None:
        assert self.messages(
            pets, lambda manifest: self.ledger(manifest, items=7, skipped={"SRC110": 1})
        ) == ["expected 1 of SRC110 in `ledger.jsonl`, found 0"]
        assert self.messages(
            pets, lambda manifest: self.ledger(manifest, remarks={"SRC015": 3})
        ) == ["expected 3 of SRC015 in `ledger.jsonl`, found 0"]

    def test_a_split_without_a_ledger_is_found(self, pets) -> None:
        def change(manifest: Manifest) -> Manifest:
            return replace(manifest, ledger={"test": manifest.ledger["test"]})

        assert self.messages(pets, change) == ["expected no records, found 6"]

    def test_a_ledger_of_a_split_without_records_is_found(self, pets) -> None:
        def change(manifest: Manifest) -> Manifest:
            return replace(manifest, ledger={**manifest.ledger, "x": Ledger(items=2, written=2)})

        assert self.messages(pets, change) == ["expected 2 records, found 0"]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("no json\n", ["`ledger.jsonl` does not parse"] * 2),
            ('{"split":"train"}\n', ["`ledger.jsonl` does not parse"] * 2),
            (
                '{"split":"train","code":"SRC110","times":"x"}\n',
                ["`ledger.jsonl` does not parse"] * 2,
            ),
            (
                '{"split":"train","code":"SRC110","key":"a","detail":""}\n',
                ["expected 0 of SRC110 in `ledger.jsonl`, found 1"],
            ),
            (
                '{"split":"test","code":"SRC015","key":"a","detail":"","times":4}',
                ["expected 0 of SRC015 in `ledger.jsonl`, found 4"],
            ),
        ],
    )
    def test_another_list_is_found(self, pets, text, said) -> None:
        (pets.root / "data/pets/ledger.jsonl").write_text(text)
        assert self.messages(pets, lambda manifest: manifest) == said

    def test_what_other_validators_say_better_is_not_said_again(self, pets) -> None:
        shard = pets.root / "data/pets/pets-train.tfrecord-00000-of-00002"
        flip(shard, 30)
        assert pets.check()["findings"] == []
        shard.unlink()
        (pets.root / "data/pets/ledger.jsonl").unlink()
        assert pets.check()["findings"] == []


def test_skipped_items_and_remarks_agree_with_their_list(pets) -> None:
    (pets.raw / "TRAIN/cat/empty.png").write_bytes(b"")
    (pets.raw / "TRAIN/LICENSE").write_bytes(b"stray")
    (pets.raw / "TEST/dog/cut.png").write_bytes(png(9, 7)[:-12])
    from tfrecreg.core.values.typed_values import SkipLimit

    request = BuildRequest(
        name="pets", source="imagefolder", raw=str(pets.raw), max_skipped=SkipLimit.parse(1)
    )
    ledger = build(open_registry(pets.root), request).manifest.ledger
    assert ledger["train"].skipped == {"SRC110": 1}
    assert ledger["train"].remarks == {"SRC015": 1}
    assert ledger["test"].remarks == {"SRC014": 1}
    lines = (pets.root / "data/pets/ledger.jsonl").read_text("utf-8").splitlines()
    assert count_cases(map(json.loads, lines)) == {
        "SRC110 empty": 1,
        "SRC015": 1,
        "SRC014": 1,
    }
    assert pets.check()["findings"] == []


def text(found: dict[str, Any]) -> str:
    assert measure(found, "source.compared") == 0
    return str(measure(found, "source.not_compared"))


def test_another_layout_than_the_one_built_from_is_said_and_not_judged(pets, tmp_path) -> None:
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat/00.png").write_bytes(png())
    found = pets.check(raw=str(tmp_path / "flat"))
    assert found["findings"] == []
    assert found["status"] == "pass"
    assert text(found).startswith(f"not compared: `{tmp_path}/flat` holds no folders")


def test_images_that_were_made_anew_are_no_raw_files_bytes(pets) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    pets.build(reencode="png")
    found = pets.check(raw=str(pets.raw))
    assert found["findings"] == []
    assert measure(found, "source.images") == 12
    assert measure(found, "source.compared") == 0


def test_a_source_of_other_records_is_said(digits) -> None:
    found = digits.check("source", raw=str(digits.root / "raw"))
    assert found["findings"] == []
    assert text(found) == (
        "not compared: the source `mnist` does not make records from single files"
    )
    assert measure(found, "source.images") == 0


def test_it_does_not_apply_where_there_is_nothing_to_compare(pets) -> None:
    manifest = open_registry(pets.root).dataset("pets").build_manifest()
    assert manifest is not None
    features = {name: size for name, size in manifest.features.items() if "sha256" not in name}
    target = build_target(
        replace(manifest, ledger={}, features=features),
        LocalStorage(pets.root / "data/pets"),
        None,
        None,
    )
    assert SourceValidator().applies(target) == (
        "there is neither a ledger nor a feature `image/key/sha256`"
    )


@pytest.mark.medium
def test_two_jobs_find_the_same(pets) -> None:
    flip(pets.raw / "TEST/dog/07.png", 60)
    (pets.raw / "TRAIN/cat/00.png").unlink()
    manifest = open_registry(pets.root).dataset("pets").build_manifest()
    assert manifest is not None
    target = build_target(manifest, LocalStorage(pets.root / "data/pets"), None, None)
    target = replace(target, raw_folder=str(pets.raw))
    one, two = (run_scan(target, [SourceValidator()], LocalEngine(jobs)) for jobs in (1, 2))
    assert one.findings == two.findings
    assert [finding.code for finding in one.findings] == ["SRC017", "SRC091"]
