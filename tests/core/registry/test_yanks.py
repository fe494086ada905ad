"""Yanks are appended and merged; `latest` and globs pass over yanked releases."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_support import commit, git, start
from registry_support import empty_registry, put_build, put_release, write

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.registry import Registry, Yank, read_yanks, yanked
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.values.errors import ManifestError, NewerFormatError, UsageError
from tfrecreg.core.values.reference import Version

ONE, TWO = Version(1, 0, 0), Version(1, 1, 0)
WHY = Yank(created="2026-01-01T00:00:00Z", by="ada", reason="labels are wrong")
MORE = Yank(created="2026-01-02T00:00:00Z", by="bob", reason="images, too")
PATH = "registry/mnist/1.1.0.yanks.jsonl"


def yank(registry: Registry, dataset: str, version: Version, why: Yank) -> None:
    with transaction(registry.dataset(dataset)) as change:
        change.yank(version, why)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    opened = empty_registry(tmp_path / "root")
    for version in ("1.0.0", "1.1.0", "2.0.0"):
        put_release(
            Path(opened.storage.root), put_build(Path(opened.storage.root), "mnist"), version
        )
    return opened


def test_a_withdrawal_is_a_line_beside_the_folder(registry: Registry) -> None:
    assert read_yanks(registry.dataset("mnist"), TWO) == ()
    yank(registry, "mnist", TWO, WHY)
    root = Path(registry.storage.root)
    assert layout.yanks_path("mnist", TWO) == PATH
    assert (root / PATH).read_text() == (
        '{"by":"ada","created":"2026-01-01T00:00:00Z","format_version":1,'
        '"reason":"labels are wrong"}\n'
    )
    assert sorted(path.name for path in (root / "registry/mnist/1.1.0").iterdir()) == [
        "manifest.json",
        "schema.pbtxt",
    ]
    yank(registry, "mnist", TWO, MORE)
    assert read_yanks(registry.dataset("mnist"), TWO) == (WHY, MORE)
    assert yanked(registry.dataset("mnist")) == {TWO: (WHY, MORE)}


def test_latest_and_globs_pass_a_withdrawn_release_over(registry: Registry) -> None:
    yank(registry, "mnist", Version(2, 0, 0), WHY)
    assert resolve(registry, "mnist@latest").name == "mnist@1.1.0"
    yank(registry, "mnist", TWO, WHY)
    assert resolve(registry, "mnist@latest").name == "mnist@1.0.0"
    assert resolve(registry, "mnist@1.*").name == "mnist@1.0.0"
    named = resolve(registry, "mnist@2.0.0")
    assert (named.name, named.yanks) == ("mnist@2.0.0", (WHY,))
    assert resolve(registry, "mnist@1.0.0").yanks == ()
    assert resolve(registry, "mnist").yanks == ()


def test_where_all_were_withdrawn_it_says_why(registry: Registry) -> None:
    yank(registry, "mnist", Version(2, 0, 0), WHY)
    with pytest.raises(UsageError, match=r"2\.0\.0 because: labels are wrong"):
        resolve(registry, "mnist@2.*")
    with pytest.raises(UsageError, match=r"no release `mnist@3\.\*`"):
        resolve(registry, "mnist@3.*")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("<<<<<<< HEAD\n", "line 1: Expecting value: line 1 column 1"),
        ("[]\n", "line 1: not a JSON object"),
        ('{"reason":"x"}\n', "line 1: it has no `format_version`"),
        ('{"format_version":true}\n', "line 1: it has no `format_version`"),
        ('{"format_version":1,"by":"a","created":"b"}\n', "line 1: it has no `reason`"),
        ('{"format_version":1,"by":"a","created":"b","reason":5}\n', "it has no `reason`"),
    ],
)
def test_what_is_no_list_of_withdrawals_is_refused_by_name(
    registry: Registry, text: str, message: str
) -> None:
    path = write(Path(registry.storage.root) / PATH, text)
    with pytest.raises(ManifestError) as caught:
        resolve(registry, "mnist@latest")
    assert caught.value.message.startswith(f"`{PATH}` is not a list of yanks: ")
    assert message in caught.value.message
    assert caught.value.exit_code == 2
    with pytest.raises(ManifestError):
        yank(registry, "mnist", TWO, WHY)
    assert path.read_text() == text
    assert resolve(registry, "mnist@1.1.0").name == "mnist@1.1.0"  # who names it gets it


def test_a_line_of_a_newer_format_is_refused(registry: Registry) -> None:
    Path(registry.storage.root, PATH).write_bytes(b'{"format_version":2}\n')
    with pytest.raises(NewerFormatError, match="line 1: it has format 2, this tfrecreg supports 1"):
        read_yanks(registry.dataset("mnist"), TWO)


def test_a_field_of_a_later_tfrecreg_is_passed_over(registry: Registry) -> None:
    line = b'{"format_version":1,"by":"a","created":"b","reason":"c","more":[1]}\n'
    Path(registry.storage.root, PATH).write_bytes(line)
    found = read_yanks(registry.dataset("mnist"), TWO)
    assert found == (Yank(created="b", by="a", reason="c"),)


def test_withdrawals_on_two_branches_merge_into_both(registry: Registry) -> None:
    root = start(Path(registry.storage.root))
    commit(root)
    git(root, "switch", "--quiet", "--create", "other")
    yank(registry, "mnist", TWO, MORE)
    commit(root, "theirs")
    git(root, "switch", "--quiet", "main")
    yank(registry, "mnist", TWO, WHY)
    yank(registry, "mnist", ONE, WHY)
    commit(root, "ours")
    git(root, "merge", "--quiet", "--no-edit", "other")
    assert set(read_yanks(registry.dataset("mnist"), TWO)) == {WHY, MORE}
    assert read_yanks(registry.dataset("mnist"), ONE) == (WHY,)
