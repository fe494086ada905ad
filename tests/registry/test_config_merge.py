"""`tfrecreg.toml` of two branches: what both added stands in it, all else is left to git."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.config import CONFIG_NAME, remember_dataset
from tfrecreg.registry.config_merge import merged_config
from tfrecreg.toml_files import read_toml

BASE = '# comments stay\n[datasets.one]\nsource = "mnist" # too\n'
A = '\n[datasets.a]\nsource = "mnist"\nshards = 2\n'
B = '\n[datasets.b]\nsource = "mnist"\nshards = 2\n'


def test_what_both_added_stands_in_it() -> None:
    assert merged_config(BASE, BASE + A, BASE + B) == BASE + A + B
    assert merged_config("", A, B) == A + B
    gate = '[gates.a]\nfail_on = "warning"\n'
    assert merged_config(BASE, BASE + A, BASE + gate) == f"{BASE}{A}\n{gate}"


def test_what_one_side_did_in_the_middle_stays() -> None:
    edited = BASE.replace("mnist", "coco")
    assert merged_config(BASE, edited + A, BASE + B) == edited + A + B
    assert merged_config(BASE, BASE + B, edited) == edited + B


def test_a_last_line_without_an_end_is_ended() -> None:
    text = merged_config(BASE, (BASE + A).rstrip("\n"), BASE + B)
    assert text == BASE + A + B


OTHERS = {
    "one dataset on both": (BASE + A, BASE + A.replace("2", "3")),
    "other values of one": (BASE.replace("mnist", "coco"), BASE.replace("mnist", "tfds")),
    "one is taken out": ("", BASE + A),
    "a key more of one": (BASE + "shards = 2\n", BASE + "raw = 'x'\n"),
    "two lists": (BASE + "[[waivers]]\nowner = 'a'\n", BASE + "[[waivers]]\nowner = 'b'\n"),
    "no TOML": (BASE + A, BASE + "[datasets.b\n"),
}


@pytest.mark.parametrize(("ours", "theirs"), OTHERS.values(), ids=OTHERS)
def test_anything_else_is_left_to_git(ours: str, theirs: str) -> None:
    assert merged_config(BASE, ours, theirs) is None


NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True), unique=True, max_size=9)
VALUES = st.fixed_dictionaries(
    {"source": st.sampled_from(["mnist", "coco"]), "shards": st.integers(1, 2)}
)


@given(NAMES, st.data())
def test_builds_of_any_datasets_merge(names: list[str], data: st.DataObject) -> None:
    sides = {name: data.draw(st.integers(0, 2)) for name in names}
    said = {name: data.draw(VALUES) for name in names}

    def config(*wanted: int) -> str:
        text = ""
        for side in wanted:
            for name in names:
                if sides[name] == side:
                    text = remember_dataset(text, name, said[name])
        return text

    merged = merged_config(config(0), config(0, 1), config(0, 2))
    assert merged is not None
    assert read_toml(merged, CONFIG_NAME).get("datasets", {}) == said
