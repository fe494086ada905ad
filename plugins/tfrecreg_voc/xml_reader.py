"""XML as elements with texts and children. Expat of the standard library reads it.

A document type is refused before it can declare anything: without one there are no entities but
the five of XML itself, so that nothing expands and no other file is read. Size and depth are
bounded.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

MAX_XML_BYTES = 1 << 24
"""Most bytes of an XML file."""
_MAX_DEPTH = 64
_MAX_ELEMENTS = 200_000


class XmlError(ValueError):
    """The document cannot be read. The text is the reason."""


def child_text(element: Element, tag: str) -> str:
    """The own text of the first child with this tag, without the white space around it; empty
    without one.
    """
    found = element.find(tag)
    if found is None:
        return ""
    text = found.text or ""
    if len(found):
        text += "".join(child.tail or "" for child in found)
    return text.strip()


def parse_xml(data: bytes) -> Element:
    """The outermost element of a document."""
    # Counted before there are any: nothing but C runs for each of them.
    if data.count(b"<") - data.count(b"</") > _MAX_ELEMENTS:
        raise XmlError(f"it has more than {_MAX_ELEMENTS:,} elements")
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "it is malformed")
        raise XmlError(f"line {error.lineno} is not well-formed XML: {reason}") from None
    except (LookupError, ValueError) as error:
        if isinstance(error, XmlError):
            raise
        raise XmlError("its encoding is unknown") from None
    root = builder.close()
    _expect_shallow(root)
    return root


def _refuse(*_: object) -> None:
    raise XmlError("it declares a document type, which is not read")


def _expect_shallow(root: Element) -> None:
    level = [root]
    for _ in range(_MAX_DEPTH - 1):
        level = [child for each in level for child in each[:] if len(child)]
        if not level:
            return
    raise XmlError(f"its elements are nested more than {_MAX_DEPTH} deep")
