"""What the plugin says of itself: its options, their page, its schema."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.api import Splitter, is_split_name
from tfrecreg.core.images.decoder import Conversion
from tfrecreg.core.plugins.recognition import describe_options
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.typed_values import options_as_text, parse_options
from tfrecreg_imagefolder.imagefolder_options import ImageFolderOptions
from tfrecreg_imagefolder.source import ImageFolderSource


def parse(*options: str) -> ImageFolderOptions:
    return parse_options(ImageFolderOptions, list(options), of="imagefolder")


def test_the_defaults_change_nothing_about_an_image() -> None:
    options = parse()
    assert options.conversion is None
    assert options.verify == "header"
    assert options_as_text(options) == {
        "class_pattern": "none",
        "extensions": "",
        "group": "none",
        "label_file": "none",
        "labels_from": "0",
        "layout": "auto",
        "reencode": "none",
        "resize": "none",
        "sha256": "true",
        "split": "",
        "stratify": "false",
        "symlinks": "all",
        "twins": "refuse",
        "verify": "header",
    }


def test_what_is_written_down_is_read_back_the_same() -> None:
    options = parse(
        "split=train=0.8,validation=0.1,test=0.1",
        "group=^(patient[0-9]+),?_",
        "extensions=jpg,png",
        "labels_from=1",
        "resize=320x240",
        "reencode=jpeg:90",
    )
    assert parse_options(ImageFolderOptions, options_as_text(options)) == options


@pytest.mark.parametrize(
    ("options", "conversion"),
    [
        (["reencode=png"], Conversion(0, 0, 0, "png", 0)),
        (["reencode=jpeg:1"], Conversion(0, 0, 0, "jpeg", 1)),
        (["reencode=jpeg:100", "resize=256"], Conversion(256, 0, 0, "jpeg", 100)),
        (["reencode=png", "resize=320x240"], Conversion(0, 320, 240, "png", 0)),
    ],
)
def test_how_images_are_encoded_again(options: list[str], conversion: Conversion) -> None:
    assert parse(*options).conversion == conversion


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["layout=tree"], "the option `layout` of `imagefolder` should be `auto`, `class`"),
        (["layout=flat"], "`layout=flat` needs a label file"),
        (["label_file=a.csv", "layout=class"], "`label_file` needs `layout=flat`, found `class`"),
        (["label_file=a.csv", "layout=split"], "`label_file` needs `layout=flat`, found `split`"),
        (["layout=split", "split=a=1,b=1"], "`split` and `layout=split` exclude each other"),
        (["group=(a)"], "the option `group` needs `split`"),
        (["split=a=1,b=1", "group=("], "the option `group` is not a regular expression"),
        (["split=a=1,b=1", "group=a.*"], "the option `group` has no group in parentheses: `a.*`"),
        (["split=train"], "the option `split` has `train`: expected a name, `=` and a number"),
        (["split=train=1"], "the option `split` has `train=1`: expected at least two splits"),
        (["split=train=1,test="], "`test=`: expected a share above 0"),
        (["split=train=1,test=0"], "`test=0`: expected a share above 0"),
        (["split=train=1,test=-0.1"], "`test=-0.1`: expected a share above 0"),
        (["split=train=1,test=1/0"], "`test=1/0`: expected a share above 0"),
        (["split=train=1,test=nan"], "`test=nan`: expected a share above 0"),
        (["split=train=1,test=1e400"], "`test=1e400`: expected a share above 0"),
        (["split=train=1,te st=1"], "`te st=1`: expected a name"),
        (["split=train=1,training=1"], "`training=1`: the split `train` is named twice"),
        (["resize=0", "reencode=png"], "the option `resize` is `0`, expected the shorter side"),
        (["resize=2x0", "reencode=png"], "the option `resize` is `2x0`"),
        (["resize=big", "reencode=png"], "the option `resize` is `big`"),
        (["resize=256"], "the option `resize` needs `reencode`"),
        (["reencode=jpeg"], "the option `reencode` is `jpeg`, expected `jpeg:1` to `jpeg:100`"),
        (["reencode=jpeg:0"], "the option `reencode` is `jpeg:0`"),
        (["reencode=jpeg:101"], "the option `reencode` is `jpeg:101`"),
        (["reencode=gif"], "the option `reencode` is `gif`"),
        (["verify=yes"], "the option `verify` of `imagefolder` should be `header` or `decode`"),
        (["labels_from=2"], "the option `labels_from` of `imagefolder` should be `0` or `1`"),
        (["symlinks=yes"], "the option `symlinks` of `imagefolder` should be"),
        (["twins=merge"], "the option `twins` of `imagefolder` should be `refuse` or `apart`"),
        (["color=red"], "the option `color` of `imagefolder` is not known"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(options: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(*options)
    assert message in caught.value.message
    assert caught.value.exit_code == 2


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


NAMES = [f"class/picture{number}.jpg" for number in range(5_000)]


def test_each_split_gets_about_its_share() -> None:
    counts = Counter(
        map(Splitter(["train=0.8", "validation=0.1", "test=0.1"]).split_of_group, NAMES)
    )
    assert counts["train"] == pytest.approx(4_000, abs=120)
    assert counts["validation"] == pytest.approx(500, abs=90)
    assert counts["test"] == pytest.approx(500, abs=90)


def test_a_share_is_what_it_is_forever() -> None:
    # Golden: another hash, or another order, would move images of everybody's next build.
    splitter = Splitter(["train=0.8", "validation=0.1", "test=0.1"])
    found = "".join(splitter.split_of_group(name)[:2] for name in NAMES[:40])
    assert found == GOLDEN


GOLDEN = "trtrtetrtrtetrvatetrvatrtrtrtrtrtrtrtetrtrvatrvatrtrtrtrtrtrtetrvatrtrtrtrtrtrtr"


def test_only_proportions_count() -> None:
    alike = [["train=0.8", "test=0.2"], ["train=80", "test=20"], ["train=4/5", "test=1/5"]]
    found = [[Splitter(texts).split_of_group(name) for name in NAMES[:500]] for texts in alike]
    assert found[0] == found[1] == found[2]


def test_names_come_in_their_normal_spelling() -> None:
    assert Splitter(["Training=1", "val=1", "TEST=1", "extra=1"]).names == [
        "train",
        "validation",
        "test",
        "extra",
    ]


def test_what_is_added_moves_nothing() -> None:
    splitter = Splitter(["train=0.8", "test=0.2"])
    before = {name: splitter.split_of_group(name) for name in NAMES[:1000]}
    after = {name: splitter.split_of_group(name) for name in reversed(NAMES)}
    assert {name: after[name] for name in before} == before


def test_names_that_are_not_utf8_have_a_split_too() -> None:
    assert Splitter(["a=1", "b=1"]).split_of_group("caf\udce9") in ("a", "b")


@given(
    st.lists(st.integers(1, 10**9), min_size=2, max_size=12),
    st.lists(st.text(max_size=20), min_size=1, max_size=20),
)
@settings(max_examples=100)
def test_every_group_has_exactly_one_split(weights: list[int], groups: list[str]) -> None:
    splitter = Splitter([f"s{number}={weight}" for number, weight in enumerate(weights)])
    for group in groups:
        assert splitter.split_of_group(group) in splitter.names
        assert splitter.split_of_group(group) == splitter.split_of_group(group)


@pytest.mark.parametrize(
    ("name", "good"),
    [("train", True), ("test_dev", True), ("2017", True), ("test-dev", False), ("", False)],
)
def test_a_split_is_called_what_a_file_name_can_hold(name: str, good: bool) -> None:
    assert is_split_name(name) is good
