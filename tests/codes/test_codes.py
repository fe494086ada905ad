"""Codes are an interface: each has one meaning, a page that explains it, a validator and a test."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import tfrecreg.codes
from tfrecreg.codes import CORE_CODES
from tfrecreg.codes.anomalies import ANOMALIES
from tfrecreg.findings import Code, Severity
from tfrecreg.plugins import plugins

TESTS = Path(__file__).resolve().parents[1]

PINNED = Path(__file__).with_name("pinned_codes.txt")
"""A line for each code. `python tests/codes/test_codes.py` writes it again when a code is added."""

FAMILIES = {"CRC", "SHD", "SCH", "INF", "SRC", "DUP", "IMG", "ANN", "DRF", "REG", "PLG"}
"""Those that are promised. A family gets its module with its first code."""

NOT_ANNOUNCED = {
    *(f"SRC{number:03d}" for number in range(1, 16)),
    *(f"SRC{number:03d}" for number in range(20, 33)),
    "REG009",
    "SCH020",
    "SCH021",
}
"""Codes without a validator: reasons and remarks that sources give and builds write into the
ledger, what `schema check` finds of schemas, and what the gate says of waivers. Who announces
one takes it out of here."""

every_code = pytest.mark.parametrize("code", CORE_CODES.values(), ids=CORE_CODES)


def families() -> dict[str, object]:
    """The modules of codes by the name of their family."""
    found = [each.name for each in pkgutil.iter_modules(tfrecreg.codes.__path__)]
    named = [name for name in found if name.upper() in FAMILIES]
    assert set(found) - set(named) == {"anomalies", "anomaly_groups"}
    return {name.upper(): import_module(f"tfrecreg.codes.{name}") for name in named}


def test_every_constant_of_every_family_is_a_code_that_is_known() -> None:
    constants = {}
    for family in families().values():
        codes = {name: value for name, value in vars(family).items() if isinstance(value, Code)}
        assert sorted(codes) == family.__all__, f"{family.__name__}.__all__"
        constants.update(codes)
    assert constants.keys().isdisjoint(ANOMALIES)
    assert constants | ANOMALIES == dict(CORE_CODES)


def test_every_family_is_one_that_is_promised() -> None:
    assert set(families()) <= FAMILIES
    assert {"CRC", "SHD", "SCH", "INF"} <= set(families())


@pytest.mark.parametrize("name", CORE_CODES)
def test_a_code_is_called_what_its_constant_is_called(name: str) -> None:
    code = CORE_CODES[name]
    assert re.fullmatch(r"[A-Z]{3}[0-9]{3}", name)
    assert code.code == name
    if name in ANOMALIES:
        assert ANOMALIES[name] is code
    else:
        assert getattr(families()[name[:3]], name) is code


def pinned() -> str:
    """Code, rule, severity, what TensorFlow may do, and summary of every code."""
    lines = []
    for _, code in sorted(CORE_CODES.items()):
        outcomes = ",".join(each.name.lower() for each in code.tensorflow) or "-"
        lines.append(f"{code.code} {code.rule} {code.severity.value} {outcomes} {code.summary}\n")
    return "".join(lines)


def test_no_code_has_changed() -> None:
    assert pinned().splitlines() == PINNED.read_text("utf-8").splitlines()


def test_no_two_codes_have_one_rule() -> None:
    rules = Counter(code.rule for code in CORE_CODES.values())
    assert [rule for rule, count in rules.items() if count > 1] == []


def test_no_two_codes_have_one_summary_or_page() -> None:
    for field in ("summary", "page"):
        texts = Counter(getattr(code, field) for code in CORE_CODES.values())
        assert [text for text, count in texts.items() if count > 1] == []


@every_code
def test_its_rule_is_words_in_kebab_case(code: Code) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", code.rule)


@every_code
def test_its_severity_is_one(code: Code) -> None:
    assert isinstance(code.severity, Severity)


@every_code
def test_its_summary_and_hint_are_one_line_without_a_full_stop(code: Code) -> None:
    for text in (code.summary, code.hint):
        assert text == text.strip()
        assert 10 <= len(text) <= 120
        assert "\n" not in text
        assert not text.endswith((".", "!", ":"))
    assert code.summary[0].isupper()
    assert code.hint[0].islower() or code.hint[0] == "`"


@every_code
def test_its_page_explains_it_in_sentences(code: Code) -> None:
    sentences = re.findall(r"[\w)\]\"][.?](?=\s|$)", code.page.replace("`", ""))
    assert len(sentences) >= 2
    assert code.page.endswith("\n")
    assert not code.page.endswith("\n\n")
    assert [
        line for line in code.page.splitlines() if len(line) > 100 or line != line.rstrip()
    ] == []


@every_code
def test_a_code_that_its_page_names_exists(code: Code) -> None:
    text = f"{code.summary} {code.hint} {code.page}"
    named = set(re.findall(r"\b(?:{})[0-9]{{3}}\b".format("|".join(FAMILIES)), text))
    assert named <= set(CORE_CODES)


@every_code
def test_what_tensorflow_does_is_said_of_files_that_can_be_read_or_not(code: Code) -> None:
    assert len(set(code.tensorflow)) == len(code.tensorflow)
    # SHD008 is about how fast hosts read, and all other families about what they read.
    about_files = code.code[:3] in ("CRC", "SHD") and code.code != "SHD008"
    assert bool(code.tensorflow) == about_files


def announced() -> Counter[str]:
    """How many of our own validators announce each code."""
    return Counter(
        code.code
        for each in plugins().validators()
        if each.distribution == "tfrecreg"
        for code in each.record.codes
    )


def test_each_code_is_announced_by_exactly_one_validator() -> None:
    found = announced()
    assert {name: found[name] for name in found if found[name] != 1} == {}
    assert set(CORE_CODES) - set(found) == NOT_ANNOUNCED & set(CORE_CODES)


def test_what_validators_announce_are_the_codes_themselves() -> None:
    for each in plugins().validators():
        for code in each.record.codes:
            if each.distribution == "tfrecreg":
                assert CORE_CODES[code.code] is code


def test_a_validator_announces_what_its_class_says() -> None:
    for each in plugins().validators():
        if each.distribution == "tfrecreg":
            loaded = plugins().load_validator(each.qualified)
            assert loaded.name == each.record.name
            assert list(loaded.codes) == list(each.record.codes)


@pytest.mark.parametrize("name", sorted(CORE_CODES.keys() - ANOMALIES.keys()))
def test_each_code_has_a_test(name: str) -> None:
    """Its name stands in a test of this project, and not only in a list of codes like this one.

    Those of TFDV's anomalies have a test of their own, which counts them.
    """
    here = Path(__file__).resolve()
    tests = [path for path in TESTS.rglob("test_*.py") if path.resolve() != here]
    assert len(tests) > 20
    having = [path for path in tests if re.search(rf"\b{name}\b", path.read_text("utf-8"))]
    assert having, f"no test under tests/ names {name}: plant it and find it"


if __name__ == "__main__":
    PINNED.write_text(pinned(), "utf-8")
