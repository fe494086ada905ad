"""INF002 to INF007: datasets built to have them, what a cure would save, and what it saves."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_support import Document, document, framed

from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.tensors import serialize_tensor
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature

SIDE = 64


def scene(number: int, channels: int = 3) -> np.ndarray:
    """Pixels as of a photograph: smooth, with a little noise."""
    dice = np.random.default_rng(number)
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    waves = [
        np.sin((number % 7 + 2) * x + 3 * channel) + np.cos(4 * y + number)
        for channel in range(channels)
    ]
    smooth = 128 + 50 * np.stack(waves, axis=2)
    return (smooth + dice.normal(0, 2, smooth.shape)).clip(0, 255).astype(np.uint8)


def scenes(count: int = 60) -> list[np.ndarray]:
    return [scene(number) for number in range(count)]


def sided(pixels: np.ndarray, feature: Feature) -> bytes:
    height, width, channels = pixels.shape
    return encode(
        {
            "image/raw": feature,
            "image/height": int64_feature(height),
            "image/width": int64_feature(width),
            "image/channels": int64_feature(channels),
        }
    )


def look(
    folder: Path, payloads: Sequence[bytes], *, packed: bool = False, shards: int = 1, **more: Any
) -> Document:
    paths = [folder / f"x-train.tfrecord-{n:05d}-of-{shards:05d}" for n in range(shards)]
    for number, path in enumerate(paths):
        stream = framed(*payloads[number::shards])
        path.write_bytes(gzip.compress(stream) if packed else stream)
    return document(paths, only=("inflation",), **more)


def codes(found: Document) -> list[str]:
    assert found["errors"] == []
    return sorted(each["code"] for each in found["findings"])


def one(found: Document, code: str) -> dict[str, Any]:
    (finding,) = (each for each in found["findings"] if each["code"] == code)
    return finding


def raw_folder(folder: Path, files: Sequence[bytes], suffix: str = "jpg") -> str:
    raw = folder / "raw"
    raw.mkdir()
    for number, data in enumerate(files):
        (raw / f"{number:03}.{suffix}").write_bytes(data)
    return str(raw)


def encoded(pixels: np.ndarray, kind: str, **options: Any) -> bytes:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    data = io.BytesIO()
    image.fromarray(pixels).save(data, kind, **options)
    return data.getvalue()


STORED: dict[str, Callable[[np.ndarray], Feature]] = {
    "bytes": lambda pixels: bytes_feature(pixels.tobytes()),
    "base64": lambda pixels: bytes_feature(urlsafe_b64encode(pixels.tobytes())),
    "float": lambda pixels: float_feature((pixels / np.float32(127.5) - 1).astype("<f4").tobytes()),
    "int64": lambda pixels: int64_feature(pixels.ravel().tolist()),
    "bytes of float32": lambda pixels: bytes_feature((pixels / np.float32(255)).tobytes()),
    "bytes of int32": lambda pixels: bytes_feature(pixels.astype("<i4").tobytes()),
    "bytes of int64": lambda pixels: bytes_feature(pixels.astype("<i8").tobytes()),
}


def npy(pixels: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.save(made, pixels)
    return made.getvalue()


def bitmap(pixels: np.ndarray) -> bytes:
    return encoded(pixels, "BMP")


def resized(pixels: np.ndarray) -> bytes:
    """As a network wants it: on no levels any more, mean and deviation taken off."""
    blurred = pixels.astype("<f4")
    blurred[1:] = (2 * blurred[1:] + 3.3 * blurred[:-1]) / 5.3
    return bytes(((blurred - blurred.mean()) / blurred.std()).astype("<f4").tobytes())


WRAPPED: dict[str, tuple[str, Callable[[np.ndarray], Feature]]] = {
    "npy": ("as an .npy of uint8", lambda pixels: bytes_feature(npy(pixels))),
    "npy of floats": (
        "as an .npy of float32",
        lambda pixels: bytes_feature(npy(pixels / np.float32(255))),
    ),
    "gzip": ("as gzip", lambda pixels: bytes_feature(gzip.compress(pixels.tobytes()))),
    "zlib": ("as gzip", lambda pixels: bytes_feature(zlib.compress(pixels.tobytes()))),
    "gzip of an npy": (
        "as gzip of an .npy of uint8",
        lambda pixels: bytes_feature(gzip.compress(npy(pixels))),
    ),
    "bmp": ("as BMP", lambda pixels: bytes_feature(bitmap(pixels))),
    "tensor": (
        "as a tensor of float32",
        lambda pixels: bytes_feature(serialize_tensor(pixels / np.float32(255))),
    ),
    "resized": ("as float", lambda pixels: float_feature(resized(pixels))),
    "resized bytes": ("as bytes of float32", lambda pixels: bytes_feature(resized(pixels))),
}


class TestINF002:
    """Decoded pixels."""

    @pytest.mark.parametrize("raw", [False, True], ids=["alone", "with raw data"])
    @pytest.mark.parametrize("form", WRAPPED)
    def test_pixels_are_told_whatever_is_wrapped_around_them(
        self, tmp_path: Path, form: str, raw: bool
    ) -> None:
        # Without noise: else nothing makes them much smaller than gzip does.
        images = [np.asarray(each) // 8 * 8 for each in scenes()]
        said, store = WRAPPED[form]
        files = [encoded(pixels, "JPEG", quality=80) for pixels in images]
        folder = raw_folder(tmp_path, files) if raw else None
        found = look(tmp_path, [sided(each, store(each)) for each in images], raw=folder)
        assert f"`image/raw` holds decoded pixels {said}, " in one(found, "INF002")["message"]
        assert ("INF001" in codes(found)) == raw

    @pytest.mark.parametrize("form", STORED)
    def test_pixels_are_told_however_they_are_stored(self, tmp_path: Path, form: str) -> None:
        payloads = [sided(pixels, STORED[form](pixels)) for pixels in scenes()]
        found = look(tmp_path, payloads, shards=2)
        finding = one(found, "INF002")
        assert (finding["severity"], finding["count"]) == ("warning", 1)
        assert finding["fingerprint"] == "INF002:::image/raw:"
        said = "decoded pixels, " if form == "bytes" else f"decoded pixels as {form}, "
        assert finding["message"].startswith(f"`image/raw` holds {said}")
        (place,) = finding["locations"]
        assert (place["record"], place["offset"], place["feature"]) == (0, 0, "image/raw")

    @pytest.mark.medium
    def test_the_size_after_the_cure_is_that_of_the_cured_dataset(self, tmp_path: Path) -> None:
        payloads = [sided(pixels, bytes_feature(pixels.tobytes())) for pixels in scenes(200)]
        found = look(tmp_path, payloads)
        predicted = found["measures"]["inflation.cures"]["INF002 image/raw"]
        cured = [sided(pixels, bytes_feature(encoded(pixels, "PNG"))) for pixels in scenes(200)]
        size = len(framed(*cured))
        assert abs(predicted - size) < 0.1 * size
        assert size < 0.7 * found["measures"]["inflation.bytes"]
        assert codes(look(tmp_path, cured)) == []

    def test_a_base_that_holds_more_is_not_judged(self, tmp_path: Path) -> None:
        payloads = [sided(pixels, bytes_feature(pixels.tobytes())) for pixels in scenes()]
        size = 4 * len(framed(*payloads))
        assert codes(look(tmp_path, payloads, raw=raw_folder(tmp_path, [b"x" * size]))) == []

    @pytest.mark.parametrize("form", ["bytes", "float"])
    def test_pixels_of_one_size_can_be_declared(self, tmp_path: Path, form: str) -> None:
        images = scenes()
        payloads = [sided(pixels, STORED[form](pixels)) for pixels in images]
        shape = "x".join(map(str, images[0].shape))
        measures = look(tmp_path, payloads)["measures"]
        assert measures["inflation.pixels"] == f"--option image=image/raw:{shape}"
        payloads[::2] = [sided(each[:32], STORED[form](each[:32])) for each in images[::2]]
        assert "inflation.pixels" not in look(tmp_path, payloads)["measures"]

    def test_with_the_raw_data_the_cure_is_their_size(self, tmp_path: Path) -> None:
        files = [encoded(pixels, "JPEG", quality=90) for pixels in scenes()]
        payloads = [sided(pixels, bytes_feature(pixels.tobytes())) for pixels in scenes()]
        found = look(tmp_path, payloads, raw=raw_folder(tmp_path, files))
        assert codes(found) == ["INF001", "INF002"]
        predicted = found["measures"]["inflation.cures"]["INF002 image/raw"]
        cured = [
            sided(pixels, bytes_feature(data)) for pixels, data in zip(scenes(), files, strict=True)
        ]
        assert abs(predicted - len(framed(*cured))) < 500
        assert " times the raw data; their raw data take " in one(found, "INF002")["message"]

    def test_pixels_of_raw_data_that_have_them_decoded_are_as_they_should_be(
        self, tmp_path: Path
    ) -> None:
        payloads = [sided(pixels, bytes_feature(pixels.tobytes())) for pixels in scenes()]
        raw = raw_folder(tmp_path, [pixels.tobytes() for pixels in scenes()], "bin")
        assert codes(look(tmp_path, payloads, raw=raw)) == []

    def test_noise_that_no_png_makes_smaller_is_no_finding(self, tmp_path: Path) -> None:
        noise = [np.random.default_rng(n).integers(0, 256, (SIDE, SIDE, 3)) for n in range(40)]
        payloads = [sided(each, bytes_feature(each.astype(np.uint8).tobytes())) for each in noise]
        assert codes(look(tmp_path, payloads)) == []

    def test_pixels_in_gzip_are_told_by_what_is_in_it(self, tmp_path: Path) -> None:
        payloads = [sided(pixels, bytes_feature(pixels.tobytes())) for pixels in scenes()]
        found = look(tmp_path, payloads, packed=True)
        assert one(found, "INF002")["message"].endswith(" before gzip")
        assert found["measures"]["inflation.stream_bytes"] == len(framed(*payloads))

    @pytest.mark.medium
    def test_one_decoded_shard_of_five_is_named_and_counted_alone(self, tmp_path: Path) -> None:
        files = [encoded(pixels, "JPEG", quality=90) for pixels in scenes(50)]
        paths = []
        for shard in range(5):
            payloads = [
                sided(pixels, bytes_feature(pixels.tobytes() if shard == 3 else data))
                for pixels, data in zip(scenes(50), files, strict=True)
            ]
            # Many more encoded images are in the others.
            payloads = payloads if shard == 3 else payloads * 4
            paths.append(tmp_path / f"x-train.tfrecord-{shard:05d}-of-00005")
            paths[-1].write_bytes(framed(*payloads))
        held = 50 * SIDE * SIDE * 3
        for raw in (None, raw_folder(tmp_path, files * 17)):
            finding = one(document(paths, only=("inflation",), raw=raw), "INF002")
            (place,) = finding["locations"]
            assert (place["shard"].rpartition("/")[2], place["record"]) == (paths[3].name, 0)
            size = re.search(
                r"holds decoded pixels, ([0-9.]+) kB of ([0-9.]+) MB", finding["message"]
            )
            assert size is not None, finding["message"]
            assert float(size[1]) == pytest.approx(held / 1000, rel=0.02)
        times = re.search(r", ([0-9.]+) times their raw data; ", finding["message"])
        assert times is not None, finding["message"]
        assert float(times[1]) == pytest.approx(held / sum(map(len, files)), rel=0.2)

    def test_the_record_that_is_named_holds_pixels(self, tmp_path: Path) -> None:
        jpeg = encoded(scene(0), "JPEG", quality=90)
        rows = [sided(pixels, bytes_feature(pixels.tobytes())) for pixels in scenes()]
        rows[:3] = [sided(scene(0), bytes_feature(jpeg))] * 3
        (place,) = one(look(tmp_path, rows), "INF002")["locations"]
        assert place["record"] == 3


class TestINF003:
    """Float32 pixels, wide integers."""

    def test_float_pixels_would_be_a_byte_each(self, tmp_path: Path) -> None:
        noise = [np.random.default_rng(n).integers(0, 256, 784) for n in range(300)]
        floats = [(each / np.float32(255) - np.float32(0.5)).astype("<f4") for each in noise]
        payloads = [encode({"values": float_feature(each.tobytes())}) for each in floats]
        found = look(tmp_path, payloads)
        assert codes(found) == ["INF003"]
        assert one(found, "INF003")["message"].startswith(
            "`values` holds numbers with at most 256 levels as float, 942.6 kB; as bytes of uint8 "
            "they take about 236.4 kB, so all records take "
        )
        cured = [encode({"values": bytes_feature(bytes(each.tolist()))}) for each in noise]
        predicted = found["measures"]["inflation.cures"]["INF003 values"]
        assert abs(predicted - len(framed(*cured))) < 0.01 * predicted

    @pytest.mark.parametrize(
        ("low", "high", "dtype"),
        [(0, 255, "uint8"), (-100, 100, "int8"), (-30_000, 30_000, "int16")],
    )
    def test_integers_would_fit_in_a_narrow_type(
        self, tmp_path: Path, low: int, high: int, dtype: str
    ) -> None:
        dice = random.Random(1)
        rows = [[low, high, *(dice.randint(low, high) for _ in range(300))] for _ in range(600)]
        found = look(tmp_path, [encode({"codes": int64_feature(row)}) for row in rows])
        finding = one(found, "INF003")
        assert f"whole numbers from {low} to {high} as int64" in finding["message"]
        assert f"as bytes of {dtype} they take about" in finding["message"]
        cured = [
            encode({"codes": bytes_feature(np.array(row).astype(dtype).tobytes())}) for row in rows
        ]
        predicted = found["measures"]["inflation.cures"]["INF003 codes"]
        assert abs(predicted - len(framed(*cured))) < 0.02 * predicted

    def test_real_numbers_and_small_integers_are_fine(self, tmp_path: Path) -> None:
        dice = np.random.default_rng(1)
        payloads = [
            encode(
                {
                    "embedding": float_feature(dice.normal(size=256).astype("<f4").tobytes()),
                    "height": int64_feature(256),
                    "width": int64_feature(1),
                    # As bytes, they take 8 % less of the records.
                    "tokens": int64_feature(dice.integers(0, 256, 200).tolist()),
                }
            )
            for _ in range(900)
        ]
        assert codes(look(tmp_path, payloads)) == []

    def test_one_number_outside_is_enough_to_leave_it_alone(self, tmp_path: Path) -> None:
        rows = [[1, 2, 3] * 100 for _ in range(300)]
        rows[5][7] = 0.5
        payloads = [encode({"counts": float_feature(row)}) for row in rows]
        found = look(tmp_path, payloads)
        # Halves are levels as well; a third is none.
        assert codes(found) == ["INF003"]
        assert "levels as float" in one(found, "INF003")["message"]
        rows[5][7] = 4.0
        found = look(tmp_path, [encode({"counts": float_feature(row)}) for row in rows])
        assert "whole numbers from 1 to 4 as float" in one(found, "INF003")["message"]
        rows[5][7:9] = 0.5, 1e9
        payloads = [encode({"counts": float_feature(row)}) for row in rows]
        assert codes(look(tmp_path, payloads)) == []


class TestINF004:
    """A record for each annotation."""

    @staticmethod
    def annotations(images: int, times: int, labels: Sequence[int] = (1,)) -> list[bytes]:
        data = [os.urandom(4000) for _ in range(images)]
        payloads = [
            encode(
                {
                    "image/encoded": bytes_feature(b"\xff\xd8\xff" + each),
                    "box": float_feature([number / 10, 0.1, 0.2, 0.3]),
                    "labels": int64_feature(labels),
                }
            )
            for each in data
            for number in range(times)
        ]
        random.Random(1).shuffle(payloads)
        return payloads

    @pytest.mark.parametrize("labels", [(1,), (1, 2)], ids=["in a table", "one by one"])
    def test_images_that_are_there_again_are_told(
        self, tmp_path: Path, labels: Sequence[int]
    ) -> None:
        payloads = self.annotations(50, 7, labels)
        found = look(tmp_path, payloads)
        assert codes(found) == ["INF004"]
        assert one(found, "INF004")["message"].startswith(
            "`image/encoded` holds each value 7.0 times on average, 1.4 MB; "
            "stored once each, they take about 200.4 kB"
        )
        predicted = found["measures"]["inflation.cures"]["INF004 image/encoded"]
        assert abs(predicted - (len(framed(*payloads)) - 300 * 4010)) < 5000

    def test_shards_are_counted_together(self, tmp_path: Path) -> None:
        found = look(tmp_path, self.annotations(40, 4), shards=4)
        assert "holds each value 4.0 times on average" in one(found, "INF004")["message"]

    def test_with_more_different_values_than_are_counted_it_is_an_estimate(
        self, tmp_path: Path
    ) -> None:
        payloads = [
            encode({"data": bytes_feature((number // 3).to_bytes(4, "big") * 300)})
            for number in range(6000)
        ]
        found = look(tmp_path, payloads)
        cured = found["measures"]["inflation.cures"]["INF004 data"]
        size = found["measures"]["inflation.bytes"]
        assert abs(cured / size - 1 / 3) < 0.05

    def test_a_record_an_image_is_fine(self, tmp_path: Path) -> None:
        assert codes(look(tmp_path, self.annotations(200, 1))) == []


class TestINF005:
    """PNG made of JPEG."""

    def test_images_larger_than_the_files_they_were_made_of_are_told(self, tmp_path: Path) -> None:
        files = [encoded(pixels, "JPEG", quality=80) for pixels in scenes()]
        payloads = [
            encode({"image/encoded": bytes_feature(encoded(pixels, "PNG"))}) for pixels in scenes()
        ]
        found = look(tmp_path, payloads, raw=raw_folder(tmp_path, files))
        assert codes(found) == ["INF001", "INF005"]
        message = one(found, "INF005")["message"]
        assert message.startswith("`image/encoded` holds images as PNG, ")
        assert " times the raw data; the raw data take " in message
        cured = [encode({"image/encoded": bytes_feature(data)}) for data in files]
        predicted = found["measures"]["inflation.cures"]["INF005 image/encoded"]
        assert abs(predicted - len(framed(*cured))) < 500

    def test_a_build_knows_its_raw_data_without_them(self, tmp_path: Path) -> None:
        from tfrecreg.builtin.python_data.build import build
        from tfrecreg.core.build.request import BuildRequest
        from tfrecreg.core.registry.init import init
        from tfrecreg.core.registry.registry import open_registry

        raw = tmp_path / "raw" / "cat"
        raw.mkdir(parents=True)
        for number, pixels in enumerate(scenes(40)):
            (raw / f"{number}.jpg").write_bytes(encoded(pixels, "JPEG", quality=80))
        root = tmp_path / "registry"
        init(root, with_dvc=False)
        for name, options in {"kept": {}, "made": {"reencode": "png"}}.items():
            request = BuildRequest(
                name=name, source="imagefolder", raw=str(tmp_path / "raw"), options=options
            )
            build(open_registry(root), request)
        assert codes(document(["kept"], root, only=("inflation",))) == []
        found = document(["made"], root, only=("inflation",))
        assert "INF005" in codes(found)
        assert " times the raw data; the raw data take" in one(found, "INF005")["message"]


class TestINF007:
    """Images as base64."""

    @pytest.mark.parametrize("encode_text", [b64encode, urlsafe_b64encode])
    def test_base64_of_encoded_images_is_told(
        self, tmp_path: Path, encode_text: Callable[[bytes], bytes]
    ) -> None:
        files = [encoded(pixels, "JPEG", quality=90) for pixels in scenes()]
        rows = [
            sided(pixels, bytes_feature(encode_text(data)))
            for pixels, data in zip(scenes(), files, strict=True)
        ]
        finding = one(look(tmp_path, rows), "INF007")
        assert finding["severity"] == "warning"
        size = sum(map(len, files))
        said = re.search(
            r"base64 of JPEG, ([0-9.]+) kB; as bytes they take about ([0-9.]+) kB",
            finding["message"],
        )
        assert said is not None, finding["message"]
        assert float(said[2]) * 1000 == pytest.approx(size, rel=0.02)

    def test_text_that_is_no_image_is_fine(self, tmp_path: Path) -> None:
        rows = [encode({"text": bytes_feature(b64encode(os.urandom(3000)))}) for _ in range(60)]
        assert codes(look(tmp_path, rows)) == []


class TestINF006:
    """Tiny records."""

    def test_what_is_around_a_few_bytes_is_told(self, tmp_path: Path) -> None:
        payloads = [
            encode({"trip/seconds": int64_feature(n % 99), "trip/miles": float_feature(n / 7)})
            for n in range(4000)
        ]
        found = look(tmp_path, payloads)
        assert codes(found) == ["INF006"]
        finding = one(found, "INF006")
        assert (finding["severity"], found["status"]) == ("info", "pass")
        assert finding["message"].startswith(
            "names, lengths and framing take 92 % of records, which have 65 bytes on average; with "
            "64 examples per record, they hardly count, so all records take "
        )
        assert finding["fingerprint"] == "INF006::::"
        together = [
            encode(
                {
                    "trip/seconds": int64_feature([each % 99 for each in range(n, n + 64)]),
                    "trip/miles": float_feature([each / 7 for each in range(n, n + 64)]),
                }
            )
            for n in range(0, 4000 - 32, 64)
        ]
        predicted = found["measures"]["inflation.cures"]["INF006"]
        assert abs(predicted - len(framed(*together))) < 0.2 * predicted

    def test_records_with_something_in_them_are_fine(self, tmp_path: Path) -> None:
        payloads = [encode({"text": bytes_feature(os.urandom(200))}) for _ in range(1000)]
        assert codes(look(tmp_path, payloads)) == []


@pytest.mark.realdata
class TestRealData:
    def test_mnist_as_floats_is_four_times_its_raw_size(
        self, realdata: Path, tmp_path: Path
    ) -> None:
        path = realdata / "tfrecord/tfx/examples/mnist/data/mnist.tfrecord"
        found = document([path], only=("inflation",))
        assert codes(found) == ["INF002", "INF003"]
        cures = found["measures"]["inflation.cures"]
        # A byte a pixel and what is around it; as PNG what TFDS's MNIST takes.
        assert 0.8e6 < cures["INF003 image_floats"] < 0.9e6
        assert 0.2e6 < cures["INF002 image_floats"] < 0.4e6
        raw = tmp_path / "raw"
        raw.mkdir()
        (raw / "idx").write_bytes(bytes(1000 * 785))
        found = document([path], only=("inflation",), raw=str(raw))
        assert codes(found) == ["INF001", "INF003"]
        assert found["measures"]["inflation.ratio_decoded"] == 4.0803

    def test_base64_of_pixels_is_24_times_the_images(self, realdata: Path) -> None:
        folder = realdata / "imagefolder/tfrecorder"
        path = folder / "sample_tfrecords/test-00000-of-00001.tfrecord.gz"
        found = document([path], only=("inflation",))
        assert codes(found) == ["INF002"]
        assert "as base64, 3.0 MB; as PNG they take about" in one(found, "INF002")["message"]
        found = document([path], only=("inflation",), raw=str(folder / "images/TEST"))
        assert codes(found) == ["INF001", "INF002"]
        assert one(found, "INF002")["message"].startswith(
            "`image` holds decoded pixels as base64, 3.0 MB, 23.7 times the raw data; their "
            "raw data take 127.4 kB, so all records take 127.7 kB instead of 3.0 MB before gzip"
        )

    def test_images_that_went_in_as_they_are_have_nothing_to_save(self, realdata: Path) -> None:
        path = realdata / "tfrecord/raccoon/data/test.record"
        assert codes(document([path], only=("inflation",))) == []
