from __future__ import annotations

import pytest

from tfrecreg.errors import UsageError
from tfrecreg.pictures.decoder import Conversion
from tfrecreg.typed_values import options_as_text, parse_options
from tfrecreg_imagefolder.options import ImageFolderOptions


def parse(*options: str) -> ImageFolderOptions:
    return parse_options(ImageFolderOptions, list(options), of="imagefolder")


def test_the_defaults_change_nothing_about_a_picture() -> None:
    options = parse()
    assert options.conversion is None
    assert options.verify == "header"
    assert options_as_text(options) == {
        "extensions": "",
        "group": "none",
        "label_file": "none",
        "labels_from": "0",
        "layout": "auto",
        "reencode": "none",
        "resize": "none",
        "split": "",
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
def test_how_pictures_are_made_anew(options: list[str], conversion: Conversion) -> None:
    assert parse(*options).conversion == conversion


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["layout=tree"], "the option `layout` of `imagefolder` should be `auto`, `class`"),
        (["layout=flat"], "`layout=flat` needs a label file"),
        (["label_file=a.csv", "layout=class"], "labels a flat folder, and `layout` is `class`"),
        (["label_file=a.csv", "layout=split"], "labels a flat folder, and `layout` is `split`"),
        (["layout=split", "split=a=1,b=1"], "with `layout=split` they have theirs"),
        (["group=(a)"], "the option `group` needs `split`"),
        (["split=a=1,b=1", "group=("], "the option `group` is no regular expression"),
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
