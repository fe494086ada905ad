"""`tfrecreg plugins show`: the options of a source, the limits of a validator."""

from __future__ import annotations

import pytest
from hostile_plugin_support import (
    RAISED,
    InProcess,
    expect_one_line,
    plant_source,
    plant_validator,
)
from hostile_plugin_support import here as here  # the fixtures
from hostile_plugin_support import place as place


def test_a_source_is_shown_with_its_options(cli) -> None:
    done = cli("plugins", "show", "imagefolder", "--json")
    assert done.code == 0
    assert done.json["validators"] == []
    (found,) = done.json["sources"]
    assert (found["name"], found["distribution"]) == ("imagefolder", "tfrecreg")
    options = {each["name"]: each for each in found["options"]}
    assert options["layout"] == {
        "name": "layout",
        "type": "`auto`, `class`, `split` or `flat`",
        "default": "auto",
        "required": False,
        "help": options["layout"]["help"],
    }
    assert all(each["help"] for each in options.values())
    assert "codes" not in found
    text = cli("plugins", "show", "imagefolder").out
    assert text.startswith("source imagefolder: ")
    for name, option in options.items():
        assert name in text
        assert option["type"].split()[0] in text


def test_a_validator_is_shown_with_its_limits_and_codes(cli) -> None:
    (found,) = cli("plugins", "show", "inflation", "--json").json["validators"]
    assert [(each["name"], each["type"], each["default"]) for each in found["options"]] == [
        ("ratio", "a number > 0", "1.1"),
        ("allowance", "a whole number >= 0", "512"),
        ("base", "`decoded` or `stored`", "decoded"),
    ]
    assert "INF001" in found["codes"]
    (found,) = cli("plugins", "show", "images", "--json").json["validators"]
    assert (found["options"][0]["type"], found["options"][0]["default"]) == (
        "text with a length >= 1",
        None,
    )
    assert "no options" in cli("plugins", "show", "crc").out


def test_every_bundled_plugin_is_shown_with_help_for_every_option(cli) -> None:
    listed = cli("plugins", "--json").json
    for kind in ("sources", "validators"):
        for each in listed[kind]:
            done = cli("plugins", "show", each["name"], "--json")
            assert done.code == 0, done.err
            (found,) = done.json[kind]
            assert all(option["help"] for option in found["options"]), each["name"]
            assert cli("plugins", "show", f"{each['distribution']}:{each['name']}").code == 0


def test_an_unknown_name_is_exit_2_with_a_suggestion(cli) -> None:
    done = cli("plugins", "show", "mnits")
    assert done.code == 2
    assert "no plugin named `mnits`; did you mean `mnist`?" in done.err


def test_names_are_completed(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfrecreg.core.terminal.complete import plugin_names

    found = plugin_names(None, None, "i")  # type: ignore[arg-type]  # it looks at neither
    assert [each.value for each in found] == [
        *("imagefolder", "images", "index", "inflation", "items"),
    ]


def shown(here: InProcess) -> tuple[int, str, str]:
    done = here.run("plugins", "show", "evil")
    return done.code, done.out, done.err


@pytest.mark.parametrize("what", RAISED)
def test_whatever_options_raise_is_one_line(here: InProcess, what: str) -> None:
    more = (
        "from dataclasses import field\n"
        f"def raising(): {RAISED[what]}\n"
        "@dataclass(frozen=True)\nclass Bad:\n    shade: str = field(default_factory=raising)\n"
        "Evil.Options = Bad\n"
    )
    plant_source(here.site, "", more=more)
    expect_one_line(shown(here), "the source `evil`", "options")


@pytest.mark.parametrize("options", ["3", "int", "print"])
def test_options_that_are_no_dataclass_are_one_line(here: InProcess, options: str) -> None:
    plant_validator(here.site, f"Options = {options}")
    expect_one_line(shown(here), "the validator `evil`", "options")
