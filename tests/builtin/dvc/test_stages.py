"""What the stages of a dataset depend on in the configuration, and nothing that they do not."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from registry_support import empty_registry, write

from tfrecreg.builtin.dvc.pipeline import expect_pipeline, pipeline, stages_of
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.errors import UsageError

TODAY = date(2026, 5, 1)

MNIST = """
source = "mnist"
raw = "raw/mnist"
max_skipped = "0.5%"
hosts = 2
options.encoding = "png"
owner = "ada"
"""

CONFIG = """
[gates.default]
fail_on = "warning"
limits.inflation.ratio = 2.0

[gates.mnist]
severity = { "CRC*" = "error" }
validators = ["crc"]

[gates.other]
limits.inflation.ratio = 3.0

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


def registry_with(root: Path, mnist: str = MNIST, config: str = CONFIG) -> Registry:
    return empty_registry(root, config, mnist=mnist, other='source = "mnist"\nraw = "raw/other"\n')


def params(registry: Registry) -> dict[str, Any]:
    stages = stages_of(registry, "mnist", today=TODAY)
    return {name.removesuffix("-mnist"): each.get("params") for name, each in stages.items()}


OF_BUILD = ["source", "raw", "options", "hosts", "max_skipped"]
OF_GATES = ["gates.default.limits", "gates.mnist.validators"]


def test_stages_name_the_keys_that_change_their_result(tmp_path: Path) -> None:
    assert params(registry_with(tmp_path)) == {
        "build": [{"datasets/mnist.toml": OF_BUILD}],
        "check": [{"datasets/mnist.toml": ["hosts"]}, {"tfrecreg.toml": OF_GATES}],
        "gate": None,
    }
    assert stages_of(open_registry(tmp_path), "mnist")["gate-mnist"]["deps"] == [
        "reports/mnist/check.json",
        "tfrecreg.toml",
        "datasets/mnist.toml",
    ]


def test_a_stage_without_parameters_has_none(tmp_path: Path) -> None:
    registry = registry_with(tmp_path, 'source = "mnist"\nraw = "raw"\n', "")
    assert params(registry)["check"] is None
    assert "#" not in stages_of(registry, "mnist")["check-mnist"]["cmd"]


def test_a_page_has_a_stage_where_the_dataset_asks_for_it(tmp_path: Path) -> None:
    assert "page-mnist" not in stages_of(registry_with(tmp_path), "mnist")
    registry = registry_with(tmp_path, f"page = true\n{MNIST}")
    stages = stages_of(registry, "mnist")
    assert params(registry)["build"] == [{"datasets/mnist.toml": OF_BUILD}]
    assert stages["page-mnist"] == {
        "cmd": "tfrecreg report mnist --output reports/mnist/page.html",
        "deps": [
            "data/mnist",
            "schemas/mnist.pbtxt",
            "registry/mnist",
            "tfrecreg.toml",
            "datasets/mnist.toml",
        ],
        "outs": ["reports/mnist/page.html"],
        "meta": {"tfrecreg": "mnist"},
    }


def test_the_command_names_the_keys_for_dvc_to_see_one_that_goes(tmp_path: Path) -> None:
    stages = stages_of(registry_with(tmp_path), "mnist")
    assert stages["build-mnist"]["cmd"] == (
        "tfrecreg build mnist  # depends on source, raw, options, hosts, max_skipped"
    )
    assert stages["check-mnist"]["cmd"].endswith(
        "  # depends on hosts, gates.default.limits, gates.mnist.validators"
    )


def test_a_key_that_was_added_since_is_refused_by_the_gate(tmp_path: Path) -> None:
    pytest.importorskip("ruamel.yaml", reason="the extra `dvc` is not installed")
    registry = registry_with(tmp_path)
    expect_pipeline(registry, "mnist")  # there is no pipeline
    for name in ("mnist", "other"):
        write(tmp_path / f"schemas/{name}.pbtxt", "")
    pipeline(registry)
    expect_pipeline(registry, "mnist")
    for text in (f"{MNIST}compression = 'gzip'\n", MNIST.replace("hosts = 2\n", "")):
        changed = registry_with(tmp_path, text)
        with pytest.raises(UsageError, match="lacks settings that") as caught:
            expect_pipeline(changed, "mnist")
        assert caught.value.hint == "tfrecreg pipeline, then dvc repro"
    config = CONFIG.replace("[gates.mnist]", "[gates.mnist]\nlimits.crc = {}")
    with pytest.raises(UsageError, match="that `check-mnist` depends on: "):
        expect_pipeline(registry_with(tmp_path, config=config), "mnist")
    # What is for other stages, or for people, is no parameter.
    expect_pipeline(registry_with(tmp_path, f"{MNIST}description = 'Digits'\n"), "mnist")
    config = CONFIG.replace("[gates.mnist]", "[gates.mnist]\nfail_on = 'never'")
    expect_pipeline(registry_with(tmp_path, config=config), "mnist")
    expect_pipeline(registry_with(tmp_path, config=config), "elsewhere")


def test_the_stage_says_until_when_the_verdict_holds(tmp_path: Path) -> None:
    registry = registry_with(tmp_path)
    for day, until in (
        (date(2026, 4, 30), " --until 2026-04-30"),
        (TODAY, " --until 2026-06-30"),
        (date(2026, 7, 1), ""),
    ):
        command = stages_of(registry, "mnist", today=day)["gate-mnist"]["cmd"]
        assert command == f"tfrecreg gate mnist --report reports/mnist/check.json{until}"
