"""References and versions: what is read, what is refused, and what the refusal says."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.reference import (
    Reference,
    Version,
    check_dataset_name,
    is_dataset_name,
    looks_like_reference,
    parse_reference,
    parse_version,
)

NUMBERS = st.integers(0, 999_999_999)
VERSIONS = st.builds(Version, NUMBERS, NUMBERS, NUMBERS)


class TestVersion:
    @given(VERSIONS)
    def test_text_round_trips(self, version: Version) -> None:
        assert parse_version(str(version)) == version

    def test_compares_as_numbers(self) -> None:
        texts = ["1.10.0", "1.9.9", "0.0.1", "10.0.0", "2.0.0"]
        assert [str(v) for v in sorted(map(parse_version, texts))] == [
            "0.0.1", "1.9.9", "1.10.0", "2.0.0", "10.0.0"
        ]  # fmt: skip

    @given(VERSIONS)
    def test_bump_is_greater_and_resets_what_follows(self, version: Version) -> None:
        assert version.bump("major") == Version(version.major + 1, 0, 0)
        assert version.bump("minor") == Version(version.major, version.minor + 1, 0)
        assert version.bump("patch") == Version(version.major, version.minor, version.patch + 1)
        assert version < version.bump("patch") < version.bump("minor") < version.bump("major")

    @pytest.mark.parametrize(
        "text",
        [
            "", "1", "1.2", "1.*", "latest", "1.2.3.4", "1.2.3\n", " 1.2.3", "v1.2.3", "01.2.3",
            "1.00.3", "1.2.3-rc1", "1.2.3+build", "1.2.-3", "1.2.1234567890", "9" * 5000 + ".0.0",
            "١.٢.٣", "one",
        ],
    )  # fmt: skip
    def test_what_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(UsageError) as caught:
            parse_version(text)
        assert "\n" not in caught.value.message
        assert len(caught.value.message) < 300


class TestParseReference:
    @pytest.mark.parametrize(
        ("text", "name", "selector"),
        [
            ("mnist", "mnist", None),
            ("m", "m", None),
            ("coco_2017", "coco_2017", None),
            ("mnist@1.2.0", "mnist", "1.2.0"),
            ("mnist@0.0.0", "mnist", "0.0.0"),
            ("mnist@1.*", "mnist", "1.*"),
            ("mnist@0.*", "mnist", "0.*"),
            ("mnist@1.2.*", "mnist", "1.2.*"),
            ("mnist@latest", "mnist", "latest"),
            ("mnist#prod", "mnist", "#prod"),
            ("mnist#eu/prod-1", "mnist", "#eu/prod-1"),
        ],
    )
    def test_every_form_is_read(self, text: str, name: str, selector: str | None) -> None:
        reference = parse_reference(text)
        assert reference == Reference(name, selector)
        assert str(reference) == text
        assert looks_like_reference(text)
        assert pickle.loads(pickle.dumps(reference)) == reference

    @pytest.mark.parametrize(
        ("tag", "reference", "stage"),
        [("mnist@v1.2.0", "mnist@1.2.0", None), ("mnist#prod#4", "mnist#prod", "prod")],
    )
    def test_the_tags_of_gto_are_read(self, tag: str, reference: str, stage: str | None) -> None:
        found = parse_reference(tag)
        assert found == parse_reference(reference)
        assert (str(found), found.stage) == (reference, stage)
        assert looks_like_reference(tag)

    @pytest.mark.parametrize(
        "selector",
        [
            "", "1", "1.2", "V1.2.3", "v1.2.*", "vlatest", "01.2.3", "1.02.*", "1.2.3-rc1",
            "1.2.3+7", "*", "*.*.*", "1.*.*", "1.x", "Latest", "@1.0.0", " 1.0.0", "1.0.0\n",
            "1..2", "1.2.3.4", "1.*.3", "*.1", "1.2.1234567890", "²", "prod", "prod_2",
        ],
    )  # fmt: skip
    def test_what_names_no_version_is_refused(self, selector: str) -> None:
        with pytest.raises(UsageError, match="does not name a version") as caught:
            parse_reference(f"mnist@{selector}")
        assert "\n" not in caught.value.message
        assert not looks_like_reference(f"mnist@{selector}")

    @pytest.mark.parametrize("text", ["", "@1.0.0", "#prod", "Mnist#prod", "mnist#-", "mnist#a b"])
    def test_what_names_no_dataset_or_stage_is_refused(self, text: str) -> None:
        with pytest.raises(UsageError):
            parse_reference(text)

    @pytest.mark.parametrize(
        "text",
        ["data/mnist", "./mnist", "mnist.tfrecord", "*.tfrecord", "train-00000-of-00001", "a@1000"],
    )
    def test_paths_do_not_look_like_references(self, text: str) -> None:
        assert not looks_like_reference(text)


class TestDatasetName:
    @pytest.mark.parametrize("name", ["a", "mnist", "coco_2017", "a__b_"])
    def test_names_are_taken(self, name: str) -> None:
        assert is_dataset_name(name)
        check_dataset_name(name)

    @pytest.mark.parametrize("name", ["", "A", "1a", "_a", "a-b", "a\n", "é", "a@1.0.0", "ａ"])
    def test_what_is_none_is_refused(self, name: str) -> None:
        assert not is_dataset_name(name)
        with pytest.raises(UsageError, match="is not a dataset name: expected a lower-case"):
            check_dataset_name(name)


class TestPick:
    ALL = tuple(map(parse_version, ["1.0.0", "1.2.0", "1.2.10", "1.2.9", "1.10.0", "10.0.0"]))

    @pytest.mark.parametrize(
        ("reference", "expected"),
        [
            ("mnist@latest", "10.0.0"),
            ("mnist@1.*", "1.10.0"),
            ("mnist@1.2.*", "1.2.10"),
            ("mnist@1.2.0", "1.2.0"),
            ("mnist@10.*", "10.0.0"),
            ("mnist@1.1.*", None),
            ("mnist@2.*", None),
            ("mnist@1.2.1", None),
            ("mnist", None),
        ],
    )
    def test_newest_match_is_picked(self, reference: str, expected: str | None) -> None:
        picked = parse_reference(reference).pick(self.ALL)
        assert (None if picked is None else str(picked)) == expected
