"""What the plugin says of itself: its options, their page, its schema."""

from __future__ import annotations

from pathlib import Path

from tfrecreg.api import Splitter
from tfrecreg.core.plugins.recognition import describe_options
from tfrecreg_imagefolder.imagefolder_options import ImageFolderOptions


def test_the_page_has_every_option_with_its_default_and_every_code() -> None:
    page = (Path(__file__).parents[3] / "docs/sources/imagefolder.md").read_text("utf-8")
    table = page[page.index("## Options") : page.index("## Size")]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    shown = {name.strip(" `"): default.strip(" `") for name, default in rows}
    expected = {each.name: each.default for each in describe_options(ImageFolderOptions)}
    expected.update(split="none", extensions="all files")  # what an empty list means
    assert shown == expected
    for number in range(2, 19):
        assert f"SRC{number:03d}" in page


NAMES = [f"class/picture{number}.jpg" for number in range(5_000)]


def test_a_share_is_what_it_is_forever() -> None:
    # Golden: another hash, or another order, would move images of everybody's next build.
    splitter = Splitter(["train=0.8", "validation=0.1", "test=0.1"])
    found = "".join(splitter.split_of_group(name)[:2] for name in NAMES[:40])
    assert found == GOLDEN


GOLDEN = "trtrtetrtrtetrvatetrvatrtrtrtrtrtrtrtetrtrvatrvatrtrtrtrtrtrtetrvatrtrtrtrtrtrtr"


def test_names_come_in_their_normal_spelling() -> None:
    assert Splitter(["Training=1", "val=1", "TEST=1", "extra=1"]).names == [
        "train",
        "validation",
        "test",
        "extra",
    ]
