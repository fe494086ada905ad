"""What a build keeps of an earlier run that ended early: nothing that other code made, nothing that
its check refused, and nothing at all if it is asked for everything anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hostile_plugin_support import EVIL, SOURCE, InProcess, expect_one_line, plant
from hostile_plugin_support import here as here  # the fixture

from tfrecreg.core.registry.manifest import parse_manifest

SPLITS = """
def items(self):
    for split in ("train", "validation"):
        for number in range(4):
            yield Item(split, str(number), 10)
"""
FAILS = """
def example(self, item):
    if item.split == "validation":
        raise RuntimeError("not yet")
    return {"label": int64_feature(7)}
"""
CORRECTED = """
def example(self, item):
    return {"label": int64_feature(1)}
"""
FLAG = """
def example(self, item):
    # What no plan knows: a helper of another distribution, a file that is no raw data.
    with open("FLAG") as file:
        label = file.read()
    if not label and item.split == "validation":
        raise RuntimeError("not yet")
    return {"label": int64_feature(int(label or 1))}
"""
LABELS = """
def schema(self):
    return 'feature { name: "label" type: INT shape {} int_domain { min: 0 max: 1 } }'
"""


class Bench:
    """A source whose code is edited between two builds."""

    def __init__(self, here: InProcess, folder: Path) -> None:
        self._here, self.folder = here, folder
        self.flag = folder / "flag"

    def write(self, body: str) -> None:
        plant(self._here.site, SOURCE, SPLITS + body.replace("FLAG", str(self.flag)))

    def fails(self, *more: str) -> tuple[int, str, str]:
        done = self._here.build(*more)
        assert done[0] != 0
        return done

    def text(self) -> tuple[int, str, str]:
        return self._here.build()

    def build(self, *more: str) -> Any:
        code, out, err = self._here.build("--json", *more)
        assert code == 0, err
        return json.loads(out)

    def content(self) -> str:
        """The content of the build that is there."""
        data = (self.folder / "r/data/d/manifest.json").read_bytes()
        return parse_manifest(data, "d").content

    def stages(self) -> list[str]:
        return [path.name for path in self.folder.glob("r/.tfrecreg/stage/d/*")]


@pytest.fixture
def bench(here: InProcess, tmp_path: Path) -> Bench:
    return Bench(here, tmp_path)


def all_ones(bench: Bench) -> str:
    """The content of a build of corrected code alone."""
    bench.write(CORRECTED)
    return str(bench.build("--anew")["content"])


@pytest.mark.medium
def test_shards_that_former_code_made_are_made_again(bench: Bench) -> None:
    bench.write(FAILS)
    expect_one_line(bench.fails(), "not yet")
    bench.write(CORRECTED)
    done = bench.build()
    assert done["resumed_shards"] == 0
    assert done["content"] == all_ones(bench)


def test_shards_of_the_same_code_are_kept(bench: Bench) -> None:
    bench.flag.write_text("")
    bench.write(FLAG)
    bench.fails()
    bench.flag.write_text("1")
    code, _, err = bench.text()
    assert code == 0
    assert "reused 1 finished shard of an earlier run: --anew rebuilds every shard\n" in err
    assert bench.stages() == []


@pytest.mark.medium
def test_anew_keeps_no_shard(bench: Bench) -> None:
    bench.flag.write_text("")
    bench.write(FLAG)
    bench.fails()
    bench.flag.write_text("0")
    done = bench.build("--anew")
    assert done["resumed_shards"] == 0
    content = done["content"]
    bench.write(CORRECTED.replace("int64_feature(1)", "int64_feature(0)"))
    assert bench.build()["content"] == content


def test_what_was_begun_anew_leaves_nothing_of_before(bench: Bench) -> None:
    bench.flag.write_text("")
    bench.write(FLAG)
    bench.fails()
    (before,) = bench.stages()
    bench.fails("--anew")
    (begun,) = bench.stages()
    assert begun != before
    bench.flag.write_text("1")
    assert bench.build()["resumed_shards"] == 0
    assert bench.stages() == []


def test_a_build_that_its_check_refused_leaves_no_shards(bench: Bench) -> None:
    bench.write(FLAG + LABELS)
    bench.flag.write_text("7")
    code, _, err = bench.fails()
    assert code == 1
    assert "the new build does not pass its own check" in err
    assert bench.stages() == []
    bench.flag.write_text("1")
    done = bench.build()
    assert done["resumed_shards"] == 0
    assert done["content"] == bench.content()


def test_too_many_skipped_items_cost_no_shards(bench: Bench) -> None:
    bench.write(
        "def example(self, item):\n"
        "    if item.key == '3':\n"
        "        return Skipped(item.split, item.key, 'SRC111', 'torn')\n"
        "    return {'label': int64_feature(1)}\n"
    )
    code, _, err = bench.fails()
    assert code == 1
    assert "2 of 8 items were skipped" in err
    assert bench.build("--max-skipped", "2")["resumed_shards"] == 2


IMPURE = {
    "random": "import random\n    return {'label': int64_feature(random.getrandbits(62))}",
    "skipping": (
        "self.count = getattr(self, 'count', 0) + 1\n"
        "    if self.count % 2: return Skipped(item.split, item.key, 'SRC111', 'torn')\n"
        "    return {'label': int64_feature(1)}"
    ),
    "remarking": (
        "self.count = getattr(self, 'count', 0) + 1\n"
        "    remark = Remark(item.split, item.key, 'SRC112', str(self.count))\n"
        "    return Written({'label': int64_feature(1)}, [remark])"
    ),
}


@pytest.mark.parametrize(
    ("how", "jobs"), [*((how, "1") for how in IMPURE), ("random", "2"), ("remarking", "2")]
)
def test_a_source_that_makes_something_else_of_the_same_item_is_named(
    bench: Bench, how: str, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.core.workers.local.WORTH_SECONDS", 0)
    bench.write(f"def example(self, item):\n    {IMPURE[how]}")
    done = bench.fails("-j", jobs, "--max-skipped", "8")
    expect_one_line(done)
    assert done[2].startswith(f"error: the source `evil` of {EVIL} made `")
    assert "` of the split `train` twice, and the results differ" in done[2]
    assert not (bench.folder / "r/data/d").exists()
