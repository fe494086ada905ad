"""Whatever a plugin raises or prints, a command ends with one line that names it, and with 3."""

from __future__ import annotations

import json

import pytest
from hostile_plugin_support import EVIL, SLOW, Place, plant, plant_validator
from hostile_plugin_support import place as place  # the fixture


@pytest.mark.medium
@pytest.mark.parametrize("error", ["SystemExit(0)", pytest.param("GeneratorExit()", marks=SLOW)])
@pytest.mark.parametrize(
    "body",
    [
        "def finish(self, target, parts): raise {}",
        pytest.param("def __init__(self): raise {}", marks=SLOW),
        pytest.param("def applies(self, target): raise {}", marks=SLOW),
        pytest.param("def begin(self, target, options): raise {}", marks=SLOW),
        pytest.param("def merge(self, part, more): raise {}", marks=SLOW),
    ],
)
def test_a_validator_that_ends_the_program_ends_no_check_with_0(
    place: Place, body: str, error: str
) -> None:
    plant_validator(place.site, body.format(error))
    code, out, err = place.run("check", "0.tfrecord", "1.tfrecord")
    assert code == 3, (out, err)
    assert EVIL in out + err
    assert "Traceback" not in err


@pytest.mark.medium
def test_whoever_asked_for_json_gets_a_document_all_the_same(place: Place) -> None:
    plant_validator(place.site, "def finish(self, target, parts): raise SystemExit(0)")
    code, out, _err = place.run("check", "0.tfrecord", "--json")
    assert code == 3
    assert EVIL in out
    assert json.loads(out)["status"] != "pass"


@pytest.mark.slow
def test_a_plugin_that_ends_whoever_imports_it_is_named(place: Place) -> None:
    plant(place.site, "raise SystemExit(0)")
    _code, out, err = place.run("plugins", "list")
    assert "hostile" in out + err


@pytest.mark.slow
def test_what_a_plugin_prints_is_in_no_document(place: Place) -> None:
    plant_validator(
        place.site, "def finish(self, target, parts):\n    print('loud')\n    return ()"
    )
    code, out, err = place.run("check", "0.tfrecord", "--json")
    assert code == 0, err
    assert json.loads(out)["status"] == "pass"
    assert "loud" in err
