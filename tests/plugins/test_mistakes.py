"""Mistakes that authors make: each is one line that names the plugin and the method, or the
author's file and line, with an exit code.
"""

from __future__ import annotations

import re

import pytest
from local_plugin_support import CHECK, SOURCE, LocalRegistry, local_registry

import tfrecreg
from tfrecreg.core.values.errors import TfrecregError

__all__ = ["local_registry"]

EXAMPLE = 'return {"text": bytes_feature(item.state)}'
ITEM = 'yield Item("train", f"{file.path}-{number}", len(line), line)'
FILE = "yield RawFile(each.path, each.size, each.size)"
SCHEMA = "return 'feature { name: \"text\" type: BYTES presence { min_fraction: 1 } shape {} }'"

SOURCES = {
    "a name that does not exist": (EXAMPLE, "return btes(item.state)", "(texts.py, line"),
    "a number that is text": (
        EXAMPLE,
        'from tfrecreg.api import int64_feature\n        return {"text": int64_feature("1")}',
        "'str' object cannot be interpreted as an integer (texts.py, line 31)",
    ),
    "a random number": (
        EXAMPLE,
        'import random\n        return {"text": bytes_feature(str(random.random()))}',
        "twice, and the results differ",
    ),
    "another feature than the schema's": (EXAMPLE, EXAMPLE.replace("text", "texts"), "schema"),
    "a division by zero": (
        EXAMPLE,
        "return 1 / 0",
        "ZeroDivisionError: division by zero (texts.py",
    ),
    "a wrong size": (
        FILE,
        "yield RawFile(each.path, 1, 1)",
        "says in `raw_files` that `a.txt` has",
    ),
    "a file that is not there": (FILE, 'yield RawFile("b.txt", 1, 1)', "`b.txt`, which does not"),
    "labels of no feature": (
        SCHEMA,
        f'{SCHEMA}\n\n    def labels(self):\n        return {{"label": ["a"]}}',
        "has names in `labels` for `label`, but neither the records nor the schema have this "
        "feature",
    ),
    "a method that is misspelt": (
        SCHEMA,
        f"{SCHEMA}\n\n    def descibe(self):\n        return {{}}",
        "`Lines.descibe` is not a method of Source; did you mean `describe`?",
    ),
    "a method that is missing": ("def schema(self)", "def _schema(self)", "has no `schema`"),
    "options that are no dataclass": (
        "@dataclass(frozen=True)",
        "",
        "its `Options` are not a dataclass",
    ),
    "a syntax error": ("class Lines", "clas Lines", "(texts.py, line"),
    "a module that is not there": (".lines", "no_such", "No module named 'no_such'"),
    "no class at all": ("class Lines(Source):", "class Lines:", "no source named"),
}
"""Words of a source, what stands in their place, and words of the message."""

VALIDATORS = {
    "a name that does not exist": ("text != text.lower()", "txt", "(capitals.py, line"),
    "a method that is misspelt": ("def look", "def loook", "did you mean `look`?"),
    "no method": ("def look", "def _look", "has no `look`"),
}


def one_line(error: TfrecregError) -> str:
    for text in (error.message, error.hint):
        assert text.isprintable()
    return error.message


@pytest.mark.parametrize("mistake", SOURCES)
def test_a_mistake_in_a_source_is_one_line(local_registry: LocalRegistry, mistake: str) -> None:
    before, after, words = SOURCES[mistake]
    assert before in SOURCE
    local_registry.put("sources/texts.py", SOURCE.replace(before, after))
    local_registry.trust()
    dataset = tfrecreg.open(local_registry.root)["texts"]
    with pytest.raises(TfrecregError) as caught:
        dataset.build(source=local_registry.word, raw=local_registry.root / "raw", progress=False)
    error = caught.value
    message = one_line(error)
    found = getattr(error, "findings", ())
    assert words in " ".join([message, error.hint, *(each.message for each in found)])
    assert error.exit_code in (1, 2, 3)
    assert found or "texts.py" in message
    assert "uninstall" not in error.hint


LINES = {
    "an import": ("class Lines", "import no_such  # here\n\n\nclass Lines"),
    "what a constructor calls": (
        "@dataclass(frozen=True)",
        "@dataclass(frozen=True)\nclass Failing:\n    a: int = 1\n\n"
        "    def __post_init__(self):\n        self.aa  # here\n\n\n@dataclass(frozen=True)",
    ),
    "what a function of another library raises": (
        EXAMPLE,
        "import numpy\n        return numpy.frombuffer(b'123', 'f8')  # here",
    ),
}
"""Words of a source, and what stands in their place: the line that a message has to name."""


@pytest.mark.parametrize("mistake", LINES)
def test_the_line_of_the_author_is_named(local_registry: LocalRegistry, mistake: str) -> None:
    before, after = LINES[mistake]
    assert before in SOURCE
    text = SOURCE.replace(before, after)
    if "class Failing" in text:
        text = re.sub(r"Options = \w+", "Options = Failing", text)
    line = next(n for n, each in enumerate(text.splitlines(), 1) if each.endswith("# here"))
    local_registry.put("sources/texts.py", text)
    local_registry.trust()
    dataset = tfrecreg.open(local_registry.root)["texts"]
    raw = local_registry.root / "raw"
    try:
        dataset.build(source=local_registry.word, raw=raw, progress=False)
        (told,) = dataset.built.check(raw=raw).errors
    except TfrecregError as error:
        told = one_line(error)
    assert f"(texts.py, line {line}" in told


@pytest.mark.parametrize("mistake", VALIDATORS)
def test_a_mistake_in_a_validator_is_one_line(local_registry: LocalRegistry, mistake: str) -> None:
    before, after, words = VALIDATORS[mistake]
    assert before in CHECK
    local_registry.trust()
    dataset = tfrecreg.open(local_registry.root)["texts"]
    built = dataset.build(
        source=local_registry.word, raw=local_registry.root / "raw", progress=False
    )
    assert built.manifest.dataset == "texts"
    local_registry.with_check(CHECK.replace(before, after))
    local_registry.trust()
    report = tfrecreg.open(local_registry.root)["texts"].built.check()
    (error,) = report.errors
    assert error.isprintable()
    assert words in error
    assert "capitals.py" in error
    assert report.exit_code == 3
