"""A payload to context and lists."""

from __future__ import annotations

from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.kinds import PayloadKind, SequenceExample, decode_sequence, kind_of
from tfrecreg.core.example.wire import DELIMITED, NotAnExampleError, fields

_LISTS = (2, DELIMITED)
_DEPTH = 100


def read_sequence(payload: bytes) -> SequenceExample | None:
    """`payload` as a SequenceExample, with or without lists; None for anything else.

    One without lists has the bytes of an Example. So where a schema says that records are
    SequenceExamples, an Example is a context alone.
    """
    found = decode_sequence(payload)
    if found is not None:
        return found
    example = decode_or_none(payload)
    kind = kind_of(payload, 0, len(payload), example)
    if kind is not PayloadKind.EXAMPLE or has_lists_field(payload):
        return None
    return SequenceExample(example or {}, {})


def has_lists_field(payload: bytes) -> bool:
    """Whether a message has the field of the lists, so that it is no context alone.

    Such a message may parse as an Example, of which protobuf ignores the field, though its lists
    are damaged or have fields that are not known here.
    """
    try:
        return any(tag == _LISTS for tag, _, _ in fields(payload, 0, len(payload), _DEPTH))
    except NotAnExampleError:
        return True


def common_names(sequence: SequenceExample) -> list[str]:
    """Names that are both in the context and among the lists, sorted."""
    return sorted(sequence.context.keys() & sequence.lists.keys())
