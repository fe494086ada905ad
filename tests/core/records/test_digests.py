from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.records.hashing import content_digest, record_digest

ABC = bytes.fromhex("6437b3ac38465133ffb63b75273a8db5")
EMPTY = bytes.fromhex("af1349b9f5f9a1a6a0404dea36dcc949")


def test_record_digests_never_change() -> None:
    assert record_digest(b"abc") == ABC
    assert record_digest(b"") == EMPTY


def test_content_digests_never_change() -> None:
    assert content_digest([]) == "38445aa953b149f5da429b969dfb0033116528fbff33392e033dd1660637a8a9"
    assert content_digest([("train", ABC + EMPTY + ABC), ("test", ABC)]) == (
        "a1f5f43a84a8b2c3c9778254f29d390f1c11c32eaa3dc5b169f1941da7ab8b58"
    )


# Short alphabets make digests that end in NULs, and equal ones, and equal beginnings.
DIGEST = st.binary(min_size=16, max_size=16) | st.sampled_from(
    [bytes(16), b"\xff" * 16, b"\x01" + bytes(15), bytes(15) + b"\x01", b"\x80" + bytes(15)]
)


@given(st.lists(DIGEST, max_size=30), st.randoms(use_true_random=False))
def test_order_and_shards_do_not_matter(digests: list[bytes], source: random.Random) -> None:
    expected = content_digest([("b", b"".join(digests)), ("a", ABC)])
    source.shuffle(digests)
    cut = source.randint(0, len(digests))
    parts = [("b", b"".join(digests[cut:])), ("a", ABC), ("b", b"".join(digests[:cut]))]
    assert content_digest(parts) == expected


def test_arrays_of_any_shape_say_the_same_as_bytes() -> None:
    data = random.Random(3).randbytes(16 * 50)
    rows = np.frombuffer(data, np.uint8).reshape(50, 16)
    wide = np.zeros((50, 32), np.uint8)
    wide[:, :16] = rows
    for same in (rows, wide[:, :16], rows.view("V16").ravel(), np.frombuffer(data, "S16")):
        assert content_digest([("train", same)]) == content_digest([("train", data)])


def test_every_part_counts() -> None:
    base = content_digest([("train", ABC + EMPTY)])
    others = [
        content_digest([("train", ABC)]),
        content_digest([("train", ABC + EMPTY + EMPTY)]),
        content_digest([("test", ABC + EMPTY)]),
        content_digest([("train", ABC + EMPTY), ("test", b"")]),
        content_digest([("train", ABC), ("test", EMPTY)]),
    ]
    assert len({base, *others}) == 6
