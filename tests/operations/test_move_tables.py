"""Registries of the version before: read as they are, and moved by `init`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from registry_support import empty_registry
from tests_support import tree

from tfrecreg.amounts import SkipLimit
from tfrecreg.config import DatasetConfig
from tfrecreg.errors import ConfigError
from tfrecreg.operations.init import init
from tfrecreg.operations.move_tables import split_tables
from tfrecreg.registry.registry import open_registry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OLD = """\
# The registry of the vision team.

# Digits, as everybody knows them.
[datasets.mnist]   # the first one
# where they are
raw = "raw/mnist"        # moved soon
source = "mnist"
licence = "CC-BY-SA-3.0"
max_skipped = "0.5%"

[datasets.mnist.options] # of the source
encoding = "png" # not raw

[gates.default]
fail_on = "warning" # strict

[datasets.pets]
owner = 'ada'

[[waivers]]
code = "IMG003"
owner = "ada"
reason = "known"
expires = 2027-01-31
"""

MNIST = """\
# Digits, as everybody knows them.
# the first one
# where they are
raw = "raw/mnist"        # moved soon
source = "mnist"
license = "CC-BY-SA-3.0"
max_skipped = "0.5%"

[options] # of the source
encoding = "png" # not raw
"""

REST = """\
# The registry of the vision team.

[gates.default]
fail_on = "warning" # strict

[[waivers]]
code = "IMG003"
owner = "ada"
reason = "known"
expires = 2027-01-31
"""

DATASETS = {
    "mnist": DatasetConfig(
        source="mnist",
        raw="raw/mnist",
        license="CC-BY-SA-3.0",
        max_skipped=SkipLimit.parse("0.5%"),
        options={"encoding": "png"},
    ),
    "pets": DatasetConfig(owner="ada"),
}


def test_an_older_registry_is_read_as_it_is(tmp_path: Path) -> None:
    empty_registry(tmp_path, OLD)
    before = tree(tmp_path)
    registry = open_registry(tmp_path)
    assert registry.config.datasets == DATASETS
    assert registry.dataset_names() == ["mnist", "pets"]
    assert registry.dataset("mnist").config_file == "tfrecreg.toml"
    assert registry.dataset("pets").config_place == "`[datasets.pets]` in `tfrecreg.toml`"
    assert tree(tmp_path) == before


def test_init_moves_its_tables_with_their_comments(tmp_path: Path) -> None:
    empty_registry(tmp_path, OLD)
    config = open_registry(tmp_path).config
    done = init(tmp_path, with_dvc=False)
    assert done.moved == ("datasets/mnist.toml", "datasets/pets.toml")
    assert set(done.moved) <= set(done.made)
    assert (tmp_path / "datasets/mnist.toml").read_text() == MNIST
    assert (tmp_path / "datasets/pets.toml").read_text() == "owner = 'ada'\n"
    assert (tmp_path / "tfrecreg.toml").read_text() == REST
    registry = open_registry(tmp_path)
    assert registry.config.datasets == DATASETS
    assert (registry.config.gates, registry.config.waivers) == (config.gates, config.waivers)
    assert registry.dataset("mnist").config_file == "datasets/mnist.toml"
    assert init(tmp_path, with_dvc=False).moved == ()


def test_both_a_table_and_a_file_are_an_error_until_init_is_done(tmp_path: Path) -> None:
    # As a run of it that was killed leaves them.
    empty_registry(tmp_path, OLD)
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets/mnist.toml").write_text(MNIST)
    with pytest.raises(ConfigError) as caught:
        open_registry(tmp_path).datasets()
    assert caught.value.message == (
        "`mnist` is configured twice: in `datasets/mnist.toml`, and in `tfrecreg.toml` by "
        "`[datasets.mnist]`"
    )
    assert caught.value.hint == ("remove one of them; if both are equal, `tfrecreg init` does")
    assert init(tmp_path, with_dvc=False).moved == ("datasets/mnist.toml", "datasets/pets.toml")
    assert open_registry(tmp_path).config.datasets == DATASETS


def test_a_file_that_says_something_else_is_not_written_over(tmp_path: Path) -> None:
    empty_registry(tmp_path, OLD)
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets/pets.toml").write_text("owner = 'bob'\n")
    before = tree(tmp_path, ignore=(".tfrecreg", "data", "versions"))
    with pytest.raises(ConfigError, match="`pets` is configured twice, with differences") as caught:
        init(tmp_path, with_dvc=False)
    assert caught.value.hint == "keep the right one and remove the other"
    assert tree(tmp_path, ignore=(".tfrecreg", "data", "versions")) == before


@pytest.mark.parametrize(
    "text",
    [
        "datasets = { a = { raw = 'x' }, b = {} }\n",
        "datasets.a.raw = 'x'\ndatasets.b.owner = 'ada'\n",
        "[datasets]\na.raw = 'x'\n[gates.default]\nfail_on = 'never'\n",
        "[datasets.a.options]\nsize = 3\n[gates.default]\n[datasets.a]\nraw = 'x'\n",
        "[datasets.a]\ndescription = '''\n[gates.default]\n# not a comment\n'''\nraw = 'x'\n",
        '[datasets.a]\nraw = "x"\n[datasets.a.options."odd # key"]\nx = 1\n',
        "[datasets.a]\r\nraw = 'x' # here\r\n[datasets.a.options] # o\r\nsize = 1\r\n",
        "# alone\n[datasets.a]",
        "\ufeff[datasets.a]\nraw = 'x'\n",
    ],
)
def test_every_layout_is_moved_with_the_same_values(text: str) -> None:
    values = tomllib.loads(text.removeprefix("\ufeff"))
    files, rest = split_tables(text)
    tables = values.pop("datasets")
    assert {name: tomllib.loads(file) for name, file in files.items()} == tables
    assert tomllib.loads(rest) == values
    if "\r\n" in text:
        assert "\n" not in files["a"].replace("\r\n", "").removesuffix("\n")


lines = st.sampled_from(
    [
        "",
        "# a comment",
        "[datasets.a]",
        "[datasets.b] # b",
        "[datasets.a.options]",
        '[datasets."b"."options"]',
        "[gates.default]",
        "[[waivers]]",
        "owner = 'ada'",
        "text = '''",
        "'''",
        "list = [",
        "[1],",
        "]",
    ]
)


tables = st.sampled_from(
    [
        "# a comment",
        "[datasets.a]\nowner = 'ada' # [datasets.c]",
        "[datasets.b] # b",
        "[datasets.a.options]\nlist = [\n[1],\n]",
        "[datasets.\"b\".\"options\"]\ntext = '''\n[gates.default]\n'''",
        "[gates.default]\ntext = '''\n[datasets.b]\n'''",
        "[[waivers]]\nowner = 'ada'",
    ]
)


@settings(max_examples=300)
@given((st.lists(tables, unique=True) | st.lists(lines, max_size=12)).map("\n".join))
def test_whatever_parses_is_moved_with_the_same_values_and_the_rest_is_refused(text: str) -> None:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(ConfigError):
            split_tables(text)
        return
    assume("datasets" in values)
    files, rest = split_tables(text)
    assert {name: tomllib.loads(file) for name, file in files.items()} == values.pop("datasets")
    assert tomllib.loads(rest) == values
