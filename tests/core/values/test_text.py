"""What a terminal may be shown of strings from anywhere, and sizes for people."""

from __future__ import annotations

import os
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.values.text import listed, safe, si_bytes

ANY = st.text(st.characters(exclude_categories=()))


def unescaped(shown: str) -> str:
    """What `safe` was given: the way back exists, so different texts look different."""

    def one(match: re.Match[str]) -> str:
        piece = match[0]
        if piece == "\\\\":
            return "\\"
        number = int(piece[2:], 16)
        return chr(number + 0xDC00 if piece[1] == "x" and number >= 0x80 else number)

    return re.sub(r"\\\\|\\x..|\\u....|\\U........", one, shown)


class TestSafe:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("", ""),
            ("plain text, ~tilde", "plain text, ~tilde"),
            ("Grüße, 日本語, عربي, 🙂", "Grüße, 日本語, عربي, 🙂"),
            ("e\u0301", "e\u0301"),
            ("a\\b", "a\\\\b"),
            ("\x1b[31mred", "\\x1b[31mred"),
            ("a\r\n\tb\0", "a\\x0d\\x0a\\x09b\\x00"),
            ("\x7f", "\\x7f"),
            ("\x9b31m", "\\u009b31m"),  # C1, as a code point
            (os.fsdecode(b"\x9b\xff"), "\\x9b\\xff"),  # the same as bytes of a file's name
            ("a\u202eb", "a\\u202eb"),
            ("a\u2066b\u200b\u200d\ufeff", "a\\u2066b\\u200b\\u200d\\ufeff"),
            ("a\u00a0b\u2028\u2029\u3000", "a\\u00a0b\\u2028\\u2029\\u3000"),
            ("\u00ad", "\\u00ad"),
            ("\ud800", "\\ud800"),
            ("\ue000\U000f0000", "\\ue000\\U000f0000"),
            ("\U000e0041", "\\U000e0041"),
            ("\u3164\u115f\uffa0\u2800", "\\u3164\\u115f\\uffa0\\u2800"),
            ("a\ufe0f\u034f\U000e0100", "a\\ufe0f\\u034f\\U000e0100"),
            ("[/red] :skull: %0A", "[/red] :skull: %0A"),
            ("::error::a", "\\x3a:error::a"),
            ("  ::add-mask::a", "  \\x3a:add-mask::a"),
            ("a::b ###[error]", "a::b #\\x23#[error]"),
        ],
    )
    def test_what_misleads_is_escaped_and_all_else_kept(self, text: str, shown: str) -> None:
        assert safe(text) == shown

    @given(ANY)
    def test_different_texts_are_shown_differently(self, text: str) -> None:
        assert unescaped(safe(text, limit=1 << 20)) == text

    @given(ANY)
    def test_what_is_shown_is_printable_and_one_line(self, text: str) -> None:
        shown = safe(text, limit=1 << 20)
        assert len(shown.splitlines()) <= 1
        assert not any(unicodedata.category(c)[0] == "C" for c in shown)
        assert all(c == " " or unicodedata.category(c)[0] != "Z" for c in shown)
        shown.encode("utf-8")

    @given(ANY, st.integers(1, 20))
    def test_is_never_longer_than_the_limit(self, text: str, limit: int) -> None:
        shown = safe(text, limit=limit)
        assert len(shown) <= limit
        whole = safe(text, limit=1 << 20)
        if len(whole) <= limit:
            assert shown == whole
        else:
            assert shown.endswith("…")
            # What is left is a text of its own: no escape was cut in two.
            assert text.startswith(unescaped(shown[:-1]))


class TestSiBytes:
    @pytest.mark.parametrize(
        ("number", "shown"),
        [
            (0, "0 B"),
            (1, "1 B"),
            (999, "999 B"),
            (999.4, "999 B"),
            (999.6, "1.0 kB"),
            (1000, "1.0 kB"),
            (1500, "1.5 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (3_200_000_000, "3.2 GB"),
            (5e15, "5000.0 TB"),
            (-1, "-1 B"),
            (-1500, "-1.5 kB"),
            (-2e9, "-2.0 GB"),
        ],
    )
    def test_sizes_are_short(self, number: float, shown: str) -> None:
        assert si_bytes(number) == shown


def test_a_long_list_ends_with_the_number_of_the_others() -> None:
    assert listed("abcd", most=4) == "`a`, `b`, `c` and `d`"
    assert listed("abcd", most=2) == "`a`, `b` and 2 more"
