"""The bytes that a release keeps are those of its manifest, even if the build changes meanwhile.

While a release stands still before a step, somebody puts other bytes in the build's place, as
rsync, `dvc checkout` or a person would. Then the release is refused, or its bytes verify. A waiver
does not help: bytes that differ from the manifest are never released.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from child_support import apart
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from git_support import commit, git
from kept_support import expect_kept
from steps_support import Step, pausing, steps_of, stopped
from sweep_support import part
from system_support import unsynced as unsynced  # and this one
from tests_support import flip

from tfrecreg.builtin.dvc.transfer import pull, push
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import CONFIG_NAME

SHARD = "digits-train.tfrecord-00000-of-00002"


def put(deed: Deed, name: str, data: bytes) -> None:
    """Put a file into the build: a new one, and a rename."""
    path = deed.root / "data/digits" / name
    path.with_name("incoming").write_bytes(data)
    path.with_name("incoming").rename(path)


def flip_a_bit(deed: Deed) -> None:
    data = bytearray((deed.root / "data/digits" / SHARD).read_bytes())
    data[100] ^= 1
    put(deed, SHARD, bytes(data))


def remove_a_shard(deed: Deed) -> None:
    (deed.root / "data/digits" / SHARD).unlink(missing_ok=True)


def take_another_build(deed: Deed) -> None:
    build = deed.root / "data/digits"
    shutil.copytree(deed.folder / "other", deed.root / "incoming")
    build.rename(deed.root / "outgoing")
    (deed.root / "incoming").rename(build)
    shutil.rmtree(deed.root / "outgoing")


SWAPS: Sequence[Callable[[Deed], None]] = (
    flip_a_bit,
    take_another_build,
    remove_a_shard,
)


@pytest.fixture
def other(deed: Deed) -> Iterator[Path]:
    """Another build, beside the registry."""
    deed.reset()
    deed.run(lambda: deed.build(3))
    folder = shutil.copytree(deed.root / "data/digits", deed.folder / "other")
    yield folder
    shutil.rmtree(folder)


def all_steps(deed: Deed) -> list[Step]:
    deed.reset()
    return steps_of(deed.do, deed.places, pausing)


def trial(deed: Deed, at: int, swap: Callable[[Deed], None], *, further: bool) -> None:
    deed.reset()
    child, step = stopped(deed.do, deed.places, at)
    if step is not None:
        swap(deed)
        child.go_on()
    ended = child.join()
    try:
        assert ended.failure is None or ended.failure.expected, ended.failure
        # The swap may have taken from DVC the bytes that its pointer names.
        expect_kept(deed.root, deed.folder / "remote", pointers=False)
        released = [str(each) for each in open_registry(deed.root).dataset("digits").versions]
        assert released == (["1.0.0"] if ended.failure else ["1.0.0", "2.0.0"])
        if further:
            expect_going_on(deed, released)
    except Exception as error:
        raise AssertionError(f"{swap.__name__} before step {at}, {step}") from error


def expect_going_on(deed: Deed, released: Sequence[str]) -> None:
    """After another build a release succeeds, and a clone of the repository gets all releases."""

    def go_on() -> None:
        deed.build(2)
        deed.release("3.0.0")
        deed.collect()

    deed.run(go_on)
    deed.expect_verified()
    assert deed.clean("digits@3.0.0")
    if deed.with_dvc:
        expect_shared(deed, [*released, "3.0.0"])


def expect_shared(deed: Deed, versions: Sequence[str]) -> None:
    clone = deed.folder / "clone"
    commit(deed.root, "all that there is")

    def share() -> None:
        push(open_registry(deed.root))
        git(deed.folder, "clone", "--quiet", "work", "clone")
        for version in versions:
            pull(open_registry(clone), f"digits@{version}")

    deed.run(share)
    assert all(deed.clean(f"digits@{version}", clone) for version in versions)
    shutil.rmtree(clone)


def sweep(deed: Deed, trials: Sequence[tuple[int, Callable[[Deed], None], bool]]) -> None:
    """Some trials. The error names all that went wrong."""
    wrong = []
    for at, swap, further in part(trials):
        try:
            trial(deed, at, swap, further=further)
        except AssertionError as error:
            wrong.append(f"{str(error)[:300]}: {error.__cause__!r:.300}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(trials)} trials:", *wrong[:10]])


def first(steps: Sequence[Step], kind: str, path: str) -> int:
    """The number of the first step of a kind at such a path."""
    return next(at for at, step in enumerate(steps, 1) if step.kind == kind and path in step.path)


@pytest.mark.slow
@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("deed", ["release"], indirect=True)
def test_a_release_keeps_what_it_judged_or_refuses(
    deed: Deed, swap: Callable[[Deed], None]
) -> None:
    steps = all_steps(deed)
    judged = first(steps, "link", SHARD)
    places = range(1, len(steps) + 1)
    sweep(deed, [(at, swap, at == judged or at % 5 == 0) for at in places])


@pytest.mark.slow
@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("deed", ["release-dvc"], indirect=True)
def test_dvc_keeps_what_was_judged_or_the_release_is_refused(deed: Deed) -> None:
    steps = all_steps(deed)
    hashing = first(steps, "create", "/.dvc/tmp/rwlock")
    copying = first(steps, "rename", "/.dvc/cache/files/") + 1
    trials = [(hashing, flip_a_bit, False), (copying, take_another_build, True)]
    some = sorted(random.Random(12).sample(range(1, len(steps) + 1), 40))
    sweep(deed, [*trials, *((at, SWAPS[at % len(SWAPS)], at % 10 == 0) for at in some)])


WAIVERS = """
[[waivers]]
code = "{code}"
owner = "ada"
reason = "known"
expires = 2099-12-31
"""


HOW = ("flipped", "missing", "index", "labels")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("deed", ["release"], indirect=True)
def test_no_waiver_lets_other_bytes_be_released(deed: Deed, how: str) -> None:
    expect_refused(deed, how)


@pytest.mark.parametrize("how", ["flipped", pytest.param("missing", marks=pytest.mark.slow)])
@pytest.mark.parametrize("deed", ["release-dvc"], indirect=True)
def test_no_waiver_lets_dvc_keep_other_bytes(deed: Deed, how: str) -> None:
    expect_refused(deed, how)


def expect_refused(deed: Deed, how: str) -> None:
    """A damaged build whose findings are waived is not released; built again, it is."""
    deed.reset()
    with (deed.root / CONFIG_NAME).open("a") as config:
        config.write("".join(WAIVERS.format(code=code) for code in ("SHD*", "CRC*", "SCH*")))
    build = deed.root / "data/digits"
    if how == "flipped":
        flip(build / SHARD, 100)
    elif how == "index":
        flip(build / f"index/{SHARD}.index", 60)
    elif how == "labels":
        (build / "labels.json").unlink()
        (build / "labels.json").write_text("{}")
    else:
        (build / SHARD).unlink()

    found = apart(deed.at_command_line)
    assert found["code"] in (1, 2, 3), found
    assert "error: " in found["err"]
    assert "hint: " in found["err"]
    assert not (deed.root / "registry/digits/2.0.0").exists()
    deed.expect_verified()
    deed.run(lambda: deed.build(2))
    deed.run(deed.do)
    deed.expect_verified()
