"""Verbs of schemas and of whole registries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tfrecreg as tr
from tfrecreg.core.values.errors import RefusedError, UsageError


@pytest.fixture
def reg(digits_registry: Path) -> tr.Registry:
    return tr.open(digits_registry)


def narrow(digits: tr.Dataset) -> str:
    """Make the working schema refuse labels above 3, and give its text."""
    file = Path(digits.registry.root, digits.schema_path)
    text = file.read_text()
    assert "max: 255" in text
    file.write_text(text.replace("max: 255", "max: 3"))
    return file.read_text()


def test_a_schema_is_drafted_from_records(reg: tr.Registry) -> None:
    digits = reg["digits"]
    draft = digits.infer_schema()
    assert 'name: "image/encoded"' in draft
    assert draft == reg["digits@1.0.0"].infer_schema()
    shard = sorted(Path(reg.root, "data/digits").glob("*.tfrecord-*"))[0]
    data = bytearray(shard.read_bytes())
    data[20] ^= 1
    shard.write_bytes(data)
    with pytest.raises(RefusedError, match="1 damaged place was skipped"):
        digits.infer_schema()


def test_a_change_of_the_schema_is_proposed_and_written(reg: tr.Registry) -> None:
    digits = reg["digits"]
    before = narrow(digits)
    proposal = digits.accept_schema()
    assert [each.feature for each in proposal.edits] == ["image/class/label"]
    assert digits.schema == before
    with pytest.raises(UsageError, match="`image/encoded` of `digits` has no finding"):
        digits.accept_schema(features="image/encoded")
    assert digits.accept_schema(features=["image/class/label"], write=True).after == digits.schema
    digits.built.check(only="schema").raise_for_findings()
    with pytest.raises(UsageError, match="is a release: its schema never changes"):
        digits.latest.accept_schema()


def test_schemas_are_compared(reg: tr.Registry) -> None:
    digits, release = reg["digits"], reg["digits@1.0.0"]
    assert release.diff_schema(digits).changes == ()
    narrow(digits)
    (change,) = release.diff_schema(digits).changes
    assert (change.expected, change.found) == ("255", "3")
    assert release.diff_schema(Path(reg.root, digits.schema_path)).changes == (change,)
    assert digits.check_schema(mode="forward").status == "pass"
    report = digits.check_schema(mode="backward-transitive", fail_on="warning")
    assert (report.status, report.against) == ("fail", ("digits@1.0.0",))
    assert digits.check_schema(against=[digits]).findings == ()
    assert digits.check_schema(against="digits").findings == ()
    with pytest.raises(UsageError) as caught:
        digits.check_schema(mode="sideways")  # type: ignore[arg-type]
    assert caught.value.message == (
        "`mode` should be `backward`, `forward` or `full`, found `sideways`"
    )


def test_a_saved_report_is_judged(reg: tr.Registry, tmp_path: Path) -> None:
    build = reg["digits"].built
    saved = tmp_path / "report.json"
    saved.write_text(json.dumps(build.check(fail_on="never").to_json()))
    assert build.gate(saved).judged
    with pytest.raises(UsageError, match="is about `digits`, not about"):
        reg["digits@1.0.0"].gate(saved)
