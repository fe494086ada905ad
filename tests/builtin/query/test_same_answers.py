"""A cache, a limit or a fall-back never changes an answer: NaN, long names of classes, shards that
change meanwhile, dates that Python cannot hold, other bytes than a report's or a manifest's.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from tests_support import Watcher

import tfrecreg as tr
from tfrecreg.cli.digits import write_digits
from tfrecreg.cli.main import main
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import StorageError

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

NAN = float("nan")
Ran = Callable[..., str]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def ran(capfd: pytest.CaptureFixture[str]) -> Ran:
    """A command that has to end with a code; its output."""

    def run(*arguments: object, code: int = 0) -> str:
        assert main(list(map(str, arguments))) == code
        return capfd.readouterr().out

    return run


def write(path: Path, *examples: Example) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(framed(*map(encode, examples)))
    os.utime(path, (1e9, 1e9))
    return path


def asked(target: object, sql: str) -> list[Any]:
    return [next(iter(row.values())) for row in tr.query(str(target), sql, progress=False).rows()]


SIDES = ("xmin", "ymin", "xmax", "ymax")
LOSSES = (0.5, NAN, 2.0, float("inf"), NAN, -0.0)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("isnan(loss)", 2),
        ("loss > 100", 3),  # to SQL, NaN is greater than all numbers
        ("NOT (loss <= 100)", 3),
        ("loss <> 1", 6),
        ("loss = 'nan'::FLOAT", 2),
        ("loss BETWEEN 0 AND 1", 2),
        ("list_contains(grads, 'nan'::FLOAT)", 2),
        ("smallest_box > 0.9", 3),
        ("loss = (SELECT max(loss) FROM records)", 2),
    ],
)
def test_conditions_see_nan(tmp_path: Path, where: str, wanted: int) -> None:
    for number, losses in enumerate((LOSSES[:3], LOSSES[3:], (1e-3, 2e-3))):
        write(
            tmp_path / f"s/train-{number:05d}-of-00003",
            *(
                {
                    "loss": float_feature(loss),
                    "grads": float_feature([0.0, loss]),
                    **{
                        f"image/object/bbox/{side}": float_feature(end)
                        for side, end in zip(SIDES, (0.25, 0.5, loss, 1), strict=True)
                    },
                }
                for loss in losses
            ),
        )
    if "<> 1" in where or "BETWEEN" in where:
        wanted += 2  # those of the last shard
    assert asked(tmp_path / "s", f"SELECT count(*) FROM records WHERE {where}") == [wanted]
    filtered = f"SELECT sum(n)::INT FROM (SELECT count(*) FILTER ({where}) AS n FROM records)"
    if "SELECT" not in where:
        assert asked(tmp_path / "s", filtered) == [wanted]
    assert len(tr.data_source(tmp_path / "s", where=where, raw=True, progress=False)) == wanted


def test_a_gate_sees_nan_and_the_exact_bound(digits_registry: Path, ran: Ran) -> None:
    config = digits_registry / "tfrecreg.toml"
    data = {"train": [{"loss": value} for value in (0.25, NAN, 0.5)]}
    tr.open(digits_registry)["losses"].build(data=data, progress=False)
    check = ("-C", digits_registry, "check", "losses", "--only", "questions", "--json")
    for expected, broken in (
        ('query = "SELECT * FROM records WHERE isnan(loss)"', True),
        ('query = "SELECT max(loss) FROM records WHERE NOT isnan(loss)"\nat_most = 0.5', False),
        ('query = "SELECT max(loss) FROM records WHERE NOT isnan(loss)"\nat_most = 0.49', True),
        ('query = "SELECT count(*) FROM records"\nat_most = 3\nat_least = 3', False),
        ('query = "SELECT count(*) FROM records"\nat_most = 2', True),
    ):
        config.write_text(f"[gates.losses.expect.x]\n{expected}\n")
        told = json.loads(ran(*check, code=int(broken)))
        codes = [each["code"] for each in told["findings"]]
        assert codes == ["QRY001"] * broken, expected


TURTLE = "leatherback turtle, leatherback, leathery turtle, Dermochelys coriacea"
HOUND = "bluetick hound, bluetick coonhound, American bluetick, Canis lupus familiaris"


def classified(number: int | None, text: str | bytes | None) -> Example:
    none: list[Any] = []
    return {
        **(
            {}
            if number == -1
            else {"image/class/label": int64_feature(none if number is None else number)}
        ),
        **(
            {}
            if text is None
            else {"image/class/text": bytes_feature(none if text == b"" else text)}
        ),
    }


@pytest.mark.medium
@pytest.mark.parametrize(
    ("examples", "labels"),
    [
        ([(1, TURTLE), (2, HOUND), (3, "cat")], [TURTLE, HOUND, "cat"]),
        ([(-1, TURTLE), (-1, "x" * 64), (-1, "ж" * 1000)], [TURTLE, "x" * 64, "ж" * 1000]),
        ([(1, "cat"), (2, None), (3, None)], ["cat", "2", "3"]),
        ([(1, "cat"), (2, ""), (3, b""), (None, b"")], ["cat", "2", "3", None]),
        ([(1, TURTLE), (-1, None), (7, "é" * 40)], [TURTLE, None, "é" * 40]),
        ([(0, None), (12, None)], [0, 12]),
    ],
)
def test_every_class_has_its_label(
    tmp_path: Path, examples: list[tuple[int | None, str | bytes | None]], labels: list[Any]
) -> None:
    folder = tmp_path / "s"
    made = [classified(*each) for each in examples]
    write(folder / "train-00000-of-00002", *made[:1])
    write(folder / "train-00001-of-00002", *made[1:])
    assert asked(folder, "SELECT label FROM records ORDER BY shard, record") == labels
    source = tr.data_source(folder, raw=True, progress=False)
    if None not in labels:
        drawn = Counter(
            int(number)
            for epoch in range(30)
            for number in source.order(seed=1, epoch=epoch, weights="class")
        )
        assert min(drawn.values()) > 10
        assert len(drawn) == len(labels)
    for label in labels:
        where = "label IS NULL" if label is None else f"label::VARCHAR = '{label}'"
        assert len(tr.data_source(folder, where=where, raw=True, progress=False)) == 1


class Replaces(Watcher):
    """A progress that puts another file in the place of one when its first work ends."""

    def __init__(self, path: Path, other: Path) -> None:
        super().__init__()
        self.path, self.other = path, other

    def stop(self) -> None:
        if self.other.exists():
            self.other.rename(self.path)


@pytest.mark.parametrize("verb", ["head", "export", "source"])
@pytest.mark.parametrize("records", [60, 3])
def test_a_shard_that_changes_after_the_condition_is_an_error(
    tmp_path: Path, verb: str, records: int
) -> None:
    registry = tr.init(tmp_path / "r", with_dvc=False)
    data = {"train": [{"n": number} for number in range(60)]}
    build = registry["numbers"].build(data=data, progress=False)
    (path,) = (tmp_path / "r/data/numbers").glob("*.tfrecord-*")
    with tr.TFRecordWriter(tmp_path / "other") as writer:
        for number in range(records):
            writer.write({"n": 59 - number})
    progress = Replaces(path, tmp_path / "other")
    given: dict[str, Any] = {"where": "n % 3 = 1", "progress": progress}
    verbs: dict[str, Callable[[], object]] = {
        "head": lambda: list(build.head(**given)),
        "export": lambda: build.export(tmp_path / "out", to="jsonl", **given),
        "source": lambda: [*build.data_source(**given)],
    }
    with pytest.raises(StorageError):
        verbs[verb]()
    assert not progress.other.exists()
    assert not (tmp_path / "out").exists()


def test_a_condition_on_other_bytes_than_the_index_is_refused(tmp_path: Path, ran: Ran) -> None:
    registry = tr.init(tmp_path / "r", with_dvc=False)
    data = {"train": [{"n": number} for number in range(20)]}
    registry["numbers"].build(data=data, progress=False)
    registry["other"].build(data={"train": data["train"][::-1]}, progress=False)
    (path,) = (tmp_path / "r/data/numbers").glob("*.tfrecord-*")
    (other,) = (tmp_path / "r/data/other").glob("*.tfrecord-*")
    assert path.stat().st_size == other.stat().st_size
    shutil.copy(other, path)
    run = ("-C", tmp_path / "r")
    (tmp_path / "r/datasets").mkdir(exist_ok=True)
    (tmp_path / "r/datasets/few.toml").write_text(
        'source = "tfrecreg"\nraw = "."\n[options]\ninputs = ["numbers"]\nwhere = "n < 5"\n'
    )
    ran(*run, "build", "few", code=1)


TIMES = (
    "make_timestamp(1700000000123 * 1000000)",
    "DATE '9999-12-31' + 1",
    "[DATE '-infinity']",
)


@pytest.mark.parametrize("sql", TIMES)
def test_times_that_python_cannot_hold_are_refused(tmp_path: Path, ran: Ran, sql: str) -> None:
    path = write(tmp_path / "train-00000-of-00001", {"n": int64_feature(1)})
    for form in ("json", "csv", "table"):
        ran("query", path, f"SELECT {sql} AS t FROM records", "--format", form, code=2)
    text = ran("query", path, f"SELECT ({sql})::VARCHAR AS t FROM records", "--format", "csv")
    assert text.splitlines()[0] == "t"
    ran("query", path, f"SELECT {sql} AS t", "--format", "parquet", "--output", tmp_path / "t.pq")


def swapped(folder: Path) -> None:
    """Two shards of one size change their places: each is sound, and where the other should be."""
    first, second = sorted(folder.glob("digits-train.tfrecord-*"))
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)


def test_findings_of_other_bytes_are_refused(digits_registry: Path, ran: Ran) -> None:
    run, report = ("-C", digits_registry), digits_registry / "report.json"
    report.write_text(ran(*run, "check", "digits", "--fail-on", "never", "--format", "json"))
    question = "SELECT count(*) AS n FROM findings"
    ran(*run, "gate", "digits", "--report", report)
    ran(*run, "query", "digits", question, "--report", report)
    swapped(digits_registry / "data/digits")
    ran(*run, "gate", "digits", "--report", report, code=2)
    ran(*run, "query", "digits", question, "--report", report, code=2)


def test_a_release_is_never_read_with_another_manifest(digits_registry: Path, ran: Ran) -> None:
    """The build has other bytes now, or its manifest is damaged or replaced, or the copy's is."""
    run, count = ("-C", digits_registry), "SELECT count(*) AS n FROM records"

    def records(reference: str, code: int = 0) -> object:
        out = ran(*run, "query", reference, count, "--format", "jsonl", code=code)
        return json.loads(out)["n"] if code == 0 else None

    release = ran(*run, "head", "digits@1.0.0", "--where", "label = '7'")
    build = digits_registry / "data/digits/manifest.json"
    copy = digits_registry / "versions/digits/1.0.0/manifest.json"
    held = copy.read_bytes()
    build.write_bytes(held[:-20])
    assert ran(*run, "head", "digits@1.0.0", "--where", "label = '7'") == release
    write_digits(LocalStorage(digits_registry / "raw"), train=20, test=6, seed=2)
    ran(*run, "build", "digits")
    assert (records("digits"), records("digits@1.0.0")) == (26, 260)
    check = (*run, "check", "digits@1.0.0", "--only", "manifest", "--json")
    for other in (build.read_bytes(), held[:-20]):
        copy.write_bytes(other)
        assert records("digits@1.0.0") == 260
        (finding,) = json.loads(ran(*check, code=1))["findings"]
        assert (finding["code"], finding["locations"][0]["shard"]) == ("SHD002", "manifest.json")
    shutil.rmtree(copy.parent)
    assert records("digits@1.0.0", code=2) is None
