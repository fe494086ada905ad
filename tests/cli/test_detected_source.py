"""`build NAME --raw DIR` without `--source`: the source that fits and why, or the two that do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hostile_plugin_support import InProcess, plant_source
from hostile_plugin_support import here as here  # the fixtures
from hostile_plugin_support import place as place
from image_support import png

from tfrecreg.core.plugins.bundled import SOURCES

DOCUMENT = {"images": [{"id": 1, "file_name": "1.png"}], "annotations": [], "categories": []}


def write_images(folder: Path, *paths: str) -> None:
    for number, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(png(3 + number, 3))


def write_coco(folder: Path, path: str = "annotations/instances_val.json") -> None:
    write_images(folder, "images/1.png")
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_text(json.dumps(DOCUMENT))


def notes(text: str) -> list[str]:
    """The lines of the choice."""
    lines = text.splitlines()
    block = [each for each in lines if each.startswith(("source `", "  "))]
    return [each for each in block if not each.startswith("  INF")]


def test_the_digits_are_those_of_mnist(cli, raw: Path, registry: Path) -> None:
    (raw / "README.txt").write_text("digits")
    done = cli("build", "digits", "--raw", raw, "--json")
    assert done.code == 0, done.err
    assert notes(done.err) == [
        f"source `mnist`: `{raw}` has 4 IDX files, such as `t10k-images-idx3-ubyte.gz`",
        "  not read: `README.txt`",
    ]
    assert done.json["settings"]["detected"] == {
        "source": "mnist",
        "strength": "exact",
        "reason": "4 IDX files, such as `t10k-images-idx3-ubyte.gz`",
        "aside": ["README.txt"],
        "others": [],
        "above": "",
        "failed": [],
    }
    assert 'source = "mnist"' in Path("datasets/digits.toml").read_text()
    again = cli("build", "digits", "--json")
    assert again.json["unchanged"]
    assert "detected" not in again.json["settings"]
    assert notes(again.err) == []


def test_a_source_that_is_found_or_named_makes_the_same_build(
    cli, raw: Path, registry: Path
) -> None:
    assert cli("build", "digits", "--raw", raw).code == 0
    found = Path("data/digits/manifest.json").read_bytes()
    shutil.rmtree("data/digits")
    Path("datasets/digits.toml").unlink()
    assert cli("build", "digits", "--raw", raw, "--source", "mnist").code == 0
    assert Path("data/digits/manifest.json").read_bytes() == found


def test_a_preview_shows_the_choice_and_saves_nothing(cli, raw: Path, registry: Path) -> None:
    done = cli("build", "digits", "--raw", raw, "--dry-run")
    assert (done.code, notes(done.err)[0].split(":")[0]) == (0, "source `mnist`")
    done = cli("build", "digits", "--raw", raw, "--dry-run", "--json")
    assert done.json["settings"]["detected"]["strength"] == "exact"
    assert not Path("datasets/digits.toml").exists()


@pytest.mark.parametrize(
    ("images", "reason", "aside"),
    [
        (("cat/1.png", "dog/1.png"), "folders of classes (`cat`, `dog`)", []),
        (("cat/1.png", "dog/a/b.png"), "folders of classes (`cat`, `dog`)", []),
        (
            ("train/cat/1.png", "train/dog/1.png", "test/cat/1.png", "more/x.png"),
            "folders of splits (`test`, `train`) with folders of classes (`cat`, `dog`)",
            ["more"],
        ),
    ],
)
def test_class_folders(
    cli, tmp_path: Path, registry: Path, images: Any, reason: str, aside: list[str]
) -> None:
    write_images(tmp_path / "pets", *images)
    layout = ("--option", "layout=split") if aside else ()
    done = cli("build", "pets", "--raw", tmp_path / "pets", "--dry-run", "--json", *layout)
    assert done.code == 0, done.err
    found = done.json["settings"]["detected"]
    assert (found["source"], found["reason"], found["aside"]) == ("imagefolder", reason, aside)


@pytest.mark.parametrize(
    "path",
    [
        "annotations/instances_val.json",
        "annotations/custom.json",
        "instances_val.json",
        "images/_annotations.coco.json",
    ],
)
def test_annotations_beat_the_layout_of_images(
    cli, tmp_path: Path, registry: Path, path: str
) -> None:
    write_coco(tmp_path / "boxes", path)
    write_images(tmp_path / "boxes", "cats/1.png", "dogs/1.png")
    done = cli("build", "boxes", "--raw", tmp_path / "boxes", "--dry-run")
    assert done.code == 0, done.err
    assert notes(done.err) == [
        f"source `coco`: `{tmp_path}/boxes` has annotations in COCO's JSON: `{path}`",
        "  not used: the source `imagefolder`, a weaker match: it has folders of classes (`cats`, "
        "`dogs`, `images`)",
    ]


def test_lists_of_results_are_no_annotations(cli, tmp_path: Path, registry: Path) -> None:
    write_coco(tmp_path / "boxes")
    (tmp_path / "boxes/annotations/instances_val.json").write_text(' [{"image_id": 1}]')
    done = cli("build", "boxes", "--raw", tmp_path / "boxes")
    assert (done.code, done.err.splitlines()) == (
        2,
        [
            f"error: `{tmp_path}/boxes` does not look like the raw data of any source",
            "hint: tfrecreg build boxes --source SOURCE --raw PATH; sources: "
            f"{', '.join(sorted(SOURCES))}",
        ],
    )


@pytest.mark.parametrize(
    ("named", "source", "fits"),
    [
        ("digits", "mnist", "digits/raw"),
        ("pets/cat", "imagefolder", "pets"),
        ("boxes/annotations", "coco", "boxes"),
        ("boxes/images", "coco", "boxes"),
    ],
)
def test_a_folder_at_another_level_is_named(
    cli, raw: Path, registry: Path, named: str, source: str, fits: str
) -> None:
    shutil.copytree(raw, "digits/raw")
    write_images(Path("pets"), "cat/1.png", "dog/1.png")
    write_coco(Path("boxes"), "annotations/x.json")
    root = Path.cwd()
    done = cli("build", "x", "--raw", named)
    assert (done.code, done.err.splitlines()) == (
        2,
        [
            f"error: `{named}` does not look like the raw data of any source",
            f"hint: `{root}/{fits}` has files for the source `{source}`: tfrecreg build x --source "
            f"{source} --raw {root}/{fits}",
        ],
    )


@pytest.mark.parametrize(
    ("files", "source", "code", "words"),
    [
        (["a/0.tif", "b/1.tif"], "imagefolder", 1, ["found a TIFF", "--dry-run"]),
        (["0.heic", "1.heic"], "imagefolder", 2, ["holds no folders", "label_file"]),
        (["0.png", "1.png"], "imagefolder", 2, ["holds no folders", "label_file"]),
        (["0.tgz"], "webdataset", 2, ["is compressed", "gunzip"]),
        (["gz/0.tar"], "webdataset", 2, ["is compressed", "gunzip"]),
        (["train/0.tar.gz", "notes.txt"], "webdataset", 2, ["is compressed", "gunzip"]),
    ],
)
def test_where_no_source_reads_a_folder_one_gives_its_reason(
    cli, tmp_path: Path, registry: Path, files: list[str], source: str, code: int, words: list[str]
) -> None:
    for name in files:
        write_images(tmp_path / "raw", name)
        if not name.endswith(("png", "heic", "txt")):
            (tmp_path / "raw" / name).write_bytes(b"II*\0" if "tif" in name else b"\x1f\x8b\x08")
    done = cli("build", "x", "--raw", tmp_path / "raw")
    assert done.code == code
    assert notes(done.err)[0].startswith(f"source `{source}`: ")
    assert [word for word in words if word not in done.err] == []


@pytest.mark.parametrize("named", ["kitti", "kitti/training"])
def test_folders_of_which_half_are_no_images_are_not_classes(
    cli, tmp_path: Path, registry: Path, named: str
) -> None:
    write_images(tmp_path, *(f"kitti/{each}/image_2/1.png" for each in ("training", "testing")))
    for path in ("training/label_2/1.txt", "training/calib/1.txt"):
        (tmp_path / "kitti" / path).parent.mkdir()
        (tmp_path / "kitti" / path).touch()
    done = cli("build", "x", "--raw", tmp_path / named)
    assert (done.code, notes(done.err)) == (2, [])
    assert "imagefolder --raw" not in done.err


@pytest.mark.parametrize("source", [(), ("--source", "imagefolder")])
@pytest.mark.parametrize(
    "others", [["other/train/a/1.png", "tables/x.csv"], ["src/x.py"], ["notes.txt"]]
)
def test_a_folder_above_with_something_else_in_it_is_not_named(
    cli, tmp_path: Path, registry: Path, others: list[str], source: tuple[str, ...]
) -> None:
    write_images(tmp_path / "sets", "flat/1.png", "flat/2.png", *others)
    done = cli("build", "x", "--raw", tmp_path / "sets/flat", *source)
    assert done.code == 2
    assert f"`{tmp_path}/sets`" not in done.err


def test_classes_that_differ_only_by_case_are_noted(cli, tmp_path: Path, registry: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/train.csv").write_text("n,kind\n1,Cat\n2,cat\n3,dog\n")
    done = cli("build", "x", "--raw", tmp_path / "raw", "--option", "columns=*,kind:label")
    assert done.code == 0
    assert "`Cat` and `cat`" in done.err


def test_a_split_that_is_named_alone_is_built_and_the_folder_above_is_named(
    cli, tmp_path: Path, registry: Path
) -> None:
    write_images(tmp_path, "pets/train/cat/1.png", "pets/train/dog/1.png", "pets/test/cat/1.png")
    done = cli("build", "pets", "--raw", tmp_path / "pets/train", "--dry-run")
    assert done.code == 0, done.err
    assert notes(done.err)[1:] == [f"  `{tmp_path}/pets` has files for this source, too"]


def test_a_folder_behind_a_url(cli, memory: Any, raw: Path, registry: Path) -> None:
    memory.put(str(raw), "/lake/all/digits", recursive=True)
    done = cli("build", "digits", "--raw", "memory://lake/all/digits", "--dry-run", "--json")
    assert done.code == 0, done.err
    assert done.json["settings"]["detected"]["source"] == "mnist"
    done = cli("build", "digits", "--raw", "memory://lake/all")
    assert done.err.splitlines()[-2:] == [
        "error: `memory://lake/all` does not look like the raw data of any source",
        "hint: `memory://lake/all/digits` has files for the source `mnist`: tfrecreg build digits "
        "--source mnist --raw memory://lake/all/digits",
    ]


def test_a_named_source_is_used_though_another_one_fits_exactly(
    cli, tmp_path: Path, registry: Path
) -> None:
    write_coco(tmp_path / "boxes")
    write_images(tmp_path / "boxes", "cats/1.png", "dogs/1.png")
    named = ("--source", "imagefolder", "--raw", tmp_path / "boxes", "--option", "layout=class")
    done = cli("build", "boxes", *named, "--option", "extensions=png")
    assert done.code == 0, done.err
    note = (
        "the source `coco` may fit better: there are annotations in COCO's JSON: "
        "`annotations/instances_val.json`"
    )
    assert done.err.splitlines()[0] == note
    assert note not in cli("build", "boxes").err  # it is saved


def test_a_wrong_source_is_answered_with_the_right_one(cli, tmp_path: Path, registry: Path) -> None:
    write_images(tmp_path / "pets", "cat/1.png", "dog/1.png")
    done = cli("build", "pets", "--source", "mnist", "--raw", tmp_path / "pets")
    assert done.code == 2
    assert done.err.splitlines()[-1] == (
        "hint: it has folders of classes (`cat`, `dog`): --source imagefolder; or name the folder "
        "of the IDX files with `--raw`, under their usual names"
    )


def announce(here: InProcess, arguments: str, body: str = "") -> None:
    """The source `evil`, announced with more arguments; `body` goes before the announcement."""
    plant_source(here.site, "pass")
    module = here.site / "hostile_plugin.py"
    text = module.read_text().replace("hookimpl,", "hookimpl, Recognition,", 1)
    text = text.replace('"does harm", load)', f'"does harm", load, {arguments})')
    module.write_text(text + body)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("recognizes=['*images?idx?-ubyte*']", "files such as `t10k-images-idx3-ubyte.gz`"),
        ("recognizes=['*idx3*', '*.x']", "files such as `t10k-images-idx3-ubyte.gz`"),
        ("examine=lambda look: Recognition('exact', 'digits')", "digits"),
    ],
)
def test_two_that_fit_equally_are_both_named(
    here: InProcess, drawn: Path, tmp_path: Path, arguments: str, reason: str
) -> None:
    announce(here, arguments)
    done = here.run("-C", tmp_path / "r", "build", "x", "--raw", str(drawn))
    assert done.code == 2
    command, last = "tfrecreg build x --source", f"--raw {drawn}"
    assert done.err.splitlines() == [
        f"error: `{drawn}` fits 2 sources equally: `evil` (it has {reason}) and `mnist` (it has "
        "4 IDX files, such as `t10k-images-idx3-ubyte.gz`)",
        f"hint: {command} evil {last}; or {command} mnist {last}",
    ]


def test_a_suffix_is_weaker_than_a_name(here: InProcess, drawn: Path, tmp_path: Path) -> None:
    shutil.copytree(drawn, tmp_path / "mine")
    (tmp_path / "mine/labels.csv").write_text("file,label\n")
    announce(here, "recognizes=['*.csv']")
    done = here.run(
        "-C", tmp_path / "r", "build", "x", "--raw", str(tmp_path / "mine"), "--dry-run"
    )
    assert done.code == 0, done.err
    assert (
        "  not used: the source `evil`, a weaker match: it has files such as `labels.csv`"
    ) in done.err.splitlines()


@pytest.mark.parametrize(
    ("examine", "told"),
    [
        ("lambda look: 1 / 0", "ZeroDivisionError: division by zero (hostile_plugin.py, line "),
        ("lambda look: sys.exit()", "SystemExit"),
        (
            "lambda look: 'mine'",
            "TypeError: expected a Recognition or None, found an object of type `str`",
        ),
        ("lambda look: Recognition('sure', 'x')", "expected a Recognition or None"),
    ],
)
def test_a_source_that_fails_to_look_is_reported_and_passed_over(
    here: InProcess, drawn: Path, tmp_path: Path, examine: str, told: str
) -> None:
    announce(here, f"examine={examine}")
    done = here.run("-C", tmp_path / "r", "build", "x", "--raw", str(drawn), "--dry-run")
    assert done.code == 0, done.err
    (line,) = (each for each in done.err.splitlines() if "failed in `examine`" in each)
    assert line.startswith("the source `evil` of `hostile` 6.6 failed in `examine`: ")
    assert told in line
    assert line.endswith("so it was not asked")


def test_examine_that_is_no_function_breaks_the_plugin(
    here: InProcess, drawn: Path, tmp_path: Path
) -> None:
    announce(here, "examine=5")
    done = here.run("plugins", "list")
    assert "`evil` needs a function as `examine`" in done.err + done.out
