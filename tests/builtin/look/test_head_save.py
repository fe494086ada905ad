"""Images as files: their own bytes, under names that nothing in the data can misuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_support import framed
from image_support import gif, jpeg, png
from tests_support import tree

from tfrecreg.builtin.look.head import Choice, ShownRecord, head, save_images
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.registry.find import bare_files, target_of
from tfrecreg.core.values.errors import StorageError, UsageError


def saved(folder: Path, out: Path, *examples: Example) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "a.tfrecord").write_bytes(b"".join(framed(encode(each)) for each in examples))
    target = target_of(bare_files([str(folder)]))
    return [
        Path(path).name
        for record in save_images(head(target, Choice(99)), out)
        for path in record.saved
    ]


def test_each_image_is_a_file_of_its_own_bytes(tmp_path: Path) -> None:
    out = tmp_path / "new/out"
    names = saved(
        tmp_path / "in",
        out,
        {"image": bytes_feature(jpeg()), "label": int64_feature(3)},
        {"image": bytes_feature(png()), "thumb": bytes_feature([b"no", gif()])},
    )
    assert tree(out) == {
        "a.tfrecord-0-image.jpg": jpeg(),
        "a.tfrecord-1-image.png": png(),
        "a.tfrecord-1-thumb-1.gif": gif(),
    }
    assert names == sorted(tree(out))


def test_records_go_through_with_their_paths(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed(encode({"x": bytes_feature(png())})))
    records = list(head(target_of(bare_files([str(tmp_path)]))))
    (found,) = save_images(records, tmp_path / "out")
    assert found.saved == (str(tmp_path / "out/a.tfrecord-0-x.png"),)
    assert found.features == records[0].features
    assert isinstance(found, ShownRecord)


@pytest.mark.parametrize(
    ("feature", "name"),
    [
        ("image/encoded", "image_encoded"),
        ("../../../etc/passwd", "_.._.._etc_passwd"),
        ("-rf *", "rf_"),
        (".hidden", "hidden"),
        ("a\x1b[2J\n\u202ebc\0", "a_2J_bc_"),
        ("", "_"),
        ("猫", "_"),
        ("f" * 300, "f" * 80),
    ],
)
def test_no_name_can_lead_anywhere_else(tmp_path: Path, feature: str, name: str) -> None:
    out = tmp_path / "out"
    saved(tmp_path / "in", out, {feature: bytes_feature(png())})
    assert list(tree(tmp_path, ignore=("in",))) == [f"out/a.tfrecord-0-{name}.png"]


def test_names_that_become_the_same_stay_apart(tmp_path: Path) -> None:
    out = tmp_path / "out"
    images = {name: png(seed=number) for number, name in enumerate(["a/b", "a_b", "A b", "ä"])}
    example = {name: bytes_feature(data) for name, data in images.items()}
    names = saved(tmp_path / "in", out, example)
    assert len({name.lower() for name in names}) == 4
    assert sorted(tree(out).values()) == sorted(images.values())


def test_shards_of_one_name_in_two_folders_stay_apart(tmp_path: Path) -> None:
    for number, folder in enumerate(("a", "b")):
        (tmp_path / "in" / folder).mkdir(parents=True)
        data = framed(encode({"x": bytes_feature(png(seed=number))}))
        (tmp_path / "in" / folder / "x.tfrecord").write_bytes(data)
    target = target_of(bare_files([str(tmp_path / "in")]))
    list(save_images(head(target), tmp_path / "out"))
    assert sorted(tree(tmp_path / "out").values()) == sorted([png(seed=0), png(seed=1)])


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.tfrecord-1-x.png").write_bytes(b"mine")
    examples = [{"x": bytes_feature(png(seed=number))} for number in range(3)]
    with pytest.raises(UsageError) as caught:
        saved(tmp_path / "in", out, *examples)
    message = f"`{out}/a.tfrecord-1-x.png` was not written, because this file exists already"
    assert caught.value.message == message
    assert tree(out) == {"a.tfrecord-0-x.png": png(seed=0), "a.tfrecord-1-x.png": b"mine"}


def test_a_link_in_the_folder_leads_nowhere(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.tfrecord-0-x.png").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="exists already"):
        saved(tmp_path / "in", out, {"x": bytes_feature(png())})
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"a file")
    with pytest.raises(StorageError, match="is not a folder"):
        saved(tmp_path / "in", tmp_path / "out", {"x": bytes_feature(png())})
