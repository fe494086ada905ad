"""The objects of an XML: boxes, flags, classes, masks; and XML that is none, or an attack."""

from __future__ import annotations

from typing import Any

import pytest
from image_support import png

from tfrecreg_voc.source import VOC_CLASSES


class TestBoxes:
    def test_they_name_their_first_and_last_pixel_from_1(self, raw: Any) -> None:
        raw.one(raw.object())
        assert raw.box() == pytest.approx([0.1, 0.25, 0.3, 0.75])
        assert raw.objects("area") == {"area": (800,)}
        raw.one(raw.object("cat", 1, 1, 100, 80))
        assert raw.box() == [0, 0, 1, 1]
        assert raw.remarks() == []

    def test_they_may_be_edges_counted_from_0(self, raw: Any) -> None:
        raw.one(raw.object("cat", 10, 20, 30, 60))
        assert raw.box(coordinates="edges") == pytest.approx([0.1, 0.25, 0.3, 0.75])

    def test_numbers_may_have_fractions(self, raw: Any) -> None:
        raw.one(raw.object("cat", 11.5, 21, " 30.0 ", "6e1"))
        assert raw.box() == pytest.approx([0.105, 0.25, 0.3, 0.75])

    @pytest.mark.parametrize(
        ("sides", "source", "kind"),
        [
            ((11, 21, 30, 60), "", "pixels"),
            ((11, 21, 30, 60), "<source><database>Unknown</database></source>", "edges"),
            ((11, 21, 30, 60), "<source><database>The VOC2007 Database</database></source>", ""),
            ((0, 21, 30, 60), "<source><database>PASCAL VOC</database></source>", ""),
            ((0, 21, 30, 60), "", "edges"),
            ((11, "0.0", 30, 60), "", "edges"),
            ((10, 0, 100, 60), "<source><annotation>roboflow.com</annotation></source>", "edges"),
        ],
    )
    def test_the_set_says_what_its_numbers_are(
        self, raw: Any, sides: Any, source: str, kind: str
    ) -> None:
        raw.one(raw.object("cat", *sides), more=raw.size + source)
        assert raw.box() == raw.box(coordinates=kind or "pixels")
        assert raw.source().describe()["coordinates"].startswith(kind or "pixels")
        (note,) = raw.source().notes()
        assert "--option coordinates=" in note
        assert raw.source(coordinates="edges").notes() == []

    @pytest.mark.parametrize(
        "sides",
        [
            *((30, 21, 11, 60), (11, 21, 300, 60), ("nan", 21, 30, 60), ("1e999", 21, 30, 60)),
            (1, 21, "1_0", 60),
        ],
    )
    def test_a_bad_box_is_one_as_in_coco(self, raw: Any, sides: Any) -> None:
        raw.one(raw.object("dog", *sides), raw.object())
        assert raw.objects("class/text", "difficult") == {
            "class/text": (b"cat",),
            "difficult": (0,),
        }
        assert raw.codes() == {"SRC115": 1}

    def test_they_are_shares_of_the_size_that_the_xml_says(self, raw: Any) -> None:
        raw.one(raw.object(), more="<size><width>200</width><height>80</height></size>")
        assert raw.box() == pytest.approx([0.05, 0.25, 0.15, 0.75])
        assert raw.codes() == {"SRC120": 1}

    @pytest.mark.parametrize("more", ["", "<size/>", "<size><width>x</width></size>"])
    def test_without_a_size_that_of_the_image_is_taken(self, raw: Any, more: str) -> None:
        raw.one(raw.object(), more=more)
        assert raw.box() == pytest.approx([0.1, 0.25, 0.3, 0.75])
        assert raw.remarks() == []


@pytest.mark.parametrize("box", ["", "<bndbox/>", "<bndbox><xmin>1</xmin><ymin>x</ymin></bndbox>"])
def test_an_object_without_a_box_is_dropped(raw: Any, box: str) -> None:
    raw.one(f"<object><name>cat</name>{box}</object>", raw.object("dog"))
    assert raw.objects("class/text") == {"class/text": (b"dog",)}
    assert raw.codes() == {"SRC115": 1}
    assert raw.skipped(bad_boxes="skip-image").code == "SRC113 box"
    raw.error(bad_boxes="fail")


def test_an_object_without_a_name_is_one_of_no_listed_class(raw: Any) -> None:
    raw.one(raw.object(""), raw.object("dog"))
    raw.error()
    assert raw.objects("class/text", dangling="drop") == {"class/text": (b"dog",)}


def test_what_voc_says_besides_is_written(raw: Any) -> None:
    more = "<pose>Left</pose><truncated>1</truncated><difficult>0</difficult>"
    raw.one(
        raw.object("cat", more=more),
        raw.object("dog", more="<occluded>True</occluded><difficult>1</difficult>"),
    )
    assert raw.objects("difficult", "truncated", "occluded", "view", "is_crowd") == {
        "difficult": (0, 1),
        "truncated": (1, 0),
        "occluded": (0, 1),
        "view": (b"Left", b"Unspecified"),
        "is_crowd": (0, 0),
    }
    values = raw.values()
    assert values["image/source_id"] == (b"JPEGImages/a.png",)
    assert values["image/filename"] == (b"a.png",)


def test_parts_are_counted(raw: Any) -> None:
    part = "<part><name>head</name><bndbox/></part>"
    raw.one(raw.object("person", more=part + part))
    assert raw.objects("class/text") == {"class/text": (b"person",)}
    assert raw.codes() == {"SRC117": 2}


class TestClasses:
    def labels(self, raw: Any, **options: Any) -> list[str]:
        return list(raw.source(**options).labels()["image/object/class/label"])

    def test_those_of_voc_have_its_order(self, raw: Any) -> None:
        raw.one(*map(raw.object, reversed(VOC_CLASSES)))
        assert self.labels(raw) == list(VOC_CLASSES)
        assert raw.objects("class/label") == {"class/label": tuple(range(19, -1, -1))}

    def test_others_are_sorted_by_their_bytes(self, raw: Any) -> None:
        raw.one(raw.object("zebra"), raw.object("Ähre"), raw.object("cat"), raw.object("Zoo"))
        assert self.labels(raw) == ["Zoo", "cat", "zebra", "Ähre"]
        assert raw.objects("class/label") == {"class/label": (2, 3, 1, 0)}

    def test_an_option_can_name_them(self, raw: Any) -> None:
        raw.one(raw.object("cat"), raw.object("dog"))
        assert self.labels(raw, classes=("dog", "cat")) == ["dog", "cat"]
        raw.error(classes=("dog",))
        assert raw.objects("class/label", classes=("dog",), dangling="drop") == {
            "class/label": (0,)
        }
        assert raw.codes(classes=("dog",), dangling="drop") == {"SRC115 category": 1}

    def test_their_numbers_do_not_depend_on_the_splits_that_are_read(self, raw: Any) -> None:
        raw.entry("a", raw.object("zebra"))
        raw.entry("b", raw.object("ant"))
        raw.put("ImageSets/Main/train.txt", "a\n")
        raw.put("ImageSets/Main/val.txt", "b\n")
        assert self.labels(raw, splits=("train",)) == ["ant", "zebra"]


BOMB = (
    '<!DOCTYPE a [<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    "<annotation><filename>&b;</filename></annotation>"
)
EXTERNAL = (
    '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    "<annotation><filename>&a;</filename></annotation>"
)


@pytest.mark.medium
@pytest.mark.parametrize(
    "data",
    [
        BOMB,
        BOMB.encode("utf-16"),
        EXTERNAL,
        "<annotation>&undefined;</annotation>",
        "<annotation>\n<object>",
        "",
        b"<annotation>\xff</annotation>",
        '<?xml version="1.0" encoding="no-such"?><annotation/>',
        "<html/>",
        b" " * ((1 << 24) + 1),
    ],
    ids=range(10),
)
def test_xml_that_is_none_or_an_attack_skips_the_image(raw: Any, data: str | bytes) -> None:
    raw.one()
    raw.put("Annotations/a.xml", data)
    assert raw.skipped().code == "SRC110"


def test_deep_xml_is_read(raw: Any) -> None:
    deep = f"<source>{'<a>' * 99_000}x{'</a>' * 99_000}</source>"
    raw.one(raw.object(), more=raw.size + deep)
    assert raw.objects("class/text") == {"class/text": (b"cat",)}


def test_a_name_in_pieces_is_one_text(raw: Any) -> None:
    raw.one(raw.object("\n ca<!-- a comment -->t<![CDATA[&]]>s "))
    assert raw.values()["image/object/class/text"] == (b"cat&s",)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_the_encoding_is_that_of_the_declaration(raw: Any, encoding: str) -> None:
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f'<?xml version="1.0" encoding="{declared}"?>\r\n{raw.xml(raw.object("Käse"))}\r\n'
    raw.one()
    raw.put("Annotations/a.xml", text.encode(encoding))
    assert raw.objects("class/text") == {"class/text": ("Käse".encode(),)}


class TestMasks:
    def test_the_pngs_pass_through(self, raw: Any) -> None:
        raw.one(raw.object())
        data = png(100, 80, seed=3)
        raw.put("SegmentationClass/a.png", data)
        values = raw.values(masks=("class", "object"))
        assert values["image/segmentation/class/encoded"] == (data,)
        assert values["image/segmentation/class/format"] == (b"png",)
        assert values["image/segmentation/object/encoded"] == ()
        assert raw.remarks(masks=("class",)) == []
        assert raw.source(masks=("class",)).schema().count("image/segmentation/class/encoded") == 1

    def test_they_are_counted_where_they_are_not_asked_for(self, raw: Any) -> None:
        raw.one(raw.object())
        raw.put("SegmentationClass/a.png", png(100, 80))
        assert raw.codes() == {"SRC015": 1}
        assert not [name for name in raw.values() if "segmentation" in name]

    @pytest.mark.parametrize("data", [png(80, 100), b"", b"GIF89a" + bytes(40)])
    def test_one_that_does_not_fit_is_left_out_and_said(self, raw: Any, data: bytes) -> None:
        raw.one(raw.object())
        raw.put("SegmentationClass/a.png", data)
        assert raw.values(masks=("class",))["image/segmentation/class/encoded"] == ()
        assert raw.codes(masks=("class",)) == {"SRC115 mask": 1}
