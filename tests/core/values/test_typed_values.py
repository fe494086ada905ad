from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Literal, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.typed_values import options_as_text, parse_options


class Color(Enum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Options:
    unit: ClassVar[str] = "none of the options"

    text: str = "plain"
    """What it says."""
    whole: int = 3
    number: float = 0.5
    flag: bool = False
    pick: Literal["png", "raw", 8] = "png"
    color: Color = Color.RED
    names: tuple[str, ...] = ()
    """Several
    lines of words."""
    sizes: tuple[int, ...] = (1, 2)
    picks: tuple[Literal["a", "b"], ...] = ()
    limit: int | None = None
    old: Optional[str] = None  # noqa: UP045 - plugins write it this way too
    maybe: tuple[str, ...] | None = field(default=None, metadata={"help": "From metadata"})


def one(pair: str) -> Any:
    name = pair.partition("=")[0]
    return getattr(parse_options(Options, [pair]), name)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=a=b, c", "a=b, c"),
        ("text=", ""),
        ("whole=-12", -12),
        ("number=1e-3", 0.001),
        ("number=2", 2.0),
        ("flag=TRUE", True),
        ("flag=yes", True),
        ("flag=1", True),
        ("flag=no", False),
        ("flag=0", False),
        ("pick=raw", "raw"),
        ("pick=8", 8),
        ("color=green", Color.GREEN),
        ("names=", ()),
        ("names=a, b ,c", ("a", "b", "c")),
        ('names=["a,b",""]', ("a,b", "")),
        ("sizes=3,4", (3, 4)),
        ("sizes=[3,4]", (3, 4)),
        ("picks=b,a", ("b", "a")),
        ("limit=none", None),
        ("limit=5", 5),
        ("old=x", "x"),
        ("maybe=", ()),
        ("maybe=none", None),
    ],
)
def test_text_becomes_a_value_of_the_type(pair: str, value: object) -> None:
    assert one(pair) == value
    assert type(one(pair)) is type(value)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("whole", 7, 7),
        ("number", 7, 7.0),
        ("flag", True, True),
        ("pick", 8, 8),
        ("color", Color.GREEN, Color.GREEN),
        ("names", ["a", "b"], ("a", "b")),
        ("sizes", (1, 2), (1, 2)),
        ("limit", None, None),
        ("whole", "7", 7),
    ],
)
def test_values_of_toml_are_taken_as_they_are(name: str, given: object, value: object) -> None:
    found = getattr(parse_options(Options, {name: given}), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": 3}, "should be text, found `3`"),
        ({"text": "\udcff"}, r"should be text, found `\xff`"),
        ({"whole": "3.0"}, "should be a whole number, found `3.0`"),
        ({"whole": 3.0}, "should be a whole number, found `3.0`"),
        ({"whole": True}, "should be a whole number, found `true`"),
        ({"whole": "9" * 50}, f"should be a whole number, found `{'9' * 50}`"),
        ({"number": "x"}, "should be a number, found `x`"),
        ({"number": "nan"}, "should be a number, found `nan`"),
        ({"number": float("inf")}, "should be a number, found `inf`"),
        ({"number": 10**400}, "should be a number, found `1"),
        ({"number": True}, "should be a number, found `true`"),
        ({"number": [1.0]}, "should be a number, found a list"),
        ({"flag": "maybe"}, "should be `true` or `false`, found `maybe`"),
        ({"flag": 1}, "should be `true` or `false`, found `1`"),
        ({"pick": "jpeg"}, "should be `png`, `raw` or `8`, found `jpeg`"),
        ({"color": "blue"}, "should be `red` or `green`, found `blue`"),
        ({"color": {"a": 1}}, "should be `red` or `green`, found a table"),
        ({"names": "a,,b"}, "should be a comma-separated list, each item text, found `a,,b`"),
        ({"names": 3}, "should be a comma-separated list, each item text, found `3`"),
        ({"names": "[1"}, "should be a comma-separated list, each item text, found `[1`"),
        ({"limit": "x"}, "should be a whole number, or `none`, found `x`"),
    ],
)
def test_a_value_of_another_type_is_refused(given: dict[str, Any], message: str) -> None:
    name = next(iter(given))
    with pytest.raises(UsageError) as caught:
        parse_options(Options, given, of="lines")
    assert caught.value.message.startswith(f"the option `{name}` of `lines` {message}")


@pytest.mark.parametrize(
    ("name", "others"),
    [("wohle", "did you mean `whole`?"), ("xyz", "known: `color`, `flag`, `limit`, ")],
)
def test_an_unknown_option_names_a_similar_one_or_all(name: str, others: str) -> None:
    with pytest.raises(UsageError, match=f"option `{name}` of `lines` is not known") as caught:
        parse_options(Options, [f"{name}=3"], of="lines")
    assert others in caught.value.message


def test_options_as_text_has_the_defaults_in_order_of_name() -> None:
    text = options_as_text(parse_options(Options, ["number=1", "names=b,a"]))
    assert list(text) == sorted(text)
    assert text == {
        "color": "red",
        "flag": "false",
        "limit": "none",
        "maybe": "none",
        "names": "b,a",
        "number": "1.0",
        "old": "none",
        "pick": "png",
        "picks": "",
        "sizes": "1,2",
        "text": "plain",
        "whole": "3",
    }


utf8 = st.text(st.characters(codec="utf-8"), max_size=8)


@pytest.mark.medium
@settings(max_examples=200)
@given(
    st.builds(
        Options,
        text=utf8,
        whole=st.integers(-(10**30), 10**30),
        number=st.floats(allow_nan=False, allow_infinity=False),
        flag=st.booleans(),
        pick=st.sampled_from(["png", "raw", 8]),
        color=st.sampled_from(Color),
        names=st.lists(utf8, max_size=3).map(tuple),
        sizes=st.lists(st.integers(), max_size=3).map(tuple),
        limit=st.none() | st.integers(),
        old=st.none() | utf8.filter(lambda text: text != "none"),
        maybe=st.none() | st.lists(utf8 | st.just("none"), max_size=2).map(tuple),
    )
)
def test_options_as_text_are_read_back_as_the_same_values(options: Options) -> None:
    text = options_as_text(options)
    assert parse_options(Options, text) == options
    assert parse_options(Options, [f"{name}={value}" for name, value in text.items()]) == options
