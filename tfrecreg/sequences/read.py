"""A payload to context and lists."""

from __future__ import annotations

from tfrecreg.example.decode import decode_or_none
from tfrecreg.example.kinds import PayloadKind, SequenceExample, decode_sequence, kind_of


def read_sequence(payload: bytes) -> SequenceExample | None:
    """`payload` as a SequenceExample, with or without lists; None for anything else.

    One without lists has the bytes of an Example. So where a schema says that records are
    SequenceExamples, an Example is a context alone.
    """
    found = decode_sequence(payload)
    if found is not None:
        return found
    example = decode_or_none(payload)
    if kind_of(payload, 0, len(payload), example) is not PayloadKind.EXAMPLE:
        return None
    return SequenceExample(example or {}, {})


def common_names(sequence: SequenceExample) -> list[str]:
    """Names that are both in the context and among the lists, sorted."""
    return sorted(sequence.context.keys() & sequence.lists.keys())
