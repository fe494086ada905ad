"""What `plugins show` says of options: names, types, defaults, and the docstrings of fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from tfrecreg.core.plugins.recognition import OptionInfo, describe_options
from tfrecreg.core.values.typed_values import parse_size


@dataclass(frozen=True)
class Options:
    text: str = "plain"
    """What it says."""
    whole: int = 3
    pick: Literal["png", "raw", 8] = "png"
    names: tuple[str, ...] = ()
    """Several
    lines of words."""
    sizes: tuple[int, ...] = (1, 2)
    maybe: tuple[str, ...] | None = field(default=None, metadata={"help": "From metadata"})
    ratio: Annotated[float, Meta(gt=0, le=1)] = 0.5
    bytes: Annotated[int, parse_size] = 512
    tables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Needy:
    path: str
    low: int = 0
    many: list[int] = field(default_factory=list, init=False)


def test_options_are_described_with_their_docstrings() -> None:
    infos = {info.name: info for info in describe_options(Options)}
    assert list(infos)[:3] == ["text", "whole", "pick"]
    assert infos["text"] == OptionInfo("text", "text", "plain", False, "What it says.")
    assert infos["names"].help == "Several lines of words."
    assert infos["maybe"].help == "From metadata"
    assert infos["pick"].type == "`png`, `raw` or `8`"
    assert infos["maybe"].type == "a list, with commas, each text, or `none`"
    assert infos["ratio"].type == "a number > 0 and <= 1"
    assert (infos["bytes"].type, infos["bytes"].default) == ("a whole number", "512")
    assert (infos["tables"].type, infos["tables"].default) == ("a table", "{}")
    assert (infos["sizes"].default, infos["whole"].help) == ("1,2", "")
    needed = describe_options(Needy)[0]
    assert (needed.default, needed.is_required) == (None, True)


def test_options_that_are_never_text_have_no_word_for_none() -> None:
    infos = {info.name: info for info in describe_options(Options, text=False)}
    assert infos["maybe"] == OptionInfo("maybe", "a list, each text", None, False, "From metadata")
    assert infos["sizes"].type == "a list, each a whole number"


def test_options_of_a_class_without_source_are_described_too() -> None:
    scope: dict[str, Any] = {"dataclass": dataclass}
    exec("@dataclass(frozen=True)\nclass Made:\n    size: int = 1\n    'lost'\n", scope)
    assert describe_options(scope["Made"]) == [OptionInfo("size", "a whole number", "1", False, "")]


def test_docstrings_of_a_base_class_are_found() -> None:
    @dataclass(frozen=True)
    class More(Needy):
        extra: int = 3
        """More of it."""

    assert {info.name: info.help for info in describe_options(More)}["extra"] == "More of it."
