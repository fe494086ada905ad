"""Size against the raw data: both bases are measured, one of them is judged, all by hand here."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from check_support import Digits, Document, document, framed
from tests_support import flip

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.values.errors import ConfigError

RECORDS = 260


def configure(digits: Digits, text: str) -> None:
    with (digits.root / "tfrecreg.toml").open("a", encoding="utf-8") as config:
        config.write(f"\n{text}\n")


def limit(digits: Digits, **options: object) -> None:
    values = ", ".join(
        f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}"
        for name, value in options.items()
    )
    configure(digits, f"[gates.default]\nlimits.inflation = {{ {values} }}")


def shard_bytes(digits: Digits) -> int:
    return sum(path.stat().st_size for path in digits.folder.glob("digits-*"))


def raw_bytes(digits: Digits) -> tuple[int, int]:
    """Stored, and decoded: each raw file is an IDX file in gzip."""
    files = list((digits.root / "raw").iterdir())
    assert len(files) == 4
    stored = sum(path.stat().st_size for path in files)
    return stored, sum(len(gzip.decompress(path.read_bytes())) for path in files)


def message(found: Document) -> str:
    (finding,) = found["findings"]
    assert (finding["code"], finding["rule"]) == ("INF001", "inflated")
    assert finding["severity"] == "error"
    assert finding["count"] == 1
    text = finding["message"]
    assert isinstance(text, str)
    return text


class TestMeasures:
    def test_both_bases_are_measured(self, digits: Digits) -> None:
        measures = digits.check("inflation")["measures"]
        size = shard_bytes(digits)
        stored, decoded = raw_bytes(digits)
        assert decoded == 2 * (16 + 8) + 260 * (28 * 28 + 1)
        assert measures["inflation.bytes"] == size
        assert measures["inflation.raw_stored"] == stored
        assert measures["inflation.raw_decoded"] == decoded
        assert measures["inflation.ratio_stored"] == round(size / stored, 4)
        assert measures["inflation.ratio_decoded"] == round(size / decoded, 4)

    def test_bytes_are_told_feature_by_feature_the_largest_first(self, digits: Digits) -> None:
        features = digits.check("inflation")["measures"]["inflation.features"]
        assert list(features) == [
            "image/encoded",
            "image/format",
            "image/class/label",
            "image/height",
            "image/width",
        ]
        assert list(features.values()) == sorted(features.values(), reverse=True)
        payload = digits.check("inflation")["summary"]["payload_bytes"]
        assert 0 < sum(features.values()) < payload

    def test_all_bytes_are_accounted_for(self, digits: Digits, tmp_path: Path) -> None:
        checked = digits.check("inflation")
        measures, summary = checked["measures"], checked["summary"]
        stream = summary["payload_bytes"] + 16 * summary["records"]
        assert sum(measures["inflation.features"].values()) + measures["inflation.around"] == stream
        assert "inflation.other" not in measures
        path = tmp_path / "mixed.tfrecord"
        path.write_bytes(framed(encode({"a": int64_feature(1)}), b"\xff" * 100))
        mixed = document([path], only=("inflation",))["measures"]
        assert mixed["inflation.other"] == 116
        total = sum(mixed["inflation.features"].values()) + mixed["inflation.around"]
        assert total == path.stat().st_size - 116

    def test_a_damaged_record_weighs_what_it_weighs(self, digits: Digits) -> None:
        before = digits.check("inflation")["measures"]
        flip(digits.path("train", 0), 30)
        after = digits.check("inflation")["measures"]
        assert after["inflation.bytes"] == before["inflation.bytes"]
        assert after["inflation.features"] != before["inflation.features"]


class TestINF001:
    def test_a_build_of_encoded_images_is_within_the_default_limit(self, digits: Digits) -> None:
        found = digits.check("inflation")
        assert (found["status"], found["findings"]) == ("pass", [])
        _, decoded = raw_bytes(digits)
        assert shard_bytes(digits) <= int(1.10 * decoded) + 512 * RECORDS

    def test_what_is_larger_says_by_how_much(self, digits: Digits) -> None:
        limit(digits, ratio=0.25, allowance=10)
        found = digits.check("inflation")
        size = shard_bytes(digits)
        _, decoded = raw_bytes(digits)
        most = int(0.25 * decoded) + 10 * RECORDS
        assert size > most
        assert message(found) == (
            f"expected at most {most} bytes (0.25 × {decoded} bytes of unpacked data + 10 × 260 "
            f"records), found {size}: {size / decoded:.2f} × the unpacked data"
        )
        (finding,) = found["findings"]
        assert finding["fingerprint"] == "INF001:digits:::"
        assert finding["locations"] == []

    def test_the_base_decides_what_is_held_against(self, digits: Digits) -> None:
        """Twice the download, half of what is in it: which of the two is the question."""
        size = shard_bytes(digits)
        stored, decoded = raw_bytes(digits)
        assert stored < size < decoded
        limit(digits, ratio=1.0, allowance=0, base="stored")
        text = message(digits.check("inflation"))
        assert f"(1 × {stored} bytes of raw files + 0 × 260 records)" in text
        (digits.root / "tfrecreg.toml").write_text("")
        limit(digits, ratio=1.0, allowance=0, base="decoded")
        assert digits.check("inflation")["findings"] == []

    def test_the_limit_itself_is_allowed_and_one_byte_more_is_not(self, digits: Digits) -> None:
        size = shard_bytes(digits)
        raw = digits.root / "measured"
        raw.mkdir()
        (raw / "all").write_bytes(b"\xaa" * size)
        limit(digits, ratio=1.0, allowance=0)
        assert digits.check("inflation", raw=str(raw))["findings"] == []
        (raw / "all").write_bytes(b"\xaa" * (size - 1))
        text = message(digits.check("inflation", raw=str(raw)))
        assert text.startswith(f"expected at most {size - 1} bytes ")

    def test_the_allowance_is_for_each_record(self, digits: Digits) -> None:
        size = shard_bytes(digits)
        stored, _ = raw_bytes(digits)
        needed = -(-(size - stored) // RECORDS)
        limit(digits, ratio=1.0, allowance=needed, base="stored")
        assert digits.check("inflation")["findings"] == []
        (digits.root / "tfrecreg.toml").write_text("")
        limit(digits, ratio=1.0, allowance=needed - 1, base="stored")
        assert digits.check("inflation")["status"] == "fail"

    def test_the_gate_of_the_dataset_goes_over_the_default_one(self, digits: Digits) -> None:
        configure(digits, "[gates.default]\nlimits.inflation = { ratio = 0.01, allowance = 0 }")
        assert digits.check("inflation")["status"] == "fail"
        configure(digits, "[gates.digits]\nlimits.inflation = { ratio = 1.0 }")
        assert digits.check("inflation")["status"] == "pass"

    def test_decoded_pixels_pass_the_default_limit_by_the_idx_they_come_from(
        self, digits: Digits
    ) -> None:
        """The pixels of MNIST's IDX files are raw already, so storing them inflates nothing."""
        from tfrecreg.builtin.python_data.build import build
        from tfrecreg.core.build.request import BuildRequest
        from tfrecreg.core.registry.registry import open_registry

        raw = str(digits.root / "raw")
        options = {"encoding": "raw"}
        request = BuildRequest(name="pixels", source="mnist", raw=raw, options=options)
        build(open_registry(digits.root), request)
        found = digits.check("inflation", target="pixels")
        assert found["findings"] == []
        assert found["measures"]["inflation.ratio_decoded"] > 1
        limit(digits, allowance=0)
        assert digits.check("inflation", target="pixels")["status"] == "fail"


class TestRaw:
    def test_a_folder_that_is_named_is_measured_instead(self, digits: Digits) -> None:
        folder = digits.root / "other"
        (folder / "deeper").mkdir(parents=True)
        (folder / "plain").write_bytes(b"\1" * 1000)
        (folder / "deeper/packed.gz").write_bytes(gzip.compress(b"\2" * 5000))
        packed = (folder / "deeper/packed.gz").stat().st_size
        found = digits.check("inflation", raw=str(folder))
        assert found["measures"]["inflation.raw_stored"] == 1000 + packed
        assert found["measures"]["inflation.raw_decoded"] == 6000

    def test_bare_files_are_measured_against_a_folder(self, digits: Digits, tmp_path: Path) -> None:
        raw = tmp_path / "raw"
        raw.mkdir()
        (raw / "image").write_bytes(b"\xff" * 100)
        shard = tmp_path / "x.tfrecord"
        shard.write_bytes(framed(b"\xff" * 10000))
        found = document([shard], only=("inflation",), raw=str(raw))
        size = shard.stat().st_size
        assert message(found).startswith(f"expected at most {110 + 512} bytes ")
        assert f"found {size}: {size / 100:.2f} × the unpacked data" in message(found)
        assert found["findings"][0]["fingerprint"] == "INF001::::"

    def test_without_raw_data_it_says_where_the_bytes_are_and_judges_no_limit(
        self, tmp_path: Path
    ) -> None:
        shard = tmp_path / "x.tfrecord"
        shard.write_bytes(framed(encode({"a": bytes_feature(bytes(10_000))})))
        found = document([shard], only=("inflation",))
        assert (found["validators"], found["findings"]) == (["inflation"], [])
        assert found["measures"] == {
            "inflation.bytes": shard.stat().st_size,
            "inflation.features": {"a": 10_006},
            "inflation.around": 28,
        }

    def test_raw_data_that_decode_to_nothing_are_no_base(self, digits: Digits) -> None:
        folder = digits.root / "other"
        folder.mkdir()
        (folder / "empty.gz").write_bytes(gzip.compress(b""))
        found = digits.check("inflation", raw=str(folder))
        assert (found["validators"], found["findings"]) == ([], [])
        assert found["skipped"] == [{"validator": "inflation", "reason": "there are no raw data"}]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"ratio": "large"}, "ratio"),
        ({"ratio": 0}, "ratio"),
        ({"ratio": -1.5}, "ratio"),
        ({"ratio": float("inf")}, "ratio"),
        ({"ratio": float("nan")}, "ratio"),
        ({"allowance": -1}, "allowance"),
        ({"allowance": 1.5}, "allowance"),
        ({"base": "raw"}, "base"),
        ({"raito": 1.0}, "raito"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(
    digits: Digits, options: dict[str, object], complaint: str
) -> None:
    limit(digits, **options)
    with pytest.raises(ConfigError, match=complaint):
        digits.check("inflation")
