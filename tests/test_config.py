from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.amounts import SkipLimit
from tfrecreg.config import (
    Config,
    DatasetConfig,
    GateConfig,
    InflationLimit,
    parse_config,
    remember_dataset,
)
from tfrecreg.errors import ConfigError
from tfrecreg.findings import Severity
from tfrecreg.gating import FailOn, Waiver

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FULL = """
[datasets.mnist]
source = "mnist"
raw = "raw/mnist"
schema = "schemas/mnist.pbtxt"
options = { image = "png", size = 28 }
shard_size = "256MiB"
compression = "gzip"
max_skipped = "0.5%"
owner = "vision-team"
licence = "CC-BY-SA-3.0"
description = "Digits"
citation = "LeCun"

[datasets.coco]
hosts = 8
max_skipped = 10

[gates.default]
fail_on = "warning"
validators = ["crc", "manifest"]
severity = { "IMG*" = "info", IMG003 = "error" }

[gates.default.limits.inflation]
ratio = 2
allowance = 0

[gates.default.limits.drift]
threshold = 0.1

[gates.mnist]
fail_on = "never"
severity = { IMG003 = "warning" }
limits.inflation = { base = "stored" }

[[waivers]]
code = "IMG003"
owner = "ada"
reason = "CMYK is meant"
expires = 2027-01-31
"""


def test_an_empty_file_is_an_empty_configuration() -> None:
    assert parse_config("") == Config()
    assert Config().gate("mnist") == GateConfig()
    assert GateConfig().fail_on is FailOn.ERROR


def test_datasets_are_read_with_all_their_keys() -> None:
    datasets = parse_config(FULL).datasets
    assert datasets["mnist"] == DatasetConfig(
        source="mnist",
        raw="raw/mnist",
        schema="schemas/mnist.pbtxt",
        options={"image": "png", "size": 28},
        shard_size=256 << 20,
        compression="gzip",
        max_skipped=SkipLimit(Fraction(1, 200)),
        owner="vision-team",
        licence="CC-BY-SA-3.0",
        description="Digits",
        citation="LeCun",
    )
    assert datasets["coco"] == DatasetConfig(hosts=8, max_skipped=SkipLimit(None, 10))


def test_gates_are_read_with_all_their_keys() -> None:
    gate = parse_config(FULL).gates["default"]
    assert gate.fail_on is FailOn.WARNING
    assert gate.validators == ("crc", "manifest")
    assert gate.severity == {"IMG*": Severity.INFO, "IMG003": Severity.ERROR}
    assert gate.limits.inflation == InflationLimit(ratio=2.0, allowance=0, base="decoded")
    assert gate.limits.of("inflation") == {"ratio": 2.0, "allowance": 0, "base": "decoded"}
    assert gate.limits.of("drift") == {"threshold": 0.1}
    assert gate.limits.of("crc") == {}


def test_a_gate_takes_what_it_leaves_out_from_the_default_gate() -> None:
    config = parse_config(FULL)
    gate = config.gate("mnist")
    assert gate.fail_on is FailOn.NEVER
    assert gate.validators == ("crc", "manifest")
    assert gate.severity == {"IMG*": Severity.INFO, "IMG003": Severity.WARNING}
    assert gate.limits.inflation == InflationLimit(ratio=2.0, allowance=0, base="stored")
    assert config.gate("coco") == config.gates["default"]


def test_the_built_in_inflation_limit_is_ten_percent_and_512_bytes_a_record() -> None:
    limits = GateConfig().limits
    assert limits.of("inflation") == {"ratio": 1.10, "allowance": 512, "base": "decoded"}


def test_waivers_are_read() -> None:
    assert parse_config(FULL).waivers == (
        Waiver(code="IMG003", owner="ada", reason="CMYK is meant", expires=date(2027, 1, 31)),
    )


def test_bytes_and_a_byte_order_mark_and_windows_line_ends_are_read() -> None:
    data = b"\xef\xbb\xbf" + FULL.replace("\n", "\r\n").encode()
    assert parse_config(data) == parse_config(FULL)


WAIVER = "[[waivers]]\ncode='A'\nowner='a'\nreason='r'\nexpires=2027-01-01\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "is no TOML at line 1, column 5: Invalid value"),
        ("a = 1\nb = 1 2", "is no TOML at line 2, column 7: "),
        (b"a = 1\n# \xff", "is not UTF-8 in line 2"),
        ("[dataset.x]", ": `dataset` is not a known key; did you mean `datasets`?"),
        ("datasets = 3", ": `datasets` expected a table, found `3`"),
        ("datasets.x = 3", ": `datasets.x` expected a table, found `3`"),
        ("[datasets.Mnist]", ": `datasets.Mnist` is no name of a dataset"),
        ('[datasets."a b"]\nx=1', ': `datasets."a b".x` is not a known key'),
        (
            "[datasets.x]\nsouce='a'",
            ": `datasets.x.souce` is not a known key; did you mean `source`",
        ),
        ("[datasets.x]\nsource=3", ": `datasets.x.source` expected text, found `3`"),
        ("[datasets.x]\nsource=''", ": `datasets.x.source` expected text of length >= 1, found ``"),
        ("[datasets.x]\nraw=['a']", ": `datasets.x.raw` expected text, found an array"),
        ("[datasets.x]\noptions=3", ": `datasets.x.options` expected a table, found `3`"),
        ("[datasets.x]\nshards=0", ": `datasets.x.shards` expected a whole number >= 1, found `0`"),
        (
            "[datasets.x]\nshards=true",
            ": `datasets.x.shards` expected a whole number, found `true`",
        ),
        ("[datasets.x]\nhosts=1.0", ": `datasets.x.hosts` expected a whole number, found `1.0`"),
        ("[datasets.x]\nshard_size='1M'", ": `datasets.x.shard_size` expected a size such as"),
        ("[datasets.x]\nshard_size=[1]", ": `datasets.x.shard_size` expected a size such as"),
        ("[datasets.x]\nmax_skipped='1/2'", ": `datasets.x.max_skipped` expected a number of item"),
        (
            "[datasets.x]\nshards=1\nhosts=2",
            ": `datasets.x` expected one way to size shards, found `shards` and `hosts`",
        ),
        (
            "[datasets.x]\ncompression='bz2'",
            ": `datasets.x.compression` expected `none` or `gzip`, found `bz2`",
        ),
        ("[datasets.x]\ncompression=1", ": `datasets.x.compression` expected `none` or `gzip`"),
        ("[gates]\nfail_on='error'", ": `gates.fail_on` expected a table, found `error`"),
        (
            "[gates.x]\nfailon='error'",
            ": `gates.x.failon` is not a known key; did you mean `fail_on",
        ),
        (
            "[gates.x]\nfail_on='info'",
            ": `gates.x.fail_on` expected `error`, `warning` or `never`, found `info`",
        ),
        ("[gates.x]\nvalidators='crc'", ": `gates.x.validators` expected an array, found `crc`"),
        ("[gates.x]\nvalidators=['a',1]", ": `gates.x.validators[1]` expected text, found `1`"),
        (
            "[gates.x.severity]\n'IMG*'='fatal'",
            ': `gates.x.severity."IMG*"` expected `error`, `warning` or `info`, found `fatal`',
        ),
        ("[gates.x]\nlimits=1", ": `gates.x.limits` expected a table, found `1`"),
        ("[gates.x]\nlimits.drift=1", ": `gates.x.limits.drift` expected a table, found `1`"),
        (
            "[gates.x.limits.inflation]\nration=1",
            ": `gates.x.limits.inflation.ration` is not a known key; did you mean `ratio`?",
        ),
        (
            "[gates.x.limits.inflation]\nratio=0.0",
            ": `gates.x.limits.inflation.ratio` expected a number > 0.0, found `0.0`",
        ),
        ("[gates.x.limits.inflation]\nratio=inf", ": `gates.x.limits.inflation` expected a finite"),
        ("[gates.x.limits.inflation]\nratio=nan", ": `gates.x.limits.inflation.ratio` expected a"),
        ("[gates.x.limits.inflation]\nallowance=-1", ".allowance` expected a whole number >= 0"),
        ("[gates.default]\nfail_on=1\n[gates.x]", ": `gates.default.fail_on` expected `error`"),
        ("[waivers]", ": `waivers` expected an array, found a table"),
        ("waivers = [1]", ": `waivers[0]` expected a table, found `1`"),
        (WAIVER + "[[waivers]]\ncode='B'", ": `waivers[1].owner` is missing"),
        (WAIVER.replace("code='A'", ""), ": `waivers[0]` a waiver needs a `code` or a"),
        (WAIVER.replace("'a'", "''"), ": `waivers[0]` a waiver's `owner` may not be empty"),
        (
            WAIVER.replace("2027-01-01", "'soon'"),
            "[0].expires` expected a date such as `2027-01-31`",
        ),
        (
            WAIVER.replace("2027-01-01", "2027-01-01T00:00:00"),
            "[0].expires` expected a date, found",
        ),
        ('"\\u001b[31m" = 1', r': `"\x1b[31m"` is not a known key'),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "some/tfrecreg.toml")
    assert caught.value.message.startswith("`some/tfrecreg.toml`")
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_a_file_that_is_nested_beyond_reason_is_refused() -> None:
    with pytest.raises(ConfigError, match="is nested too deeply"):
        parse_config("a = " + "[" * 100_000)


def test_an_unknown_key_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config("x = 1")
    assert caught.value.message == "`tfrecreg.toml`: `x` is not a known key"
    assert caught.value.hint == "known keys: datasets, gates, waivers"


VALUES: dict[str, Any] = {"source": "mnist", "raw": "raw/mnist", "options": {"size": 28}}


def test_remembering_in_an_empty_file_makes_a_table() -> None:
    text = remember_dataset("", "mnist", VALUES)
    assert text == (
        '[datasets.mnist]\nsource = "mnist"\nraw = "raw/mnist"\noptions = {size = 28}\n'
    )
    assert parse_config(text).datasets["mnist"].options == {"size": 28}


def test_remembering_a_new_dataset_changes_no_byte_before_it() -> None:
    for text in (FULL, "# only a comment", "[gates.default] # no end of line\nfail_on = 'never'"):
        result = remember_dataset(text, "kmnist", VALUES)
        assert result.startswith(text)
        assert result[len(text) :].lstrip("\n").startswith("[datasets.kmnist]\n")


def test_remembering_the_same_again_changes_nothing() -> None:
    text = "[datasets.mnist]\nsource='mnist'   # as it was\nshards = 0x10\n"
    assert remember_dataset(text, "mnist", {"source": "mnist", "shards": 16}) == text
    once = remember_dataset(FULL, "mnist", VALUES)
    assert remember_dataset(once, "mnist", VALUES) == once


def test_updating_keeps_comments_order_and_other_keys() -> None:
    before = """\
# The registry of the vision team.

[datasets.mnist]   # digits
# where they lie
raw = "old"        # moved soon
owner = 'ada'
shards = 1_0
options = {size = 20} # pixels

# Nobody touches this.
[gates.default]
fail_on   =   "never"
"""
    after = remember_dataset(
        before,
        "mnist",
        {"raw": "new", "shards": None, "options": {"size": 28}, "compression": "gzip"},
    )
    assert after == (
        before.replace('"old"', '"new"')
        .replace("shards = 1_0\n", "")
        .replace("{size = 20}", "{size = 28}")
        .replace("# pixels\n", '# pixels\ncompression = "gzip"\n')
    )


def test_tables_below_a_dataset_are_updated_where_they_stand() -> None:
    before = "[datasets.a]\nraw='x'\n\n[datasets.a.options]\nsize = 3 # px\n# gates\n[gates.x]\n"
    after = remember_dataset(before, "a", {"options": {"size": 4, "pad": 1}})
    assert after == before.replace("3 # px\n", "4 # px\npad = 1\n")


def test_windows_line_ends_stay() -> None:
    before = "# hi\r\n[datasets.a]\r\nraw = 'x'\r\n"
    assert remember_dataset(before, "a", {"owner": "ada"}) == before + 'owner = "ada"\r\n'
    added = remember_dataset(before, "b", {"owner": "ada"})
    assert added == before + '\r\n[datasets.b]\r\nowner = "ada"\r\n'


@pytest.mark.parametrize(
    "text",
    [
        "datasets.a.raw = 'x'\ngates.default.fail_on = 'never'\n",
        "[datasets]\na.raw = 'x'\n[gates.default]\n",
        "datasets = { a = { raw = 'x' } }\n",
        "[datasets.a.options]\nsize = 3\n[gates.default]\n[datasets.z]\n",
        "[datasets.z]\n[gates.default]\n[datasets.a]\n",
    ],
)
def test_unusual_layouts_are_updated_or_refused_but_never_spoiled(text: str) -> None:
    before = tomllib.loads(text)
    after = tomllib.loads(remember_dataset(text, "a", VALUES))
    assert {key: after["datasets"]["a"][key] for key in VALUES} == VALUES
    before["datasets"]["a"].update(VALUES)
    assert after == before


def test_a_layout_that_takes_no_more_tables_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        remember_dataset("datasets = { b = { raw = 'x' } }\n", "a", VALUES)
    assert caught.value.message == (
        "`tfrecreg.toml`: `datasets.a` cannot be written without changing more"
    )
    assert caught.value.hint == "put `source`, `raw` and `options` there by hand"


@pytest.mark.parametrize("text", ["a = ", "datasets = 3", "datasets.a = 3"])
def test_a_file_that_is_wrong_is_not_written_on(text: str) -> None:
    with pytest.raises(ConfigError):
        remember_dataset(text, "a", VALUES)


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
values = st.dictionaries(
    st.sampled_from(["source", "raw", "owner", "licence", "shards", "options"]),
    st.none()
    | words
    | st.integers(-(2**40), 2**40)
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.lists(words, max_size=2)
    | st.dictionaries(words.filter(bool), words | st.integers(0, 9), max_size=2),
    max_size=4,
)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), values), max_size=4))
def test_whatever_is_remembered_is_read_back(steps: list[tuple[str, dict[str, Any]]]) -> None:
    text = FULL
    expected = tomllib.loads(FULL)
    for name, given_values in steps:
        text = remember_dataset(text, name, given_values)
        table = expected["datasets"].setdefault(name, {})
        for key, value in given_values.items():
            table.pop(key, None)
            if value is not None:
                table[key] = value
    assert tomllib.loads(text) == expected
    assert text.startswith(FULL)


def test_reading_imports_nothing_that_only_writing_needs() -> None:
    code = (
        "import sys, tfrecreg.config as c; c.parse_config('[datasets.a]');"
        "print('tomlkit' in sys.modules, 'tfrecreg.storage' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("False False\n", "")
