from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest

from tfrecreg.core.values.config import (
    DatasetConfig,
    FailOn,
    Waiver,
    parse_config,
    parse_dataset,
)
from tfrecreg.core.values.errors import ConfigError
from tfrecreg.core.values.findings import Severity
from tfrecreg.core.values.typed_values import SkipLimit

MNIST = """
source = "mnist"
raw = "raw/mnist"
schema = "schemas/mnist.pbtxt"
options = { image = "png", size = 28 }
shard_size = "256MiB"
compression = "gzip"
max_skipped = "0.5%"
owner = "vision-team"
license = "CC-BY-SA-3.0"
description = "Digits"
citation = "LeCun"
"""

FULL = """
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


def test_the_file_of_a_dataset_is_read_with_all_its_keys() -> None:
    assert parse_dataset(MNIST, "datasets/mnist.toml") == DatasetConfig(
        source="mnist",
        raw="raw/mnist",
        schema="schemas/mnist.pbtxt",
        options={"image": "png", "size": 28},
        shard_size=256 << 20,
        compression="gzip",
        max_skipped=SkipLimit(Fraction(1, 200)),
        owner="vision-team",
        license="CC-BY-SA-3.0",
        description="Digits",
        citation="LeCun",
    )
    few = parse_dataset("hosts = 8\nmax_skipped = 10\n", "datasets/coco.toml")
    assert few == DatasetConfig(hosts=8, max_skipped=SkipLimit(None, 10))
    assert parse_dataset(b"", "datasets/new.toml") == DatasetConfig()
    with pytest.raises(ConfigError) as caught:
        parse_dataset("[options]\nsize = 1\n[other]", "datasets/new.toml")
    assert (
        caught.value.message == "`datasets/new.toml`: `other` is not known; did you mean `owner`?"
    )


def test_gates_are_read_with_all_their_keys() -> None:
    gate = parse_config(FULL).gates["default"]
    assert gate.fail_on is FailOn.WARNING
    assert gate.validators == ("crc", "manifest")
    assert gate.severity == {"IMG*": Severity.INFO, "IMG003": Severity.ERROR}
    assert gate.options_of("inflation") == {"ratio": 2.0, "allowance": 0, "base": "decoded"}
    assert gate.options_of("drift") == {"threshold": 0.1}
    assert gate.options_of("crc") == {}


def test_a_gate_takes_what_it_leaves_out_from_the_default_gate() -> None:
    config = parse_config(FULL)
    gate = config.gate("mnist")
    assert gate.fail_on is FailOn.NEVER
    assert gate.validators == ("crc", "manifest")
    assert gate.severity == {"IMG*": Severity.INFO, "IMG003": Severity.WARNING}
    assert gate.options_of("inflation") == {"ratio": 2.0, "allowance": 0, "base": "stored"}
    assert config.gate("coco") == config.gates["default"]


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
        ("a = ", "is not TOML: Invalid value"),
        ("a = 1\nb = 1 2", "is not TOML: "),
        (b"a = 1\n# \xff", "is not TOML: 'utf-8' codec can't decode byte 0xff in position 8"),
        ("[datasets.x]", ": `datasets` is not known"),
        ("[gates]\nfail_on='error'", ": `gates.fail_on` should be a table, found `error`"),
        ("[gates.x]\nfailon='error'", ": `gates.x.failon` is not known; did you mean `fail_on"),
        ("[gates.x]\nfail_on='info'", ": `gates.x.fail_on` should be `error`, `warning` or"),
        ("[gates.x]\nvalidators='crc'", ": `gates.x.validators` should be a list, each item text"),
        ("[gates.x]\nvalidators=['a',1]", ": `gates.x.validators[1]` should be text with a"),
        ("[gates.x.severity]\n'IMG*'='fatal'", ': `gates.x.severity."IMG*"` should be `error`,'),
        ("[gates.x]\nlimits=1", ": `gates.x.limits` should be a table, found `1`"),
        ("[gates.x]\nlimits.drift=1", ": `gates.x.limits.drift` should be a table, found `1`"),
        ("[gates.x.limits.inflation]\nration=1", ": `gates.x.limits.inflation.ration` is not"),
        ("[gates.x.limits.inflation]\nratio=0.0", ".inflation.ratio` should be a number > 0"),
        ("[gates.x.limits.inflation]\nratio=inf", ".inflation.ratio` should be a number > 0"),
        ("[gates.x.limits.inflation]\nratio=nan", ".inflation.ratio` should be a number > 0"),
        ("[gates.x.limits.inflation]\nallowance=-1", ".allowance` should be a whole number >= 0"),
        ("[gates.default]\nfail_on=1\n[gates.x]", ": `gates.default.fail_on` should be `error`"),
        ("[waivers]", ": `waivers` should be a list, each item a table, found a table"),
        ("waivers = [1]", ": `waivers[0]` should be a table, found `1`"),
        (WAIVER + "[[waivers]]\ncode='B'", ": `waivers[1].owner` is missing: it should be text"),
        (WAIVER.replace("code='A'", ""), ": `waivers[0]` a waiver needs a `code` or a"),
        (WAIVER.replace("'a'", "' '"), ": `waivers[0].owner` should be text"),
        (WAIVER.replace("'r'", "''"), ": `waivers[0].reason` should be text"),
        (WAIVER.replace("'a'", "''"), ": `waivers[0].owner` should be text with a length >= 1"),
        (
            WAIVER.replace("2027-01-01", "'soon'"),
            "[0].expires` should be a date such as `2027-01-31`",
        ),
        (
            WAIVER.replace("2027-01-01", "2027-01-01T00:00:00"),
            "[0].expires` should be a date such as `2027-01-31`, found",
        ),
        ('"\\u001b[31m" = 1', r': `"\x1b[31m"` is not known'),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert caught.value.message.startswith("`tfrecreg.toml`")
    assert message in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("souce='a'", ": `souce` is not known; did you mean `source`"),
        ("source=3", ": `source` should be text with a length >= 1, found `3`"),
        ("source=''", ": `source` should be text with a length >= 1, found ``"),
        ("raw=['a']", ": `raw` should be text with a length >= 1, found a list"),
        ("options=3", ": `options` should be a table, found `3`"),
        ("shards=0", ": `shards` should be a whole number >= 1, found `0`"),
        ("shards=true", ": `shards` should be a whole number >= 1, found `true`"),
        ("hosts=1.0", ": `hosts` should be a whole number >= 1, found `1.0`"),
        ("shard_size='1i'", ": `shard_size` expected a size such as"),
        ("shard_size=[1]", ": `shard_size` expected a size such as"),
        ("max_skipped='1/2'", ": `max_skipped` expected a number of item"),
        ("shards=1\nhosts=2", ": expected one way to size shards, found `shards` and `hosts`"),
        ("compression='bz2'", ": `compression` should be `none` or `gzip`, found `bz2`"),
        ("compression=1", ": `compression` should be `none` or `gzip`"),
    ],
)
def test_what_is_wrong_with_a_dataset_is_named_with_file_and_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_dataset(text, "datasets/x.toml")
    assert caught.value.message.startswith("`datasets/x.toml`:")
    assert message in caught.value.message
