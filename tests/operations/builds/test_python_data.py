"""Data that a program hands to a build: the same bytes in any form, and never two states mixed."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child_support import Child
from tests_support import tree

import tfrecreg
from tfrecreg.cli.main import main
from tfrecreg.errors import RawDataError, RefusedError, TfrecregError, UsageError
from tfrecreg.index import load_index
from tfrecreg.operations.builds import BuildRequest, BuildResult, build
from tfrecreg.operations.init import init
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.registry import Registry, layout, open_registry
from tfrecreg.shards import ShardPolicy
from tfrecreg.sources.python_data import parcel, survey

COUNT = 40


def element(number: int, version: str = "a") -> dict[str, Any]:
    return {
        "id": f"{version}-{number}",
        "pixels": np.full((3, 3), number, np.uint8),
        "label": number % 3,
        "score": np.arange(number % 3 + 1, dtype=np.float32),
    }


class Elements:
    """A sequence that is picklable, and can be made to count, to die or to change."""

    def __init__(self, count: int = COUNT, version: str = "a", dies_at: int = 0) -> None:
        self.count, self.version, self.dies_at = count, version, dies_at
        self.reads = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> dict[str, Any]:
        self.reads += 1
        if self.reads == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return element(number, self.version)


class Notes:
    """A progress that keeps its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def start(self, what: str, total: int, unit: str = "records") -> None: ...
    def advance(self, records: int, size: int) -> None: ...
    def stop(self) -> None: ...
    def note(self, message: str) -> None:
        self.notes.append(message)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    init(tmp_path / "registry", with_dvc=False)
    return open_registry(tmp_path / "registry")


def made(registry: Registry, data: Any, name: str = "shapes", **given: Any) -> BuildResult:
    settings = {key: given.pop(key) for key in ("policy", "base", "default_schema") if key in given}
    return build(registry, BuildRequest(name=name, **settings), data=data, **given)


def refused(registry: Registry, data: Any, **given: Any) -> TfrecregError:
    with pytest.raises(TfrecregError) as caught:
        made(registry, data, **given)
    return caught.value


def stage(registry: Registry, name: str = "shapes") -> Path:
    return Path(registry.storage.root, layout.stage_folder(name))


def keys(registry: Registry, found: BuildResult) -> set[str]:
    folder = registry.storage.below(found.folder)
    indexes = [load_index(folder, shard.index) for shard in found.manifest.shards]
    return {index.key(number) for index in indexes for number in range(len(index))}


FORMS: dict[str, Callable[[], object]] = {
    "list": lambda: [element(number) for number in range(COUNT)],
    "sequence": Elements,
    "generator": lambda: (element(number) for number in range(COUNT)),
    "iterator of a sequence": lambda: iter([element(number) for number in range(COUNT)]),
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
    assert [each[2] for each in found] == [False, True, True, True]
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
    made(registry, {"train": columns}, labels={"label": list("vwxyz")})
    (report,) = tfrecreg.check("shapes", registry=registry)
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


def test_the_manifest_names_a_program_and_no_raw_data(registry: Registry) -> None:
    manifest = made(registry, {"train": Elements()}, key="id").manifest
    assert (manifest.source.name, manifest.source.distribution) == ("python", "tfrecreg")
    assert manifest.source.options == {"keys": "feature id"}
    assert (manifest.raw.files, manifest.raw.stored) == (0, 0)
    assert manifest.ledger["train"].written == COUNT
    assert not Path(registry.storage.root, "datasets/shapes.toml").exists()


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


def test_settings_of_the_dataset_apply(registry: Registry) -> None:
    folder = Path(registry.storage.root, "datasets")
    folder.mkdir(exist_ok=True)
    (folder / "shapes.toml").write_text('shards = 4\ncompression = "gzip"\n')
    registry = open_registry(registry.storage.root)
    manifest = made(registry, {"train": Elements()}).manifest
    assert (len(manifest.shards), manifest.compression) == (4, "gzip")


# What cannot be built.


def halting() -> Iterator[dict[str, Any]]:
    yield {"x": 1}
    raise OSError("the disk is gone")


class Halting(Elements):
    def __getitem__(self, number: int) -> dict[str, Any]:
        if number == 3:
            raise KeyError("no third")
        return element(number)


class OnlyInTurn(Elements):
    """As PyTorch's iterable datasets are, which also have the methods of a sequence."""

    def __getitem__(self, number: int) -> dict[str, Any]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter([element(0)])


class Frame:
    """What tells a DataFrame of pandas apart."""

    iloc = None


BAD: list[tuple[Any, dict[str, Any], str, str]] = [
    (
        {},
        {},
        "`data` is empty, expected a dictionary from the names of splits to their elements",
        '`data={"train": train, "test": test}`',
    ),
    (
        [1],
        {},
        "`data` is a `list`, expected a dictionary from the names of splits to their elements",
        '`data={"train": train, "test": test}`',
    ),
    (
        {1: []},
        {},
        "`data` names a split 1, which is not a text",
        '`data={"train": train, "test": test}`',
    ),
    (
        {"a b": [{"x": 1}]},
        {},
        "`a b` is not a split name: expected letters, digits and `_`",
        "rename the split",
    ),
    ({"train": []}, {}, "split `train` has no elements", "leave it out"),
    ({"train": iter(())}, {}, "split `train` has no elements", "an iterator that was read before"),
    (
        {"train": "raw/train"},
        {},
        "split `train` is an object of type `str`, which holds no elements",
        "folders of files are read by a source: `source=`, `raw=`",
    ),
    ({"train": 5}, {}, "split `train` cannot be read: TypeError: 'int' object is", "give a seq"),
    (
        {"train": Frame()},
        {},
        "split `train` is an object of pandas, which has no elements by number",
        "{name: frame[name].to_numpy() for name in frame}",
    ),
    ({"train": {}}, {}, "split `train` is an empty dictionary", "a dictionary is one of columns"),
    (
        {"train": {"x": [1, 2], "y": [1]}},
        {},
        "split `train`: the column `x` has 2 values, `y` has 1",
        "columns have one value for each element",
    ),
    (
        {"train": {"x": 5}},
        {},
        "split `train`: the column `x` is an object of type `int`, expected an array or a list",
        "a dictionary is one of columns",
    ),
    (
        {"train": np.zeros((2, 3))},
        {},
        "split `train`, element 0 is an object of type `ndarray`, expected a dictionary from "
        "feature name to value",
        "for arrays, give columns",
    ),
    (
        {"train": halting()},
        {},
        "split `train`: the iterable failed after 1 elements: OSError: the disk is gone "
        "(test_python_data.py, line ",
        "nothing was built",
    ),
    (
        {"train": Halting()},
        {},
        "split `train`, element 3 cannot be read: KeyError: 'no third' (test_python_data.py, line ",
        '`data["train"][3]` raises it',
    ),
    (
        {"train": OnlyInTurn()},
        {},
        "split `train`, element 0 cannot be read: NotImplementedError",
        "elements that can only be read in turn are spooled: pass `iter(data)`",
    ),
    (
        {"train": [{"x": 1}, {"x": np.uint64(2**64 - 1)}]},
        {},
        "split `train`, element 1, key `00001`: feature `x`: 18446744073709551615 does not fit in "
        "an int64",
        "an example holds bytes, float32 and int64",
    ),
    (
        {"train": [{"id": "a", "x": np.array([0.1])}]},
        {"key": "id"},
        "split `train`, element 0, key `a`: feature `x`: float32 does not hold",
        "round it",
    ),
    (
        {"train": [{"x": np.array([object()])}]},
        {},
        "split `train`, element 0, key `00000`: feature `x`: an array of `object` has no place",
        "an example holds bytes, float32 and int64",
    ),
    (
        {"train": [{"x": [[1, 2], [3]]}]},
        {},
        "split `train`, element 0, key `00000`: feature `x`: a list of list has no place in",
        "lists are flat and of one kind",
    ),
    (
        {"train": [{"x": 1}]},
        {"key": "id"},
        "split `train`, element 0 has no feature `id`, which `key` names",
        "its features: x",
    ),
    (
        {"train": [{"id": 1.5}]},
        {"key": "id"},
        "split `train`, element 0: the feature `id` cannot be a key",
        "a key is a text or a whole number",
    ),
    (
        {"train": [{"x": 1}]},
        {"key": lambda each: each["y"]},
        "split `train`, element 0: the result of the function `key` cannot be a key: KeyError: 'y'",
        "a key is a text or a whole number",
    ),
    (
        {"train": [{"x": 1}]},
        {"key": 5},
        "`key` should be the name of a feature or a function, found an object of type `int`",
        '`key="id"`',
    ),
    (
        {"train": [{"id": 1}, {"id": 2}, {"id": 1}]},
        {"key": "id"},
        "split `train`: the elements 0 and 2 have the same key `1`",
        "keys are unique in a split",
    ),
    (
        {"train": [{"x": 1}]},
        {"labels": {"y": ["a"]}},
        "`labels` names the feature `y`, which no element has",
        "features: `x`",
    ),
    (
        {"train": [{"x": 1}]},
        {"labels": {"x": "ab"}},
        "`labels` has no list of names for `x`",
        "in order of their numbers",
    ),
    (None, {"key": "x"}, "`key` is about the elements of `data`, which is missing", "a source has"),
]


@pytest.mark.parametrize(("data", "given", "message", "hint"), BAD)
def test_what_cannot_be_built_is_named_and_leaves_nothing(
    registry: Registry, data: Any, given: dict[str, Any], message: str, hint: str
) -> None:
    before = tree(Path(registry.storage.root), ignore=(".tfrecreg",))
    error = refused(registry, data, **given)
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert error.message.startswith(message)
    assert hint in error.hint
    assert error.message.isprintable()
    assert not stage(registry).exists()
    assert tree(Path(registry.storage.root), ignore=(".tfrecreg",)) == before


def test_data_and_a_source_exclude_each_other(registry: Registry) -> None:
    request = BuildRequest(name="shapes", source="mnist", raw="raw", max_skipped=1)
    with pytest.raises(UsageError) as caught:
        build(registry, request, data={"train": Elements()})
    assert caught.value.message == (
        "`source` and `raw` and `max_skipped` and `data` exclude each other: a program's data have "
        "no source and no raw files"
    )
    folder = Path(registry.storage.root, "datasets")
    folder.mkdir(exist_ok=True)
    (folder / "shapes.toml").write_text('source = "mnist"\nraw = "raw"\n')
    error = refused(open_registry(registry.storage.root), {"train": Elements()})
    assert "names the source `mnist` for `shapes`, and the call brings data" in error.message
    assert "remove `source` there" in error.hint


def test_elements_that_differ_when_they_are_read_again_are_refused(registry: Registry) -> None:
    class Augmented(Elements):
        def __getitem__(self, number: int) -> dict[str, Any]:
            self.reads += 1
            return {"x": self.reads}

    made(registry, {"train": [{"x": 1}]})
    before = tree(Path(registry.storage.root, "data"))
    error = refused(registry, {"train": Augmented()})
    assert isinstance(error, RawDataError)
    assert error.message.endswith("was another one when it was read before")
    assert error.message.startswith("split `train`, element ")
    assert "leave out random augmentation; or pass `iter(data)`" in error.hint
    assert tree(Path(registry.storage.root, "data")) == before
    augmented = made(registry, {"train": (Augmented()[0] for _ in range(3))})
    assert augmented.manifest.splits[0].records == 3


def test_data_that_break_the_accepted_schema_are_refused(registry: Registry) -> None:
    made(registry, {"train": [element(0), element(1)]}, key="id")
    before = tree(Path(registry.storage.root, "data"))
    ragged = {**element(2), "label": [1, 2]}
    error = refused(registry, {"train": [element(0), ragged]}, key="id")
    assert isinstance(error, RefusedError)
    assert error.exit_code == 1
    assert error.message == (
        "the new build does not pass its own check, and the old one stays: `label` should have "
        "exactly 1 value (split `train`, key `a-2`)"
    )
    assert "`findings` of this error has all of them" in error.hint
    assert [each.code for each in error.findings] == ["SCH004", "SCH006"]
    assert tree(Path(registry.storage.root, "data")) == before


def test_a_lost_schema_is_not_drafted_anew_unasked(registry: Registry) -> None:
    made(registry, {"train": Elements(5)})
    Path(registry.storage.root, "schemas/shapes.pbtxt").unlink()
    error = refused(registry, {"train": Elements(6)})
    assert "`schemas/shapes.pbtxt` is missing, and the draft from the data is not that of" in (
        error.message
    )
    assert error.hint == "take the draft: `BuildRequest(…, default_schema=True)`"
    assert made(registry, {"train": Elements(6)}, default_schema=True).report.status == "pass"


# A killed build.


def shards(registry: Registry) -> dict[str, Any]:
    return tree(Path(registry.storage.root, "data/shapes"))


@pytest.mark.parametrize("form", ["sequence", "spooled"])
def test_a_killed_build_goes_on_and_never_mixes_two_states(tmp_path: Path, form: str) -> None:
    def data(version: str, dies_at: int = 0) -> dict[str, Any]:
        elements = Elements(COUNT, version, dies_at)
        return {"train": elements if form == "sequence" else (elements[n] for n in range(COUNT))}

    def fresh(name: str) -> Registry:
        init(tmp_path / name, with_dvc=False)
        return open_registry(tmp_path / name)

    policy = ShardPolicy(shards=4)
    killed, clean = fresh("killed"), fresh("clean")
    # A sequence dies on its second pass, in the third shard; an iterable is read only once.
    at = COUNT + 25 if form == "sequence" else 25
    ended = Child(lambda tell: made(killed, data("a", at), policy=policy)).join()
    assert ended.killed
    again = made(killed, data("a"), policy=policy)
    assert again.resumed == (2 if form == "sequence" else 0)
    expected = made(clean, data("a"), policy=policy)
    assert again.manifest == expected.manifest
    assert shards(killed) == shards(clean)
    assert not stage(killed).exists()

    assert Child(lambda tell: made(killed, data("b", at), policy=policy)).join().killed
    other = made(killed, data("c"), policy=policy)
    assert other.resumed == 0
    assert other.manifest.content == made(clean, data("c"), policy=policy).manifest.content
    assert shards(killed) == shards(clean)


# Where data are read.


def test_data_that_cannot_be_pickled_are_read_here(registry: Registry) -> None:
    progress = Notes()
    expected = made(registry, {"train": Elements()}).manifest.digest

    class Local(Elements):
        """A class that no other process can import."""

    found = made(registry, {"train": Local()}, jobs=2, progress=progress)
    assert found.manifest.digest == expected
    (note,) = progress.notes
    assert note.startswith(
        "split `train` is read in this process alone: it cannot be pickled: AttributeError: "
    )
    assert note.isprintable()
    made(registry, {"train": Elements()}, jobs=2, progress=progress, key=lambda each: each["id"])
    assert len(progress.notes) == 2 + 1  # and one that keys changed
    assert parcel._HERE == {}


def test_large_data_are_read_here(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel, "MOST_PICKLED", 1 << 20)
    progress = Notes()
    data = {"x": np.zeros((9, 1 << 15), np.float32)}
    both = {"test": [{"x": np.zeros(1 << 15, np.float32)}], "train": data}
    made(registry, both, jobs=2, progress=progress)
    assert progress.notes == [
        "split `train` is read in this process alone: pickled, the data have more than 1 MiB"
    ]


def test_a_changed_pickle_is_never_unpickled(registry: Registry, tmp_path: Path) -> None:
    storage = registry.storage.below(".tfrecreg/stage/x/data")
    from tfrecreg.sources.python_data.convert import Converter, KeyRule

    split = parcel.SequenceSplit(Converter("train", KeyRule()), [element(0)])
    with parcel.parcels([split], storage, 2, Notes()) as ((mine,), travels):
        assert travels
        assert mine.open() is split
    assert mine.open().record(0).payload == split.record(0).payload  # as another process does
    parcel._unpacked.cache_clear()
    Path(storage.root, "train.pickle").write_bytes(pickle.dumps(split) + b"x")
    with pytest.raises(TfrecregError) as caught:
        mine.open()
    assert caught.value.message == "`train.pickle` was changed in the stage of the build"


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
        "error: `shapes` was built from the data of a program, which this command does not have\n"
        "hint: run the program that calls `tfrecreg.build(…, data=…)`; or name raw files: "
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
    assert "--repair" not in text
    code, text = said(capsys, "build", "shapes", "--repair", "shapes")
    assert code == 2
    assert "error: `shapes` was built from the data of a program, which are not here\n" in text
    assert "hint: run the program that calls `tfrecreg.build(…, data=…)`: the same data" in text
    assert made(open_registry(here), {"train": Elements()}).report.status == "pass"


def test_raw_files_are_not_compared(here: Path, capsys: Any) -> None:
    code, text = said(capsys, "check", "shapes", "--raw", str(here / "schemas"), "--json")
    document = json.loads(text[text.index("{") :])
    assert code in (0, 1)
    assert "SRC" not in {each["code"][:3] for each in document["findings"]}
    code, text = said(capsys, "show", "shapes")
    assert "source    python (tfrecreg " in text
    assert ", keys=position" in text


def test_a_changed_schema_names_the_program(here: Path, capsys: Any) -> None:
    schema = here / "schemas/shapes.pbtxt"
    schema.write_text(schema.read_text() + 'feature { name: "age" type: INT }\n')
    code, text = said(capsys, "release", "shapes", "--version", "1.0.0")
    assert code == 2
    assert "hint: run the program that calls `tfrecreg.build(…, data=…)`\n" in text


# With processes, and in sessions.


def script(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_processes_do_not_change_the_bytes(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "_WORTH_SECONDS", 0.0)  # processes from the second part on
    policy = ShardPolicy(shards=3)
    data: Sequence[Any] = Elements(1000)
    expected = made(registry, {"train": data, "test": Elements(300)}, policy=policy, key="id")
    for jobs in (2, 3):
        progress = Notes()
        both = {"train": data, "test": (element(number) for number in range(300))}
        found = made(registry, both, policy=policy, key="id", jobs=jobs, progress=progress)
        assert found.manifest == expected.manifest
        assert progress.notes == []


@pytest.mark.slow
def test_an_error_in_a_process_is_the_same_error(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "_WORTH_SECONDS", 0.0)

    bad = [{"x": 1}] * 700 + [{"x": np.array([0.1])}]
    error = refused(registry, {"train": bad}, jobs=2)
    assert error.message.startswith("split `train`, element 700, key `00700`: feature `x`: float32")


@pytest.mark.slow
def test_tensors_of_tensorflow_are_arrays(registry: Registry) -> None:
    tf = pytest.importorskip("tensorflow")
    arrays = {"x": np.arange(24, dtype=np.uint8).reshape(4, 2, 3), "y": np.arange(4)}
    expected = made(registry, {"train": arrays}).manifest
    tensors = {name: tf.constant(array) for name, array in arrays.items()}
    assert made(registry, {"train": tensors}).manifest == expected
    dataset = tf.data.Dataset.from_tensor_slices(arrays)
    assert made(registry, {"train": dataset}).manifest == expected
    spec = {"x": tf.TensorSpec((2, 3), tf.uint8)}
    loaded = tfrecreg.load("shapes", "train", registry=registry, tensors=spec)
    found = {int(each["y"]): each["x"].numpy() for each in loaded}
    np.testing.assert_array_equal(np.stack([found[number] for number in range(4)]), arrays["x"])


SESSION = """
import tfrecreg
class Elements:
    def __len__(self): return 600
    def __getitem__(self, number): return {"x": number}
class Progress:
    def start(self, what, total, unit="records"): pass
    advance = stop = lambda *arguments: None
    note = print
tfrecreg.init(".", with_dvc=False)
found = tfrecreg.build(
    tfrecreg.open_registry("."), tfrecreg.BuildRequest(name="shapes"),
    data={"train": Elements()}, jobs=2, progress=Progress(),
)
print(found.manifest.splits[0].records)
"""


@pytest.mark.slow
def test_classes_of_a_session_stay_in_its_process(tmp_path: Path) -> None:
    done = script(tmp_path, "", "-c", SESSION.replace("note = print", "note = staticmethod(print)"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "600"
    assert "it is of a class of this session, which other processes cannot import" in done.stdout


@pytest.mark.slow
def test_memory_does_not_grow_with_a_generator(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import resource, sys, tfrecreg
        def elements(count):
            for number in range(count):
                yield {"number": number, "text": bytes(20_000)}
        tfrecreg.init(".", with_dvc=False)
        registry = tfrecreg.open_registry(".")
        request = tfrecreg.BuildRequest(name="texts")
        tfrecreg.build(registry, request, data={"train": elements(int(sys.argv[1]))})
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        """
    )
    used = []
    for count in ("500", "10000"):
        (tmp_path / count).mkdir()
        done = script(tmp_path / count, "", "-c", code, count)
        assert done.returncode == 0, done.stderr
        used.append(int(done.stdout) >> 10)
    assert used[1] - used[0] < 60, used  # MiB, of 190 MiB that are built
