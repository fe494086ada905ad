"""Tags in git as GTO makes them, and yanks: with real git and real DVC."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from git_support import commit, git, start

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.builtin.releases.tag import TagResult, tag, yank
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import ConflictError, FailureError, UsageError
from tfrecreg.core.values.shards import ShardPolicy


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry in git and DVC with `digits` 1.0.0 and 2.0.0, each in a commit; not changed."""
    root = start(tmp_path_factory.mktemp("tagged") / "root")
    init(root)
    commit(root, "begin")
    for seed, version in ((1, "1.0.0"), (2, "2.0.0")):
        write_digits(LocalStorage(root / "raw"), train=40, test=10, seed=seed)
        (root / ".gitignore").write_text("/raw/\n")
        policy = ShardPolicy(shards=1)
        request = BuildRequest(name="digits", source="mnist", raw=str(root / "raw"), policy=policy)
        build(open_registry(root), request)
        release(open_registry(root), ReleaseRequest(name="digits", version=version))
        commit(root, f"Release digits@{version}")
        git(root, "tag", f"after-{version}")  # no tag of GTO's: it is not annotated
    commit(root, "something else")
    return root


@pytest.fixture
def root(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "root", symlinks=True))


@pytest.fixture
def registry(root: Path) -> Registry:
    return open_registry(root)


def call(registry: Registry, reference: str, **options: str) -> TagResult:
    return tag(registry, reference, **options)


def test_a_release_is_tagged_at_the_commit_that_holds_it(root: Path, registry: Registry) -> None:
    result = call(registry, "digits@1.0.0")
    assert result.made == ("digits@v1.0.0",)
    assert result.commit == git(root, "rev-parse", "after-1.0.0^{commit}")
    assert git(root, "rev-parse", "digits@v1.0.0^{commit}") == result.commit
    assert git(root, "cat-file", "-t", "digits@v1.0.0") == "tag"  # annotated, as GTO wants it
    assert "Release digits@1.0.0" in git(root, "tag", "--list", "-n9", "digits@v1.0.0")
    assert result.commands == ("git push origin 'digits@v1.0.0'",)
    release_ = resolve(registry, "digits@1.0.0").manifest.release
    assert release_ is not None
    assert str(release_.dvc) in git(root, "show", "digits@v1.0.0:data/digits.dvc")


def test_a_shallow_clone_does_not_know_the_commit(root: Path, tmp_path: Path) -> None:
    """Its only commit would seem to have added everything."""
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{root}", str(tmp_path / "clone"))
    clone = open_registry(tmp_path / "clone")
    with pytest.raises(FailureError, match="this is a shallow clone, which does not have") as told:
        call(clone, "digits@1.0.0", stage="prod")
    assert told.value.hint == "run `git fetch --unshallow`, or name the commit with `--commit REV`"
    assert git(tmp_path / "clone", "tag") == ""
    assert call(clone, "digits@2.0.0", commit="HEAD").made == ("digits@v2.0.0",)


def test_a_release_may_be_in_the_commit_of_a_merge(root: Path, registry: Registry) -> None:
    before, after = "after-1.0.0", "after-2.0.0"
    side = git(root, "commit-tree", f"{before}^{{tree}}", "-p", before, "-m", "on a branch")
    merge = git(root, "commit-tree", f"{after}^{{tree}}", "-p", before, "-p", side, "-m", "merge")
    git(root, "reset", "--quiet", "--hard", merge)
    assert call(registry, "digits@2.0.0").commit == merge


def test_tagging_again_does_nothing(root: Path, registry: Registry) -> None:
    call(registry, "digits@2.0.0", stage="prod")
    tags = git(root, "tag")
    again = call(registry, "digits@2.0.0", stage="prod")
    assert (again.made, again.there) == ((), ("digits@v2.0.0", "digits#prod"))
    assert again.commands == ()
    assert git(root, "tag") == tags


@pytest.mark.medium
def test_a_stage_is_assigned_and_goes_on(
    root: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
    assert call(registry, "digits@1.0.0", stage="prod").made == ("digits@v1.0.0", "digits#prod#1")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:01Z")
    assert call(registry, "digits@latest", stage="prod").made == ("digits@v2.0.0", "digits#prod#2")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:02Z")
    back = call(registry, "digits@1.0.0", stage="prod")
    assert (back.made, back.there) == (("digits#prod#3",), ("digits@v1.0.0",))
    api = pytest.importorskip("gto.api", reason="GTO comes with the extra `dvc`")
    assert [each["version"] for each in api.show(str(root), "digits#prod")] == ["v1.0.0"]
    assert {each["version"] for each in api.show(str(root), "digits")} == {"v1.0.0", "v2.0.0"}


def test_another_commit_that_holds_it_may_be_named(root: Path, registry: Registry) -> None:
    result = call(registry, "digits@2.0.0", commit="HEAD")
    assert result.commit == git(root, "rev-parse", "HEAD")


def test_a_commit_that_points_to_other_bytes_is_refused(root: Path, registry: Registry) -> None:
    with pytest.raises(UsageError) as caught:
        call(registry, "digits@1.0.0", commit="HEAD")
    head = git(root, "rev-parse", "HEAD")[:12]
    first = str(resolve(registry, "digits@1.0.0").manifest.release.dvc)[:16]
    assert caught.value.message == (
        f"commit {head} does not hold `digits@1.0.0`: neither `data/digits.dvc` nor `dvc.lock` "
        f"points to {first}…"
    )
    assert caught.value.exit_code == 2


def test_a_commit_before_the_release_is_refused(root: Path, registry: Registry) -> None:
    with pytest.raises(UsageError, match=r"it has no `registry/digits/2\.0\.0/manifest\.json`"):
        call(registry, "digits@2.0.0", commit="after-1.0.0")
    with pytest.raises(UsageError, match="`none` does not name a commit here"):
        call(registry, "digits@2.0.0", commit="none")
    assert "digits@v2.0.0" not in git(root, "tag").split()


def test_a_release_that_is_not_committed_is_refused(root: Path, registry: Registry) -> None:
    schema = root / "schemas/digits.pbtxt"
    schema.write_text(schema.read_text() + "# reviewed\n")
    build(registry, BuildRequest(name="digits"))
    release(registry, ReleaseRequest(name="digits", version="2.0.1"))
    with pytest.raises(UsageError) as caught:
        call(registry, "digits@2.0.1")
    assert caught.value.message.startswith(
        "no commit here holds both `digits@2.0.1` and the pointer to its bytes: "
    )
    assert caught.value.hint == (
        "run `git add registry/digits/2.0.1 data/digits.dvc` and `git commit`, then tag again"
    )
    git(root, "add", "registry/digits/2.0.1")
    git(root, "commit", "--quiet", "--message", "without the pointer")
    with pytest.raises(UsageError, match=r"neither `data/digits\.dvc` nor `dvc\.lock` points to"):
        call(registry, "digits@2.0.1")
    commit(root, "with it", "data/digits.dvc")
    assert call(registry, "digits@2.0.1").commit == git(root, "rev-parse", "HEAD")


def test_the_pointer_may_be_in_the_lock_of_a_pipeline(root: Path, registry: Registry) -> None:
    release_ = resolve(registry, "digits@2.0.0").manifest.release
    assert release_ is not None
    (root / "data/digits.dvc").unlink()
    (root / "dvc.lock").write_text(
        "schema: '2.0'\nstages:\n  build-digits:\n    cmd: tfrecreg build digits\n    outs:\n"
        f"    - path: data/digits\n      hash: md5\n      md5: {release_.dvc}\n      size: 1\n"
    )
    head = commit(root, "a pipeline")
    assert call(registry, "digits@2.0.0", commit=head).commit == head


def test_bytes_that_dvc_does_not_keep_have_no_pointer(digits_registry: Path) -> None:
    start(digits_registry)
    commit(digits_registry)
    with pytest.raises(UsageError) as caught:
        call(open_registry(digits_registry), "digits@1.0.0")
    assert caught.value.message == (
        "DVC does not keep the bytes of `digits@1.0.0`, so no commit points to them"
    )


def test_a_tag_elsewhere_is_never_moved(root: Path, registry: Registry) -> None:
    git(root, "tag", "--annotate", "--message", "mine", "digits@v1.0.0", "HEAD")
    with pytest.raises(ConflictError, match=r"the tag `digits@v1\.0\.0` exists at commit "):
        call(registry, "digits@1.0.0")
    git(root, "tag", "digits@v2.0.0", "after-2.0.0")
    with pytest.raises(ConflictError, match="exists and is not annotated"):
        call(registry, "digits@2.0.0")


def test_one_commit_has_one_version(root: Path, registry: Registry) -> None:
    git(root, "tag", "--annotate", "--message", "mine", "digits@v9.0.0", "after-1.0.0")
    with pytest.raises(ConflictError) as caught:
        call(registry, "digits@1.0.0")
    assert "is tagged `digits@v9.0.0`, but GTO allows one version per commit" in str(caught.value)


def test_a_registry_below_the_root_has_its_folder_in_the_tag(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = start(tmp_path / "top")
    root = top / "some/registry"
    shutil.copytree(original, root, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    commit(top, "all of it")
    monkeypatch.setenv("GIT_DIR", str(top / ".git"))  # as in a hook
    result = call(open_registry(root), "digits@2.0.0")
    assert result.made == ("some/registry=digits@v2.0.0",)


class TestYank:
    @pytest.mark.parametrize(
        ("reference", "reason", "message"),
        [
            (
                "digits",
                "wrong",
                "`digits` is a build, which may change: only releases can be yanked",
            ),
            ("digits@7.0.0", "wrong", "no release `digits@7.0.0`"),
            ("digits@1.0.0", " ", "`digits@1.0.0` cannot be yanked without a reason"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, root: Path, registry: Registry, reference: str, reason: str, message: str
    ) -> None:
        before = git(root, "status", "--porcelain")
        with pytest.raises(UsageError) as caught:
            yank(registry, reference, reason)
        assert caught.value.message.startswith(message)
        assert git(root, "status", "--porcelain") == before

    def test_latest_passes_it_over_and_the_release_stays(
        self, root: Path, registry: Registry
    ) -> None:
        before = (root / "registry/digits/2.0.0/manifest.json").read_bytes()
        result = yank(registry, "digits@2.0.0", "labels are wrong")
        assert result.yanked_now
        assert result.yank.reason == "labels are wrong"
        assert result.made == ()
        assert result.commands == (
            "git add registry/digits/2.0.0.yanks.jsonl registry/.gitattributes",
            "git commit -m 'Yank digits@2.0.0'",
        )
        assert resolve(registry, "digits@latest").name == "digits@1.0.0"
        assert (root / "registry/digits/2.0.0/manifest.json").read_bytes() == before
        assert "registry/digits/2.0.0.yanks.jsonl" in git(
            root, "status", "--porcelain", "--untracked-files=all"
        )

    def test_the_same_reason_again_adds_nothing(self, root: Path, registry: Registry) -> None:
        yank(registry, "digits@2.0.0", "wrong")
        path = root / "registry/digits/2.0.0.yanks.jsonl"
        before = path.read_bytes()
        again = yank(registry, "digits@2.0.0", "wrong")
        assert (again.yanked_now, again.commands) == (False, ())
        assert path.read_bytes() == before
        assert yank(registry, "digits@2.0.0", "another reason").yanked_now
        assert path.read_bytes().startswith(before)
        assert len(path.read_bytes().splitlines()) == 2

    @pytest.mark.medium
    def test_gto_is_told_where_it_knows_the_version(self, root: Path, registry: Registry) -> None:
        tagged = call(registry, "digits@2.0.0")
        result = yank(registry, "digits@2.0.0", "wrong")
        assert result.made == ("digits@v2.0.0!",)
        assert result.commands[-1] == "git push origin 'digits@v2.0.0!'"
        assert git(root, "rev-parse", "digits@v2.0.0!^{commit}") == tagged.commit
        again = yank(registry, "digits@2.0.0", "wrong")
        assert (again.made, again.there) == ((), ("digits@v2.0.0!",))
        api = pytest.importorskip("gto.api", reason="GTO comes with the extra `dvc`")
        assert api.show(str(root), "digits") == []

    def test_a_withdrawn_release_is_not_tagged(self, registry: Registry) -> None:
        yank(registry, "digits@2.0.0", "wrong")
        with pytest.raises(UsageError, match=r"`digits@2\.0\.0` was yanked: wrong"):
            call(registry, "digits@2.0.0", stage="prod")

    def test_it_works_outside_git(self, digits_registry: Path) -> None:
        result = yank(open_registry(digits_registry), "digits@1.0.0", "wrong")
        assert (result.yanked_now, result.commands) == (True, ())
        with pytest.raises(UsageError, match="every release `digits@latest` was yanked"):
            resolve(open_registry(digits_registry), "digits@latest")

    def test_where_all_were_withdrawn_a_build_begins_anew(self, registry: Registry) -> None:
        for version in ("1.0.0", "2.0.0"):
            yank(registry, f"digits@{version}", "wrong")
        assert build(registry, BuildRequest(name="digits")).manifest.base is None

    def test_the_next_release_counts_on_from_a_withdrawn_one(
        self, root: Path, registry: Registry
    ) -> None:
        yank(registry, "digits@2.0.0", "wrong")
        schema = root / "schemas/digits.pbtxt"
        schema.write_text(schema.read_text() + "# reviewed\n")
        build(registry, BuildRequest(name="digits", base="digits@2.0.0"))
        made = release(registry, ReleaseRequest(name="digits"))
        assert str(made.version) == "2.0.1"
        assert resolve(registry, "digits@latest").name == "digits@2.0.1"
