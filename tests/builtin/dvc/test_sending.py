"""`push` says of a remote what it saw there, and sends what is missing, whatever DVC believes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dvc", reason="the extra `dvc` is not installed")

from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.cli.main import main
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import FailureError, RefusedError

SHARD = "digits-test.tfrecord-00000-of-00002"


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("path", [SHARD, ""])
def test_a_lost_object_is_sent_again(placed: Any, path: str) -> None:
    """DVC's index of the remote says that it is there."""
    registry = open_registry(placed.root)
    push(registry)
    assert push(registry).objects == 0
    before = placed.remote.sound()
    placed.remote.remove(placed.objects("1.0.0")[path])
    assert push(registry).objects == 1
    assert placed.remote.all() == before
    assert push(registry).objects == 0


@pytest.mark.parametrize("path", [SHARD, ""])
def test_an_object_of_another_size_is_damaged(story: Any, path: str) -> None:
    registry = open_registry(story.root)
    push(registry)
    before = story.remote.sound()
    oid = story.objects("1.0.0")[path]
    story.remote.put(oid, before[oid][:100])
    with pytest.raises(RefusedError) as caught:
        push(registry)
    what = f"`{path}` of `digits@1.0.0`" if path else "DVC's list of the files of `digits@1.0.0`"
    assert f"the remote `store` has {what} damaged: it " in caught.value.message
    if path == SHARD:
        size = len(before[oid])
        assert caught.value.message == (
            f"the remote `store` has {what} damaged: it has 100 bytes but should have {size}; "
            "nothing was sent"
        )
    assert caught.value.hint == "tfrecreg push --repair digits@1.0.0"
    found = push(registry, repair=True)
    assert (found.objects, found.replaced) == (1, 1)
    assert story.remote.all() == before


def test_damage_of_the_same_size_is_found_and_replaced(placed: Any) -> None:
    registry = open_registry(placed.root)
    push(registry)
    before = placed.remote.sound()
    sound = push(registry, verify=True).verified
    assert sound.listed == len(before)
    if placed.remote.all.__qualname__.startswith("S3"):
        # The two manifests, whose sizes nothing tells, have checksums too.
        assert (sound.checksums, sound.read) == (len(before), 0)
    else:
        assert (sound.checksums, sound.read) == (0, len(before))
        assert sound.bytes == sum(map(len, before.values()))
    oid = placed.objects("2.0.0")[SHARD]
    placed.remote.put(oid, flipped(before[oid]))
    with pytest.raises(RefusedError) as caught:
        push(registry, verify=True)
    assert f"`{SHARD}` of `digits@2.0.0` damaged: it should have the MD5 {oid} but has " in (
        caught.value.message
    )
    found = push(registry, ["digits@2.0.0"], repair=True)
    assert (found.objects, found.replaced) == (1, 1)
    assert placed.remote.all() == before
    assert push(registry, repair=True).objects == 0


def test_what_is_damaged_here_is_never_sent(story: Any) -> None:
    registry = open_registry(story.root)
    push(registry)
    oid = story.objects("1.0.0")[SHARD]
    story.cache.put(oid, flipped(story.cache.all()[oid]))
    story.remote.remove(oid)
    before = story.remote.all()
    with pytest.raises(FailureError) as caught:
        push(registry)
    assert caught.value.message == (
        f"the remote `store` lacks `{SHARD}` of `digits@1.0.0`, and this machine has no "
        "intact copy, so nothing was sent"
    )
    assert caught.value.hint == (
        "`tfrecreg repair digits@1.0.0` rebuilds it here; "
        "`tfrecreg push digits@1.0.0` sends it from a machine that has it"
    )
    story.remote.put(oid, b"damaged")
    with pytest.raises(RefusedError, match="and this machine has no intact copy to replace it"):
        push(registry, repair=True)
    assert {**before, oid: b"damaged"} == story.remote.all()


def test_whoever_has_it_sends_it(placed: Any) -> None:
    """A clone whose only bytes are the copy in `versions/`, and the list of files is lost too."""
    push(open_registry(placed.root))
    before = placed.remote.sound()
    other = placed.elsewhere()
    pull(open_registry(other.root), "digits@1.0.0")
    shutil.rmtree(other.root / ".dvc/cache")
    for path in (SHARD, ""):
        placed.remote.remove(placed.objects("1.0.0")[path])
    assert push(open_registry(other.root), ["digits@1.0.0"]).objects == 2
    assert placed.remote.all() == before


def test_a_machine_without_the_bytes_sees_what_the_remote_has(story: Any) -> None:
    push(open_registry(story.root))
    other = story.elsewhere()
    assert push(open_registry(other.root), verify=True).releases == ("digits@1.0.0", "digits@2.0.0")
    story.remote.remove(story.objects("2.0.0")[SHARD])
    assert push(open_registry(other.root), ["digits@1.0.0"]).objects == 0
    with pytest.raises(FailureError, match=f"lacks `{SHARD}` of `digits@2.0.0`, and this machine"):
        push(open_registry(other.root))


def test_a_list_is_sent_when_its_files_are_there(story: Any) -> None:
    """DVC takes a list that is there for all of its files."""
    registry = open_registry(story.root)
    objects = story.objects("1.0.0")
    story.cache.remove(objects[SHARD])
    with pytest.raises(FailureError, match=r"so all others were sent \(\d+\)"):
        push(registry)
    assert set(story.remote.all()) >= {*story.objects("2.0.0").values()}
    assert set(objects.values()) - set(story.remote.all()) == {objects[SHARD], objects[""]}


def test_one_listing_finds_all_objects_of_a_prefix(
    story: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dvc_objects.fs.local import LocalFileSystem

    registry = open_registry(story.root)
    push(registry)
    asked: list[str] = []
    real = LocalFileSystem.ls

    def listed(self: Any, path: str, **options: Any) -> Any:
        asked.append(path)
        return real(self, path, **options)

    monkeypatch.setattr(LocalFileSystem, "ls", listed)
    monkeypatch.setattr(LocalFileSystem, "info", None)
    found = push(registry)
    oids = story.remote.all()
    folder = story.remote.folder
    assert sorted(asked) == sorted({str(folder / oid[:2]) for oid in oids})
    assert found.verified.listed == len(oids)
    # Nothing but their lists tells the sizes of the manifests.
    assert found.verified.read == 2


def test_a_remote_that_does_not_keep_what_is_sent(
    story: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dvc_objects.fs.local import FsspecLocalFileSystem

    def put_file(self: Any, source: str, target: str, **options: Any) -> None:
        del self, options
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).write_bytes(Path(source).read_bytes()[:-1])

    monkeypatch.setattr(FsspecLocalFileSystem, "put_file", put_file)
    with pytest.raises(FailureError, match="the remote did not store what was sent: its object"):
        push(open_registry(story.root))


def test_the_command(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(story.root)
    assert main(["-C", root, "push", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    count = len(story.remote.all())
    assert document == {
        "format_version": document["format_version"],
        "releases": ["digits@1.0.0", "digits@2.0.0"],
        "objects": count,
        "replaced": 0,
        "verified": {"listed": count, "checksums": 0, "read": 0, "bytes": 0},
    }
    oid = story.objects("1.0.0")[SHARD]
    story.remote.put(oid, b"damaged")
    assert main(["-C", root, "push"]) == 1
    assert "hint: tfrecreg push --repair digits@1.0.0" in capsys.readouterr().err
    assert main(["-C", root, "push", "--repair"]) == 0
    assert (
        "the remote has digits@1.0.0, digits@2.0.0: 1 object sent, 1 of them replaced damaged "
        f"ones, 0 checksums compared, {count} objects read ("
    ) in " ".join(capsys.readouterr().out.split())
