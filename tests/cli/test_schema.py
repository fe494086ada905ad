"""`tfrecreg schema`: comparing versions, checking readers, and taking data in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.schema.definition import IntDomain
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.codes import SCH020


@pytest.fixture
def root(digits_registry: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry with the dataset `digits`, released as 1.0.0; the current folder."""
    monkeypatch.chdir(digits_registry)
    return digits_registry


def schema_of(root: Path) -> Path:
    return root / "schemas/digits.pbtxt"


def change(root: Path, old: str, new: str) -> None:
    path = schema_of(root)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_equal_schemas_have_no_difference(cli: Any, root: Path) -> None:
    done = cli("schema", "diff", "digits@1.0.0", "digits")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "expected: registry/digits/1.0.0/schema.pbtxt",
        "found:    schemas/digits.pbtxt",
        "no difference",
    ]
    assert cli("schema", "diff", "digits", "digits", "--exit-code").code == 0


def test_differences_are_told_feature_by_feature(cli: Any, root: Path) -> None:
    change(root, "max: 255", "max: 9")
    change(root, 'value: "png"', 'value: "jpeg"')
    change(root, '  name: "image/width"', '  name: "image/breadth"')
    done = cli("schema", "diff", "digits@latest", "schemas/digits.pbtxt")
    assert done.code == 0
    assert done.out.splitlines()[2:] == [
        "feature image/breadth",
        "  expected nothing, found type: INT, int_domain.min: 28, int_domain.max: 28, "
        "presence.min_fraction: 1, presence.min_count: 1, shape: scalar",
        "feature image/class/label",
        "  int_domain.max: expected 255, found 9",
        "feature image/format",
        "  string_domain.value: expected also png; found also jpeg",
        "feature image/width",
        "  expected type: INT, int_domain.min: 28, int_domain.max: 28, "
        "presence.min_fraction: 1, presence.min_count: 1, shape: scalar, found nothing",
        "4 differences",
    ]
    assert cli("schema", "diff", "digits@1.0.0", "digits", "--exit-code").code == 1


def test_a_diff_has_a_json_form(cli: Any, root: Path) -> None:
    change(root, "max: 255", "max: 9")
    document = cli("schema", "diff", "digits@1.0.0", "digits", "--json").json
    assert document == {
        "format_version": 1,
        "expected": "registry/digits/1.0.0/schema.pbtxt",
        "found": "schemas/digits.pbtxt",
        "changes": [
            {
                "part": "feature",
                "name": "image/class/label",
                "field": "int_domain.max",
                "expected": "255",
                "found": "9",
            }
        ],
    }


def test_a_schema_that_did_not_change_passes_in_every_mode(cli: Any, root: Path) -> None:
    for mode in ("backward", "forward", "full"):
        for more in ("", "-transitive"):
            done = cli("schema", "check", "digits", "--mode", f"{mode}{more}")
            assert done.code == 0
            assert done.out.splitlines() == [
                f"schemas/digits.pbtxt: {mode}, against digits@1.0.0",
                "pass: 0 errors, 0 warnings",
            ]


BROKEN = {"backward": 0, "forward": 1, "full": 1}
"""A feature became optional: today's reader takes yesterday's records, and not the other way."""


@pytest.mark.parametrize("mode", BROKEN)
def test_the_mode_decides_which_way_is_looked_at(cli: Any, root: Path, mode: str) -> None:
    make_label_optional(root)
    done = cli("schema", "check", "digits", "--mode", mode)
    assert done.code == BROKEN[mode]
    if done.code:
        assert done.out.splitlines()[1:] == [
            "error SCH020 breaks-reader: `image/class/label` should be in every example for the "
            "reader; in the records it may be missing",
            "    image/class/label: reader of digits@1.0.0, today's records",
            f"    hint: {SCH020.hint}",
            "fail: 1 error, 0 warnings",
        ]


def test_a_changed_meaning_warns_and_fails_where_that_is_asked(cli: Any, root: Path) -> None:
    change(root, "max: 255", "max: 9")
    done = cli("schema", "check", "digits", "--mode", "backward", "--json")
    assert done.code == 0
    document = done.json
    assert (document["status"], document["against"]) == ("pass", ["digits@1.0.0"])
    (finding,) = document["findings"]
    assert finding["code"] == "SCH021"
    assert finding["rule"] == "changes-meaning"
    assert finding["severity"] == "warning"
    assert finding["fingerprint"] == "SCH021:digits::image/class/label:backward/other-values"
    assert finding["locations"] == [
        {"feature": "image/class/label", "detail": "today's reader, records of digits@1.0.0"}
    ]
    done = cli("schema", "check", "digits", "--mode", "backward", "--fail-on", "warning")
    assert done.code == 1
    assert cli("schema", "check", "digits", "--fail-on", "never").code == 0


def make_label_optional(root: Path) -> None:
    text = schema_of(root).read_text()
    head, label = text.split('  name: "image/class/label"')
    label = label.replace("presence { min_fraction: 1 min_count: 1 }", "presence { min_count: 1 }")
    schema_of(root).write_text(f'{head}  name: "image/class/label"{label}')


def test_a_transitive_check_holds_it_against_every_release(cli: Any, root: Path) -> None:
    make_label_optional(root)
    assert cli("build", "digits").code == 0
    assert cli("release", "digits", "--bump", "auto").code == 0
    done = cli("schema", "check", "digits")
    assert (done.code, done.out.splitlines()[0]) == (
        0,
        "schemas/digits.pbtxt: full, against digits@1.0.1",
    )
    done = cli("schema", "check", "digits", "--mode", "full-transitive", "--json")
    assert done.code == 1
    assert done.json["against"] == ["digits@1.0.0", "digits@1.0.1"]
    assert [finding["locations"][0]["detail"] for finding in done.json["findings"]] == [
        "reader of digits@1.0.0, today's records"
    ]


def test_other_schemas_can_be_named(cli: Any, root: Path) -> None:
    make_label_optional(root)
    done = cli("schema", "check", "digits", "--against", "digits@1.0.0", "--against", "digits")
    assert done.code == 1
    assert "full, against digits@1.0.0, digits" in done.out
    assert cli("schema", "check", "digits", "--against", "digits").code == 0


def test_readers_of_sequences_are_not_checked(cli: Any, root: Path) -> None:
    (root / "s.pbtxt").write_text('feature { name: "##SEQUENCE##" type: STRUCT }')
    for names in (("digits", "s.pbtxt"), ("s.pbtxt", "digits")):
        done = cli("schema", "check", names[0], "--against", names[1])
        assert done.code == 2
        assert "`s.pbtxt` describes SequenceExamples" in done.err


def test_without_a_release_there_is_nothing_to_break(cli: Any, root: Path) -> None:
    (root / "schemas/plain.pbtxt").write_text("")
    (root / "datasets/plain.toml").write_text('source = "mnist"\n')
    done = cli("schema", "check", "plain")
    assert done.code == 0
    assert done.out.splitlines()[0] == ("schemas/plain.pbtxt: no release to compare with yet")


def test_a_release_that_was_withdrawn_binds_nobody(cli: Any, root: Path) -> None:
    assert cli("schema", "check", "digits", "--json").json["against"] == ["digits@1.0.0"]
    assert cli("yank", "digits@1.0.0", "--reason", "labels were wrong").code == 0
    done = cli("schema", "check", "digits", "--json")
    assert (done.code, done.json["against"]) == (0, [])


def test_a_change_is_shown_and_not_written(cli: Any, root: Path) -> None:
    change(root, "max: 255", "max: 4")
    before = schema_of(root).read_text()
    done = cli("schema", "accept", "digits")
    assert done.code == 0
    assert "-  int_domain { min: 0 max: 4 is_categorical: true }" in done.out.splitlines()
    assert "+    max: 9" in done.out.splitlines()
    assert done.err.splitlines() == [
        "SCH006 `image/class/label`: numbers up to 9",
        "nothing was written: --write puts the change into schemas/digits.pbtxt",
    ]
    assert schema_of(root).read_text() == before


def test_a_change_is_written_where_that_is_asked_and_the_check_then_passes(
    cli: Any, root: Path
) -> None:
    change(root, "max: 255", "max: 4")
    change(root, '  name: "image/width"', '  name: "image/breadth"')
    before = schema_of(root).read_text()
    schema_of(root).rename(root / "schemas/shared.pbtxt")
    schema_of(root).symlink_to("shared.pbtxt")
    assert cli("check", "digits", "--only", "schema").code == 1
    done = cli("schema", "accept", "digits", "--write")
    assert done.code == 0
    assert done.err.splitlines()[-1] == (
        "wrote schemas/digits.pbtxt: review it, commit it, build again"
    )
    after = (root / "schemas/shared.pbtxt").read_text()
    assert [line for line in after.splitlines() if "#" in line] == [
        line for line in before.splitlines() if "#" in line
    ]
    assert "image/width" in [feature.name for feature in parse_schema(after).features]
    assert cli("check", "digits", "--only", "schema").code == 0
    assert cli("schema", "accept", "digits").out == ""


def test_one_feature_can_be_taken_in_alone(cli: Any, root: Path) -> None:
    change(root, "max: 255", "max: 4")
    change(root, 'value: "png"', 'value: "jpeg"')
    (root / "data/link.pbtxt").symlink_to(schema_of(root))
    options = ("--schema", "data/link.pbtxt", "--feature", "image/format", "--write", "--json")
    done = cli("schema", "accept", "digits", *options)
    document = done.json
    assert document["written"] is True
    assert document["refused"] == []
    assert document["changes"] == [
        {"code": "SCH006", "feature": "image/format", "change": "`png` added to its domain"}
    ]
    assert 'value: "jpeg"\n    value: "png"\n' in schema_of(root).read_text()
    assert "max: 4" in schema_of(root).read_text()


def test_what_cannot_be_taken_in_is_said_and_the_exit_code_is_1(cli: Any, root: Path) -> None:
    (root / "schemas/other.pbtxt").write_text(
        schema_of(root)
        .read_text()
        .replace("image_domain {}", 'time_domain { string_format: "%Y" }')
    )
    done = cli("schema", "accept", "digits", "--schema", "schemas/other.pbtxt")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("SCH006 `image/encoded`: not accepted: no change is proposed")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["digits@1.0.0"], "`digits@1.0.0` is a release: its schema never changes"),
        (["digits", "--feature", "image/formt"], "`image/formt` of `digits` has no finding"),
    ],
)
def test_what_cannot_be_accepted_is_one_line(
    cli: Any, root: Path, arguments: list[str], error: str
) -> None:
    done = cli("schema", "accept", *arguments)
    assert done.code == 2
    assert error in done.err.splitlines()[0]


def test_a_schema_that_changed_in_the_meantime_is_not_written_over(root: Path) -> None:
    from tfrecreg.builtin.schemas.accept import propose, write_proposal
    from tfrecreg.core.values.errors import ConflictError

    change(root, "max: 255", "max: 4")
    proposal = propose("digits", registry=root)
    change(root, "max: 4", "max: 5")
    with pytest.raises(ConflictError) as caught:
        write_proposal(proposal)
    assert caught.value.message == "`schemas/digits.pbtxt` was changed while the data were read"
    assert "max: 5" in schema_of(root).read_text()


def test_a_draft_names_classes_and_images(cli: Any, root: Path) -> None:
    done = cli("schema", "infer", "digits", "--json")
    assert done.code == 0
    draft = parse_schema(done.json["schema"])
    label = next(each for each in draft.features if each.name == "image/class/label")
    assert label.domain == IntDomain(0, 9, is_categorical=True)
    assert draft.images() == ("image/encoded",)
