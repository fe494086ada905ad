"""The names of tags, held against GTO's own reader of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_support import commit, start

from tfrecreg.core.registry import git
from tfrecreg.core.registry import git as gto
from tfrecreg.core.registry.git import GitTag
from tfrecreg.core.values.errors import UsageError


def tags(*names: str, commit_: str = "c" * 40) -> list[GitTag]:
    return [GitTag(name, commit_, True, time) for time, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("dataset", "folder", "message"),
    [
        ("mnist_", "", "GTO accepts no tags for the name `mnist_`: it has to end with a letter"),
        ("mnist", "my data", "GTO accepts no tags for the registry's folder `my data`: "),
    ],
)
def test_what_gto_has_no_names_for_is_refused(dataset, folder, message) -> None:
    with pytest.raises(UsageError) as caught:
        gto.artifact(dataset, folder)
    assert caught.value.message.startswith(message)


def test_gto_itself_reads_what_is_made(tmp_path: Path) -> None:
    pytest.importorskip("gto", reason="GTO comes with the extra `dvc`")
    from gto.constants import NAME, STAGE, VERSION, Action
    from gto.tag import parse_name

    name = gto.artifact("mnist", "some/registry")
    read = parse_name(gto.version_tag(name, "1.2.3"))
    assert (read[NAME], read[VERSION]) == ("some/registry:mnist", "v1.2.3")
    read = parse_name(gto.withdrawal_tag("mnist", "1.2.3"))
    assert (read["action"], read[VERSION]) == (Action.DEREGISTER, "v1.2.3")
    read = parse_name(gto.stage_tag("mnist", "prod", tags("mnist#dev#3")))
    assert (read[NAME], read[STAGE], read["counter"]) == ("mnist", "prod", 4)
    for stage in ("prod", "a", "us-east/prod_2", "-prod", "prod-", "a b", ""):
        accepted = bool(parse_name(f"mnist#{stage}#1", raise_on_fail=False))
        try:
            gto.check_stage(stage)
        except UsageError:
            assert not accepted, stage
        else:
            assert accepted, stage


def test_gto_shows_the_versions_and_stages_of_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = pytest.importorskip("gto.api", reason="GTO comes with the extra `dvc`")
    tree = start(tmp_path / "tree")
    one, two = commit(tree, "one"), commit(tree, "two")
    root = str(tree)
    for version, where in (("1.0.0", one), ("1.1.0", two)):
        git.create_tag(root, gto.version_tag("mnist", version), where, "Release")
    for second, where in enumerate((one, two)):
        # GTO goes by the time of a tag, in whole seconds.
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-01-01T00:00:0{second}Z")
        name = gto.stage_tag("mnist", "prod", git.list_tags(root, "mnist"))
        git.create_tag(root, name, where, "Assign")
    assert gto.in_stage("mnist", "prod", git.list_tags(root, "mnist")) == two
    shown = api.show(root, "mnist")
    assert {each["version"] for each in shown} == {"v1.0.0", "v1.1.0"}
    assert [each["version"] for each in api.show(root, "mnist#prod")] == ["v1.1.0"]
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    git.create_tag(root, gto.withdrawal_tag("mnist", "1.1.0"), two, "Yank")
    assert {each["version"] for each in api.show(root, "mnist")} == {"v1.0.0"}
