"""What plugins inherit: defaults, and methods that are misspelt."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tfrecreg.api import Need, RecordValidator, Source, Validator, Visitor
from tfrecreg.core.build.sources.deal import DealOptions, SourceOptions
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.plugins.manager import Plugins
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import PluginError
from tfrecreg.core.values.text import overrides

Site = Any  # of conftest.py, which test modules cannot import

REQUIRED = {"raw_files": None, "items": None, "example": None, "schema": None}


@pytest.mark.parametrize(
    ("base", "name", "meant"),
    [
        (Source, "descibe", "describe"),
        (Source, "raw_paths", "raw_path"),
        (Source, "codec", "codecs"),
        (Source, "label", "labels"),
        (Source, "Option", "Options"),
        (Validator, "aplies", "applies"),
        (Validator, "partkey", "part_key"),
        (Visitor, "faults", "fault"),
        (Visitor, "batches", "batch"),
        (RecordValidator, "looks", "look"),
    ],
)
def test_a_misspelt_method_is_an_error(base: type, name: str, meant: str) -> None:
    told = f"`Mine.{name}` is not a method of {base.__name__}; did you mean `{meant}`?"
    for member in (lambda self: None, property(lambda self: None), staticmethod(len), dict):
        with pytest.raises(TypeError, match=re.escape(told)):
            type("Mine", (base,), {name: member})


@pytest.mark.parametrize("name", ["_descibe", "compare", "open_files", "parse", "describe"])
def test_other_methods_are_the_plugin_s_own(name: str) -> None:
    assert issubclass(type("Mine", (Source,), {name: lambda self: None}), Source)


def test_methods_of_a_mixin_and_of_a_plugin_s_own_base_class_are_not_misspelt() -> None:
    class Mixin:
        def item(self) -> None: ...

    class Base(Mixin, Source):
        def compare(self) -> None: ...

    class Mine(Base):
        def item(self) -> None: ...

        def compared(self) -> None: ...

    assert Mine.item is not Base.item


def test_a_misspelt_method_is_told_in_one_line_with_the_distribution(site: Site) -> None:
    site.source("lines-plugin", "lines")
    site.module(
        "fake_lines_plugin_source",
        """
        from tfrecreg.api import Source
        class Lines(Source):
            def descibe(self): return {}
        """,
    )
    with pytest.raises(PluginError) as caught:
        Plugins.search([str(site.folder)]).load(SourceRecord, "lines")
    assert caught.value.message == (
        "the source `lines` of `lines-plugin` 1.0 cannot be loaded: TypeError: `Lines.descibe` is "
        "not a method of Source; did you mean `describe`? If not, begin its name with an "
        "underscore (fake_lines_plugin_source.py, line 3: `class Lines(Source):`)"
    )


def test_a_class_that_lacks_what_is_required_is_refused(site: Site) -> None:
    site.source("lines-plugin", "lines")
    site.module(
        "fake_lines_plugin_source",
        """
        from tfrecreg.api import Source
        class Lines(Source):
            def raw_files(self): return iter(())
            def items(self): return iter(())
        """,
    )
    with pytest.raises(
        PluginError,
        match=r"its class has no `example` or `schema` \(fake_lines_plugin_source.py, line 3\)\n",
    ):
        Plugins.search([str(site.folder)]).load(SourceRecord, "lines")


def opened(kind: Any) -> GuardedSource:
    plugin_id = PluginId("source", "lines", "lines-plugin", "1.0")
    return GuardedSource.open(
        kind, plugin_id, LocalStorage("."), SourceOptions(kind.Options(), DealOptions())
    )


class DuckTyped:
    """As a plugin had to be before there was a base class: only the methods."""

    Options = Source.Options

    def __init__(self, raw: Any, options: Any) -> None: ...

    def labels(self) -> dict[str, list[str]]:
        return {"label": ["cat"]}


def test_optional_methods_of_a_source_have_defaults() -> None:
    source = opened(type("Mine", (Source,), REQUIRED))
    assert (source.labels(), source.describe(), source.codecs()) == ({}, {}, {})
    assert (source.locates, source.raw_path("train", "a")) == (False, None)


def test_a_class_that_only_has_the_methods_is_a_source() -> None:
    source = opened(DuckTyped)
    assert (source.labels(), source.describe(), source.codecs()) == ({"label": ["cat"]}, {}, {})
    assert not source.locates
    assert opened(type("Mine", (DuckTyped,), {"raw_path": lambda *names: None})).locates


def test_optional_methods_of_a_validator_have_defaults() -> None:
    kind = type("Mine", (Validator,), {"begin": None, "finish": None})
    validator: Any = kind()
    assert validator.needs == Need(0)
    assert validator.applies(None) is validator.part_key(None, {}) is validator.part_codec is None
    assert not overrides(validator, Validator, "merge")
    merging = type("Mine", (kind,), {"merge": lambda *parts: None})
    assert overrides(merging(), Validator, "merge")


def test_a_visitor_ignores_what_it_does_not_look_at() -> None:
    visitor: Any = type("Mine", (Visitor,), {"close": lambda self, end: end})()
    assert visitor.batch(None) is visitor.fault(None) is None
    assert visitor.close(7) == 7
    with pytest.raises(TypeError, match="abstract method"):
        type("Mine", (Visitor,), {})()
