"""`tfrecreg plugins show`: the options of a source, the limits of a validator."""

from __future__ import annotations


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
