"""A build says which of its settings are not written down, and which an earlier one had not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from image_support import png

from tfrecreg.core.values.documents import read_toml

SPLIT = "split=train=0.5,test=0.5"


@pytest.fixture
def images(registry: Path, tmp_path: Path) -> Path:
    """Images of one class, built as `s` without options; the current folder is the registry."""
    folder = tmp_path / "images"
    (folder / "cat").mkdir(parents=True)
    for seed in range(30):
        (folder / f"cat/{seed}.png").write_bytes(png(9, 9, seed=seed))
    return folder


def table(registry: Path, name: str = "s") -> Any:
    return read_toml((registry / f"datasets/{name}.toml").read_bytes(), "it")


def built(cli: Any, images: Path, *more: str) -> Any:
    return cli("build", "s", "--source", "imagefolder", "--raw", images, *more)


def test_options_that_are_not_written_down_are_told(cli, registry, images) -> None:
    assert built(cli, images).err == ""
    before = table(registry)
    done = cli("build", "s", "--option", SPLIT)
    assert done.code == 0
    assert done.err.splitlines()[:2] == [
        f"`datasets/s.toml` does not have these settings: `{SPLIT}` (there "
        "`split=`); the next `tfrecreg build s` will not use them unless `--save-options` writes "
        "them there",
        f"the previous build of `s` was made with other settings: `split=` (now `{SPLIT}`)",
    ]
    assert table(registry) == before
    document = cli("build", "s", "--option", SPLIT, "--json").json
    assert document["settings"] == {
        "unsaved": {"split": {"used": "train=0.5,test=0.5", "saved": ""}},
        "since": None,
        "changed": {},
    }


def test_a_build_that_forgets_what_the_release_had_is_told(cli, registry, images) -> None:
    built(cli, images)
    assert cli("build", "s", "--option", SPLIT, "--release", "1.0.0").code == 0
    said = f"`s@1.0.0` was made with other settings: `{SPLIT}` (now `split=`)"
    for _ in range(2):  # the build before is not all that counts
        done = cli("build", "s")
        assert done.code == 0
        assert said in done.err.splitlines()
    document = cli("build", "s", "--json").json
    assert document["settings"] == {
        "unsaved": {},
        "since": "`s@1.0.0`",
        "changed": {"split": {"used": "", "before": "train=0.5,test=0.5"}},
    }
    preview = cli("build", "s", "--dry-run")
    assert said in preview.err.splitlines()
    preview = cli("build", "s", "--dry-run", "--json")
    assert preview.json["settings"] == document["settings"]
    assert cli("build", "s", "--option", SPLIT, "--json").json["settings"]["changed"] == {}


def test_saved_options_are_numbers_truth_values_and_texts(cli, registry, images) -> None:
    built(cli, images, "--option", "labels_from=1", "--option", "sha256=no")
    more = ("--option", "labels_from=0", "--option", "layout=class")
    assert cli("build", "s", *more, "--save-options").code == 0
    found = table(registry)["options"]
    assert found == {"labels_from": 0, "sha256": False, "layout": "class"}
    assert [type(found[name]) for name in ("labels_from", "sha256")] == [int, bool]
    again = cli("build", "s", *more, "--json").json
    assert again["unchanged"] is True
    assert again["settings"]["unsaved"] == {}


def test_settings_are_written_where_that_is_asked_for(cli, registry, images) -> None:
    built(cli, images, "--option", "labels_from=1")
    file = registry / "datasets/s.toml"
    file.write_text(f'# ours\nowner = "ada"\n{file.read_text()}')
    more = ("--hosts", "2", "--compression", "gzip", "--max-skipped", "5%", "--option", SPLIT)
    done = cli("build", "s", *more, "--save-options")
    assert done.code == 0
    assert "does not have these settings" not in done.err
    assert "# ours" in file.read_text()
    assert table(registry) == {
        "owner": "ada",
        "source": "imagefolder",
        "raw": str(images),
        "options": {"labels_from": 1, "split": "train=0.5,test=0.5"},
        "hosts": 2,
        "compression": "gzip",
        "max_skipped": "5%",
    }
    again = cli("build", "s", "--json")
    assert again.json["unchanged"] is True
    assert again.json["settings"] == {"unsaved": {}, "since": None, "changed": {}}
    # One way to size shards takes the place of another.
    assert cli("build", "s", "--shards", "3", "--save-options").code == 0
    assert (table(registry)["shards"], "hosts" in table(registry)) == (3, False)
    assert cli("build", "s").code == 0


def test_a_build_that_fails_writes_no_settings(cli, registry, images) -> None:
    built(cli, images)
    before = (registry / "datasets/s.toml").read_bytes()
    (images / "cat/bad.png").write_bytes(b"no image")
    assert cli("build", "s", "--option", SPLIT, "--save-options").code == 1
    assert (registry / "datasets/s.toml").read_bytes() == before
