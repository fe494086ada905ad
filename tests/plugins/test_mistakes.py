"""Mistakes that authors make: each is one line that names the author's file and line, or the plugin
and the method, with an exit code.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from local_plugin_support import CHECK, SOURCE, LocalRegistry, local_registry
from plugin_support import install

import tfrecreg
from tfrecreg.api import RecordValidator
from tfrecreg.core.plugins.manager import Plugins
from tfrecreg.core.values.errors import TfrecregError

__all__ = ["local_registry"]

EXAMPLE = 'return {"text": bytes_feature(item.state)}'
ITEM = 'yield Item("train", f"{file.path}-{number}", len(line), line)'
FILE = "yield RawFile(each.path, each.size, each.size)"
SCHEMA = "return 'feature { name: \"text\" type: BYTES presence { min_fraction: 1 } shape {} }'"
WHO = "the source `Lines` of `./sources/texts.py` "

SOURCES = {
    "a name that does not exist": (EXAMPLE, "return btes(item.state)", "(texts.py, line"),
    "a number that is text": (
        EXAMPLE,
        'from tfrecreg.api import int64_feature\n        return {"text": int64_feature("1")}',
        'TypeError: a value is a `str`, expected an integer (texts.py, line 34: `return {"text": '
        'int64_feature("1")}`)',
    ),
    "a value of no kind": (EXAMPLE, 'return {"text": bytes_feature(1.5)}', "bytes_feature(1.5)}`)"),
    "a plain value": (EXAMPLE, 'return {"text": b"a"}', "`text`"),
    "an example that is a list": (EXAMPLE, "return [1]", "expected an example, found"),
    "no example at all": (EXAMPLE, "pass", "expected an example, found None"),
    "a random number": (
        EXAMPLE,
        'import random\n        return {"text": bytes_feature(str(random.random()))}',
        "twice, and the results differ",
    ),
    "JSON that does not parse": (
        EXAMPLE,
        "import json\n        return json.loads(item.state)",
        "(texts.py, line",
    ),
    "another feature than the schema's": (EXAMPLE, EXAMPLE.replace("text", "texts"), "schema"),
    "a division by zero": (
        EXAMPLE,
        "return 1 / 0",
        "ZeroDivisionError: division by zero (texts.py",
    ),
    "a skipped item without a code": (
        EXAMPLE,
        'from tfrecreg.api import Skipped\n        return Skipped("train", item.key, "", "why")',
        "is not a code of a source",
    ),
    "a code that nobody announces": (
        EXAMPLE,
        'from tfrecreg.api import Skipped\n        return Skipped("train", item.key, "LIN009", "")',
        "`LIN009` is not a code of a source",
    ),
    "an item that is a tuple": (
        ITEM,
        'yield ("train", "a", 1)',
        "expected an Item, a Skipped or a",
    ),
    "an item of a split with a slash": (
        ITEM,
        'yield Item("a/b", "a", 1)',
        "the split `a/b` should",
    ),
    "an item with a number as key": (ITEM, 'yield Item("train", number, 1)', "the key of an item"),
    "an item of negative size": (ITEM, 'yield Item("train", "a", -1)', "expected at least 0"),
    "an item with a text as state": (ITEM, 'yield Item("train", "a", 1, "x")', "should be bytes"),
    "keys that are not unique": (ITEM, 'yield Item("train", "a", 1, line)', "`a`"),
    "items that are a text": (ITEM, 'return "abc"', "an object of type `str` is not an iterator"),
    "a listing of nothing": (ITEM, "pass", "failed in `items`: None is not an iterator"),
    "a wrong size": (
        FILE,
        "yield RawFile(each.path, 1, 1)",
        "says in `raw_files` that `a.txt` has",
    ),
    "a file that is not there": (FILE, 'yield RawFile("b.txt", 1, 1)', "`b.txt`, which does not"),
    "a raw file that is a text": (FILE, "yield each.path", "expected a RawFile, found"),
    "a file that is opened past `self.raw`": (
        FILE,
        "open('no/such')\n            yield",
        "FileNotFoundError: [Errno 2] No such file or directory: 'no/such' (texts.py, line",
    ),
    "a schema that does not parse": (
        SCHEMA,
        "return 'feature { name: text }'",
        "failed in `schema`",
    ),
    "a schema that is a number": (SCHEMA, "return 1", "failed in `schema`: the schema should be"),
    "labels of no feature": (
        SCHEMA,
        f'{SCHEMA}\n\n    def labels(self):\n        return {{"label": ["a"]}}',
        "names in `labels` the feature `label`, which no record and no schema has",
    ),
    "labels that are a text": (
        SCHEMA,
        f'{SCHEMA}\n\n    def labels(self):\n        return {{"text": "ab"}}',
        "class names of `text` should be a list",
    ),
    "a method that is misspelt": (
        SCHEMA,
        f"{SCHEMA}\n\n    def descibe(self):\n        return {{}}",
        "`Lines.descibe` is not a method of Source; did you mean `describe`?",
    ),
    "a method that is missing": ("def schema(self)", "def _schema(self)", "has no `schema`"),
    "options that are not frozen": (
        "@dataclass(frozen=True)",
        "@dataclass",
        "its `Options` is not a frozen dataclass",
    ),
    "a syntax error": ("class Lines", "clas Lines", "(texts.py, line"),
    "a module that is not there": (".lines", "no_such", "No module named 'no_such'"),
    "a neighbour that is not there": (".lines", ".liness", "liness.py"),
    "an exit": (EXAMPLE, "raise SystemExit(0)", "SystemExit: 0 (texts.py, line"),
    "no class at all": ("class Lines(Source):", "class Lines:", "no source named"),
}
"""Words of a source, what stands in their place, and words of the message."""

VALIDATORS = {
    "a name that does not exist": ("text != text.lower()", "txt", "(capitals.py, line"),
    "a result of no kind": ("return None if", "return 1 if", "`look` returned 1, expected a text"),
    "a code of tfrecreg's own": ("LOC001", "CRC009", "which is tfrecreg's own"),
    "a code without a number": ("LOC001", "LOCAL", "expected one like `ABC001`"),
    "no name": ('name = "capitals"', "", "expected `[a-z][a-z0-9_]*`"),
    "a method that is misspelt": ("def look", "def loook", "did you mean `look`?"),
    "no method": ("def look", "def _look", "has no `look`"),
}

PACKAGES = {
    "no hook": ("x = 1", "implements no hook: expected `tfrecreg_sources`"),
    "a hook that does not exist": (
        "from tfrecreg.api import hookimpl\n\n@hookimpl\ndef tfrecreg_source():\n    return []",
        "`tfrecreg_source` is not a hook; did you mean `tfrecreg_sources`?",
    ),
    "a hook with an argument": (
        "from tfrecreg.api import hookimpl\n\n@hookimpl\ndef tfrecreg_sources(config):\n"
        "    return []",
        "hook 'tfrecreg_sources'",
    ),
    "a hook that returns nothing": (
        "from tfrecreg.api import hookimpl\n\n@hookimpl\ndef tfrecreg_sources():\n    pass",
        "`tfrecreg_sources` returned None, expected SourceRecords",
    ),
    "a record of another kind": (
        "from tfrecreg.api import hookimpl, SourceRecord\n\n@hookimpl\ndef tfrecreg_validators():\n"
        '    yield SourceRecord("a", "b", print)',
        "`tfrecreg_validators` yielded",
    ),
    "a name in capitals": (
        "from tfrecreg.api import hookimpl, SourceRecord\n\n@hookimpl\ndef tfrecreg_sources():\n"
        '    yield SourceRecord("Lines", "b", print)',
        "`tfrecreg_sources` yielded the name `Lines`, expected `[a-z][a-z0-9_]*`",
    ),
    "a class in place of a function": (
        "from tfrecreg.api import hookimpl, SourceRecord\n\n@hookimpl\ndef tfrecreg_sources():\n"
        '    yield SourceRecord("lines", "b", "lines_source:Lines")',
        "`lines` needs a summary in words and a function to load it",
    ),
    "an import that fails": ("import no_such", "ModuleNotFoundError: No module named 'no_such'"),
    "a hook that raises": (
        "from tfrecreg.api import hookimpl\n\n@hookimpl\ndef tfrecreg_sources():\n    return 1 / 0",
        "ZeroDivisionError: division by zero",
    ),
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
    placed = re.search(r"\(texts\.py, line \d+", message)
    assert found or placed or (mistake == "no class at all" and "texts.py" in message)
    assert "uninstall" not in error.hint


LINES = {
    "an import": ("class Lines", "import no_such  # here\n\n\nclass Lines"),
    "an import of a name": ("class Lines", "from json import lods  # here\n\n\nclass Lines"),
    "what `items` yields": (ITEM, 'yield Item("a/b", "a", 1)  # here'),
    "what `raw_files` yields": (FILE, "yield each.path  # here"),
    "a listing that is handed on": (FILE, "yield from [each.path]  # here"),
    "a path of the wrong arguments": (
        SCHEMA,
        f"{SCHEMA}\n\n    def raw_path(self, item):  # here\n        return None",
    ),
    "a constructor of the wrong arguments": (
        SCHEMA,
        f"{SCHEMA}\n\n    def __init__(self):  # here\n        pass",
    ),
    "what `example` returns": (
        "    def example(self, item):",
        "    def example(self, item):  # here\n        return [1]\n\n    def _no(self, item):",
    ),
    "what `schema` returns": (
        "    def schema(self):",
        "    def schema(self):  # here\n        return 1\n\n    def _no(self):",
    ),
    "a class below decorators": (
        "class Lines(Source)",
        "@dataclass\n@dataclass\nclass Thawed:  # here\n    a: int = 1\n\n\nclass Lines(Source)",
    ),
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
    for name in ("Thawed", "Failing"):
        if f"class {name}" in text:
            text = re.sub(r"Options = \w+", f"Options = {name}", text)
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


def test_features_are_not_a_text() -> None:
    with pytest.raises(TypeError, match=r"`Odd\.features` is a text, expected a tuple of names"):
        type("Odd", (RecordValidator,), {"features": "name"})


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
    assert re.search(r"\(capitals\.py, line \d+", error)
    assert report.exit_code == 3


@pytest.mark.parametrize("mistake", PACKAGES)
def test_a_mistake_in_a_distribution_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    text, words = PACKAGES[mistake]
    name = f"kit_mistake_{list(PACKAGES).index(mistake)}"
    install(tmp_path, name, text)
    monkeypatch.syspath_prepend(str(tmp_path))
    (broken,) = Plugins.search([str(tmp_path)]).broken
    assert broken.distribution == name
    assert broken.reason.isprintable()
    assert words in broken.reason
    assert ("(" in broken.reason) == (mistake != "no hook"), broken.reason
    assert "uninstall" not in broken.reason
