"""XML as elements with texts and children. Expat of the standard library reads it.

A document type is refused before it can declare anything: without one there are no entities but
the five of XML itself, so that nothing expands and no other file is read. Size and depth are
bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

MAX_XML_BYTES = 1 << 24
"""Most bytes of an XML file."""
_MAX_DEPTH = 64
_MAX_ELEMENTS = 200_000


class XmlError(ValueError):
    """The document cannot be read. The text is the reason."""


class Element:
    """One element, without its attributes."""

    __slots__ = ("_pieces", "children", "tag")

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.children: list[Element] = []
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """Its own text, without the white space around it."""
        return "".join(self._pieces).strip()

    def add_text(self, text: str) -> None:
        """Add a piece of its text."""
        self._pieces.append(text)

    def all(self, tag: str) -> Iterator[Element]:
        """Its children with this tag."""
        return (child for child in self.children if child.tag == tag)

    def find(self, tag: str) -> Element | None:
        """The first child with this tag."""
        return next(self.all(tag), None)

    def text_of(self, tag: str) -> str:
        """The text of the first child with this tag; empty without one."""
        found = self.find(tag)
        return "" if found is None else found.text


def parse_xml(data: bytes) -> Element:
    """The outermost element of a document.

    Raises:
        XmlError: it is not well-formed, has a document type, or is nested too deeply.
    """
    top = Element("")
    open_elements = [top]
    count = 0

    def start(tag: str, _: object) -> None:
        nonlocal count
        count += 1
        if count > _MAX_ELEMENTS:
            raise XmlError(f"it has more than {_MAX_ELEMENTS:,} elements")
        if len(open_elements) > _MAX_DEPTH:
            raise XmlError(f"its elements are nested more than {_MAX_DEPTH} deep")
        element = Element(tag)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def text(piece: str) -> None:
        open_elements[-1].add_text(piece)

    def refuse(*_: object) -> None:
        raise XmlError("it declares a document type, which is not read")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "it is malformed")
        raise XmlError(f"line {error.lineno} is not well-formed XML: {reason}") from None
    except (LookupError, ValueError) as error:
        if isinstance(error, XmlError):
            raise
        raise XmlError("its encoding is unknown") from None
    return top.children[0]
