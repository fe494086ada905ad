"""What the plugin says of itself: its options, their page, its schema."""

from __future__ import annotations

from pathlib import Path

from tfrecreg.plugins.describe import describe_options
from tfrecreg.schema import parse_schema
from tfrecreg.storage import LocalStorage
from tfrecreg_imagefolder.options import ImageFolderOptions
from tfrecreg_imagefolder.source import ImageFolderSource


def test_every_option_is_described() -> None:
    for option in describe_options(ImageFolderOptions):
        assert len(option.help) > 20, option.name


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


def test_the_schema_names_every_feature_and_says_what_it_is() -> None:
    text = ImageFolderSource(LocalStorage("/"), ImageFolderOptions()).schema()
    schema = parse_schema(text, "imagefolder.pbtxt")
    assert sorted(feature.name for feature in schema.features) == [
        "image/class/label",
        "image/class/text",
        "image/encoded",
        "image/filename",
        "image/format",
        "image/height",
        "image/key/sha256",
        "image/width",
    ]
    assert text.count("min_fraction: 1 min_count: 1") == len(schema.features)
    assert "image_domain {}" in text
