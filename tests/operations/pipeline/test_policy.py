"""What one dataset's stages depend on in `tfrecreg.toml`, and nothing that they do not."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from registry_support import empty_registry

from tfrecreg.errors import UsageError
from tfrecreg.operations.pipeline.policy import next_expiry, policy_of
from tfrecreg.operations.pipeline.stages import stages_of
from tfrecreg.registry import open_registry

TODAY = date(2026, 5, 1)

CONFIG = """
[datasets.mnist]
source = "mnist"
raw = "raw/mnist"
max_skipped = "0.5%"
hosts = 2
options.encoding = "png"

[datasets.other]
source = "mnist"
raw = "raw/other"

[gates.default]
fail_on = "warning"
limits.inflation.ratio = 2.0

[gates.mnist]
severity = { "CRC*" = "error" }

[[waivers]]
code = "SRC*"
owner = "ada"
reason = "known"
expires = 2026-04-30

[[waivers]]
fingerprint = "SHD007:mnist:test:*"
owner = "ada"
reason = "small"
expires = 2026-06-30

[[waivers]]
fingerprint = "SHD007:other:test:*"
owner = "ada"
reason = "small"
expires = 2026-05-02
"""


def document(root: Path, config: str = CONFIG, name: str = "mnist") -> dict[str, Any]:
    return policy_of(empty_registry(root, config), name, until=date(2026, 6, 30))


def test_it_is_what_the_gates_come_to_and_plain_json(tmp_path: Path) -> None:
    found = document(tmp_path)
    assert json.loads(json.dumps(found)) == found
    assert found["build"]["source"] == "mnist"
    assert found["build"]["max_skipped"] == "0.5%"
    assert found["build"]["options"] == {"encoding": "png"}
    assert found["check"]["limits"]["inflation"]["ratio"] == 2.0
    assert found["check"]["limits"]["manifest"] == {"hosts": 2}
    assert found["gate"]["fail_on"] == "warning"
    assert found["gate"]["severity"] == {"CRC*": "error"}
    owners = [(each["fingerprint"], each["expires"]) for each in found["gate"]["waivers"]]
    assert owners == [("*", "2026-04-30"), ("SHD007:mnist:test:*", "2026-06-30")]
    assert found["gate"]["next_expiry"] == "2026-06-30"


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("# nothing", "# a comment", set()),
        ('raw = "raw/other"', 'raw = "raw/elsewhere"', set()),
        ('fingerprint = "SHD007:other:test:*"', 'fingerprint = "SHD007:other:train:*"', set()),
        ("[datasets.mnist]", "[datasets.mnist]\nowner = 'bob'\nlicence = 'MIT'", set()),
        ("[gates.mnist]", "[gates.mnist]\nfail_on = 'warning'", set()),
        ("[datasets.mnist]", "[datasets.mnist]\ncompression = 'gzip'", {"build"}),
        ("ratio = 2.0", "ratio = 3.0", {"check"}),
        ("[gates.mnist]", "[gates.mnist]\nlimits.crc = {}", set()),
        ("[gates.mnist]", "[gates.mnist]\nvalidators = ['crc']", {"check"}),
        ("[gates.mnist]", "[gates.mnist]\nfail_on = 'error'", {"gate"}),
        ('"CRC*" = "error"', '"CRC*" = "info"', {"gate"}),
        ("2026-04-30", "2026-05-30", {"gate"}),
        ("hosts = 2", "hosts = 3", {"build", "check"}),
    ],
)
def test_a_change_reaches_the_stages_that_depend_on_it(
    old: str, new: str, parts: set[str], tmp_path: Path
) -> None:
    config = f"{CONFIG}# nothing\n"
    assert old in config
    before = document(tmp_path, config)
    after = document(tmp_path, config.replace(old, new, 1))
    assert {part for part in before if before[part] != after[part]} == parts


def test_the_next_expiry_is_that_of_a_waiver_of_the_dataset_that_holds(tmp_path: Path) -> None:
    config = empty_registry(tmp_path, CONFIG).config
    for day, expiry in (
        (date(2026, 4, 30), date(2026, 4, 30)),
        (TODAY, date(2026, 6, 30)),
        (date(2026, 7, 1), None),
    ):
        assert next_expiry(config, "mnist", today=day) == expiry


def test_the_stage_says_until_when_the_verdict_holds(tmp_path: Path) -> None:
    registry = empty_registry(tmp_path, CONFIG)
    for day, until in ((TODAY, " --until 2026-06-30"), (date(2026, 7, 1), "")):
        command = stages_of(registry, "mnist", today=day)["policy-mnist"]["cmd"]
        assert command == f"tfrecreg pipeline mnist --policy reports/mnist/policy.json{until}"


def test_a_dataset_that_there_is_not_is_refused(tmp_path: Path) -> None:
    empty_registry(tmp_path, CONFIG)
    with pytest.raises(UsageError, match="no dataset `mnits`; did you mean `mnist`"):
        policy_of(open_registry(tmp_path), "mnits")
