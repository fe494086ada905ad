"""The kit's tests of a source; what its page says of its options; its shares."""

from __future__ import annotations

from pathlib import Path

from image_support import png

from tfrecreg.core.build.sources.deal import Deal, DealOptions, parse_shares
from tfrecreg.core.plugins.recognition import describe_options
from tfrecreg.testing import SourceTests
from tfrecreg_imagefolder.listing import ImageFolderOptions


class TestClassFolders(SourceTests):
    source = "imagefolder"

    def write_raw(self, folder: Path) -> None:
        for split, label in (("train", "cat"), ("train", "dog"), ("test", "cat"), ("test", "dog")):
            inside = folder / split / label
            inside.mkdir(parents=True)
            for number in range(2):
                (inside / f"{number}.png").write_bytes(png(5 + number, 4))


def test_the_page_has_every_option_with_its_default_and_every_code() -> None:
    page = (Path(__file__).parents[3] / "docs/sources/files.md").read_text("utf-8")
    table = page.partition("### Options of `imagefolder`\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    shown = {name.strip(" `"): default.strip(" `") for name, default in rows}
    expected = {each.name: each.default for each in describe_options(ImageFolderOptions)}
    expected.update(extensions="all files")  # what an empty list means
    assert shown == expected
    for number in (14, 15, 16, 17, 91, 110, 111, 112, 118):
        assert f"SRC{number:03d}" in page


NAMES = [f"class/picture{number}.jpg" for number in range(5_000)]


def test_a_share_is_what_it_is_forever() -> None:
    # Golden: another hash, or another order, would move images of everybody's next build.
    deal = Deal(DealOptions(("train=0.8", "validation=0.1", "test=0.1")))
    found = "".join(deal.split_of_group(name)[:2] for name in NAMES[:40])
    assert found == GOLDEN


GOLDEN = "trtrtetrtrtetrvatetrvatrtrtrtrtrtrtrtetrtrvatrvatrtrtrtrtrtrtetrvatrtrtrtrtrtrtr"


def test_names_of_splits_come_in_their_normal_spelling() -> None:
    shares = parse_shares(["Training=1", "val=1", "TEST=1", "extra=1"])
    assert list(shares) == ["train", "validation", "test", "extra"]
