"""Stages in a `dvc.yaml` of others: what is not ours keeps its meaning and its comments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("ruamel.yaml", reason="the extra `dvc` is not installed")

from ruamel.yaml import YAML

from tfrecreg.builtin.dvc.pipeline import edited
from tfrecreg.core.values.errors import UsageError


def ours(name: str, cmd: str = "tfrecreg build a", kind: str = "build") -> dict[str, Any]:
    stage = {"cmd": cmd, "deps": ["raw"], "outs": [{"data/a": {"persist": True}}]}
    return {f"{kind}-{name}": {**stage, "meta": {"tfrecreg": name}}}


def load(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


@dataclass(frozen=True)
class Edited:
    text: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def put(text: str | None, wanted: dict[str, Any], **more: Any) -> Edited:
    done, changes = edited(text or "", wanted, **{"prune": True, **more})
    return Edited(done, changes.added, changes.updated, changes.removed)


def comments(text: str) -> list[str]:
    return [f"#{line.split('#', 1)[1]}" for line in text.splitlines() if "#" in line]


STRANGERS = """\
# At the top
vars:
  - params.yaml

stages:

  # about train
  train:   # its name
    cmd: >-
      python train.py
      --epochs ${epochs}
    deps: [data/a, train.py]
    outs: {model: {cache: false}}

  'eval':
    foreach: [a, b]
    do:
        cmd: |
          # no comment
          echo ${item}
  # the end of the stages

metrics:
- m.json
# the end
"""


def test_a_new_file_holds_our_stages_alone() -> None:
    made = put(None, ours("a"))
    assert made.added == ("build-a",)
    assert made.text == (
        "stages:\n"
        "  build-a:\n"
        "    cmd: tfrecreg build a\n"
        "    deps:\n"
        "    - raw\n"
        "    outs:\n"
        "    - data/a:\n"
        "        persist: true\n"
        "    meta:\n"
        "      tfrecreg: a\n"
    )
    assert put(made.text, ours("a")) == Edited(text=made.text)


def test_an_update_changes_the_lines_of_that_stage_only() -> None:
    both = {**ours("a"), **ours("b")}
    before = put(STRANGERS, both).text
    after = put(before, {**ours("a", "tfrecreg build a --jobs 1"), **ours("b")})
    assert (after.added, after.updated, after.removed) == ((), ("build-a",), ())
    assert after.text == before.replace("tfrecreg build a\n", "tfrecreg build a --jobs 1\n", 1)
    assert put(after.text, both).text == before


def test_stages_of_datasets_that_are_gone_go_and_nothing_else() -> None:
    before = put(STRANGERS, {**ours("a"), **ours("b")}).text
    after = put(before, ours("a"))
    assert after.removed == ("build-b",)
    assert load(after.text) == load(put(STRANGERS, ours("a")).text)
    assert put(before, ours("a"), prune=False) == Edited(text=before)


def test_comments_about_stages_of_others_outlive_updates_of_ours_in_front_of_them() -> None:
    block = put(None, ours("a")).text.removeprefix("stages:\n")
    text = STRANGERS.replace("\n  # about train\n", f"\n{block}\n  # about train\n")
    assert load(text)["stages"].keys() == {"build-a", "train", "eval"}
    updated = put(text, ours("a", "new"))
    assert updated.updated == ("build-a",)
    gone = put(text, {})
    assert gone.removed == ("build-a",)
    assert comments(updated.text) == comments(STRANGERS)
    assert "  # about train\n  train:   # its name\n" in updated.text
    assert load(gone.text) == load(STRANGERS)


def test_a_stage_of_a_stranger_under_our_name_is_not_touched() -> None:
    text = "stages:\n  build-a:\n    cmd: make a\n"
    with pytest.raises(UsageError) as caught:
        put(text, ours("a"))
    assert caught.value.message == (
        "the entry `build-a` in `stages` of `dvc.yaml` was not written by tfrecreg"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stages:\n",
        "# a comment alone",
        "stages: # none yet\n# more\n",
        "metrics:\n- a.json\n",
        "stages:\r\n  a:\r\n    cmd: a\r\n\r\n# end\r\n",
        'stages:\n  "a":\n    cmd: |\n      # x\n\n      y\n\n',
        "stages:\n  a: {cmd: a}\n",
        "{stages: {a: {cmd: a}}}\n",
        STRANGERS,
    ],
)
def test_layouts_that_can_be_edited(text: str) -> None:
    wanted = {**ours("a"), **ours("b")}
    made = put(text, wanted)
    assert made.added == ("build-a", "build-b")
    before, after = load(text) or {}, load(made.text)
    assert after == {**before, "stages": {**(before.get("stages") or {}), **wanted}}
    assert comments(made.text) == comments(text)
    assert put(made.text, wanted) == Edited(text=made.text)
    fewer = put(made.text, ours("b"))
    assert fewer.removed == ("build-a",)
    assert load(fewer.text) == load(put(text, ours("b")).text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- a\n", "should be a mapping"),
        ("stages: 1\n", "should be a mapping"),
        ("stages:\n  a: [\n", "is not YAML in line"),
        ("a: \x00\n", "is not YAML"),
        ("stages: {}\n---\nstages: {}\n", "is not YAML"),
    ],
)
def test_what_cannot_be_edited_is_refused_whole(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        put(text, ours("a"))


def artifact(name: str, **more: Any) -> dict[str, Any]:
    return {name: {"path": f"data/{name}", "type": "dataset", **more, "meta": {"tfrecreg": name}}}


def put_artifacts(text: str | None, wanted: dict[str, Any], *, prune: bool = True) -> Edited:
    return put(text, wanted, prune=prune, section="artifacts")


def test_artifacts_have_a_section_of_their_own_behind_the_stages() -> None:
    stages = put(STRANGERS, ours("a")).text
    made = put_artifacts(stages, artifact("a", desc="what it is"))
    assert made.added == ("a",)
    assert made.text == (
        f"{stages}"
        "artifacts:\n"
        "  a:\n"
        "    path: data/a\n"
        "    type: dataset\n"
        "    desc: what it is\n"
        "    meta:\n"
        "      tfrecreg: a\n"
    )
    assert put_artifacts(made.text, artifact("a", desc="what it is")) == Edited(text=made.text)
    assert put(made.text, ours("a")) == Edited(text=made.text)
    assert put_artifacts(None, artifact("a")).text.startswith(
        "artifacts:\n  a:\n    path: data/a\n"
    )
    assert put_artifacts(None, {}) == Edited(text="")


def test_artifacts_of_others_stay_and_ours_are_updated_and_removed() -> None:
    text = (
        "artifacts:\n  model:  # the best\n    path: model.h5\n    labels: [cv]\n\n"
        "  # somebody else's\n  other:\n    path: data/other\n\nstages:\n  a:\n    cmd: a\n"
    )
    wanted = {**artifact("b", desc="old"), **artifact("c"), **artifact("other")}
    both = put_artifacts(text, wanted)
    assert both.added == ("b", "c")  # `other` has the path of the dataset: it is as good as ours
    before, after = text.split("\nstages:")
    assert both.text.startswith(before.rstrip())
    assert both.text.endswith(f"\nstages:{after}")
    assert load(both.text)["artifacts"].keys() == {"model", "other", "b", "c"}
    less = put_artifacts(both.text, artifact("b", desc="new"))
    assert (less.updated, less.removed) == (("b",), ("c",))
    assert load(less.text)["artifacts"] == {
        **load(text)["artifacts"],
        **artifact("b", desc="new"),
    }
    assert load(put_artifacts(less.text, {}).text) == load(text)


def test_a_section_whose_last_entry_goes_goes_with_it() -> None:
    stages = put(STRANGERS, ours("a")).text
    made = put_artifacts(stages, artifact("a")).text
    gone = put_artifacts(made, {})
    assert gone.removed == ("a",)
    assert load(gone.text) == load(stages)
    assert "artifacts" not in gone.text


def test_an_artifact_of_a_stranger_that_is_something_else_is_not_touched() -> None:
    with pytest.raises(UsageError) as caught:
        put_artifacts("artifacts:\n  a:\n    path: model.h5\n", artifact("a"))
    assert caught.value.message == (
        "the entry `a` in `artifacts` of `dvc.yaml` was not written by tfrecreg"
    )
