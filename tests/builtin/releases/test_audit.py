"""`audit`: releases of one branch, and of two together."""

from __future__ import annotations

import datetime
import shlex
import shutil
from pathlib import Path

import pytest
from git_support import commit, git, start
from registry_support import empty_registry, put_build, put_next, write

from tfrecreg.builtin.releases.audit import audit_releases
from tfrecreg.core.check.reports import Report
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.errors import FailureError, UsageError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A registry in git with `m` 1.0.0, which the branch `work` begins at, and is on."""
    root = start(Path(empty_registry(tmp_path / "root").storage.root))
    put_next(root, "1.0.0")
    commit(root, "the first release")
    git(root, "switch", "--quiet", "--create", "work")
    return root


def look(root: Path, *names: str, **options) -> Report:
    return audit_releases(open_registry(root), names, **options)


def said(report: Report) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in report.findings]


def first(root: Path):
    registry = open_registry(root)
    return registry.dataset("m").release_manifest(registry.dataset("m").versions[0])


def on_main(root: Path, version: str, **more) -> None:
    """A release on `main` that `work` has not."""
    git(root, "switch", "--quiet", "main")
    put_next(root, version, first(root), **more)
    commit(root, f"{version} on main")
    git(root, "switch", "--quiet", "work")


def test_sound_releases_pass(root: Path) -> None:
    report = look(root)
    assert (report.status, report.exit_code, report.releases) == ("pass", 0, 1)
    assert report.findings == ()
    assert report.target == "the releases"
    assert report.to_json()["summary"]["releases"] == 1
    assert report.validators == ("registry",)


def test_a_rewritten_release_fails(root: Path) -> None:
    put_next(root, "1.0.0", content="ab" * 32)
    report = look(root)
    assert (report.status, report.exit_code) == ("fail", 1)
    ((code, message),) = said(report)
    assert code == "REG004"
    assert "restores it" in message
    (finding,) = report.findings
    assert finding.fingerprint == "REG004:m:::registry/m/1.0.0/manifest.json"
    assert finding.locations[0].shard == "registry/m/1.0.0/manifest.json"


def test_a_dataset_whose_releases_are_all_gone_is_looked_at(root: Path) -> None:
    shutil.rmtree(root / "registry/m")
    shutil.rmtree(root / "data/m")
    commit(root, "cleaning up")
    assert {code for code, _ in said(look(root))} == {"REG002"}


def test_only_what_is_named_is_looked_at(root: Path) -> None:
    put_next(root, "1.0.0", name="other")
    put_next(root, "1.0.0", content="ab" * 32)
    assert look(root, "other").status == "pass"
    assert look(root, "m", "other").releases == 2
    with pytest.raises(UsageError, match="no dataset `mnits`"):
        look(root, "mnits")


def test_the_gate_of_each_dataset_decides(root: Path) -> None:
    put_next(root, "1.0.0", content="ab" * 32)
    config = root / "tfrecreg.toml"
    config.write_text('[gates.m]\nseverity = { "REG004" = "warning" }\n')
    assert look(root).status == "pass"
    assert look(root, fail_on=FailOn.WARNING).status == "fail"
    config.write_text(
        '[[waivers]]\nfingerprint = "REG004:m:*"\nowner = "ada"\nreason = "moved"\n'
        "expires = 2030-01-01\n"
    )
    report = look(root, today=datetime.date(2029, 12, 31))
    assert (report.status, len(report.waived), report.findings) == ("pass", 1, ())
    assert look(root, today=datetime.date(2030, 1, 2)).status == "fail"


def test_a_history_that_git_does_not_tell_makes_it_incomplete(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    report = look(root)
    assert (report.status, report.exit_code) == ("error", 3)
    assert report.errors == ("git cannot be run: No such file or directory",)


class TestBase:
    def test_a_release_that_the_base_has_not_is_fine(self, root: Path) -> None:
        put_next(root, "1.1.0", first(root))
        commit(root)
        report = look(root, base="main")
        assert report.findings == ()
        assert report.target == "the releases, with those of main"

    def test_one_number_for_two_releases_is_found(self, root: Path) -> None:
        on_main(root, "1.1.0")
        mine = put_next(root, "1.1.0", first(root), content="ab" * 32)
        commit(root)
        ((code, message),) = said(look(root, base="main"))
        assert code == "REG006"
        assert message.startswith("`m@1.1.0` is a different release on main: expected digest ")
        assert message.endswith(f"…, found {mine.digest[:16]}…")
        assert look(root).findings == ()

    @pytest.mark.parametrize(
        ("theirs", "mine", "code", "message"),
        [
            ("1.1.0", None, None, ""),
            ("1.1.0", "1.1.0", None, ""),  # who and when differ, the release does not
            ("1.1.0", "1.2.0", "REG005", "1.1.0 comes between them; 1.1.0 is on main"),
            ("1.2.0", "1.1.0", "REG005", "1.1.0 comes between them; 1.2.0 is on main"),
            ("2.0.0", "1.1.0", "REG012", "2.0.0, which main has, was made after 1.0.0, without"),
            ("1.0.1", "2.0.0", None, ""),  # without new content, it is not left out
        ],
    )
    def test_a_release_on_each_branch(
        self, root: Path, theirs: str, mine: str | None, code: str | None, message: str
    ) -> None:
        levels = {"1.0.1": "patch", "2.0.0": "major"}
        same = {"content": first(root).content} if theirs == "1.0.1" else {}
        on_main(root, theirs, level=levels.get(theirs, "minor"), **same)
        if mine is not None:
            put_next(root, mine, first(root), levels.get(mine, "minor"))
            commit(root)
        found = said(look(root, base="main"))
        assert [each for each, _ in found] == ([code] if code is not None else [])
        assert all(message in each for _, each in found)

    def test_a_release_that_the_branch_removes_is_found(self, root: Path) -> None:
        shutil.rmtree(root / "registry/m/1.0.0")
        commit(root)
        (finding,) = look(root, base="main").findings
        assert finding.code == "REG002"
        assert "registry/m/1.0.0/manifest.json" in {each.shard for each in finding.locations}

    def test_a_dataset_of_the_base_alone_is_fine(self, root: Path) -> None:
        git(root, "switch", "--quiet", "main")
        put_next(root, "1.0.0", name="other")
        commit(root, "another dataset")
        git(root, "switch", "--quiet", "work")
        assert look(root, base="main").findings == ()

    def test_a_damaged_manifest_of_the_base_is_its_own_affair(self, root: Path) -> None:
        git(root, "switch", "--quiet", "main")
        write(root / "registry/m/1.1.0/manifest.json", "{")
        commit(root, "damaged")
        git(root, "switch", "--quiet", "work")
        put_next(root, "1.1.0", first(root))
        commit(root)
        assert look(root, base="main").findings == ()

    def test_outside_git_there_is_no_base(self, tmp_path: Path) -> None:
        root = tmp_path / "elsewhere"
        put_build(root, "m")
        empty_registry(root)
        with pytest.raises(UsageError, match="the registry is not in a git work tree"):
            look(root, base="main")
        assert look(root).releases == 0

    def test_a_major_release_beside_a_new_minor_one_of_the_base_is_told(self, root: Path) -> None:
        on_main(root, "1.1.0")
        put_next(root, "2.0.0", first(root), "major")
        commit(root)
        report = look(root, base="main")
        message = "2.0.0 was made after 1.0.0, without 1.1.0, which main has"
        assert said(report) == [("REG012", message)]
        assert report.exit_code == 1
        assert report.findings[0].locations[0].shard == "registry/m/2.0.0/manifest.json"
        # As merged, or in the merge that GitHub checks out: what was on main is still left out.
        git(root, "merge", "--quiet", "--no-edit", "-X", "ours", "main")
        assert said(look(root, base="main")) == [("REG012", message)]
        assert said(look(root, base="HEAD^2")) == [("REG012", message.replace("main", "HEAD^2"))]

    def test_a_first_release_above_those_of_the_base_is_told(self, root: Path) -> None:
        git(root, "rm", "--quiet", "-r", "registry/m/1.0.0")
        put_next(root, "2.0.0")
        found = said(look(root, base="main"))
        assert ("REG012", "2.0.0 was made as a first release, without 1.0.0, which main has") in (
            found
        )

    def test_a_correction_of_an_older_line_leaves_nothing_out(self, root: Path) -> None:
        on_main(root, "2.0.0", level="major")
        git(root, "merge", "--quiet", "--no-edit", "main")
        put_next(root, "1.0.1", first(root), "patch")
        commit(root)
        assert look(root, base="main").findings == ()


class TestPolicy:
    """What the change itself accepts."""

    WAIVER = (
        '[[waivers]]\nfingerprint = "{}"\nowner = "ada"\nreason = "moved"\nexpires = 2099-12-31\n'
    )

    def test_a_waiver_and_a_gate_of_the_same_change_are_told(self, root: Path) -> None:
        put_next(root, "1.0.0", content="ab" * 32)
        (root / "tfrecreg.toml").write_text(
            '[gates.m]\nseverity = { "REG013" = "info" }\n' + self.WAIVER.format("REG*:m:*")
        )
        commit(root)
        report = look(root, base="main")
        assert (report.status, {each.code for each in report.waived}) == (
            "pass",
            {"REG004"},
        )
        assert said(report) == [
            ("REG013", "`gates.m.severity`: was warning, is info for `REG013`"),
            ("REG013", "a new waiver of `REG*:m:*` until 2099-12-31 (ada: moved)"),
        ]
        assert look(root, base="main", fail_on=FailOn.WARNING).status == "fail"
        assert look(root).findings == ()

    def test_the_gate_of_the_base_judges_the_change_of_it(self, root: Path) -> None:
        config = root / "tfrecreg.toml"
        git(root, "switch", "--quiet", "main")
        config.write_text('[gates.default]\nfail_on = "warning"\n')
        commit(root)
        git(root, "switch", "--quiet", "-C", "work")
        config.write_text(self.WAIVER.format("REG013:*") + self.WAIVER.format("REG004:m:*"))
        commit(root)
        report = look(root, base="main")
        assert (report.status, len(report.findings), report.waived) == ("fail", 3, ())

    def test_what_the_base_loosened_since_is_not_of_the_change(self, root: Path) -> None:
        git(root, "switch", "--quiet", "main")
        (root / "tfrecreg.toml").write_text('[gates.default]\nfail_on = "warning"\n')
        commit(root)
        git(root, "switch", "--quiet", "work")
        assert look(root, base="main").findings == ()

    def test_a_damaged_configuration_of_the_base_accepts_nothing(self, root: Path) -> None:
        git(root, "switch", "--quiet", "main")
        (root / "tfrecreg.toml").write_text("[[waivers]]\n")
        commit(root)
        git(root, "switch", "--quiet", "-C", "work")
        (root / "tfrecreg.toml").write_text(self.WAIVER.format("REG004:m:*"))
        commit(root)
        assert [code for code, _ in said(look(root, base="main"))] == ["REG013"]


class TestShallow:
    """A clone that lacks the history in which releases were deleted."""

    @pytest.fixture
    def origin(self, root: Path) -> Path:
        """`work` deletes 1.1.0, of `main`, which goes on by one commit."""
        git(root, "switch", "--quiet", "main")
        put_next(root, "1.1.0", first(root))
        commit(root, "1.1.0")
        git(root, "switch", "--quiet", "work")
        git(root, "merge", "--quiet", "main")
        shutil.rmtree(root / "registry/m/1.1.0")
        commit(root, "gone")
        return root

    def clone(self, origin: Path, folder: Path, *options: str) -> Path:
        git(folder, "clone", "--quiet", *options, f"file://{origin}", "clone")
        return folder / "clone"

    def test_the_history_completes_it(self, origin: Path, tmp_path: Path) -> None:
        here = self.clone(origin, tmp_path, "--depth", "1")
        report = look(here)
        assert (report.status, report.exit_code, report.findings) == ("error", 3, ())
        assert report.errors == (
            "a shallow clone: the commits that added releases are not in it; hint: `git fetch "
            "--unshallow`; in CI, set `fetch-depth: 0` for actions/checkout or `GIT_DEPTH: 0` for "
            "GitLab",
        )
        git(here, "fetch", "--quiet", "--unshallow")
        assert [code for code, _ in said(look(here))] == ["REG002"]

    def test_a_base_that_is_not_there_is_incomplete(self, origin: Path, tmp_path: Path) -> None:
        here = self.clone(origin, tmp_path, "--depth", "1")
        with pytest.raises(FailureError) as caught:
            look(here, base="origin/main")
        assert caught.value.exit_code == 3
        assert caught.value.message == (
            "`origin/main` does not name a commit in this shallow clone"
        )
        command = "git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'"
        assert caught.value.hint.startswith(f"`{command}`; in CI, set `fetch-depth: 0`")
        git(here, *shlex.split(command)[1:])
        codes = [code for code, _ in said(look(here, base="origin/main"))]
        assert codes == ["REG002"]

    def test_a_base_without_a_common_commit_is_incomplete(
        self, origin: Path, tmp_path: Path
    ) -> None:
        here = self.clone(origin, tmp_path, "--depth", "1", "--no-single-branch")
        report = look(here, base="origin/main")
        assert (report.status, len(report.errors)) == ("error", 1)

    def test_the_commits_since_the_common_one_suffice(self, origin: Path, tmp_path: Path) -> None:
        here = self.clone(origin, tmp_path, "--depth", "2", "--no-single-branch")
        report = look(here, base="origin/main")
        assert report.status == "fail"
        assert report.errors == ()
        assert {code for code, _ in said(report)} == {"REG002"}
        git(here, "checkout", "--quiet", "origin/main")
        assert look(here, base="HEAD").status == "pass"
