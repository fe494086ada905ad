"""Canonical JSON against RFC 8785's own examples, the strictness of the reader, and notes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.values.documents import canonical_json, strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


class TestCanonicalJson:
    def test_keys_are_sorted_as_the_rfc_sorts_them(self) -> None:
        # The example of RFC 8785, section 3.2.3: by UTF-16 code units, so U+1F600 before U+FB33.
        value = {
            "\u20ac": "Euro Sign",
            "\r": "Carriage Return",
            "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "1": "One",
            "\U0001f600": "Emoji: Grinning Face",
            "\u0080": "Control",
            "\u00f6": "Latin Small Letter O With Diaeresis",
        }
        assert list(json.loads(canonical_json(value))) == [
            "\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"
        ]  # fmt: skip

    def test_strings_are_escaped_as_the_rfc_escapes_them(self) -> None:
        # RFC 8785, section 3.2.2.2: short escapes where there are any, lower-case hex elsewhere.
        text = '\u20ac$\u000f\nA\'B"\\\\"/\b\t\f\r\x1f\x7f\u2028'
        expected = '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/\\b\\t\\f\\r\\u001f\x7f\u2028"'
        assert canonical_json(text) == expected.encode()

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ({}, b"{}"),
            ([], b"[]"),
            ((1, "a"), b'[1,"a"]'),
            (None, b"null"),
            ([True, False], b"[true,false]"),
            (2**53 - 1, b"9007199254740991"),
            (-(2**53) + 1, b"-9007199254740991"),
            ({"b": {"z": 1, "a": []}, "a": -0}, b'{"a":0,"b":{"a":[],"z":1}}'),
        ],
    )
    def test_values_are_written_in_one_way(self, value: object, expected: bytes) -> None:
        assert canonical_json(value) == expected

    @pytest.mark.medium
    @given(VALUES)
    def test_is_json_of_the_same_value_and_its_own_canonical_form(self, value: object) -> None:
        data = canonical_json(value)
        assert strict_json(data) == value
        assert canonical_json(strict_json(data)) == data

    @given(st.dictionaries(st.text(), st.integers(0, 9)))
    def test_order_of_insertion_does_not_matter(self, value: dict[str, int]) -> None:
        assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (1.0, "canonical JSON cannot hold a value of type float"),
            ({"a": [float("nan")]}, "canonical JSON cannot hold a value of type float"),
            (b"x", "canonical JSON cannot hold a value of type bytes"),
            ({1}, "canonical JSON cannot hold a value of type set"),
            (2**53, "9007199254740992 is an integer that some JSON readers change"),
            (-(2**53), "-9007199254740992 is an integer that some JSON readers change"),
            ("a\ud800", "'utf-.*' codec can't encode .* surrogates not allowed"),
            ({"a\udcff": 1}, "'utf-.*' codec can't encode .* surrogates not allowed"),
        ],
    )
    def test_what_json_readers_read_differently_is_refused(
        self, value: object, message: str
    ) -> None:
        with pytest.raises(ValueError, match=f"^{message}$"):
            canonical_json(value)


class TestStrictJson:
    def test_reads_json(self) -> None:
        assert strict_json(b' {"a": [1, 2.5, null, "\\u00e9"]}\n') == {"a": [1, 2.5, None, "é"]}

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "Expecting value: line 1 column 1"),
            (b"{\n  ", "Expecting property name enclosed in double quotes: line 2 column 3"),
            (b"[1,]", ""),
            (b"[1] 2", "Extra data: line 1 column 5"),
            (b"\xef\xbb\xbf{}", "Unexpected UTF-8 BOM"),
            (b'{"a": "\xff"}', "'utf-8' codec can't decode byte 0xff in position 7"),
            (b'{"a": 1, "a": 1}', 'the key "a" occurs twice'),
            (b'[{"a\\u001b": 1, "a\\u001b": 2}]', 'the key "a\\u001b" occurs twice'),
            (b"NaN", "NaN is a value that some JSON readers refuse or change"),
            (b"[-Infinity]", "-Infinity is a value that some JSON readers refuse or change"),
            (b"[1e999]", "1e999 is a value that some JSON readers refuse or change"),
            (b"-1e999", "-1e999 is a value that some JSON readers refuse or change"),
            (b"9" * 5000, "Exceeds the limit"),
            (b"[" * 200_000, "nested too deeply"),
        ],
    )
    def test_what_is_vague_is_refused_and_its_place_told(self, data: bytes, message: str) -> None:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            strict_json(data)
