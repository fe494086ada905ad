"""Codes are an interface: each has one meaning, a page that explains it, a validator and a test."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrecreg.core.values.codes
from tfrecreg.core.plugins.manager import code_named, plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.values.codes import CORE_CODES, PAGES, codes_on, former_codes
from tfrecreg.core.values.findings import Code

ROOT = Path(__file__).resolve().parents[4]
TESTS = ROOT / "tests"

PINNED = Path(__file__).with_name("pinned_codes.txt")
"""A line for each code. `python tests/core/values/codes/test_codes.py` writes it again when a code
is added."""

FAMILIES = {"CRC", "SHD", "SCH", "INF", "SRC", "DUP", "IMG", "ANN", "DRF", "REG", "QRY", "PLG"}
"""Those that are promised. A family gets its page with its first code."""

NOT_ANNOUNCED = {
    *(f"SRC{number:03d}" for number in (1, 14, 15, 48, *range(110, 121))),
    "REG009",
    "REG013",
    "SCH020",
    "SCH021",
}
"""Codes without a validator: reasons and remarks that sources give and builds write into the
ledger, what `schema check` finds of schemas, and what the gate says of waivers and of a change of
its own. Who announces one takes it out of here."""

NAME = re.compile(r"\b[A-Z]{3}[0-9]{3}\b")

every_code = pytest.mark.parametrize("code", CORE_CODES.values(), ids=CORE_CODES)


def test_every_page_is_known_and_has_codes_of_its_family() -> None:
    folder = Path(tfrecreg.core.values.codes.__file__).parent
    assert {path.stem for path in folder.glob("*.md")} == set(PAGES)
    for page, family in PAGES.items():
        assert family in FAMILIES
        assert {name[:3] for name in codes_on(page)} == {family}
        assert list(codes_on(page)) == sorted(codes_on(page))


@pytest.mark.parametrize("name", ["CRC099", "CRC", "XYZ001", "SCH100", "crc001", ""])
def test_another_name_is_unknown(name: str) -> None:
    assert name not in CORE_CODES
    with pytest.raises(KeyError):
        CORE_CODES[name]
    with pytest.raises(AttributeError, match="no attribute"):
        getattr(tfrecreg.core.values.codes, name)


def test_a_former_code_has_a_successor_and_no_other_meaning() -> None:
    former = former_codes()
    assert len(former) == 72
    for name, each in former.items():
        assert name == each.code
        assert name not in CORE_CODES
        assert set(each.became) <= set(CORE_CODES)
        # Manifests of older builds have it.
        assert code_named(name) is CORE_CODES[each.became[0]]


def test_the_changelog_lists_all_former_codes() -> None:
    """A row per code that took the place of others: `| SRC110 | SRC002–009, SRC041 |`."""
    became: dict[str, set[str]] = {}
    for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines():
        if line.startswith("| SRC"):
            _, new, former, _ = line.split("|")
            for first, last in re.findall(r"(?:SRC)(\d+)(?:–(\d+))?", former):
                numbers = range(int(first), int(last or first) + 1)
                became.setdefault(new.strip(), set()).update(f"SRC{each:03d}" for each in numbers)
    for name, each in former_codes().items():
        assert {code for code, names in became.items() if name in names} == {*each.became}
    assert set().union(*became.values()) == {*former_codes()}


def code_names(path: Path) -> Iterator[str]:
    """The names in a module that look like codes, as identifiers, attributes or whole strings."""
    text = path.read_text("utf-8")
    if not NAME.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "attr", "name", "value"):
            value = getattr(node, field, None)
            if isinstance(value, str) and re.fullmatch("[A-Z]{3}[0-9]{3}", value):
                yield value


@pytest.mark.medium
def test_every_code_that_a_module_names_exists() -> None:
    found = [
        (path.name, name)
        for folder in ("tfrecreg", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        for name in code_names(path)
        if name[:3] in PAGES.values()
    ]
    assert len(found) > 200
    assert [each for each in found if each[1] not in CORE_CODES] == []


def pinned() -> str:
    """Code, rule, severity, what TensorFlow may do, and summary of every code."""
    lines = []
    for _, code in sorted(CORE_CODES.items()):
        outcomes = ",".join(each.name.lower() for each in code.tensorflow) or "-"
        lines.append(f"{code.code} {code.rule} {code.severity.value} {outcomes} {code.summary}\n")
    return "".join(lines)


def test_no_code_has_changed() -> None:
    for name, code in CORE_CODES.items():
        assert getattr(tfrecreg.core.values.codes, name) is code
    assert pinned().splitlines() == PINNED.read_text("utf-8").splitlines()


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
        for each in plugins().every(ValidatorRecord)
        if each.distribution == "tfrecreg"
        for code in each.record.codes
    )


def test_each_code_is_announced_by_one_validator() -> None:
    found = announced()
    # A record with another image than its raw file, or with none: by its key, or by its item.
    assert {name: found[name] for name in found if found[name] != 1} == {"SRC017": 2, "SRC091": 2}
    assert set(CORE_CODES) - set(found) == NOT_ANNOUNCED & set(CORE_CODES)


def test_a_validator_announces_what_its_class_says() -> None:
    for each in plugins().every(ValidatorRecord):
        if each.distribution == "tfrecreg":
            loaded = plugins().load(ValidatorRecord, each.qualified)
            assert loaded.name == each.record.name
            assert list(loaded.codes) == list(each.record.codes)


def test_each_code_has_a_test() -> None:
    """Its name stands in a test of this project, and not only in a list of codes like this one.

    Those of TFDV's anomalies have a test of their own, which counts them.
    """
    here = Path(__file__).resolve()
    tests = [path for path in TESTS.rglob("test_*.py") if path.resolve() != here]
    assert len(tests) > 20
    named = {name for path in tests for name in NAME.findall(path.read_text("utf-8"))}
    untested = CORE_CODES.keys() - codes_on("tfdv").keys() - named
    assert not untested, f"no test under tests/ names {sorted(untested)}: plant and find them"


if __name__ == "__main__":
    PINNED.write_text(pinned(), "utf-8")
