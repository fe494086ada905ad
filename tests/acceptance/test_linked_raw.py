"""Raw data that DVC keeps as links into its cache make the same builds as files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from image_support import png
from shell_support import Shell, open_shell

from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

SOURCES = ("mnist", "imagefolder", "coco")


def write_raw(root: Path) -> None:
    """Raw data for each source, in a folder of its name, and one that a link leads to."""
    write_digits(LocalStorage(root / "raw/mnist"), train=8, test=4, seed=1)
    for number in range(4):
        for folder in ("imagefolder/cat", "coco/train2017", "../store/dogs"):
            path = root / "raw" / folder / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(9, 8, seed=number + len(folder)))
    (root / "raw/imagefolder/dog").symlink_to("../../store/dogs")
    images = [
        {"id": each, "file_name": f"{each}.png", "width": 9, "height": 8} for each in range(4)
    ]
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4], "area": 16}
    data = {
        "images": images,
        "annotations": [{**annotation, "iscrowd": 0}],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (root / "raw/coco/annotations").mkdir()
    (root / "raw/coco/annotations/instances_train2017.json").write_text(json.dumps(data))


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A repository with raw data in plain files, built from by each source."""
    run = open_shell(tmp_path_factory.mktemp("linked"))
    run("git init -q -b main")
    run("tfrecreg init")
    write_raw(run.root)
    for source in SOURCES:
        run(f"tfrecreg build {source} --source {source} --raw raw/{source}")
    return run


def contents(run: Shell) -> dict[str, str]:
    return {
        source: json.loads((run.root / f"data/{source}/manifest.json").read_bytes())["content"]
        for source in SOURCES
    }


@pytest.mark.slow
def test_raw_data_in_dvcs_cache_build_and_check_as_files_do(started: Shell, tmp_path: Path) -> None:
    root = Path(shutil.copytree(started.root, tmp_path / "root", symlinks=True))
    run = started.at(root)
    run("dvc config cache.type symlink")
    run(f"dvc cache dir --local {tmp_path / 'cache'}")
    before = contents(run)
    run("dvc add -q raw/mnist raw/coco raw/imagefolder/cat store/dogs")
    linked = [each.is_symlink() for each in root.glob("raw/*/cat/*.png")]
    assert linked == [True] * 4
    for source in SOURCES:
        document = run.document(f"tfrecreg build {source} --json")
        assert document["content"] == before[source]
        report = run.document(f"tfrecreg check {source} --raw raw/{source} --json")
        assert report["status"] == "pass"
        run(f"tfrecreg release {source} --version 1.0.0")
    assert contents(run) == before
    # Grown from releases whose shards DVC has made links, too.
    for source in SOURCES:
        assert run.document(f"tfrecreg build {source} --json")["unchanged"] is True


@pytest.mark.slow
def test_links_into_a_cache_that_was_cleared_are_findings(started: Shell, tmp_path: Path) -> None:
    root = Path(shutil.copytree(started.root, tmp_path / "root", symlinks=True))
    run = started.at(root)
    run("dvc config cache.type symlink")
    run("dvc add -q raw/mnist raw/coco raw/imagefolder/cat store/dogs")
    shutil.rmtree(root / ".dvc/cache")
    said = run("tfrecreg build imagefolder", expect=1)
    assert "8 of 8 items were skipped (SRC111: 8), but the limit is 0" in said
    assert "a symbolic link that leads nowhere or in a circle" in said
    said = run("tfrecreg build mnist", expect=2)
    assert "is neither a file nor a link to one" in said
    assert "if DVC's cache lacks the link's target, run `dvc pull`" in said
    said = run("tfrecreg build coco", expect=2)
    assert (
        "`annotations/instances_train2017.json` is a symbolic link that leads nowhere or in a "
        "circle" in said
    )
