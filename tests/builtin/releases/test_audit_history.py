"""Rewritten, removed, forked and misnumbered releases are found; sound releases are not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from git_support import commit, git, start
from registry_support import empty_registry, put_build, put_next, write

from tfrecreg.builtin.releases.audit_history import Audit, audit
from tfrecreg.core.registry.manifest import Manifest, parse_manifest, render_manifest, seal
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.values.errors import NewerFormatError
from tfrecreg.core.values.reference import Version


def found(root: Path) -> list[tuple[str, str]]:
    """Code and message of each issue, in order."""
    return sorted((each.code.code, each.message) for each in look(root).issues)


def look(root: Path) -> Audit:
    return audit(open_registry(root).dataset("m"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    registry: Registry = empty_registry(tmp_path / "root")
    return Path(registry.storage.root)


@pytest.fixture
def chain(root: Path) -> dict[str, Manifest]:
    """1.0.0, and 1.1.0 and 2.0.0 after it."""
    one = put_next(root, "1.0.0")
    two = put_next(root, "1.1.0", one)
    return {"1.0.0": one, "1.1.0": two, "2.0.0": put_next(root, "2.0.0", two, "major")}


def reseal(root: Path, version: str, **changes: str) -> None:
    """Rewrite a manifest as somebody does who knows of its own digest."""
    path = root / f"registry/m/{version}/manifest.json"
    made = replace(parse_manifest(path.read_bytes(), "it"), **changes)
    path.write_bytes(render_manifest(seal(made)))


def test_sound_releases_have_no_issues(root: Path, chain) -> None:
    assert found(root) == []
    assert sorted(map(str, look(root).links)) == ["1.0.0", "1.1.0", "2.0.0"]


def test_a_manifest_of_another_release_is_found(root: Path, chain) -> None:
    shutil.copy(root / "registry/m/1.0.0/manifest.json", root / "registry/m/1.1.0/manifest.json")
    codes = {code for code, _ in found(root)}
    assert codes == {"REG002"}


def test_a_manifest_that_was_rewritten_with_its_digest_contradicts_its_build(
    root: Path, chain
) -> None:
    reseal(root, "2.0.0", content="ff" * 32)
    ((code, said),) = found(root)
    assert code == "REG002"
    assert said.startswith("it differs from the build that it names: expected digest ")


def test_a_manifest_that_was_rewritten_with_all_its_digests_breaks_the_next_one(
    root: Path, chain
) -> None:
    old = chain["1.0.0"].digest[:16]
    made = put_next(root, "1.0.0", content="ab" * 32)
    assert found(root) == [
        (
            "REG003",
            f"1.1.0 was made after 1.0.0 with digest {old}…, but 1.0.0 now has {made.digest[:16]}…",
        )
    ]
    (issue,) = look(root).issues
    assert issue.versions == {Version(1, 0, 0), Version(1, 1, 0)}
    assert issue.path == "registry/m/1.0.0/manifest.json"


def test_a_schema_that_was_changed_is_found(root: Path, chain) -> None:
    path = root / "registry/m/1.1.0/schema.pbtxt"
    path.write_text("# other\n")
    ((code, said),) = found(root)
    assert (code, look(root).issues[0].path) == ("REG002", "registry/m/1.1.0/schema.pbtxt")
    assert "was changed after it was released" in said
    path.unlink()
    assert [code for code, _ in found(root)] == ["REG002"]


def test_a_parent_that_is_gone_is_found(root: Path, chain) -> None:
    shutil.rmtree(root / "registry/m/1.0.0")
    assert found(root) == [("REG003", "1.1.0 was made after 1.0.0, which is missing")]


def test_a_parent_that_comes_later_is_found(root: Path, chain) -> None:
    put_next(root, "1.2.0", chain["2.0.0"])
    codes = [code for code, _ in found(root)]
    assert "REG003" in codes
    assert (
        "REG003",
        "the parent of 1.2.0 should be an earlier release, but is 2.0.0",
    ) in found(root)


def test_a_number_that_says_less_than_the_change_is_found(root: Path, chain) -> None:
    put_next(root, "2.0.1", chain["2.0.0"], "major")
    message = "the change since 2.0.0 is major, but the version number says patch"
    assert found(root) == [("REG001", message)]


def test_two_releases_after_one_parent_are_a_fork(root: Path, chain) -> None:
    put_next(root, "1.2.0", chain["1.0.0"])
    assert found(root) == [("REG005", "1.2.0 was made after 1.0.0, and 1.1.0 comes between them")]


def test_a_correction_of_an_old_line_is_no_fork(root: Path, chain) -> None:
    """1.0.1 has the content of 1.0.0, so 1.1.0 holds all that it holds."""
    put_next(root, "1.0.1", chain["1.0.0"], "patch", content=chain["1.0.0"].content)
    put_next(root, "1.1.1", chain["1.1.0"], "patch", content=chain["1.1.0"].content)
    assert found(root) == []


def test_a_release_after_one_without_its_names_of_classes_is_a_fork(root: Path, chain) -> None:
    """2.1.0 has the records of 2.0.0 and adds names, which 2.2.0 lacks."""
    two = chain["2.0.0"]
    put_next(root, "2.1.0", two, "minor", content=two.content)
    put_next(root, "2.2.0", two, "minor")
    assert found(root) == [("REG005", "2.2.0 was made after 2.0.0, and 2.1.0 comes between them")]


def test_a_newer_format_is_no_rewriting(root: Path, chain) -> None:
    path = root / "registry/m/1.1.0/manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format_version":1', b'"format_version":9'))
    with pytest.raises(NewerFormatError):
        look(root)


def test_a_list_of_withdrawals_with_marks_of_a_merge_is_found(root: Path, chain) -> None:
    write(root / "registry/m/1.1.0.yanks.jsonl", "<<<<<<< HEAD\n")
    ((code, said),) = found(root)
    assert code == "REG008"
    assert "is not a list of yanks: line 1: Expecting value" in said


class TestHistory:
    @pytest.fixture
    def tree(self, root: Path, chain) -> Path:
        start(root)
        commit(root, "the releases")
        return root

    def test_a_second_commit_is_found_though_all_digests_hold(self, tree: Path) -> None:
        first = git(tree, "rev-parse", "HEAD")[:12]
        put_next(tree, "2.0.0", content="ab" * 32)
        second = commit(tree, "quietly")[:12]
        (issue,) = look(tree).issues
        assert issue.code.code == "REG004"
        assert all(each in issue.message for each in (first, second))
        assert issue.command == f"git checkout {first} -- registry/m/2.0.0/manifest.json"
        assert issue.path == "registry/m/2.0.0/manifest.json"
        assert issue.versions == {Version(2, 0, 0)}

    def test_what_was_put_back_is_sound(self, tree: Path) -> None:
        path = tree / "registry/m/2.0.0/manifest.json"
        before = path.read_bytes()
        put_next(tree, "2.0.0", content="ab" * 32)
        commit(tree, "quietly")
        path.write_bytes(before)
        commit(tree, "restored")
        assert found(tree) == []

    @pytest.mark.parametrize("version", ["1.1.0", "2.0.0"])
    @pytest.mark.parametrize(
        ("harm", "code"),
        [
            ("remove", "REG002"),
            ("remove the manifest", "REG002"),
            ("edit", "REG002"),
            ("rewrite", "REG004"),
            ("edit both files", "REG002"),
            ("move", "REG002"),
        ],
    )
    def test_one_cause_is_one_issue_with_the_command_that_ends_it(
        self, tree: Path, chain, version: str, harm: str, code: str
    ) -> None:
        folder = tree / "registry/m" / version
        manifest, schema = folder / "manifest.json", folder / "schema.pbtxt"
        if harm == "remove":
            shutil.rmtree(folder)
        elif harm == "remove the manifest":
            manifest.unlink()
        elif harm == "move":
            folder.rename(tree / "elsewhere")
        elif harm == "rewrite":
            parent, level = ("1.0.0", "minor") if version == "1.1.0" else ("1.1.0", "major")
            put_next(tree, version, chain[parent], level, content="ab" * 32)
        else:
            manifest.write_bytes(manifest.read_bytes().replace(b'"none"', b'"gzip"'))
            if harm == "edit both files":
                schema.write_text("# other\n")
        commit(tree, "harm")
        (issue,) = look(tree).issues
        assert issue.code.code == code
        assert issue.path == f"registry/m/{version}/manifest.json"
        child = {"1.1.0": "2.0.0"}.get(version)
        versions = {version, *([child] if child and harm in ("remove", "move", "rewrite") else [])}
        assert set(map(str, issue.versions)) == versions
        git(tree, *issue.command.split()[1:])
        assert found(tree) == []

    def test_a_branch_that_is_merged_is_no_second_commit(self, tree: Path, chain) -> None:
        git(tree, "switch", "--quiet", "--create", "other")
        put_next(tree, "2.1.0", chain["2.0.0"])
        commit(tree, "on a branch")
        git(tree, "switch", "--quiet", "main")
        write(tree / "elsewhere", "x")
        commit(tree, "meanwhile")
        git(tree, "merge", "--quiet", "--no-edit", "other")
        assert found(tree) == []

    def test_a_release_that_a_merge_itself_added_is_held_to_it(self, tree: Path, chain) -> None:
        git(tree, "switch", "--quiet", "--create", "other")
        write(tree / "elsewhere", "x")
        commit(tree, "on a branch")
        git(tree, "switch", "--quiet", "main")
        git(tree, "merge", "--quiet", "--no-ff", "--no-commit", "other")
        put_next(tree, "2.1.0", chain["2.0.0"])
        first = commit(tree, "merged and released")[:12]
        assert found(tree) == []
        put_next(tree, "2.1.0", chain["2.0.0"], content="ab" * 32)
        second = commit(tree, "quietly")[:12]
        ((code, said),) = found(tree)
        assert code == "REG004"
        assert first in said
        assert second in said

    @pytest.mark.parametrize("side", ["--theirs", "--ours"])
    def test_a_number_of_two_branches_may_be_that_of_either(
        self, tree: Path, chain, side: str
    ) -> None:
        """As docs/releases.md says to end such a merge; both sides did more than that."""
        git(tree, "switch", "--quiet", "--create", "other")
        write(tree / "registry/m/other", "x")
        put_next(tree, "2.1.0", chain["2.0.0"], content="ab" * 32)
        commit(tree, "on a branch")
        git(tree, "switch", "--quiet", "main")
        write(tree / "registry/m/main", "x")
        put_next(tree, "2.1.0", chain["2.0.0"], content="cd" * 32)
        commit(tree, "on main")
        with pytest.raises(AssertionError):
            git(tree, "merge", "--quiet", "--no-edit", "other")
        git(tree, "checkout", side, "--", "registry/m/2.1.0", "data")
        commit(tree, "merged")
        assert found(tree) == []
        put_next(tree, "2.1.0", chain["2.0.0"], content="ef" * 32)
        commit(tree, "quietly")
        assert [code for code, _ in found(tree)] == ["REG004"]

    def test_a_shallow_clone_says_that_it_does_not_know(self, tree: Path, tmp_path: Path) -> None:
        put_next(tree, "2.0.0", content="ab" * 32)
        commit(tree, "quietly")
        git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{tree}", "clone")
        result = look(tmp_path / "clone")
        assert result.issues == []
        assert result.unseen == ("a shallow clone: the commits that added releases are not in it")

    def test_a_git_that_refuses_is_told_and_the_rest_is_looked_at(
        self, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tree / "registry/m/1.1.0/schema.pbtxt").write_text("# other\n")
        monkeypatch.setenv("PATH", "/nowhere")
        result = look(tree)
        assert [each.code.code for each in result.issues] == ["REG002"]
        assert result.unseen.startswith("git cannot be run: ")

    def test_a_registry_below_the_root_of_its_work_tree_has_a_history(self, tmp_path: Path) -> None:
        top = start(tmp_path / "top")
        root = Path(empty_registry(top / "some/registry").storage.root)
        put_next(root, "1.0.0")
        commit(top)
        put_next(root, "1.0.0", content="ab" * 32)
        commit(top, "quietly")
        assert [code for code, _ in found(root)] == ["REG004"]


ONE, TWO, NEITHER = (f"{digit * 32}.dir" for digit in "123")


@pytest.fixture
def tracked(root: Path) -> Path:
    """Two releases whose bytes DVC has; the build is the newest of them."""
    write(root / ".dvc/config", "")
    put_next(root, "1.1.0", put_next(root, "1.0.0", dvc=ONE), dvc=TWO)
    return root


def point(root: Path, value: str) -> None:
    text = f"outs:\n- md5: {value}\n  size: 1\n  nfiles: 1\n  hash: md5\n  path: m\n"
    write(root / "data/m.dvc", text)


def test_the_pointer_to_a_released_build_names_its_bytes(tracked: Path) -> None:
    should = f"it should name `{TWO}`, the bytes of `m@1.1.0`"
    assert found(tracked) == [("REG011", f"it is missing: {should}")]
    point(tracked, TWO)
    assert found(tracked) == []
    for wrong in (NEITHER, ONE):
        point(tracked, wrong)
        assert found(tracked) == [("REG011", f"{should}, but names `{wrong}`")]
    write(tracked / "data/m.dvc", "outs: []\n")
    assert found(tracked) == [("REG011", f"{should}, but names no hash")]
    write(tracked / "data/m.dvc", f'{{"outs": [{{"md5": "{TWO}", "path": "m"}}]}}')
    assert found(tracked) == []
    (issue,) = (point(tracked, ONE), look(tracked).issues)[1]
    assert (issue.path, issue.versions) == ("data/m.dvc", {Version(1, 1, 0)})


def test_an_older_release_that_was_built_again_has_the_pointer_of_any_release(
    tracked: Path,
) -> None:
    put_build(tracked, "m", content=f"{'1.0.0':0<64}")
    for legal in (ONE, TWO):
        point(tracked, legal)
        assert found(tracked) == []
    point(tracked, NEITHER)
    assert [code for code, _ in found(tracked)] == ["REG011"]


@pytest.mark.parametrize("why", ["not released", "no build", "damaged", "no DVC", "a stage"])
def test_nothing_is_known_of_other_pointers(tracked: Path, why: str) -> None:
    if why == "not released":
        put_build(tracked, "m", content="d0" * 32)
    elif why == "no build":
        shutil.rmtree(tracked / "data/m")
    elif why == "damaged":
        write(tracked / "data/m/manifest.json", "{")
    elif why == "no DVC":
        shutil.rmtree(tracked / ".dvc")
    else:
        write(tracked / "dvc.yaml", "stages:\n  build:\n    cmd: x\n    outs:\n    - data/m\n")
    assert found(tracked) == []
