"""A strict parser of HTML pages."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from hostile_support import NAMES

_VOID = {"br", "img", "input", "meta", "rect", "circle", "path"}
_ATTRIBUTES = re.compile(
    r"aria-[a-z]+|data-[a-z-]+|alt|charset|class|colspan|content|cx|cy|d|dx|dy|fill|fill-opacity"
    r"|font-size|height|hidden|href|http-equiv|id|lang|max|name|open|paint-order|preserveaspectratio|r"
    r"|role|scope|src|stroke|stroke-linecap|stroke-linejoin|stroke-width|tabindex|text-anchor|transform|type"
    r"|value|vector-effect|viewbox|width|x|y"
)
_LINK = re.compile(r"#[a-z0-9-]+|(\.\./)?([A-Za-z0-9_-]+/)?[A-Za-z0-9_.-]+\.html")
_IMAGE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/]+=*")


class ReadPage(HTMLParser):
    """A page, read; anything that should not be there is an assertion."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.images = 0
        self.texts: list[str] = []
        self.headings: list[str] = []
        self.inline: dict[str, list[str]] = {"script": [], "style": []}
        self.policy = ""
        self.links: list[str] = []
        """Links to other pages of a site."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        assert len(values) == len(attrs)
        for name, value in values.items():
            assert _ATTRIBUTES.fullmatch(name), (tag, name)
            if name == "href":
                assert _LINK.fullmatch(value)
                if not value.startswith("#"):
                    self.links.append(value)
            if name == "src":
                assert tag == "img"
                assert _IMAGE.fullmatch(value)
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]
        self.images += tag == "img"
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside in self.inline:
            self.inline[inside].append(data)
        else:
            self.texts.append(data)
        if self.headings and any(each in self.open for each in ("h1", "h2", "h3")):
            self.headings[-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        """All that a reader reads."""
        return " ".join(" ".join(self.texts).split())


def read_page(html: str) -> ReadPage:
    """Read a page, and check that it is complete and that its policy names its contents."""
    page = ReadPage()
    page.feed(html)
    page.close()
    assert page.open == []
    for kind, texts in page.inline.items():
        assert len(texts) == 1, kind
        digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none'; img-src data:;")
    return page


def hostile_records(image: bytes) -> list[dict[str, object]]:
    """Records with hostile names of features, classes and objects, and markup for an image."""
    names = [name for name in NAMES if name and name.encode("utf-8", "replace").decode() == name]
    markup = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script>"
    return [
        {
            "image/encoded": image if number else markup,
            name: name,
            "image/class/text": name,
            "image/class/label": number,
            "image/object/class/text": [name],
            **{f"image/object/bbox/{side}": [0.0] for side in ("xmin", "ymin")},
            **{f"image/object/bbox/{side}": [1.0] for side in ("xmax", "ymax")},
        }
        for number, name in enumerate(names)
    ]
