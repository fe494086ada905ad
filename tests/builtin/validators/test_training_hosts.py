"""SHD008: too few or too small shards for the hosts that the configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from check_support import Digits, Document, document
from foreign_support import put

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.validators.manifest import HostLoad, check_hosts
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.shards import ShardPolicy

MB = 1_000_000


def configure(digits: Digits, text: str) -> None:
    with (digits.root / "tfrecreg.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")


def found(document: Document) -> dict[str, str]:
    """Message by split."""
    return {
        each["fingerprint"].split(":")[2]: each["message"]
        for each in document["findings"]
        if each["code"] == "SHD008"
    }


def judged(shards: int, records: int, size: int, hosts: int) -> list[str]:
    tally = Tally()
    check_hosts(tally, [HostLoad("train", "", shards, records, size)], hosts)
    return [each.message for each in tally.findings("x")]


def test_a_build_with_fewer_shards_than_hosts(digits: Digits) -> None:
    configure(digits, "[gates.digits.limits]\nmanifest = { hosts = 4 }")
    document = digits.check("manifest")
    assert found(document) == {
        "train": "expected at least 4 shards for 4 hosts, found 2",
        "test": "expected at least 4 shards for 4 hosts, found 2",
    }
    (first, _) = document["findings"]
    assert (first["severity"], first["fingerprint"]) == ("warning", "SHD008:digits:test::")
    assert document["status"] == "pass"


def test_the_hosts_of_a_dataset_are_those_it_is_built_for(digits: Digits) -> None:
    path = digits.root / "datasets/digits.toml"
    text = path.read_text(encoding="utf-8").replace("shards = 2", "hosts = 3")
    path.write_text(text, encoding="utf-8")
    assert set(found(digits.check("manifest"))) == {"train", "test"}
    configure(digits, "[gates.default.limits]\nmanifest = { hosts = 2 }")
    assert found(digits.check("manifest")) == {}  # the gate has the last word


@pytest.mark.parametrize("hosts", [1, 3, 8])
def test_what_was_built_for_its_hosts_is_not_found(digits: Digits, hosts: int) -> None:
    policy = ShardPolicy(hosts=hosts)
    build(open_registry(digits.root), BuildRequest(name="digits", policy=policy))
    configure(digits, f"[gates.digits.limits]\nmanifest = {{ hosts = {hosts} }}")
    assert found(digits.check("manifest")) == {}


@pytest.mark.parametrize(
    ("shards", "records", "size", "hosts", "message"),
    [
        (40, 10**6, 4000 * MB, 4, ""),
        (80, 10**6, 4000 * MB, 4, ""),  # more, and large enough
        (39, 10**6, 4000 * MB, 4, "expected at least 40 shards for 4 hosts, found 39"),
        (
            500,
            10**6,
            4000 * MB,
            4,
            "expected at most 40 shards for 4 hosts, found 500 with 8.0 MB on average, which is "
            "less than 10.0 MB",
        ),
        (4, 10**6, 50 * MB, 4, ""),  # too small for more than one each
        (3, 3, 100, 4, ""),  # fewer records than hosts: one shard each is all there can be
        (1, 0, 0, 4, ""),
    ],
)
def test_a_split_is_held_against_what_it_could_be(
    shards: int, records: int, size: int, hosts: int, message: str
) -> None:
    assert judged(shards, records, size, hosts) == ([message] if message else [])


def test_bare_files_are_held_against_the_default_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tfrecreg.toml").write_text("[gates.default.limits]\nmanifest = { hosts = 3 }\n")
    payload = encode({"x": bytes_feature(b"x")})
    for number in range(2):
        put(tmp_path / f"train-{number:05d}-of-00002", *[payload] * 4)
    checked = document(["train@2"], skip=("duplicates",))
    assert found(checked) == {"train": "expected at least 3 shards for 3 hosts, found 2"}
    assert checked["findings"][0]["fingerprint"] == "SHD008::train::train"


def test_files_of_two_stores_with_the_same_path_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tfrecreg.toml").write_text("[gates.default.limits]\nmanifest = { hosts = 3 }\n")
    for place, records in (("few", 1), ("many", 9)):
        for number in range(2):
            name = f"train-{number:05d}-of-00002"
            put(tmp_path / place / name, *[encode({"x": bytes_feature(b"x")})] * records)
            memory.pipe(f"/{place}/{name}", (tmp_path / place / name).read_bytes())
    checked = document(["memory://few/train@2", "memory://many/train@2"], only=("manifest",))
    assert [(each["fingerprint"], each["message"]) for each in checked["findings"]] == [
        ("SHD008::train::memory://many/train", "expected at least 3 shards for 3 hosts, found 2")
    ]
