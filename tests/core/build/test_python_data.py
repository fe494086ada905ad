"""Data of a program: the same bytes from any form, and later commands on the builds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_data_support import COUNT, Elements, element, made, stage
from python_data_support import registry as registry  # the fixture

import tfrecreg
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.main import main
from tfrecreg.core.build.conclude import BuildResult
from tfrecreg.core.records.index import load_index
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.shards import ShardPolicy


def keys(registry: Registry, found: BuildResult) -> set[str]:
    folder = registry.storage.below(found.folder)
    indexes = [load_index(folder, shard.index) for shard in found.manifest.shards]
    return {index.key(number) for index in indexes for number in range(len(index))}


FORMS: dict[str, Callable[[], object]] = {
    "list": lambda: [element(number) for number in range(COUNT)],
    "sequence": Elements,
    "generator": lambda: (element(number) for number in range(COUNT)),
    "iterator of a list": lambda: iter([element(number) for number in range(COUNT)]),
    # One that raises no IndexError at its end.
    "iterator of a sequence": lambda: iter(Elements()),  # type: ignore[call-overload]
}


def test_the_form_of_a_split_does_not_change_the_bytes(registry: Registry) -> None:
    found = []
    for form in FORMS.values():
        schema = Path(registry.storage.root, "schemas/shapes.pbtxt")
        schema.unlink(missing_ok=True)
        result = made(registry, {"train": form(), "test": [element(7)]}, default_schema=True)
        assert [split.records for split in result.manifest.splits] == [1, COUNT]
        found.append((result.manifest.digest, schema.read_bytes(), result.unchanged))
    assert len({each[:2] for each in found}) == 1
    assert [each[2] for each in found] == [False, *[True] * (len(FORMS) - 1)]
    assert not stage(registry).exists()


def test_columns_are_a_sequence_of_elements(registry: Registry) -> None:
    class Held:
        """What tensors of other libraries have."""

        def __init__(self, value: Any) -> None:
            self.value = value

        def __len__(self) -> int:
            return len(self.value)

        def __getitem__(self, number: int) -> Held:
            return Held(self.value[number])

        def __array__(self, *arguments: Any, **named: Any) -> np.ndarray[Any, Any]:
            return np.asarray(self.value)

    columns = {
        "pixels": np.arange(45, dtype=np.uint8).reshape(5, 3, 3),
        "label": Held(np.arange(5)),
        "box": np.ones((5, 4), np.float32),
        "name": ["a", "b", "c", "d", "é"],
    }
    names = iter(np.array(list("vwxyz")))
    made(registry, {np.str_("train"): columns}, labels={"label": names})
    report = tfrecreg.check("shapes", registry=registry)
    assert report.status == "pass"
    released = release(registry, ReleaseRequest(name="shapes", version="1.0.0"))
    assert released.manifest.labels == {"label": list("vwxyz")}
    train = tfrecreg.data_source("shapes@1.0.0", "train", registry=registry)
    by_name = {each["name"]: each for each in train}
    assert by_name.keys() == {b"a", b"b", b"c", b"d", "é".encode()}
    assert by_name[b"c"]["label"] == 2
    assert by_name[b"c"]["box"].shape == (4,)
    pixels = tfrecreg.parse_tensor(by_name[b"c"]["pixels"])
    np.testing.assert_array_equal(pixels, columns["pixels"][2])


def test_images_are_stored_as_png(registry: Registry) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    manifest = made(registry, {"train": [{"image/encoded": image.fromarray(pixels)}]}).manifest
    assert manifest.codecs.keys() == {"zlib", "pillow"}
    assert "image_domain {}" in (registry.dataset("shapes").schema_text() or "")
    (found,) = tfrecreg.data_source("shapes", "train", registry=registry, decode=True)
    np.testing.assert_array_equal(found["image/encoded"], pixels)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, {"00000", "00001"}),
        ("id", {"a-0", "a-1"}),
        ("label", {"0", "1"}),
        (lambda each: each["label"] + 5, {"5", "6"}),
        (lambda each: np.str_(each["id"][2:]), {"0", "1"}),
    ],
)
def test_keys_are_numbers_features_or_results(
    registry: Registry, key: Any, expected: set[str]
) -> None:
    assert keys(registry, made(registry, {"train": Elements(2)}, key=key)) == expected
    again = made(registry, {"train": iter([element(0), element(1)])}, key=key)
    assert keys(registry, again) == expected


def test_appended_elements_keep_the_shards_of_the_release(registry: Registry) -> None:
    made(registry, {"train": Elements(30)}, policy=ShardPolicy(shards=3))
    release(registry, ReleaseRequest(name="shapes", version="1.0.0"))
    grown = made(registry, {"train": Elements(35)})
    assert grown.growth is not None
    assert (grown.growth.kept, grown.growth.rewritten, grown.growth.new) == (3, 0, 1)
    changed = made(registry, {"train": Elements(30, "b")})
    assert changed.growth is not None
    assert changed.growth.kept == 0
    released = release(registry, ReleaseRequest(name="shapes"))
    assert str(released.version) == "2.0.0"


# Afterwards.


@pytest.fixture
def here(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Path:
    made(registry, {"train": Elements()})
    monkeypatch.chdir(registry.storage.root)
    return Path(registry.storage.root)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(list(arguments))
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def test_the_command_cannot_build_it_again(here: Path, capsys: Any) -> None:
    code, text = said(capsys, "build", "shapes")
    assert code == 2
    assert text == (
        "error: `shapes` was built from data that a program passed, and this command lacks them\n"
        "hint: run the program that calls `build(data=…)`; or name raw files: "
        "--source SOURCE --raw PATH\n"
    )
    code, text = said(capsys, "build", "shapes", "--source", "python", "--raw", ".")
    assert code == 2
    assert "`python`" in text
    assert "pip install" not in text


def test_a_damaged_shard_is_not_repaired_by_a_command(here: Path, capsys: Any) -> None:
    (shard,) = (here / "data/shapes").glob("*.tfrecord-*")
    shard.write_bytes(shard.read_bytes()[:-1])
    code, text = said(capsys, "check", "shapes")
    assert code == 1
    assert "tfrecreg repair" not in text
    code, text = said(capsys, "repair", "shapes")
    assert code == 2
    assert "error: no source can make the records of `shapes` again\n" in text
    assert "for the data of a program, run the program that calls `build(data=…)`" in text
    assert made(open_registry(here), {"train": Elements()}).report.status == "pass"
